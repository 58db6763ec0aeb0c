"""Words to whoever ordered something for a channel that is lost."""

from agent.lost import TITLE as ANSWER
from agent.reports import LostPlace
from bot.render.refusals import LOST
from bot.render.text import quoted


def lost_text(lost: LostPlace) -> str:
    """What happened and how to put it right, as mrkdwn."""
    place = f"<#{lost.channel}>" if lost.channel.startswith(("C", "G")) else "our direct message"
    code = lost.why.removeprefix("Slack: ")  # of an answer no more is known
    why = LOST.get(code, lost.why)
    said = f"I could not post the {quoted(lost.title).lower()} in {place}: {why}."
    if lost.title == ANSWER:
        return f"{said} Invite me there with `/invite` and ask again, or ask me here."
    if not lost.recurring:
        return f"{said} Invite me there with `/invite` and order it again, or order it somewhere else."
    return (
        f"{said} I have stopped the summaries there and don't try again. To have them back, open the channel again if it was closed, invite me"
        " with `/invite`, and say when in it: `/summaries every monday 9:00`."
    )
