"""What people think of an answer: two buttons, one word a person, kept with the trace."""

import json
from typing import Any

from agent.feedback import feedback_of
from tests.bot.bench import HARBOR, NORTHWIND, Bench


async def answered(bench: Bench) -> tuple[str, str, dict[str, Any]]:
    """The thread, the run and the answer's buttons."""
    root = await bench.asked("@Threadline which campaigns do we have?")
    answer = await bench.answer(root)
    (run,) = await bench.idle()
    (block,) = [block for block in answer["blocks"] if block["type"] == "context_actions"]
    return answer["ts"], run.run_id, block["elements"][0]


async def rate(bench: Bench, ts: str, user: str, value: str) -> Any:
    return await bench.people.click("#campaigns", ts, "answer_feedback", user, value=value)


async def test_a_rating_is_kept_with_the_trace_one_a_person_and_the_latest(bench: Bench) -> None:
    ts, run_id, buttons = await answered(bench)
    good, bad = buttons["positive_button"]["value"], buttons["negative_button"]["value"]
    for user, value in (("@ada", good), ("@ben", bad), ("@ada", bad), ("@ben", good)):
        assert (await rate(bench, ts, user, value))["ok"]
    run = await (await bench.service.engine.run(run_id, tenant=NORTHWIND)).row()
    trace_id = run.trace_id or run_id
    kept = await feedback_of(bench.service.store, NORTHWIND, trace_id)
    assert sorted((each.user_id, each.rating, each.run_id) for each in kept) == [
        ("U0ADA", "bad", run_id),
        ("U0BEN", "good", run_id),
    ]
    root = (run.key or "").partition(":")[2]
    seen = await bench.people.messages("#campaigns", thread_ts=root, reader="@ada")
    told = [message["plain"] for message in seen if message["plain"].startswith("Noted")]
    assert len(told) == 2


async def test_why_it_was_bad_is_asked_and_kept(bench: Bench) -> None:
    ts, run_id, buttons = await answered(bench)
    await rate(bench, ts, "@ben", buttons["negative_button"]["value"])
    (view,) = (await bench.people.views("@ben"))["views"]
    await bench.people.submit_view("@ben", view["id"], {"reason": {"reason": "<!channel> wrong month"}})
    (kept,) = await feedback_of(bench.service.store, NORTHWIND, run_id)
    assert (kept.rating, kept.reason) == ("bad", "<!channel> wrong month")
    await rate(bench, ts, "@ben", buttons["positive_button"]["value"])
    (kept,) = await feedback_of(bench.service.store, NORTHWIND, run_id)
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
    assert await feedback_of(bench.service.store, NORTHWIND, run_id) == []
    assert await feedback_of(bench.service.store, HARBOR, run_id) == []
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
