"""What people write, and what the offline model calls or says for it. Each line is a fresh conversation over the sandbox account."""

from typing import Any

import pytest

from tests.agent.campaigns.world import World
from tests.agent.models.dialogue import EXTRA_TOOLS, Dialogue

Call = tuple[str, dict[str, Any]]

BRAND, SPRING, SPRING_RT = "Brand Search", "Spring Sale", "Spring Sale Retargeting"
TRAIL, TRAIL_RT = "Trail Runners Prospecting", "Trail Runners Retargeting"
BOOTS, STORIES, MAIL, WINTER = "Summer Hiking Boots", "Camping Stories", "Newsletter Win-Back", "Winter Clearance"
ACTIVE = (BRAND, SPRING, SPRING_RT, TRAIL, TRAIL_RT, BOOTS, STORIES, MAIL)


def figures(*names: str, period: str = "last 7 days", compare_to: str | None = None) -> Call:
    more = {} if compare_to is None else {"compare_to": compare_to}
    return ("campaign_performance", {"campaigns": list(names) or "all", "period": period, **more})


def budget(name: str, amount: str) -> Call:
    return ("change_budget", {"campaign": name, "amount": amount})


def pause(name: str) -> Call:
    return ("pause_campaign", {"campaign": name})


def resume(name: str) -> Call:
    return ("resume_campaign", {"campaign": name})


