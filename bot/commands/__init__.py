"""Commands: acknowledged at once, the work behind."""

from collections.abc import Iterable

import structlog

from bot.commands.campaigns import Campaigns
from bot.commands.command import Command, Handler
from bot.commands.report import Report
from bot.commands.summaries import Summaries
from bot.commands.threadline import Threadline


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
        return handler.help if command.text.lower() == "help" else await handler.run(command)


__all__ = ["Campaigns", "Command", "Commands", "Handler", "Report", "Summaries", "Threadline"]
