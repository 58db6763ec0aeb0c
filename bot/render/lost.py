"""Words to whoever ordered something for a channel that is lost."""

from agent.reports import LostPlace
from bot.render.text import quoted


def lost_text(lost: LostPlace) -> str:
    """What happened and how to put it right, as mrkdwn."""
    place = f"<#{lost.channel}>" if lost.channel.startswith(("C", "G")) else "our direct message"
    said = f"I could not post the {quoted(lost.title).lower()} in {place}: {lost.why}."
    if not lost.recurring:
        return f"{said} Invite me there with `/invite` and order it again, or order it somewhere else."
    return (
        f"{said} I have stopped the summaries there and don't try again. To have them back, open the channel again if it was closed, invite me"
        " with `/invite`, and say when in it: `/summaries every monday 9:00`."
    )