CALLS: list[tuple[str, list[Call]]] = [
    # performance of all
    ("How did our campaigns do last week?", [figures(period="last week")]),
    ("how are we doing", [figures()]),
    ("How's the account doing?", [figures()]),
    ("give me the numbers", [figures()]),
    ("numbers for yesterday please", [figures(period="yesterday")]),
    ("what happened last week?", [figures(period="last week")]),
    ("Q3 numbers please", [figures(period="Q3")]),
    ("How did we do in October?", [figures(period="October")]),
    ("show me all campaigns for the last 30 days", [figures(period="last 30 days")]),
    ("performance this month so far", [figures(period="this month so far")]),
    ("how much did we spend since Monday?", [figures(period="since Monday")]),
    ("what did we spend yesterday", [figures(period="yesterday")]),
    ("total revenue year to date", [figures(period="year to date")]),
    ("how was the weekend", [figures(period="weekend")]),
    ("overview 2026-11-01..2026-11-07", [figures(period="2026-11-01..2026-11-07")]),
    ("last summer?", [figures(period="last summer")]),
    ("how did we do on Black Friday 2025?", [figures(period="Black Friday 2025")]),
    ("results from 1 to 7 November", [figures(period="from 1 to 7 November")]),
    ("How did we do on Monday?", [figures(period="Monday")]),
    # "the week before" with nothing before it
    ("and the week before?", [figures(period="week before")]),
    ("the previous week", [figures(period="previous week")]),
    ("how did Brand Search do the week before?", [figures(BRAND, period="week before")]),
    ("and the month before?", [figures(period="month before")]),
    ("and the period before?", [figures(period="2026-11-15..2026-11-21")]),
    ("how did we do at the same time last year?", [figures(period="2025-11-22..2025-11-28")]),
    ("are we on track this month?", [figures(period="this month")]),
    ("How did it go in 2025?", [figures(period="2025")]),
    # performance of one or some
    ("How did Brand Search do last week?", [figures(BRAND, period="last week")]),
    ("Brand Search?", [figures(BRAND)]),
    ("brand search last 14 days", [figures(BRAND, period="last 14 days")]),
    ("how's newsletter win back going?", [figures(MAIL)]),
    ("how did hiking boots do yesterday", [figures(BOOTS, period="yesterday")]),
    ("What was the CTR of Brand Search and Spring Sale in October?", [figures(BRAND, SPRING, period="October")]),
    ("How much revenue did brand search make from 1 to 7 November?", [figures(BRAND, period="from 1 to 7 November")]),
    ("CPA for spring sale retargeting, last quarter", [figures(SPRING_RT, period="last quarter")]),
    ("Spring Sale performance since Monday", [figures(SPRING, period="since Monday")]),
    ("how did brnad serach do lst week", [figures(BRAND, period="last week")]),
    ("how did camping storys do yesturday?", [figures(STORIES, period="yesterday")]),
    ("performence of spring sale in ocotber", [figures(SPRING, period="october")]),
    ("how are the retargeting campaigns doing this month?", [figures(SPRING_RT, TRAIL_RT, period="this month")]),
    ("show both trail runners campaigns in Q3", [figures(TRAIL, TRAIL_RT, period="Q3")]),
    ("show me the social campaigns last quarter", [figures(SPRING, TRAIL, period="last quarter")]),
    ("everything except Winter Clearance last week", [figures(*ACTIVE, period="last week")]),
    ("all but Winter Clearance last week", [figures(*ACTIVE, period="last week")]),
    ("how did active campaigns do yesterday", [figures(*ACTIVE, period="yesterday")]),
    ('what about "Spring Sale"?', [figures(SPRING)]),
    (
        "how did Brand Search, Spring Sale and Camping Stories do last month?",
        [figures(BRAND, SPRING, STORIES, period="last month")],
    ),
    ("Brand Search in winter 2025?", [figures(BRAND, period="winter 2025")]),
    ("tell me about c-101", []),
    # comparisons
    ("compare Brand Search and Spring Sale last month", [figures(BRAND, SPRING, period="last month")]),
    ("Brand Search vs Spring Sale", [figures(BRAND, SPRING)]),
    ("Which is better, Brand Search or Newsletter Win-Back?", [figures(BRAND, MAIL)]),
    ("how did we do last week vs the week before", [figures(period="last week", compare_to="the week before")]),
    (
        "Brand Search last week compared to the week before",
        [figures(BRAND, period="last week", compare_to="the week before")],
    ),
    (
        "How did Spring Sale perform in October compared to September?",
        [figures(SPRING, period="October", compare_to="September")],
    ),
    ("compare October and September", [figures(period="October", compare_to="September")]),
    ("how did October compare to September?", [figures(period="October", compare_to="September")]),
    ("What was our ROAS this year vs last year?", [figures(period="this year", compare_to="last year")]),
    ("year over year revenue", [figures(period="year to date", compare_to="a year earlier")]),
    ("week over week for Spring Sale", [figures(SPRING, period="last week", compare_to="previous")]),
    ("Did Spring Sale improve last week?", [figures(SPRING, period="last week", compare_to="previous")]),
    ("show the trend for Brand Search", [figures(BRAND, compare_to="previous")]),
    (
        "last month against the same period last year",
        [figures(period="last month", compare_to="the same period last year")],
    ),
    ("did Brand Search do better than Spring Sale last week?", [figures(BRAND, SPRING, period="last week")]),
    ("Compare this month with last month", [figures(period="this month", compare_to="last month")]),
    (
        "How was October vs. September for the retargeting campaigns?",
        [figures(SPRING_RT, TRAIL_RT, period="October", compare_to="September")],
    ),
    ("how was Brand Search in the last week of October?", [figures(BRAND, period="last week of October")]),
    ("show me yesterday's numbers for Brand Search & Spring Sale", [figures(BRAND, SPRING, period="yesterday's")]),
    # best and worst
    ("Which campaigns have a CPA above 20?", [figures()]),
    ("Which campaign wasted the most money last month?", [figures(period="last month")]),
    ("which campaign has the best ROAS", [figures()]),
    ("worst CPA last 30 days", [figures(period="last 30 days")]),
    ("Which campaign spent the most yesterday?", [figures(period="yesterday")]),
    ("top 3 campaigns by conversions this month", [figures(period="this month")]),
    ("rank campaigns by CPA for last quarter", [figures(period="last quarter")]),
    ("what is the best and the worst campaign this month", [figures(period="this month")]),
    ("cheapest clicks last month", [figures(period="last month")]),
    ("Which of the retargeting campaigns has the highest CTR?", [figures(SPRING_RT, TRAIL_RT)]),
    # budgets
    ("set Spring Sale to 120", [budget(SPRING, "120")]),
    ("Set the budget of Brand Search to €80/day", [budget(BRAND, "80")]),
    ("Brand Search to €80 per day", [budget(BRAND, "80")]),
    ("spend €85/day on Brand Search", [budget(BRAND, "85")]),
    ("raise Brand Search by 20 %", [budget(BRAND, "144")]),
    ("Could you please bump Summer Hiking Boots up by 15%?", [budget(BOOTS, "172.5")]),
    ("increase Brand Search's budget by €30", [budget(BRAND, "150")]),
    ("give Brand Search 20 euros more", [budget(BRAND, "140")]),
    ("add 20 euros to Brand Search", [budget(BRAND, "140")]),
    ("double Camping Stories", [budget(STORIES, "120")]),
    ("halve the budget of winter clearance", [budget(WINTER, "55")]),
    ("cut Summer Hiking Boots by 10 euros", [budget(BOOTS, "140")]),
    ("cut the budget of Brand Search in half", [budget(BRAND, "60")]),
    ("lower the budget of Trail Runners Prospecting to 60 €", [budget(TRAIL, "60")]),
    ("reduce spring sale by 12.5 percent", [budget(SPRING, "70")]),
    ("increase the daily budget of trail runners prospecting from 95 to 110 euros, please.", [budget(TRAIL, "110")]),
    ("set Brand Search to 130 and Spring Sale to 90", [budget(BRAND, "130"), budget(SPRING, "90")]),
    ("raise Brand Search by 10 euros and cut Spring Sale by 5%", [budget(BRAND, "130"), budget(SPRING, "76")]),
    ("raise Brand Search and Spring Sale by 10%", [budget(BRAND, "132"), budget(SPRING, "88")]),
    ("set Brand Search to 1,250.50", [budget(BRAND, "1250.5")]),
    ("set Brand Search to 1.250,50 €", [budget(BRAND, "1250.5")]),
    ("set Spring Sale to 79.99", [budget(SPRING, "79.99")]),
    ("Brand Search - 80 euros per day", [budget(BRAND, "80")]),
    ("change Brand Search by -10%", [budget(BRAND, "108")]),
    ("change Brand Search budget to 100, Spring Sale to 70", [budget(BRAND, "100"), budget(SPRING, "70")]),
    ("bring the Brand Search budget up to 150", [budget(BRAND, "150")]),
    ("raise Brand Search to a hundred and fifty euros", [budget(BRAND, "150")]),
    ("raise Brand Search by ten percent", [budget(BRAND, "132")]),
    ("take Brand Search down to 100 euros a day", [budget(BRAND, "100")]),
    # pause and resume
    ("Please put Camping Stories on hold", [pause(STORIES)]),
    ("Kill the Camping Stories campaign", [pause(STORIES)]),
    ("get Winter Clearance running again", [resume(WINTER)]),
    ("pause Spring Sale", [pause(SPRING)]),
    ("pause Spring Sale and Brand Search", [pause(SPRING), pause(BRAND)]),
    ("please stop Spring Sale Retargeting", [pause(SPRING_RT)]),
    ("turn off Camping Stories", [pause(STORIES)]),
    ("can you pause the newsletter campaign", [pause(MAIL)]),
    ('pause "Spring Sale"', [pause(SPRING)]),
    ("pasue spring sale", [pause(SPRING)]),
    ("pause all social campaigns", [pause(SPRING), pause(TRAIL)]),
    ("pause all campaigns", [pause(name) for name in ACTIVE]),
    ("resume Winter Clearance please", [resume(WINTER)]),
    ("unpause winter clearance", [resume(WINTER)]),
    ("resume all paused campaigns", [resume(WINTER)]),
    ("pause the worst campaign of last month", [figures(period="last month"), pause(STORIES)]),
    # several requests
    ("how did Brand Search do last week, and pause Spring Sale", [figures(BRAND, period="last week"), pause(SPRING)]),
    ("Pause Spring Sale. Then set Brand Search to 100!", [pause(SPRING), budget(BRAND, "100")]),
    ("Hi! How was yesterday? Thanks!", [figures(period="yesterday")]),
    ("resume Winter Clearance and set it to 50", [resume(WINTER), budget(WINTER, "50")]),
    ("which one is the worst by CPA last month? Pause it", [figures(period="last month"), pause(STORIES)]),
    (
        "how did Brand Search do in October and what about Spring Sale?",
        [figures(BRAND, period="October"), figures(SPRING, period="October")],
    ),
    (
        "- how did Brand Search do last week?\n- and the week before?",
        [figures(BRAND, period="last week"), figures(BRAND, period="2026-11-09..2026-11-15")],
    ),
    ("how did we do yesterday and last week", [figures(period="yesterday"), figures(period="last week")]),
    # reports and schedules
    ("make a report on Brand Search for October", [("make_report", {"campaigns": [BRAND], "period": "October"})]),
    ("I need a report for last month", [("make_report", {"campaigns": "all", "period": "last month"})]),
    ("report", [("make_report", {"campaigns": "all", "period": "last 7 days"})]),
    ("send a summary every monday at 9:00", [("schedule_summary", {"when": "every monday at 9:00"})]),
    ("every friday at 16:00 send me a summary", [("schedule_summary", {"when": "every friday at 16:00"})]),
    ("daily summary at 8", [("schedule_summary", {"when": "daily at 8"})]),
    ("what's scheduled?", [("list_schedules", {})]),
    ("cancel the monday summary", [("cancel_schedule", {"name": "monday"})]),
]

