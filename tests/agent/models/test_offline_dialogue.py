"""Conversations: follow-ups, choices, several people, approvals and what the system reports."""

import json
import re
from typing import Any

import pytest

from agent.models.base import Person
from agent.models.offline.talk import HELP
from tests.agent.campaigns.world import World
from tests.agent.models.dialogue import ANA, BO, EXTRA_TOOLS, Dialogue, user
from tests.agent.models.test_offline_corpus import BRAND, SPRING, STORIES, TRAIL, TRAIL_RT, Call, budget, figures, pause

WEEK, WEEK_BEFORE = "2026-11-16..2026-11-22", "2026-11-09..2026-11-15"

THREADS: list[tuple[list[str], list[Call]]] = [
    (["how did we do last week?", "and the week before?"], [figures(period=WEEK_BEFORE)]),
    (["how did we do last week?", "what about Brand Search?"], [figures(BRAND, period=WEEK)]),
    (["how did Brand Search do last week?", "and CTR?"], [figures(BRAND, period=WEEK)]),
    (["how did Brand Search do last week?", "and the week before?", "and the week before that?"],
     [figures(BRAND, period="2026-11-02..2026-11-08")]),
    (["how did Brand Search do in October?", "and the month before?"], [figures(BRAND, period="2026-09-01..2026-09-30")]),
    (["how did Brand Search do in October?", "and a year earlier?"], [figures(BRAND, period="2025-10-01..2025-10-31")]),
    (["how did Brand Search do last week?", "show me the same for Spring Sale"], [figures(SPRING, period=WEEK)]),
    (["how did Brand Search do last week?", "hmm, what about last month instead?"], [figures(BRAND, period="last month")]),
    (["how did Brand Search do last week?", "ok thanks, now pause it please"], [pause(BRAND)]),
    (["how did Brand Search do last week?", "and last month"], [figures(BRAND, period="last month")]),
    (["how did Brand Search do last week?", "how did it do yesterday?"], [figures(BRAND, period="yesterday")]),
    (["which campaign has the best ROAS in October?", "and the worst?"], [figures(period="2026-10-01..2026-10-31")]),
    (["which campaign has the best ROAS in October?", "and CPA?"], [figures(period="2026-10-01..2026-10-31")]),
    (["which campaign was the worst last month?", "pause it"], [pause(STORIES)]),
    (["which campaign was the worst last month?", "cut its budget by 10 %"], [budget(STORIES, "54")]),
    (["how did Brand Search do last week?", "raise it by 20 %"], [budget(BRAND, "144")]),
    (["how did Brand Search and Spring Sale do last week?", "pause them"], [pause(BRAND), pause(SPRING)]),
    (["how did Brand Search and Spring Sale do last week?", "pause both"], [pause(BRAND), pause(SPRING)]),
    (["how did Brand Search and Spring Sale do last week?", "pause it"], []),
    (["pause Spring Sale", "and Brand Search too"], [pause(BRAND)]),
    (["pause trail runners", "the first one"], [pause(TRAIL)]),
    (["pause trail runners", "yes, the first one"], [pause(TRAIL)]),
    (["pause trail runners", "the last one"], [pause(TRAIL_RT)]),
    (["pause trail runners", "2"], [pause(TRAIL_RT)]),
    (["pause trail runners", "both"], [pause(TRAIL), pause(TRAIL_RT)]),
    (["pause trail runners", "the retargeting one"], [pause(TRAIL_RT)]),
    (["pause trail runners", "Trail Runners Prospecting"], [pause(TRAIL)]),
    (["pause trail runners", "no"], []),
    (["pause trail runners", "thanks", "the first one"], [pause(TRAIL)]),
    (["set trail runners to 70", "the second"], [budget(TRAIL_RT, "70")]),
    (["how did trail runners do last month?", "the first"], [figures(TRAIL, period="last month")]),
    (["how did Hiking Promo do last month?", "yes"], [figures("Summer Hiking Boots", period="last month")]),
    (["pause it", "Spring Sale"], [pause(SPRING)]),
    (["how did spring do?", "how did Brand Search do?", "the first one"], []),
    (["set Brand Search to 90", "make it 100"], [budget(BRAND, "100")]),
    (["pause Spring Sale", "yes do it"], []),
]  # fmt: skip


@pytest.fixture
def dialogue(world: World) -> Dialogue:
    return Dialogue(world)


@pytest.mark.parametrize("texts, calls", THREADS, ids=[" / ".join(texts) for texts, _ in THREADS])
async def test_a_follow_up_keeps_what_it_does_not_change(
    dialogue: Dialogue, texts: list[str], calls: list[Call]
) -> None:
    for text in texts:
        answer = await dialogue.say(text)
        assert answer.strip()
    assert dialogue.called() == calls


