"""What the offline model says without a tool: small talk, help, and what it can't or must not do."""

from collections.abc import Sequence

from agent.models.offline.markdown import listed, quoted
from agent.models.offline.requests import Said, Simple

GONE = "That message was deleted, so there is nothing left to answer."
HELP = """\
I look after your ad campaigns. I am the offline model: a small grammar, not a language model, so I understand usual requests and say \
so when I don't. You can ask, for example:

* **Performance:** "How did Brand Search do last week?", "Show all campaigns in October", "and the week before?"
* **Comparisons:** "Compare two campaigns last month", "last week vs the week before"
* **Best and worst:** "Which campaign has the best ROAS?", "worst CPA last 30 days"
* **Budgets:** "Set Spring Sale to 120", "raise it by 20 %". I ask for approval first.
* **Pause and resume:** "Pause Spring Sale", "resume all campaigns". I ask for approval first.
* **Reports, email copy, summaries:** "Make a report for last month", "Write an email about our spring sale", "Send a summary every \
Monday at 9:00"

Several requests in one message are fine. I can't explain causes, forecast, or make changes later or on a condition."""

_TEXTS: dict[Simple, str] = {
    "greeting": "Hello! Ask me about your campaigns, for example how they did last week.",
    "thanks": "You're welcome.",
    "why": "I can't tell why: the figures show what happened, not its cause. Comparing with the period before, or campaign by"
    " campaign, shows where it changed.",
    "advice": "I can't give advice or predict what a change would do. I can show the figures that the decision rests on.",
    "limit": "I can't filter by a value, so that is every campaign, in order.",
    "beyond": "I can't create, delete or rename campaigns, so I did nothing for {text}. I can change budgets, pause and resume.",
    "later": "I can't make changes at a later time or for a limited one, so I did nothing for {text}. Ask me again when it is to happen.",
    "condition": "I can't watch for conditions, so I did nothing for {text}. I can tell you the figures now, or make the change now"
    " if you ask for just that.",
    "by_value": "I can't choose campaigns by a value, so I did nothing for {text}. Ask me to rank them by it, then name those you mean.",
    "forecast": "I can't look ahead: there are no figures for days to come, so I have no answer to {text}.",
    "keep": "All right, I leave that as it is: nothing was changed for {text}.",
    "reported": "I read {text} as somebody else's words and did nothing. If you want it done, ask me for it directly.",
    "cut": "Your message is longer than I can take in: I read the beginning only. Send the rest again, in shorter messages.",
    "stop": "All right, I won't do anything further.",
    "undo": "I can't undo a change. Tell me the value you want back, for example the old budget, and I ask for approval of that.",
    "unknown": "I don't understand {text}. I can answer questions about campaign figures, change budgets, and pause or resume"
    " campaigns; say *help* for examples.",
}


def answer(said: Said) -> str:
    """The words for it."""
    return HELP if said.kind == "help" else _TEXTS[said.kind].format(text=quoted(said.text))


def unapproved(waiting: Sequence[str]) -> str:
    """A yes is no approval: what waits for one, and where it is given."""
    one = len(waiting) == 1
    those = f"That waits for approval: {listed(waiting)}." if one else f"These wait for approval: {listed(waiting)}."
    return f"{those} A yes here does not approve {'it' if one else 'them'}: use the Approve button on {_card(waiting)}."


def undecided(waiting: Sequence[str]) -> str:
    """What still waits after a stop or a no, and how to turn it down; empty if nothing does."""
    if not waiting:
        return ""
    one = len(waiting) == 1
    count = "1 approval still waits" if one else f"{len(waiting)} approvals still wait"
    return (
        f"{count}: {listed(waiting)}. To turn {'it' if one else 'them'} down, use the Deny button on {_card(waiting)}."
    )


def _card(waiting: Sequence[str]) -> str:
    return "the card" if len(waiting) == 1 else "each card"
