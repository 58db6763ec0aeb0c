"""kill -9 of the worker that holds a turn, at every point it passes (P5, P6, P7): another worker finishes it, and nothing happens twice.

Each point is a real SIGKILL of a real process. The tests kill at one point of every kind; `./dev acceptance` kills at all of them.
"""

import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from signal import SIGKILL

import pytest

from agent.campaigns import CAMPAIGN_TABLES
from tests.acceptance.stack import TENANT, Json, Process, Stack, is_answer
from tests.tally import Tally
from workflows.storage import Select
from workflows.storage.base import Record, Status

pytestmark = [pytest.mark.process, pytest.mark.timeout(1500)]
FULL = os.environ.get("THREADLINE_ACCEPTANCE") == "full"
SETTINGS = {"THREADLINE_LEASE_S": "1", "THREADLINE_DELIVERY_DEADLINE_S": "3"}
(CHANGES,) = (table for table in CAMPAIGN_TABLES if table.name == "campaign_changes")


@dataclass(frozen=True, slots=True)
class Scenario:
    """A turn to kill: `prepare` brings a thread to just before it, and returns its root and how many answers stand there already."""

    name: str
    prepare: Callable[[Stack], Awaitable[tuple[str, int]]]
    changes: int


async def _question(stack: Stack) -> tuple[str, int]:
    return await stack.say("@Threadline how did all campaigns do last week?"), 0


async def _ask(stack: Stack) -> tuple[str, int]:
    return await stack.say("@Threadline set the daily budget of Brand Search to 130"), 0


async def _approved(stack: Stack) -> tuple[str, int]:
    """The card is posted by a worker that leaves again; the click is accepted while none runs."""
    (worker,) = await stack.start("worker", settings=SETTINGS)
    amount = 131 + len(await stack.store.read(Select(CHANGES, {"tenant": TENANT})))
    root = await stack.say(f"@Threadline set the daily budget of Brand Search to {amount}")
    await stack.answered(root)
    await stack.settled()
    await worker.terminate()
    await stack.approve(root)
    return root, 1


SCENARIOS = (Scenario("question", _question, 0), Scenario("ask", _ask, 0), Scenario("approved", _approved, 1))


@pytest.fixture(params=SCENARIOS, ids=lambda scenario: scenario.name)
def scenario(request: pytest.FixtureRequest) -> Scenario:
    found: Scenario = request.param
    return found


@pytest.fixture
async def web(stack: Stack) -> Stack:
    await stack.start("web", settings=SETTINGS)
    return stack


async def test_a_kill_at_any_point_loses_nothing_and_doubles_nothing(
    web: Stack, scenario: Scenario, tmp_path: Path, tally: Tally
) -> None:
    """One traced turn lists the points; then one turn per point is killed there."""
    trace = tmp_path / "traced"
    root, before = await scenario.prepare(web)
    (worker,) = await web.start("worker", settings={**SETTINGS, "THREADLINE_TEST_TRACE": str(trace)})
    await web.answered(root, before + 1)
    await web.settled()
    await worker.terminate()
    points = [line.split(" ", 3)[3] for line in _lines(trace) if line.split(" ", 2)[1] == "point"]
    assert len(points) > 15
    for number in _chosen(points):
        killed = await _killed_at(web, scenario, number, points[number - 1], tmp_path / f"killed-{number}")
        tally.count("crash points", f"agent turn, {scenario.name}", killed=int(killed), survived=int(killed))


def _chosen(points: list[str]) -> list[int]:
    """All points, or the last of each kind: the end of a turn is where most can go wrong."""
    if FULL:
        return list(range(1, len(points) + 1))
    last = {name: number for number, name in enumerate(points, 1)}
    wanted = (
        "within model",
        "after step",
        "before slack",
        "after slack",
        "within change_budget, before",
        "within change_budget, after",
    )
    return sorted(last[name] for name in wanted if name in last)


