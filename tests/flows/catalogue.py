"""The cases, by the noun they are about."""

from datetime import datetime, timedelta
from typing import Any

from tests.flows.case import Case
from tests.flows.ledger import Ledger
from tests.flows.steps import BusyError, Steps
from workflows import Effect, FailedRun, Retry, RunState, StepContext, step, workflow

READ = Effect.READ
SOON_S = 2.0


def catalogue(ledger: Ledger) -> dict[str, Case]:
    """All cases by name, over one ledger."""
    steps = Steps(ledger)
    parts = (_sequence, _arms, _loops, _waiting, _questions, _nesting, _effects, _retries, _ends, _children)
    return {case.name: case for part in parts for case in part(steps)}


def _sequence(s: Steps) -> list[Case]:
    return [
        Case(
            "then",
            workflow("then").then(s.add("one")).then(s.add("two")).then(s.add("three")).commit(),
            0, 3, {"one": 1, "two": 1, "three": 1},
        ),
        Case(
            "map",
            workflow("map").then(s.add("one")).map(lambda n: n * 10).then(s.add("two")).commit(),
            1, 21, {"one": 1, "two": 1},
        ),
        Case("bail", workflow("bail").then(s.add("one")).then(_bailing(s)).then(s.add("never")).commit(), 1, 99, {"one": 1, "bailing": 1}),
        Case("state, decided in an arm", _decided(s), 1, {"late": 3, "decided": 4}, {"one": 1, "two": 1, "three": 1, "four": 1, "five": 1}),
        Case("state", workflow("state").then(_setting(s)).then(s.add("one")).then(_reading(s)).commit(), 1, 43, {"one": 1}),
    ]  # fmt: skip


def _bailing(s: Steps) -> Any:
    async def bailing(n: int, ctx: StepContext) -> int:
        await s.ledger.did("bailing", ctx)
        ctx.bail(99)

    return step(id="bailing", effect=READ)(bailing)


def _setting(s: Steps) -> Any:
    async def setting(n: int, ctx: StepContext) -> int:
        ctx.set_state(kept=41)
        return n

    return step(id="setting", effect=READ)(setting)


def _decided(s: Steps) -> Any:
    """One arm decides at once by what the other sets at its end; walked again, it finds that set."""
    late = workflow("late").then(s.add("one")).then(s.add("two")).then(_setting(s)).commit()
    without = workflow("without").then(s.add("three")).then(s.add("four")).then(s.add("five")).commit()
    decided = workflow("decided").branch((lambda n, state: "kept" in state, s.add("with")), otherwise=without).commit()
    return workflow("decided-in-an-arm").parallel(late, decided).commit()


def _reading(s: Steps) -> Any:
    async def reading(n: int, ctx: StepContext) -> int:
        return n + int(ctx.state["kept"])

    return step(id="reading", effect=Effect.PURE)(reading)


def _arms(s: Steps) -> list[Case]:
    three = [s.add("left", 1), s.add("middle", 2), s.add("right", 3)]
    all_three = {"left": 1, "middle": 1, "right": 1}
    output = {"left": 2, "middle": 3, "right": 4}
    listing = step(id="upto", effect=READ)(_upto)
    return [
        Case("parallel", workflow("parallel").then(s.add("one")).parallel(*three).commit(), 0, output, {"one": 1, **all_three}),
        Case("parallel with a limit", workflow("limited").then(s.add("one")).parallel(*three, limit=1).commit(), 0, output, {"one": 1, **all_three}),
        Case(
            "branch, first",
            workflow("first").then(s.add("one")).branch((lambda n: n > 5, s.add("big")), (lambda n: n > 0, s.add("small"))).commit(),
            1, 3, {"one": 1, "small": 1},
        ),
        Case(
            "branch, all",
            workflow("every")
            .then(s.add("one"))
            .branch((lambda n: n > 0, s.add("left", 1)), (lambda n: n > 1, s.add("right", 3)), mode="all")
            .commit(),
            1, {"left": 3, "right": 5}, {"one": 1, "left": 1, "right": 1},
        ),
        Case("foreach", workflow("foreach").then(listing).foreach(s.add("each"), concurrency=2).commit(), 4, [1, 2, 3, 4], {"each": 4}),
        Case("foreach, one by one", workflow("one-by-one").then(listing).foreach(s.add("each")).commit(), 3, [1, 2, 3], {"each": 3}),
    ]  # fmt: skip


async def _upto(n: int) -> list[int]:
    return list(range(n))


