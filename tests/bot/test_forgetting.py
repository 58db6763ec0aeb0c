"""`/threadline forget this channel`: afterwards nothing that was said there is stored, whatever was going on."""

from typing import Any

import pytest

from agent.messages import MESSAGES
from bot.commands.threadline import FORGETTING
from tests.bot.bench import NORTHWIND, Bench
from tests.bot.test_approvals import approval_id, ask_for, changes, clickable
from tests.waiting import until
from workflows.pubsub import Event, PubSubUnavailableError
from workflows.storage import Select
from workflows.storage.tables import APPROVALS, RUNS, STEPS

BOTH = pytest.mark.parametrize("storage", ["sqlite", "servers"], indirect=True)
WORD = "aardvark"
"""What everything that is said here names."""


async def remains(bench: Bench) -> dict[str, int]:
    """The rows of each table that hold the word."""
    store = bench.service.store
    found = {}
    for table in store.tables:
        where = {} if table.shared else {"tenant": NORTHWIND}
        rows = await store.read(Select(table, where))
        found[table.name] = sum(WORD in str(row).lower() for row in rows)
    return {name: count for name, count in found.items() if count}


async def forget(bench: Bench, channel: str = "#campaigns") -> str:
    said = await bench.people.command(channel, "@ada", "/threadline", "forget this channel")
    return str(said["response"]["text"])


@BOTH
async def test_no_row_anywhere_holds_what_was_said(bench: Bench) -> None:
    """Messages, commands in threads and their answers, approvals that wait and that were decided, ratings with reasons, records of runs."""
    root = await bench.asked(f"@Threadline how did {WORD} do last week?")
    await bench.answer(root)
    await bench.people.post_message("#campaigns", "@ada", f"!threadline {WORD}", thread_ts=root)
    await bench.people.post_message("#campaigns", "@ada", f"!report {WORD}", thread_ts=root)
    _, shown = await ask_for(bench, "150")
    answer = (await bench.replies(root))[0]
    (buttons,) = [block for block in answer["blocks"] if block["type"] == "context_actions"]
    bad = buttons["elements"][0]["negative_button"]["value"]
    await bench.people.click("#campaigns", answer["ts"], "answer_feedback", "@ben", value=bad)
    (view,) = (await bench.people.views("@ben"))["views"]
    await bench.people.submit_view("@ben", view["id"], {"reason": {"value": f"no {WORD}"}})
    before = await remains(bench)
    assert {"messages", "runs", "steps", "feedback"} <= before.keys()
    assert len(await bench.service.store.read(Select(APPROVALS, {"tenant": NORTHWIND}))) == 1

    assert await forget(bench) == "2 conversations were forgotten."
    assert await remains(bench) == {}
    assert await bench.service.store.read(Select(APPROVALS, {"tenant": NORTHWIND})) == []
    seen = await bench.people.messages("#campaigns", thread_ts=shown["thread_ts"])
    assert not clickable(next(each for each in seen if each["ts"] == shown["ts"]))
    await bench.click(approval_id(shown), user="U0ADA")
    assert await changes(bench) == []
    kept = [row["run_id"] for row in await bench.service.store.read(Select(RUNS, {"tenant": NORTHWIND}))]
    steps = await bench.service.store.read(Select(STEPS, {}))
    assert {row["run_id"] for row in steps} <= set(kept)


@BOTH
async def test_work_under_way_ends_first_and_leaves_nothing_behind(bench: Bench) -> None:
    """The notice of the stopped turn, too, is of the conversation."""
    await bench.people.fault("tool:list_campaigns", "delay", delay_s=30)
    root = await bench.asked(f"@Threadline how did {WORD} do last week?")
    await until(lambda: _live(bench), "the turn")
    assert await forget(bench) == "1 conversation was forgotten."
    await bench.idle()
    assert await remains(bench) == {}
    assert await bench.service.store.read(Select(MESSAGES, {"tenant": NORTHWIND})) == []
    assert (await bench.people.status("#campaigns", root))["status"] == ""


