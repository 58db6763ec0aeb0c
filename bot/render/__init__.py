"""What the agent says, as Slack shows it."""

from bot.render.channel import SlackChannel

__all__ = ["SlackChannel"]