def _loops(s: Steps) -> list[Case]:
    body = workflow("body").then(s.add("one")).then(s.add("two", effect=Effect.IDEMPOTENT)).commit()
    return [
        Case(
            "dowhile",
            workflow("dowhile").dowhile(s.add("one"), lambda n: n < 4, max_iterations=9).commit(),
            0,
            4,
            {"one": 4},
        ),
        Case(
            "dountil",
            workflow("dountil").dountil(body, lambda n, count: count == 3, max_iterations=9).commit(),
            0,
            6,
            {"one": 3, "two": 3},
        ),
    ]


def _waiting(s: Steps) -> list[Case]:
    async def soon(n: int, ctx: StepContext) -> datetime:
        return await ctx.now() + timedelta(seconds=SOON_S)

    pick = step(id="pick", effect=READ)(soon)
    until = workflow("sleep-until").then(pick).sleep_until(lambda at: at).map(lambda at: 1).then(s.add("one")).commit()
    return [
        Case("sleep", workflow("sleep").then(s.add("one")).sleep(SOON_S).then(s.add("two")).commit(), 0, 2, {"one": 1, "two": 1}),
        Case("sleep_until", until, 0, 2, {"one": 1}),
        Case(
            "wait_for, a signal",
            workflow("wait").then(s.add("one")).wait_for("go", int).then(s.add("two")).commit(),
            0, 8, {"one": 1, "two": 1}, signals=(("go", 7),),
        ),
        Case(
            "wait_for, the time-out",
            workflow("wait-in-vain").then(s.add("one")).wait_for("go", int, timeout=SOON_S, otherwise=40).then(s.add("two")).commit(),
            0, 41, {"one": 1, "two": 1},
        ),
        Case(
            "signals drained",
            workflow("drain").then(s.drain("first")).map(len).then(s.add("one")).then(s.drain("second")).map(len).commit(),
            None, 0, {"first": 1, "one": 1, "second": 1}, key="thread", started_by="message",
        ),
    ]  # fmt: skip


def _questions(s: Steps) -> list[Case]:
    arms = workflow("ask-arms").then(s.add("one")).parallel(s.ask("a"), s.ask("b"), s.add("c")).commit()
    items = (
        workflow("ask-items").then(step(id="upto", effect=READ)(_upto)).foreach(s.ask("each"), concurrency=2).commit()
    )
    loop = workflow("ask-loop").dowhile(s.ask("again"), lambda n: n < 30, max_iterations=9).commit()
    inner = workflow("inner").then(s.add("one")).then(s.ask("asked")).commit()
    nested = workflow("ask-nested").then(inner).then(s.add("two")).commit()
    return [
        Case(
            "suspend",
            workflow("ask").then(s.ask("asked")).then(s.add("one")).commit(),
            1,
            12,
            {"asked": 1, "one": 1},
            answers={"asked": (10,)},
        ),
        Case(
            "suspend, several rounds",
            workflow("rounds").then(s.ask("asked", rounds=3)).commit(),
            0,
            6,
            {"asked": 1},
            answers={"asked": (1, 2, 3)},
        ),
        Case(
            "suspend in arms",
            arms,
            0,
            {"a": 11, "b": 21, "c": 2},
            {"one": 1, "a": 1, "b": 1, "c": 1},
            answers={"a": (10,), "b": (20,)},
        ),
        Case("suspend in items", items, 2, [10, 21], {"each": 2}, answers={"each[0]": (10,), "each[1]": (20,)}),
        Case("suspend in a loop", loop, 0, 30, {"again": 2}, answers={"again#1": (10,), "again#2": (20,)}),
        Case(
            "suspend in a nested workflow",
            nested,
            0,
            12,
            {"one": 1, "asked": 1, "two": 1},
            answers={"inner/asked": (10,)},
        ),
    ]


def _nesting(s: Steps) -> list[Case]:
    inner = workflow("inner").then(s.add("one")).then(s.add("two")).commit()
    beside = workflow("beside").then(s.add("one")).then(s.add("two")).commit()
    middle = (
        workflow("middle")
        .then(inner)
        .parallel(s.add("left"), beside)
        .map(lambda both: both["left"] + both["beside"])
        .commit()
    )
    return [
        Case(
            "nested", workflow("nested").then(s.add("zero")).then(inner).commit(), 0, 3, {"zero": 1, "one": 1, "two": 1}
        ),
        Case(
            "doubly nested",
            workflow("doubly-nested").then(middle).then(s.add("three")).commit(),
            0,
            8,
            {"one": 2, "two": 2, "left": 1, "three": 1},
        ),
    ]


