"""Cron over two clocks, both providers behind the whole product, a turn that dies for good, and the trace of a turn."""

from datetime import timedelta

import pytest

from tests.acceptance.stack import CHANNEL, TENANT, Json, Stack
from tests.wire.anthropic_server import AnthropicServer
from tests.wire.openai_server import OpenAIServer
from tests.wire.script import Answer, Call
from workflows.storage.base import RunState

pytestmark = [pytest.mark.process, pytest.mark.timeout(240)]
QUESTION = "@Threadline how did Brand Search do last week?"


async def test_a_weekly_summary_is_posted_once_with_two_clocks(stack: Stack) -> None:
    """P8: cron fires once per due time."""
    await stack.start("web")
    await stack.start("clock", 2)
    await stack.start("worker", 2)
    answer = await stack.slack.command("#campaigns", "@ada", "/summaries", "every monday 9:00")
    assert "Monday" in answer["response"]["text"]
    (schedule,) = await stack.store.schedules(tenant=TENANT)
    assert (schedule.spec, schedule.tz) == ("0 9 * * 1", "Europe/Berlin")
    await stack.store.set_clock_offset(schedule.next_at - await stack.store.now() + timedelta(seconds=1))

    async def posted() -> list[Json]:
        return [message for message in await stack.slack.messages(CHANNEL) if "Weekly summary" in message["plain"]]

    await stack.wait(posted, "the summary to be posted")
    await stack.settled()
    (summary,) = await posted()
    assert {block["type"] for block in summary["blocks"]} == {"markdown", "data_table", "data_visualization"}
    assert len(await stack.store.runs(tenant=TENANT, workflow="summary")) == 1
    (after,) = await stack.store.schedules(tenant=TENANT)
    assert after.next_at - schedule.next_at == timedelta(days=7)


async def test_a_report_is_acknowledged_at_once_and_posted_with_table_and_chart(stack: Stack) -> None:
    await stack.start("web")
    answer = await stack.slack.command("#campaigns", "@ben", "/report", "Brand Search last month")
    assert answer["status"] == 200
    assert "Brand Search" in answer["response"]["text"]
    await stack.start("worker")

    async def posted() -> list[Json]:
        return [message for message in await stack.slack.messages(CHANNEL) if "Campaign report" in message["plain"]]

    await stack.wait(posted, "the report to be posted")
    await stack.settled()
    (report,) = await posted()
    assert [block["type"] for block in report["blocks"]] == ["markdown", "data_table", "data_visualization"]


@pytest.mark.parametrize("provider", ["anthropic", "openai"])
async def test_either_provider_answers_with_a_tools_figures(stack: Stack, provider: str) -> None:
    """P15: the provider is a setting."""
    call = Call(
        id="call_1",
        name="campaign_performance",
        pieces=('{"campaigns": ["Brand', ' Search"], "period"', ': "last week"}'),
    )
    script = (
        Answer(text=("Let me ", "look. "), calls=(call,), stop="tool_calls"),
        Answer(text=("Brand Search ", "did ", "**well**.")),
    )
    async with AnthropicServer() if provider == "anthropic" else OpenAIServer() as server:
        server.script += script
        await stack.start("web")
        name = provider.upper()
        await stack.start(
            "worker",
            settings={
                "THREADLINE_MODEL": f"{provider}:model-1",
                f"{name}_API_KEY": "k",
                f"{name}_BASE_URL": server.url + ("/v1" if provider == "openai" else ""),
            },
        )
        root = await stack.say(QUESTION)
        (answer,) = await stack.answered(root)
        await stack.settled()
        assert "Brand Search did well" in answer["plain"].replace("**", "")
        assert len(server.requests) == 2
        assert "spend_micros" in str(server.requests[1])


async def test_a_turn_that_dies_for_good_is_told_in_its_thread(stack: Stack) -> None:
    """Point 10: out of attempts, the turn is dead, and its author knows."""
    await stack.start("web")
    root = await stack.say(QUESTION)
    for _ in range(5):
        (killer,) = await stack.start("worker", settings={"THREADLINE_TEST_KILL": "1"}, ready=False)
        await killer.died()

    await stack.start("worker")

    async def told() -> bool:
        return any("died again and again" in message["plain"] for message in await stack.thread(root))

    await stack.wait(told, "the death to be told", timeout_s=40)
    (run,) = await stack.store.runs(tenant=TENANT, workflow="agentic-loop", states=[RunState.DEAD])
    assert run.attempts == run.max_attempts == 5


async def test_a_turns_trace_holds_its_run_steps_model_and_tool_calls(stack: Stack) -> None:
    """P13: one trace, also when another worker finished it; no secrets in it."""
    await stack.start("web")
    (holder,) = await stack.start("worker")
    await stack.slack.fault("tool:campaign_performance", "delay", delay_s=20)
    root = await stack.say(QUESTION)
    await stack.tool_taken("campaign_performance")
    await stack.wait(lambda: _spans(stack, {"model"}), "the first worker's spans")
    await holder.kill()
    await stack.start("worker")
    await stack.answered(root)
    await stack.wait(lambda: _spans(stack, {"run", "step", "workflow", "model", "tool"}), "the spans of the turn")
    spans = await stack.store.spans(tenant=TENANT)
    assert len({span.trace_id for span in spans}) == 1
    known = {span.span_id for span in spans}
    roots = [span for span in spans if span.kind == "run"]
    assert roots
    assert all(span.parent_id in known for span in spans if span.kind == "step" and span.name == "deliver")
    assert "xoxb-" not in str(spans)


async def _spans(stack: Stack, kinds: set[str]) -> bool:
    return kinds <= {span.kind for span in await stack.store.spans(tenant=TENANT)}