async def test_the_campaigns_are_listed_first_in_each_turn_that_names_any(dialogue: Dialogue) -> None:
    for text in ("how did Brand Search do last week?", "and the week before?"):
        await dialogue.say(text)
        assert [call.name for call in dialogue.calls] == ["list_campaigns", "campaign_performance"]
    await dialogue.say("thanks")
    assert dialogue.calls == []


async def test_independent_calls_are_made_in_one_reply(dialogue: Dialogue) -> None:
    await dialogue.say(
        "how did Brand Search do last week, and how did Spring Sale do in October, and pause Camping Stories"
    )
    assert dialogue.rounds == 3
    assert len(dialogue.called()) == 3


async def test_messages_since_the_last_answer_get_one_answer_in_order(dialogue: Dialogue) -> None:
    answer = await dialogue.say("how did Brand Search do last week?", "and the CPA?", "and pause Spring Sale")
    assert dialogue.called() == [figures(BRAND, period="last week"), pause(SPRING)]
    assert answer.index("ROAS") < answer.index("The CPA of **Brand Search**") < answer.index("I asked for approval")


async def test_a_message_that_arrives_while_tools_run_is_taken_in(dialogue: Dialogue) -> None:
    dialogue.messages.append(user("how did Brand Search do last week?"))
    for late in ("also for Spring Sale", "and the CTR of Camping Stories yesterday"):
        await dialogue.run((await dialogue.step()).tool_calls)
        dialogue.messages.append(user(late))
    answer = await dialogue.answer()
    places = [answer.index(f"**{name}**") for name in (BRAND, SPRING, STORIES)]
    assert places == sorted(places)
    assert "The CTR of **Camping Stories** yesterday" in answer


async def test_several_people_are_told_apart(dialogue: Dialogue) -> None:
    dialogue.messages += [user("how did Brand Search do last week?", ANA), user("and pause Spring Sale", BO)]
    answer = await dialogue.answer()
    assert answer.startswith("**Ana:** **Brand Search**")
    assert "**Bo:** I asked for approval" in answer


async def test_last_week_is_each_persons_own(dialogue: Dialogue) -> None:
    dialogue.world.now = dialogue.world.now.replace(hour=23, minute=30)  # Monday in Berlin, Sunday in New York
    newyorker = Person(id="U3", name="Cy", time_zone="America/New_York")
    dialogue.messages += [
        user("how did Brand Search do last week?"),
        user("how did Spring Sale do last week?", newyorker),
    ]
    await dialogue.answer()
    assert dialogue.called() == [figures(BRAND, period="2026-11-23..2026-11-29"), figures(SPRING, period=WEEK)]


async def test_an_approval_that_waits_is_told_and_nothing_is_claimed(dialogue: Dialogue) -> None:
    answer = await dialogue.say("set Spring Sale to 120")
    assert "Change the daily budget of Spring Sale from €80.00 to €120.00" in answer
    assert "Nothing has changed yet" in answer


async def test_a_yes_in_the_conversation_is_no_approval(dialogue: Dialogue) -> None:
    await dialogue.say("set Spring Sale to 120")
    answer = await dialogue.say("yes, do it")
    assert dialogue.called() == []
    assert "does not approve it: use the Approve button on the card" in answer


@pytest.mark.parametrize("between", [[], ["how did we do last week?"], ["thanks", "which campaign is the worst?"]])
@pytest.mark.parametrize(
    "word, said, button", [("yes, do it", "does not approve them", "Approve"), ("stop", "2 approvals still wait", "Deny"),
                           ("no", "2 approvals still wait", "Deny"), ("please stop", "2 approvals still wait", "Deny")],
)  # fmt: skip
async def test_every_open_approval_is_named_with_where_it_is_decided(
    dialogue: Dialogue, between: list[str], word: str, said: str, button: str
) -> None:
    await dialogue.say("pause Spring Sale and raise Brand Search by 20%")
    for text in between:
        await dialogue.say(text)
    answer = await dialogue.say(word)
    assert said in answer
    assert "**Pause Spring Sale** and **Change the daily budget of Brand Search from €120.00 to €144.00**" in answer
    assert f"use the {button} button on each card" in answer
    assert dialogue.called() == []


async def test_what_was_decided_waits_no_more(dialogue: Dialogue) -> None:
    first = await approval_of(dialogue, "pause Spring Sale")
    await approval_of(dialogue, "pause Brand Search")
    await dialogue.notice(f"approval {first}: denied by Bo")
    assert "1 approval still waits: **Pause Brand Search**" in await dialogue.say("stop")


async def test_a_change_that_runs_at_once_is_reported_with_old_and_new(world: World) -> None:
    dialogue = Dialogue(world, approve=True)
    answer = await dialogue.say("raise Spring Sale by 20 %")
    assert dialogue.called() == [budget(SPRING, "96")]
    assert "now **€96.00** (it was €80.00" in answer
    assert "now **paused**" in await dialogue.say("pause it")


