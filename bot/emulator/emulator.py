"""The local Slack as one object that starts and stops."""

import asyncio
import contextlib
import errno
import socket
from types import TracebackType
from typing import Literal, Self

from aiohttp import web

from bot.emulator.clock import Clock
from bot.emulator.config import EmulatorConfig, request_urls
from bot.emulator.errors import PortBusyError, WrongEnvironmentError
from bot.emulator.memory import StateFile, restore, with_app
from bot.emulator.server import build_application
from bot.emulator.slack import Slack

HOST = "127.0.0.1"


class Emulator:
    """A Slack on this machine, for dev, the demo and tests. It listens on loopback only, and keeps everything in memory
    unless its configuration names a file.

    Raises:
        WrongEnvironmentError: `environment` is neither "dev" nor "test". It trusts everyone who reaches it.
        StateFileError: what the file holds can't be read.
        PortBusyError: on start, when another program listens on the port.

    """

    def __init__(self, config: EmulatorConfig, *, environment: Literal["dev", "test"] = "test") -> None:
        # The type is a promise of honest callers; a setting read from the environment can hold anything.
        if environment not in {"dev", "test"}:
            raise WrongEnvironmentError(
                f"The local Slack starts in dev and tests only, and this is {environment!r}. "
                "Connect a real Slack app instead: unset SLACK_API_URL and set SLACK_SIGNING_SECRET."
            )
        self._file = StateFile(config.state_path) if config.state_path else None
        self._memory = self._file.load() if self._file else None
        self._saving: asyncio.Task[None] | None = None
        self.config = with_app(config, self._memory.app) if self._memory else config
        self.slack = Slack.create(self.config, Clock())
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
        self._remember()
        self._runner = web.AppRunner(build_application(self.slack), access_log=None, shutdown_timeout=1.0)
        await self._runner.setup()
        await web.SockSite(self._runner, listener).start()

    async def stop(self) -> None:
        self.slack.updates.close()
        await self.slack.scheduled.stop()
        await self.slack.deliveries.stop()
        if self._runner:
            await self._runner.cleanup()
            self._runner = None
        if self._file and self._saving:
            self._saving.cancel()
            await asyncio.gather(self._saving, return_exceptions=True)
            self._file.save(self.slack)

    def _remember(self) -> None:
        """Go on from what the file holds, and keep it up to date."""
        if self._memory:
            restore(self.slack, self._memory)
            self._memory = None
        if self._file:
            self._saving = asyncio.create_task(self._file.follow(self.slack))

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
            f"or choose another port, for example: ./dev run --port {port + 1}"
        ) from None
    return listener