def _effects(s: Steps) -> list[Case]:
    keyed = s.add("charge", effect=Effect.IDEMPOTENT)
    return [
        Case("idempotent", workflow("idempotent").then(keyed).then(s.add("one")).commit(), 0, 2, {"charge": 1, "one": 1}),
        Case("reconcile", workflow("reconcile").then(s.post("post")).then(s.add("one")).commit(), 0, 2, {"post": 1, "one": 1}, risky=frozenset()),
        Case("irreversible", workflow("irreversible").then(s.spend("spend")).commit(), 0, 1, {"spend": 1}, risky=frozenset({"spend"})),
        Case(
            "irreversible arms",
            workflow("irreversible-arms").then(s.add("one")).parallel(s.spend("spend"), s.post("post"), keyed).commit(),
            0, {"post": 2, "charge": 2}, {"one": 1, "spend": 1, "post": 1, "charge": 1}, risky=frozenset({"spend"}),
        ),
    ]  # fmt: skip


def _retries(s: Steps) -> list[Case]:
    quick = s.busy("flaky", times=2, error=ConnectionError, retry=Retry(times=3, base=0.01, cap=0.02))
    long = s.busy("busy", times=1, error=BusyError, retry=Retry(times=3))
    return [
        Case("retry", workflow("retry").then(s.add("one")).then(quick).commit(), 0, 2, {"one": 1, "flaky": 1}),
        Case("retry with a long wait", workflow("long-retry").then(s.add("one")).then(long).then(s.add("two")).commit(), 0, 3, {"one": 1, "busy": 1, "two": 1}),
        Case(
            "time-out",
            workflow("time-out").then(s.add("one")).then(s.stuck("stuck", timeout=0.05)).commit(),
            0, does={"one": 1}, state=RunState.FAILED, failure="TimeoutError",
        ),
    ]  # fmt: skip


def _ends(s: Steps) -> list[Case]:
    paid = [
        s.add(name, effect=Effect.IDEMPOTENT, compensate=s.undo(f"{name}-back")) for name in ("pay", "book", "ship")
    ]
    undone = {"pay": 1, "book": 1, "ship": 1, "fail": 1, "pay-back": 1, "book-back": 1, "ship-back": 1}
    failing = (
        workflow("compensate")
        .then(paid[0])
        .parallel(*paid[1:])
        .map(lambda both: both["book"])
        .then(s.fail("fail"))
        .commit()
    )
    beside = workflow("beside").then(s.add("one")).then(s.add("two")).commit()
    arm = workflow("failing-arm").then(paid[0]).parallel(s.fail("fail"), beside).commit()
    return [
        Case("compensation", failing, 0, does=undone, state=RunState.FAILED, failure="BrokenError"),
        Case("a failing arm", arm, 0, does={"pay": 1, "fail": 1, "one": 1, "two": 1, "pay-back": 1}, spare=frozenset({"one", "two"}), state=RunState.FAILED, failure="BrokenError"),
        Case(
            "cancel while it sleeps",
            workflow("cancel-sleep").then(s.add("one")).sleep(86_400).then(s.add("never")).commit(),
            0, does={"one": 1}, stop_at="sleep-1@until", state=RunState.CANCELLED,
        ),
        Case(
            "cancel in a step",
            workflow("cancel-step").then(s.add("one")).then(s.stuck("stuck")).commit(),
            0, does={"one": 1}, stop_at="stuck", state=RunState.CANCELLED,
        ),
    ]  # fmt: skip


def _children(s: Steps) -> list[Case]:
    child = workflow("child").then(s.add("worked")).commit()

    async def begin(value: Any, ctx: StepContext) -> str:
        await ctx.signals.drain("message")
        return ctx.dispatch(child, 20)

    async def tell(failed: FailedRun, ctx: StepContext) -> None:
        await s.ledger.did("told", ctx)

    parent = workflow("parent").then(step(id="begin", effect=READ)(begin)).wait_for("task", dict[str, Any]).commit()
    notice = workflow("notice").then(step(id="tell", effect=Effect.IDEMPOTENT)(tell)).commit()
    failing = workflow("told-of", on_failure="notice").then(s.add("one")).then(s.fail("fail")).commit()
    return [
        Case(
            "a background task",
            parent,
            None,
            {"state": "done"},
            {"worked": 1},
            others=(child,),
            key="thread",
            started_by="message",
        ),
        Case(
            "on_failure",
            failing,
            0,
            does={"one": 1, "fail": 1, "told": 1},
            others=(notice,),
            state=RunState.FAILED,
            failure="BrokenError",
        ),
    ]