async def _killed_at(stack: Stack, scenario: Scenario, number: int, name: str, trace: Path) -> bool:
    """False: this time the turn passed fewer points, since how often a stream is extended depends on time."""
    root, before = await scenario.prepare(stack)
    made = len(await stack.store.read(Select(CHANGES, {"tenant": TENANT})))
    (killer,) = await stack.start(
        "worker",
        settings={**SETTINGS, "THREADLINE_TEST_TRACE": str(trace), "THREADLINE_TEST_KILL": str(number)},
        ready=False,
    )
    if not await _died(stack, killer, root, before + 1):
        return False
    recorded = _finished(await _records(stack, root))
    (worker,) = await stack.start("worker", settings={**SETTINGS, "THREADLINE_TEST_TRACE": f"{trace}-after"})
    await stack.answered(root, before + 1)
    await stack.settled()
    await worker.terminate()
    where = f"{scenario.name}, killed at {number} ({name})"
    await _check_thread(stack, root, before + 1, where)
    if name.startswith("within change_budget"):
        assert "outcome was unknown" in (await stack.answers(root))[-1]["plain"], where
    if scenario.name == "question":
        (answer,) = await stack.answers(root)
        text = answer["plain"]
        assert text.startswith("All 9 campaigns together"), f"{where}: {text}"
        assert "Total" in text, f"{where}: {text}"
    await _check_steps(stack, root, recorded, Path(f"{trace}-after"), where)
    executed = [
        line for path in (trace, Path(f"{trace}-after")) if path.exists() for line in path.read_text().splitlines()
    ]
    assert sum("executed tool change_budget" in line for line in executed) <= 1, where
    assert len(await stack.store.read(Select(CHANGES, {"tenant": TENANT}))) - made <= scenario.changes, where
    return True


async def _died(stack: Stack, killer: Process, root: str, answers: int) -> bool:
    """Wait until the worker is killed, or has done the whole turn. Any other end is a failure."""

    async def over() -> bool:
        return not killer.alive or (len(await stack.answers(root)) >= answers and not await stack.live())

    await stack.wait(over, "the worker to be killed", timeout_s=60)
    if killer.alive:
        await killer.terminate()
        return False
    assert await killer.died() == -SIGKILL
    return True


async def _records(stack: Stack, root: str) -> list[Record]:
    runs = [run for run in await stack.store.runs(tenant=TENANT, limit=1000) if (run.key or "").endswith(root)]
    return await stack.store.load(runs[0].run_id)  # newest first


def _finished(records: list[Record]) -> dict[str, int]:
    """How many model calls and tool calls have a result."""
    ended = [record.path for record in records if record.status in (Status.OK, Status.INTERRUPTED)]
    return {
        "model": sum(path.endswith("/call-model") for path in ended),
        "tool": sum("/run-tool[" in path or "/run-approved[" in path for path in ended),
    }


async def _check_thread(stack: Stack, root: str, answers: int, where: str) -> None:
    """The answers, and nothing half said beside them."""
    thread = await stack.thread(root)
    assert sum(map(is_answer, thread)) == answers, f"{where}: {[message['plain'][:80] for message in thread]}"
    ours = [message for message in thread if message["user"] == "U0THREADLINE"]
    assert all(_identified(message) for message in ours), f"{where}: {[message['plain'][:80] for message in ours]}"
    assert not [message for message in ours if message.get("streaming") == "streaming"], where
    ids = [message["metadata"]["event_payload"]["delivery_id"] for message in ours if message.get("metadata")]
    assert len(ids) == len(set(ids)), f"{where}: {ids}"


def _lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


def _identified(message: Json) -> bool:
    """Answers and cards carry metadata."""
    return bool((message.get("metadata") or {}).get("event_payload"))


async def _check_steps(stack: Stack, root: str, recorded: dict[str, int], after: Path, where: str) -> None:
    """What had a result at the kill was not run again."""
    total = _finished(await _records(stack, root))
    lines = _lines(after)
    for kind in ("model", "tool"):
        again = sum(f"executed {kind}" in line for line in lines)
        assert again <= total[kind] - recorded[kind], (
            f"{where}: {again} {kind} calls after {recorded[kind]} of {total[kind]} were recorded"
        )
