"""Slash commands: read in any usual order, acknowledged at once, refused in words that help."""

import re
from collections.abc import Sequence

import pytest

from agent.campaigns import Campaign, SandboxPlatform
from agent.reports import ReportRequest
from bot.commands import Command, Report
from bot.commands.report import REPORT_HELP
from bot.commands.summaries import NOT_HERE, SUMMARIES_HELP
from tests.bot.bench import HARBOR, NORTHWIND, Bench
from tests.waiting import until

BOTH = pytest.mark.parametrize("storage", ["sqlite", "servers"], indirect=True)


class Platform(SandboxPlatform):
    """An ad platform with campaigns of a test's own."""

    def __init__(self, campaigns: Sequence[Campaign]) -> None:
        self._campaigns = campaigns

    async def campaigns(self, tenant: str) -> Sequence[Campaign]:
        return self._campaigns


async def say(bench: Bench, command: str, text: str = "", *, channel: str = "#campaigns", user: str = "@ada") -> str:
    """Type a command; returns what only that person is shown."""
    answer = await bench.people.command(channel, user, command, text)
    assert answer["problem"] == "", answer
    assert answer["response"]["response_type"] == "ephemeral"
    return str(answer["response"]["text"])


@pytest.mark.parametrize(
    "text, about",
    [
        ("", "all campaigns, last week"),
        ("last month", "all campaigns, last month"),
        ("all yesterday", "all campaigns, yesterday"),
        ("Brand Search", "Brand Search, last week"),
        ("Brand Search last month", "Brand Search, last month"),
        ("last 30 days Brand Search", "Brand Search, last 30 days"),
        ("for brand search in October", "brand search, in October"),
        ("2026-11-01..2026-11-07 Brand Search", "Brand Search, 2026-11-01..2026-11-07"),
        ("Spring Sale", "Spring Sale, last week"),
        ("Winter Clearance", "Winter Clearance, last week"),
        ("Winter Clearance winter", "Winter Clearance, winter"),
        ("Summer Hiking Boots yesterday", "Summer Hiking Boots, yesterday"),
        ("spring", "all campaigns, spring"),
        ("Brand Search campaign last month", "Brand Search, last month"),
        ("the week before", "all campaigns, the week before"),
    ],
)
async def test_campaign_and_period_are_read_in_either_order(bench: Bench, text: str, about: str) -> None:
    assert (
        await say(bench, "/report", text) == f"Making the report on {about}. It will be posted here when it is ready."
    )
    [run] = await bench.service.engine.runs(tenant=NORTHWIND)
    assert run.workflow == "report"


async def test_a_campaign_named_like_a_period_is_meant_by_its_whole_name(bench: Bench) -> None:
    known = (await bench.service.platform.campaigns(NORTHWIND))[0]
    platform = Platform(
        [known.model_copy(update={"name": "Brand October"}), known.model_copy(update={"id": "c-2", "name": "Brand"})]
    )
    report = Report(bench.service.store, bench.service.desk, platform, bench.service.people)
    for text, about in (("brand october", "brand october, last week"), ("Brand yesterday", "Brand, yesterday")):
        said = await report.run(Command("report", text, NORTHWIND, "U0ADA", "C0CAMPAIGNS", key=text))
        assert about in said


@pytest.mark.parametrize(
    "text, words",
    [
        ("Nope", "There is no campaign 'Nope'"),
        ("Nope last month", "There is no campaign 'Nope'"),
        ("Nope last 30 days", "There is no campaign 'Nope'"),
        ("nonsense campaign last 30 days", "There is no campaign 'nonsense campaign'"),
        ("last 30 days Nope", "There is no campaign 'Nope'"),
        ("Nope last week", "There is no campaign 'Nope'"),
        ("Nope 2026-11-01..2026-11-07", "There is no campaign 'Nope'"),
        ("last month Nope", "There is no campaign 'Nope'"),
        ("sale", "'sale' may mean: Spring Sale, Spring Sale Retargeting"),
        ("a & b <c>", "There is no campaign 'a &amp; b &lt;c&gt;'"),
    ],
)
async def test_an_unknown_campaign_is_told_with_those_there_are(bench: Bench, text: str, words: str) -> None:
    said = await say(bench, "/report", text)
    assert words in said
    assert "Spring Sale" in said
    assert said.endswith(REPORT_HELP)
    assert await bench.service.engine.runs(tenant=NORTHWIND) == []


