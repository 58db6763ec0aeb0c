"""The roles a process can play, served until it is asked to leave."""

import asyncio
import contextlib
import errno
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import structlog
from aiohttp import web

from agent.execution import BeforeTool
from bot.service import Service
from bot.settings import Settings, SettingsError
from workflows.storage import StoreUnavailableError

CONNECT_S = 60.0
"""How long a starting process waits for its database: in a deploy both may start at once."""


async def serve(
    settings: Settings, *, slack: bool, worker: bool, clock: bool, before_tool: BeforeTool | None = None
) -> None:
    """Serve one process until SIGTERM or SIGINT, then leave in good order."""
    leaving = leave_on_signal()
    service = Service(settings, worker=worker, clock=clock, before_tool=before_tool)
    await opened(service, leaving)
    try:
        async with (
            service.listening_to_slack() if slack else contextlib.nullcontext(),
            listening(service.web(slack=slack), settings.host, settings.port) as url,
        ):
            structlog.get_logger().info("serving", url=url, web=slack, worker=worker, clock=clock)
            await leaving.wait()
            structlog.get_logger().info("leaving")
    finally:
        await service.close()


async def opened(service: Service, leaving: asyncio.Event) -> None:
    """Open it, and wait for its database. Raises SettingsError when that can't be reached."""
    deadline = asyncio.get_running_loop().time() + CONNECT_S
    while True:
        try:
            await service.open()
            return
        except StoreUnavailableError as error:
            if asyncio.get_running_loop().time() > deadline or leaving.is_set():
                raise SettingsError(
                    f"the database can't be reached: {error}. Is DATABASE_URL right, and the server running?"
                ) from error
            structlog.get_logger().warning("waiting_for_storage", error=str(error))
            await asyncio.sleep(1)


@asynccontextmanager
async def listening(app: web.Application, host: str, port: int) -> AsyncIterator[str]:
    """Serve `app`; yields its URL. Raises SettingsError when the port is taken."""
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=5.0)
    await runner.setup()
    site = web.TCPSite(runner, host, port)
    try:
        try:
            await site.start()
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                raise SettingsError(
                    f"port {port} is in use; stop what listens there or set PORT to another one"
                ) from None
            raise
        addresses = runner.addresses
        yield f"http://{host}:{addresses[0][1] if addresses else port}"
    finally:
        await runner.cleanup()


def leave_on_signal() -> asyncio.Event:
    """Set when the process is asked to stop."""
    leaving = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        with contextlib.suppress(NotImplementedError):  # Windows has no signal handlers in its loops
            loop.add_signal_handler(number, leaving.set)
    return leaving
