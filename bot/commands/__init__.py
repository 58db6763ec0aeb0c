"""Commands: acknowledged at once, the work behind."""

from collections.abc import Iterable

import structlog

from bot.commands.campaigns import Campaigns
from bot.commands.command import Command, Handler
from bot.commands.report import Report
from bot.commands.summaries import Summaries
from bot.commands.threadline import Threadline

LONGEST = 500
"""Characters after a command: more than any name and time. Readings of a longer text would keep everybody else waiting."""
TOO_LONG = f"That is longer than any command is: at most {LONGEST} characters. Mention me to say more."


class Commands:
    """Runs commands by name."""

    def __init__(self, handlers: Iterable[Handler]) -> None:
        self._handlers = {handler.name: handler for handler in handlers}

    @property
    def names(self) -> tuple[str, ...]:
        """The commands there are, without a slash."""
        return tuple(self._handlers)

    async def run(self, command: Command) -> str:
        """The answer to a command that there is, as mrkdwn. Raises StoreUnavailableError."""
        structlog.get_logger().info("command_received", command=command.name, tenant=command.tenant)
        handler = self._handlers[command.name]
        if len(command.text) > LONGEST:
            return TOO_LONG
        return handler.help if command.text.lower() == "help" else await handler.run(command)


__all__ = ["TOO_LONG", "Campaigns", "Command", "Commands", "Handler", "Report", "Summaries", "Threadline"]
