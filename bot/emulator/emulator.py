"""The local Slack as one object that starts and stops."""

import contextlib
import errno
import socket
from types import TracebackType
from typing import Literal, Self

from aiohttp import web

from bot.emulator.clock import Clock
from bot.emulator.config import EmulatorConfig, request_urls
from bot.emulator.errors import PortBusyError, WrongEnvironmentError
from bot.emulator.server import build_application
from bot.emulator.slack import Slack

HOST = "127.0.0.1"


class Emulator:
    """A Slack on this machine, for dev, the demo and tests. It listens on loopback only and keeps everything in memory.

    Raises:
        WrongEnvironmentError: `environment` is neither "dev" nor "test". It trusts everyone who reaches it.
        PortBusyError: on start, when another program listens on the port.

    """

    def __init__(self, config: EmulatorConfig, *, environment: Literal["dev", "test"] = "test") -> None:
        # The type is a promise of honest callers; a setting read from the environment can hold anything.
        if environment not in {"dev", "test"}:
            raise WrongEnvironmentError(
                f"The local Slack starts in dev and tests only, and this is {environment!r}. "
                "Connect a real Slack app instead: unset SLACK_API_URL and set SLACK_SIGNING_SECRET."
            )
        self.config = config
        self.slack = Slack.create(config, Clock())
        self._runner: web.AppRunner | None = None

    @property
    def url(self) -> str:
        """``http://127.0.0.1:3000``; the page is there."""
        return self.slack.url

    @property
    def api_url(self) -> str:
        """The Web API's base, for slack_sdk's `base_url`."""
        return f"{self.slack.url}/api/"

    def set_request_url(self, request_url: str | tuple[str, ...]) -> None:
        """Where events, commands and clicks go from now on; several URLs are replicas."""
        self.slack.deliveries.set_urls(request_urls(request_url))

    async def start(self) -> None:
        listener = _listen(self.config.port)
        self.slack.url = f"http://{HOST}:{listener.getsockname()[1]}"
        await self.slack.deliveries.start()
        self._runner = web.AppRunner(build_application(self.slack), access_log=None, shutdown_timeout=1.0)
        await self._runner.setup()
        await web.SockSite(self._runner, listener).start()

    async def stop(self) -> None:
        self.slack.updates.close()
        await self.slack.deliveries.stop()
        if self._runner:
            await self._runner.cleanup()
            self._runner = None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()


def _listen(port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((HOST, port))
        listener.listen(128)
    except OSError as error:
        with contextlib.suppress(OSError):
            listener.close()
        if error.errno != errno.EADDRINUSE:
            raise
        raise PortBusyError(
            f"Port {port} is taken by another program. Stop that program (is another local Slack running?) "
            "or choose another port."
        ) from None
    return listener