@pytest.mark.parametrize(
    "period", ["next year", "next month", "tomorrow", "the coming week", "next 30 days", "next Monday"]
)
@pytest.mark.parametrize("text", ["Brand Search {}", "{} Brand Search", "{}"])
async def test_a_time_to_come_is_told_to_have_no_figures(bench: Bench, text: str, period: str) -> None:
    said = await say(bench, "/report", text.format(period))
    assert said.startswith(f"There are no figures for '{period}' yet: it is still to come;")
    assert "no campaign" not in said
    assert await bench.service.engine.runs(tenant=NORTHWIND) == []


@pytest.mark.parametrize(
    "command, text", [("/report", "Nope"), ("/report", "Brand Search next year"), ("/report", "31 February"), ("/summaries", "sometime")]
)  # fmt: skip
async def test_what_is_refused_is_said_in_whole_sentences(bench: Bench, command: str, text: str) -> None:
    first = (await say(bench, command, text)).splitlines()[0]
    assert first[0].isupper() or first[0] == "'", "a capital, or the words that were typed"
    assert first.endswith(".")


async def test_help_helps(bench: Bench) -> None:
    assert await say(bench, "/report", "help") == REPORT_HELP
    assert await say(bench, "/summaries", " HELP ") == SUMMARIES_HELP


@BOTH
async def test_the_report_is_posted_once_with_a_table_and_a_chart(bench: Bench) -> None:
    await say(bench, "/report", "last month")
    await bench.idle()
    [report] = [each for each in await bench.people.messages("#campaigns") if each["metadata"]]
    assert [block["type"] for block in report["blocks"]] == ["markdown", "data_table", "data_visualization"]
    assert "Brand Search" in report["plain"]


async def test_two_orders_are_two_reports(bench: Bench) -> None:
    await say(bench, "/report")
    await say(bench, "/report")
    await bench.idle()
    assert len([each for each in await bench.people.messages("#campaigns") if each["metadata"]]) == 2


async def test_where_the_app_may_not_post_whoever_asked_gets_the_report_alone(bench: Bench) -> None:
    await say(bench, "/report", "Brand Search", channel="#random", user="@ben")
    await bench.idle()

    async def there() -> bool:
        return any("ROAS" in each["plain"] for each in await bench.people.messages("#random", reader="@ben"))

    await until(there, "the report by the command's own address")
    assert await bench.people.messages("#random", reader="@chloe") == []


async def test_a_report_where_blocks_are_refused_is_words(bench: Bench) -> None:
    await bench.people.fault("chat.postMessage", "error", error="invalid_blocks")
    await say(bench, "/report")
    await bench.idle()
    [report] = [each for each in await bench.people.messages("#campaigns") if each["metadata"]]
    assert report["blocks"] == []
    assert "| Campaign | Spend |" in report["text"]


@pytest.mark.parametrize(
    "text, words",
    [
        ("every monday 9:00", "at 09:00 on Monday (Europe/Berlin)"),
        ("daily at 8:30", "at 08:30 every day (Europe/Berlin)"),
        ("weekly friday 10", "at 10:00 on Friday (Europe/Berlin)"),
        ("weekly", "at 09:00 on Monday (Europe/Berlin)"),
        ("0 7 * * 1", "at 07:00 on Monday (Europe/Berlin)"),
    ],
)
async def test_summaries_are_scheduled_in_the_zone_of_whoever_asks(bench: Bench, text: str, words: str) -> None:
    said = await say(bench, "/summaries", text)
    assert said.startswith(f"I will post a campaign summary here: {words}. Next: <!date^")
    clock = re.search(r"at (\d\d:\d\d)", words)
    assert clock is not None
    assert re.search(rf"\|\d{{1,2}} \w+ \d{{4}}, {clock[1]} CES?T>", said), (
        "the same time where dates are shown as words"
    )
    assert words in await say(bench, "/summaries")