async def approval_of(dialogue: Dialogue, text: str) -> str:
    await dialogue.say(text)
    waiting = next(json.loads(result.content) for result in dialogue.results if "approval_id" in result.content)
    return str(waiting["approval_id"])


RESULT = {
    "account": "A",
    "campaign": "Spring Sale",
    "old": "€80.00",
    "new": "€120.00",
    "difference": "+€40.00 (+50.0%)",
}


@pytest.mark.parametrize(
    "notice, said, unsaid",
    [
        (f"approval ID: approved by Bo; result: {json.dumps(RESULT)}", "Approved by Bo: The daily budget of **Spring Sale** is now **€120.00**", "asked"),
        ("approval ID: denied by Bo; reason: not this month", "denied by Bo, because: not this month. Nothing has changed", "now"),
        ("approval ID: denied by Bo: too much", "denied by Bo, because: too much. Nothing has changed", "now"),
        ("approval ID: denied by Bo", "denied by Bo. Nothing has changed", "because"),
        ("approval ID: expired", "Nothing has changed", "now **"),
        ('approval ID: approved by Bo; error: {"error": "there is no campaign"}', "could not be done: there is no campaign", "now **"),
        (f"approval ID: approved by J. R. Doe; result: {json.dumps(RESULT)}", "Approved by J. R. Doe: The daily budget", "could not"),
        ("The report is ready: 4 pages.", "The report is ready: 4 pages.", "pproved"),
    ],
)  # fmt: skip
async def test_a_decision_is_reported_as_it_was(dialogue: Dialogue, notice: str, said: str, unsaid: str) -> None:
    approval = await approval_of(dialogue, "set Spring Sale to 120")
    answer = await dialogue.notice(notice.replace("ID", approval))
    assert said in answer
    assert unsaid not in answer
    assert dialogue.calls == []


@pytest.mark.parametrize(
    "script, said", [({}, "€80.00, so the change was not made"), ({"done": True}, "€120.00, so the change was made")]
)
async def test_an_interrupted_change_is_read_back_before_anything_is_said(
    world: World, script: dict[str, Any], said: str
) -> None:
    dialogue = Dialogue(world, script={"change_budget": {"status": "interrupted", "outcome": "unknown"}})
    if script:
        await world.call("list_campaigns")
        dialogue.messages.append(user("set Spring Sale to 120"))
        await dialogue.run((await dialogue.step()).tool_calls)
        await world.call("change_budget", campaign="Spring Sale", amount=120)
        answer = await dialogue.answer()
    else:
        answer = await dialogue.say("set Spring Sale to 120")
    assert [call.name for call in dialogue.calls][-2:] == ["change_budget", "list_campaigns"]
    assert "outcome was unknown" in answer
    assert said in answer


async def test_an_approved_change_that_was_interrupted_is_read_back(dialogue: Dialogue) -> None:
    approval = await approval_of(dialogue, "set Spring Sale to 120")
    answer = await dialogue.notice(
        f'approval {approval}: approved by Bo; result: {{"status":"interrupted","outcome":"unknown"}}'
    )
    assert [call.name for call in dialogue.calls] == ["list_campaigns"]
    assert "outcome was unknown" in answer
    assert "€80.00, so the change was not made" in answer


async def test_a_yes_after_the_decision_finds_nothing_open(dialogue: Dialogue) -> None:
    approval = await approval_of(dialogue, "set Spring Sale to 120")
    await dialogue.notice(f"approval {approval}: denied by Bo")
    assert "nothing open" in await dialogue.say("yes")


async def test_a_message_that_is_too_long_is_said_to_be(dialogue: Dialogue) -> None:
    answer = await dialogue.say("how did Brand Search do last week? " + "x" * 3000)
    assert "longer than I can take in" in answer
    assert "**Brand Search** made" in answer


async def test_a_person_without_a_known_time_zone_is_answered(dialogue: Dialogue) -> None:
    answer = await dialogue.say(
        "how did Brand Search do last week?", author=Person(id="U9", name="Di", time_zone="Mars/Base")
    )
    assert "**Brand Search** made" in answer


async def test_a_notice_and_a_question_get_one_answer(dialogue: Dialogue) -> None:
    approval = await approval_of(dialogue, "set Spring Sale to 120")
    dialogue.messages.append(user("how did Brand Search do last week?"))
    answer = await dialogue.notice(f"approval {approval}: denied by Bo")
    assert answer.index("**Brand Search** made") < answer.index("denied by Bo")


async def test_a_denied_change_is_not_asked_for_again(dialogue: Dialogue) -> None:
    approval = await approval_of(dialogue, "set Spring Sale to 120")
    await dialogue.notice(f"approval {approval}: denied by Bo")
    await dialogue.say("thanks")
    assert dialogue.calls == []


