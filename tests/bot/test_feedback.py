"""What people think of an answer: two buttons, one word a person, kept with the trace."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from agent.feedback import Feedback, feedback_since, rated
from bot.operators import list_feedback
from tests.bot.bench import HARBOR, NORTHWIND, Bench
from tests.bot.test_dev import command


async def answered(bench: Bench) -> tuple[str, str, dict[str, Any]]:
    """The thread, the run and the answer's buttons."""
    root = await bench.asked("@Threadline which campaigns do we have?")
    answer = await bench.answer(root)
    (run,) = await bench.idle()
    (block,) = [block for block in answer["blocks"] if block["type"] == "context_actions"]
    return answer["ts"], run.run_id, block["elements"][0]


async def kept_of(bench: Bench, tenant: str = NORTHWIND) -> list[Feedback]:
    return await feedback_since(bench.service.store, tenant, datetime(2000, 1, 1, tzinfo=UTC))


async def rate(bench: Bench, ts: str, user: str, value: str) -> Any:
    return await bench.people.click("#campaigns", ts, "answer_feedback", user, value=value)


async def test_a_rating_is_kept_with_the_trace_one_a_person_and_the_latest(bench: Bench) -> None:
    ts, run_id, buttons = await answered(bench)
    good, bad = buttons["positive_button"]["value"], buttons["negative_button"]["value"]
    for user, value in (("@ada", good), ("@ben", bad), ("@ada", bad), ("@ben", good)):
        assert (await rate(bench, ts, user, value))["ok"]
    run = await (await bench.service.engine.run(run_id, tenant=NORTHWIND)).row()
    trace_id = run.trace_id or run_id
    kept = await kept_of(bench)
    assert sorted((each.user_id, each.rating, each.run_id, each.trace_id) for each in kept) == [
        ("U0ADA", "bad", run_id, trace_id),
        ("U0BEN", "good", run_id, trace_id),
    ]
    root = (run.key or "").partition(":")[2]
    seen = await bench.people.messages("#campaigns", thread_ts=root, reader="@ada")
    told = [message["plain"] for message in seen if message["plain"].startswith("Noted")]
    assert len(told) == 2


async def test_why_it_was_bad_is_asked_and_kept(bench: Bench) -> None:
    ts, _, buttons = await answered(bench)
    await rate(bench, ts, "@ben", buttons["negative_button"]["value"])
    (view,) = (await bench.people.views("@ben"))["views"]
    await bench.people.submit_view("@ben", view["id"], {"reason": {"value": "<!channel> wrong month"}})
    (kept,) = await kept_of(bench)
    assert (kept.rating, kept.reason) == ("bad", "<!channel> wrong month")
    await rate(bench, ts, "@ben", buttons["positive_button"]["value"])
    (kept,) = await kept_of(bench)
    assert (kept.rating, kept.reason) == ("good", None)


async def test_a_rating_of_another_workspaces_run_or_of_nothing_is_not_kept(bench: Bench) -> None:
    ts, run_id, _ = await answered(bench)
    await bench.install()
    for team, value in (
        (HARBOR, f"good:{run_id}"),
        (NORTHWIND, "good:nothing"),
        (NORTHWIND, "praise"),
        (NORTHWIND, ""),
    ):
        payload = {
            "type": "block_actions", "user": {"id": "U0ADA", "team_id": team}, "team": {"id": team}, "api_app_id": "A0THREADLINE",
            "actions": [{"type": "feedback_buttons", "action_id": "answer_feedback", "block_id": "b", "value": value, "action_ts": "1.2"}],
        }  # fmt: skip
        assert (await bench.post_form(payload=json.dumps(payload))).status == 200
    assert await kept_of(bench) == []
    assert await kept_of(bench, HARBOR) == []
    assert ts


async def test_a_streamed_answer_has_the_buttons_once_and_a_notice_has_none(bench: Bench) -> None:
    root = await bench.asked("@Threadline show all campaigns last month")
    answer = await bench.answer(root)
    kinds = [block["type"] for block in answer["blocks"]]
    assert kinds.count("context_actions") == 1
    assert kinds[-1] == "context_actions"
    await bench.people.fault("tool:list_campaigns", "delay", delay_s=30)
    stopped = await bench.asked("@Threadline which campaigns do we have?")

    async def running() -> bool:
        return not await bench.people.faults("tool:list_campaigns")

    await bench.people.wait_for(running, what="the tool to run")
    await bench.people.stop("#campaigns", stopped, "@ada")
    notice = await bench.answer(stopped)
    assert "context_actions" not in [block["type"] for block in notice["blocks"]]


async def told(bench: Bench) -> str:
    return str(await bench.people.command("#campaigns", "@ada", "/threadline", "usage"))


async def test_usage_tells_how_the_months_answers_were_found(bench: Bench) -> None:
    assert "found helpful 0 times and not helpful 0 times" in await told(bench)
    ts, _, buttons = await answered(bench)
    await rate(bench, ts, "@ben", buttons["negative_button"]["value"])
    for user in ("@ada", "@chloe"):
        await rate(bench, ts, user, buttons["positive_button"]["value"])
    assert "found helpful 2 times and not helpful once" in await told(bench)
    before = rated(
        NORTHWIND,
        "r",
        thread=None,
        trace_id="t",
        user_id="U0ADA",
        rating="bad",
        at=datetime.now(UTC) - timedelta(days=32),
    )
    await bench.service.store.write(
        before, rated(HARBOR, "r", thread=None, trace_id="t", user_id="U1", rating="bad", at=datetime.now(UTC))
    )
    assert "not helpful once" in await told(bench)


async def test_an_operator_reads_the_reasons_beside_the_runs_they_are_about(bench: Bench) -> None:
    ts, run_id, buttons = await answered(bench)
    await rate(bench, ts, "@ben", buttons["negative_button"]["value"])
    (view,) = (await bench.people.views("@ben"))["views"]
    reason = "wrong month\n\x1b[2J xoxb-1234567890-secret"
    await bench.people.submit_view("@ben", view["id"], {"reason": {"value": reason}})
    settings = bench.settings()
    lines = [line async for line in list_feedback(settings, tenant=NORTHWIND, days=1, limit=9)]
    (line,) = lines
    assert f"\trun {run_id}\t" in line
    assert "bad by U0BEN: 'wrong month\\n" in line
    assert line.replace("\t", "").isprintable(), "a terminal is told nothing"
    assert "xoxb-" not in line
    assert [line async for line in list_feedback(settings, tenant=HARBOR, days=1, limit=9)] == []
    assert [line async for line in list_feedback(settings, tenant=NORTHWIND, days=0, limit=9)] == []


@pytest.mark.parametrize("days", ["0", "-1", "99999999999", "week"])
def test_a_time_that_is_none_is_refused(days: str) -> None:
    assert "a number of days from 1 to 3650" in command("feedback", "--tenant", "T1", "--days", days).stderr