@pytest.mark.parametrize("text", ["sometime", "every 99:00", "<!channel>", "monthly on the 45th"])
async def test_a_time_that_can_not_be_read_is_told_with_examples(bench: Bench, text: str) -> None:
    said = await say(bench, "/summaries", text)
    assert "every monday 9:00" in said
    assert said.endswith(SUMMARIES_HELP)
    assert "<!channel>" not in said
    assert await bench.service.desk.scheduled(tenant=NORTHWIND, channel="C0CAMPAIGNS") is None


@pytest.mark.parametrize("channel", ["#random", "dm:@ada"])
async def test_no_summary_is_promised_where_the_app_is_not(bench: Bench, channel: str) -> None:
    there = channel != "#random"  # its own direct message with somebody is a place where it is
    assert (await say(bench, "/summaries", "every monday 9:00", channel=channel) == NOT_HERE) is not there
    assert len(await bench.service.store.schedules(tenant=NORTHWIND)) == int(there)


async def test_whether_the_app_is_there_is_not_waited_for(bench: Bench) -> None:
    await bench.people.fault("conversations.history", "delay", delay_s=5)
    assert "I will post" in await say(bench, "/summaries", "every monday 9:00")


@BOTH
async def test_summaries_end_when_they_are_told_to(bench: Bench) -> None:
    assert "No summaries are posted here" in await say(bench, "/summaries")
    await say(bench, "/summaries", "every monday 9:00")
    await say(bench, "/summaries", "daily at 8", channel="#general")
    assert await say(bench, "/summaries", "off") == "Summaries in this channel have ended."
    assert await say(bench, "/summaries", "off") == "There were no summaries in this channel."
    assert "every day" in await say(bench, "/summaries", channel="#general"), "another channel's stay"


async def test_a_channel_has_one_summary_and_the_last_word_counts(bench: Bench) -> None:
    await say(bench, "/summaries", "every monday 9:00")
    await say(bench, "/summaries", "every friday 16:00")
    assert "16:00 on Friday" in await say(bench, "/summaries")
    assert len(await bench.service.store.schedules(tenant=NORTHWIND)) == 1


async def test_a_summary_is_posted_when_its_time_comes(bench: Bench) -> None:
    await say(bench, "/summaries", "daily at 9:00")
    await bench.people.advance_clock(24 * 3600)

    async def posted() -> bool:
        return any(each["metadata"] for each in await bench.people.messages("#campaigns"))

    await until(posted, "the summary")
    await bench.idle()
    [summary] = [each for each in await bench.people.messages("#campaigns") if each["metadata"]]
    assert "Weekly summary" in summary["plain"]


async def test_people_whom_slack_does_not_know_are_served_in_utc(bench: Bench) -> None:
    await bench.people.fault("users.info", "error", error="user_not_found", times=5)
    assert "(UTC)" in await say(bench, "/summaries", "every monday 9:00")


async def test_the_same_command_delivered_twice_is_one_report(bench: Bench) -> None:
    fields = {
        "team_id": NORTHWIND,
        "channel_id": "C0CAMPAIGNS",
        "user_id": "U0ADA",
        "command": "/report",
        "trigger_id": "1.2.same",
    }
    for _ in range(2):
        assert (await bench.post_form(text="", **fields)).status == 200
    assert len(await bench.idle()) == 1


async def test_a_report_is_of_the_workspace_that_asks(bench: Bench) -> None:
    await bench.install()
    fields = {"channel_id": "C0HARBORADS", "user_id": "U0DANA", "command": "/report", "trigger_id": "1.2"}
    assert (await bench.post_form(team_id=HARBOR, text="", **fields)).status == 200
    [run] = [each for each in await bench.idle(HARBOR) if each.workflow == "report"]
    assert run.tenant == HARBOR
    assert ReportRequest.model_validate_json(run.input or b"").channel == "C0HARBORADS"
    assert await bench.service.engine.runs(tenant=NORTHWIND) == []
    assert any(each["metadata"] for each in await bench.people.messages("#ads"))