@BOTH
async def test_nothing_of_it_is_left_on_the_bus(bench: Bench) -> None:
    """The answer went over it as it came, and a topic lives for an hour."""
    root = await bench.asked("@Threadline how did Brand Search do last week?")
    await bench.answer(root)
    other = await bench.asked("@Threadline how did Brand Search do last week?", channel="#general")
    await bench.answer(other, "#general")
    await bench.idle()
    here, elsewhere = (f"{NORTHWIND}:thread:{place}" for place in (f"C0CAMPAIGNS:{root}", f"C0GENERAL:{other}"))
    assert "Brand Search" in await on_the_bus(bench, here)
    await forget(bench)
    assert await on_the_bus(bench, here) == ""
    assert "Brand Search" in await on_the_bus(bench, elsewhere)


async def on_the_bus(bench: Bench, topic: str) -> str:
    """The words that went over a topic as they came."""
    heard: list[str] = []

    async def hear(event: Event) -> None:
        heard.append(str(event.data.get("text", "")))

    bus = bench.service.engine.pubsub
    subscription = await bus.subscribe(topic, hear, after="0")
    await bus.flush()
    await bus.unsubscribe(subscription)
    return "".join(heard)


async def test_a_bus_that_is_away_holds_no_forgetting_up(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    async def away(topic: str) -> None:
        raise PubSubUnavailableError("Redis does not answer")

    monkeypatch.setattr(bench.service.engine.pubsub, "erase", away)
    monkeypatch.setattr("agent.forgetting.PATIENT_TRIES", 2)
    root = await bench.asked(f"@Threadline how did {WORD} do last week?")
    await bench.answer(root)
    await bench.idle()
    assert await forget(bench) == "1 conversation was forgotten."
    assert await remains(bench) == {}


async def test_what_is_said_afterwards_is_answered_and_kept(bench: Bench) -> None:
    root = await bench.asked(f"@Threadline how did {WORD} do last week?")
    await bench.answer(root)
    await bench.idle()
    await forget(bench)
    await bench.people.post_message("#campaigns", "@ada", "@Threadline which campaigns do we have?", thread_ts=root)
    await bench.answer(root, count=2)
    await bench.idle()
    assert await bench.service.store.read(Select(RUNS, {"tenant": NORTHWIND, "key": f"C0CAMPAIGNS:{root}"}))


async def test_work_that_does_not_end_is_told_and_forgotten_when_it_has(bench: Bench, monkeypatch: Any) -> None:
    monkeypatch.setattr("bot.commands.threadline.FORGET_WAIT_S", 0.0)
    await bench.people.fault("tool:list_campaigns", "delay", delay_s=30)
    await bench.asked(f"@Threadline how did {WORD} do last week?")
    await until(lambda: _live(bench), "the turn")
    assert await forget(bench) == FORGETTING
    await bench.idle()
    assert await remains(bench) == {}


async def _live(bench: Bench) -> bool:
    return any(run.state.live and run.step_seq > 0 for run in await bench.service.engine.runs(tenant=NORTHWIND))


async def test_what_is_said_while_it_is_forgotten_is_answered_and_so_is_what_follows(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The thread goes on: no mention is needed in it."""
    monkeypatch.setattr("bot.commands.threadline.FORGET_WAIT_S", 0.0)
    await bench.people.fault("tool:list_campaigns", "delay", delay_s=30)
    root = await bench.asked(f"@Threadline how did {WORD} do last week?")
    await until(lambda: _live(bench), "the turn")
    await bench.people.fault("chat.postMessage", "delay", delay_s=1.5, times=1)  # its notice takes a while
    assert await forget(bench) == FORGETTING
    await bench.people.post_message("#campaigns", "@ada", "@Threadline how did Brand Search do?", thread_ts=root)
    await bench.answer(root, count=2)
    await bench.idle()
    assert await remains(bench) == {}
    await bench.people.post_message("#campaigns", "@ada", "and Spring Sale?", thread_ts=root)
    await bench.answer(root, count=3)
    await bench.idle()