@pytest.mark.parametrize(
    "tool, text, said",
    [
        ("campaign_performance", "how did Brand Search do?", "could not get the figures"),
        ("pause_campaign", "pause Spring Sale", "could not pause **Spring Sale**"),
        ("change_budget", "double Spring Sale", "could not set the daily budget of **Spring Sale** to €160.00"),
        ("list_campaigns", "how did we do?", "could not read the account's campaigns"),
    ],
)
async def test_a_tools_error_is_passed_on_in_words(world: World, tool: str, text: str, said: str) -> None:
    dialogue = Dialogue(world, script={tool: "error: the platform is down"})
    answer = await dialogue.say(text)
    assert said in answer
    assert "the platform is down" in answer


async def test_the_tools_words_on_an_impossible_period_reach_the_person(dialogue: Dialogue) -> None:
    assert "has not begun yet" in await dialogue.say("how did Brand Search do in December 2026?")
    assert "don't exist" in await dialogue.say("how did we do on 31 February 2026?")


async def test_without_tools_it_says_what_it_lacks(world: World) -> None:
    dialogue = Dialogue(world)
    assert "can't schedule" in await dialogue.say("send a summary every monday at 9:00")
    assert "can't list schedules" in await dialogue.say("what's scheduled?")
    assert "conversions" in await dialogue.say("make a report for last month")
    assert dialogue.called() == [figures(period="last month")]


async def test_a_report_that_was_started_is_said_to_be(world: World) -> None:
    dialogue = Dialogue(
        world, extra=EXTRA_TOOLS, script={"make_report": {"status": "started", "message": "It takes a minute."}}
    )
    answer = await dialogue.say("make a report on Brand Search for October")
    made = "I am having a report made on **Brand Search**, {}; it will be posted in this thread."
    assert answer == f"{made.format('October')} It takes a minute."
    dialogue.script["make_report"] = {"status": "started", "period": "October 2026", "days": "1 to 31 October 2026"}
    answer = await dialogue.say("make a report on Brand Search for October")
    assert answer == made.format("October 2026 (1 to 31 October 2026)")


async def test_the_week_before_nothing_is_last_week_and_its_days_are_said(dialogue: Dialogue) -> None:
    for text in ("and the week before?", "how did Brand Search do the week before?"):
        dialogue.messages.clear()
        assert "last week (16\N{EN DASH}22 November 2026)" in await dialogue.say(text)


async def test_a_report_on_the_week_before_is_on_the_week_before_the_one_spoken_of(world: World) -> None:
    dialogue = Dialogue(world, extra=EXTRA_TOOLS, script={"make_report": {"status": "started"}})
    await dialogue.say("how did we do last week?")
    await dialogue.say("make a report for the week before")
    assert dialogue.called() == [("make_report", {"campaigns": "all", "period": WEEK_BEFORE})]


EXAMPLES = re.findall(r'"([^"]+)"', HELP)


@pytest.mark.parametrize("text", EXAMPLES)
async def test_whatever_help_suggests_is_understood_as_the_first_words_too(world: World, text: str) -> None:
    """A newcomer asks what it can do, and copies a line of the answer."""
    script: dict[str, Any] = {tool.name: {"status": "ok"} for tool in EXTRA_TOOLS}
    dialogue = Dialogue(world, extra=EXTRA_TOOLS, script=script)
    answer = await dialogue.say(text)
    assert "don't understand" not in answer
    assert "know no campaign" not in answer
    assert dialogue.calls or "Subject:" in answer


@pytest.mark.parametrize("status", ["cancelled", "ended", "deleted"])
async def test_a_summary_that_was_cancelled_is_said_to_be_so(world: World, status: str) -> None:
    dialogue = Dialogue(world, extra=EXTRA_TOOLS, script={"cancel_schedule": [{"status": status}]})
    assert "The summary is cancelled." in await dialogue.say("cancel the monday summary")


async def test_schedules_are_listed_in_words_and_in_their_own_time(world: World) -> None:
    entry = {
        "name": "summary:C1",
        "when": "At 09:00 on Monday",
        "time_zone": "Europe/Berlin",
        "next_at": "2026-11-30T08:00:00+00:00",
    }
    dialogue = Dialogue(world, extra=EXTRA_TOOLS, script={"list_schedules": [entry]})
    answer = await dialogue.say("what's scheduled?")
    assert "* At 09:00 on Monday (Europe/Berlin), next on 30 November 2026 at 09:00" in answer
    assert "summary:C1" not in answer


async def test_help_names_the_offline_model_and_other_answers_do_not(dialogue: Dialogue) -> None:
    assert "offline model" in await dialogue.say("help")
    for text in ("how did we do last week?", "pause Spring Sale", "thanks", "what's up with the weather"):
        assert "offline" not in await dialogue.say(text)