NOT_ABOVE_ZERO = (
    "-5", "- 5", "\N{MINUS SIGN}5", "\N{EN DASH}5", "minus 5", "negative 5", "-€5", "€-5", "\N{MINUS SIGN}€5", "minus €5", "-5 €",
    "-5 euros", "-EUR 5", "minus 5 euros", "-1,250.50", "-2k", "0", "€0", "0.00", "-0", "-20%", "minus 20 percent",
)  # fmt: skip

OFF_TOPIC = (
    "what is the weather in Berlin?", "What was the weather in Berlin last week?", "is it raining in Hamburg?",
    "tell me a joke with code", "tell me a joke about Berlin", "What is the capital of France?", "who is Angela Merkel?",
    "What time is it in Tokyo?", "who won the game yesterday?", "translate good evening to Spanish", "do you know Kubernetes?",
    "can you write me a poem about Berlin?", "where can I eat in Munich?",
)  # fmt: skip
"""Asked of any assistant: no campaign is missing here."""

SAYS: list[tuple[str, str]] = [
    ("hi", "Hello"),
    ("good morning team", "Hello"),
    ("thanks!", "You're welcome"),
    ("thank you, that was great", "You're welcome"),
    ("help", "offline model"),
    ("what can you do?", "offline model"),
    ("who are you?", "offline model"),
    ("how do I pause a campaign?", "offline model"),
    ("What's the weather?", "don't understand"),
    ("asdf qwer", "know no campaign called"),
    *((text, "don't understand") for text in OFF_TOPIC),
    ("why did ROAS drop?", "can't tell why"),
    ("should I raise the budget of Brand Search?", "can't give advice"),
    ("what would happen if we paused Spring Sale?", "can't give advice"),
    ("what will we spend next week?", "can't look ahead"),
    ("don't pause Spring Sale", "nothing was changed"),
    ("never pause Brand Search", "nothing was changed"),
    ("if ROAS falls below 2, pause Spring Sale", "can't watch for conditions"),
    ("pause Spring Sale when the CPA is above 30", "can't watch for conditions"),
    ("pause Spring Sale tomorrow", "later time"),
    ("Tomorrow, pause Spring Sale and resume Winter Clearance", "later time"),
    ("pause Spring Sale on Friday", "later time"),
    ("set Brand Search to 80 from 1 December", "later time"),
    ("The mail says: pause all campaigns", "somebody else's words"),
    ("undo that", "can't undo"),
    ("Raise Brand Search by 20% for the weekend", "limited one"),
    ("delete Brand Search", "can't create, delete or rename"),
    ("create a new campaign called Winter Hats", "can't create, delete or rename"),
    ("Wie liefen die Kampagnen letzte Woche?", "don't understand"),
    ("do it", "nothing open"),
    ("yes", "nothing open"),
    ("the second one", "nothing open"),
    ("pause trail runners", "**Trail Runners Prospecting** or **Trail Runners Retargeting**"),
    ("how did spring do?", "**Spring Sale** or **Spring Sale Retargeting**"),
    ("how is Foo Bar doing", "no campaign called \u201cFoo Bar\u201d"),
    ("pause Autumn Promo", "no campaign called \u201cAutumn Promo\u201d"),
    ("how did Winter Sale do?", "\u201cWinter Sale\u201d"),
    ("how did Hiking Promo do?", "Do you mean **Summer Hiking Boots**?"),
    ("pause it", "Which campaign shall I pause"),
    ("raise the budget by 10%", "Which campaign shall I change"),
    ("raise Brand Search 150", "To what amount"),
    ("lower Brand Search to 5 - 10", "To what amount"),
    ("set Brand Search to 100 or 130", "To what amount"),
    ("raise Brand Search by 10-20%", "To what amount"),
    ("cut Brand Search by more than 10%", "To what amount"),
    ("pause all campaigns with ROAS below 1", "I can't choose campaigns by a value"),
    ("pause all campaigns that spent more than 500 last week", "I can't choose campaigns by a value"),
    ("raise all budgets with a ROAS above 5 by 10%", "I can't choose campaigns by a value"),
    ("what time is it?", "don't understand"),
    ("change the budget of Brand Search", "To what amount"),
    ("set Brand Search to $80", "in EUR"),
    ("set Brand Search to 600 per week", "per day"),
    ("set Brand Search to 120", "€120.00 already"),
    *((f"set the budget of Brand Search to {amount}", "has to be above zero") for amount in NOT_ABOVE_ZERO),
    ("raise Brand Search by -5", "has to be above zero"),
    ("Brand Search to minus 5 euros per day", "has to be above zero"),
    ("cut Newsletter Win-Back by 20 euros", "leave nothing"),
    ("pause Winter Clearance", "paused already"),
    ("is Spring Sale paused?", "is **active**"),
    ("did you pause Spring Sale?", "is **active**"),
    ("what's the budget of Camping Stories?", "€60.00"),
    ("list campaigns", "9 campaigns"),
    ("What campaigns do we have?", "9 campaigns"),
    ("which campaigns are paused?", "**Winter Clearance** is **paused**"),
    ("how many campaigns are active?", "8 active campaigns"),
    ("schedule a summary", "When shall I"),
    ("write an email about our Spring Sale with 20 % off", "Subject: Spring Sale: 20 % off"),
    ("Draft a newsletter announcing the new trail shoes", "**Variant B"),
    ("subject lines for our winter clearance please", "Subject: Now here"),
    ("email copy for hiking boots", "offline model's template"),
]


@pytest.fixture
def dialogue(world: World) -> Dialogue:
    script: dict[str, Any] = {tool.name: {"status": "ok"} for tool in EXTRA_TOOLS}
    return Dialogue(world, extra=EXTRA_TOOLS, script=script)


@pytest.mark.parametrize("text, calls", CALLS, ids=[text for text, _ in CALLS])
async def test_a_request_makes_the_calls_it_asks_for(dialogue: Dialogue, text: str, calls: list[Call]) -> None:
    answer = await dialogue.say(text)
    assert dialogue.called() == calls
    assert answer.strip()


@pytest.mark.parametrize("text, said", SAYS, ids=[text for text, _ in SAYS])
async def test_what_needs_no_call_or_must_not_be_done_is_said(dialogue: Dialogue, text: str, said: str) -> None:
    answer = await dialogue.say(text)
    assert said in answer
    assert dialogue.called() == []
