"""The roles a process can play, served until it is asked to leave."""

import asyncio
import contextlib
import errno
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

import structlog
from aiohttp import web

from agent.execution import BeforeTool
from agent.feedback import feedback_since
from bot.service import Service
from bot.settings import Settings, SettingsError
from workflows import Engine, Finding
from workflows.storage import StoreUnavailableError
from workflows.tracing.redaction import redact

CONNECT_S = 60.0
"""How long a starting process waits for its database: in a deploy both may start at once."""


async def serve(settings: Settings, *, slack: bool, worker: bool, clock: bool) -> None:
    """Serve one process until SIGTERM or SIGINT, then leave in good order."""
    leaving = leave_on_signal()
    service = Service(settings, worker=worker, clock=clock, before_tool=dev_faults(settings))
    await _opened(service, leaving)
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


@asynccontextmanager
async def inspecting(settings: Settings) -> AsyncIterator[Engine]:
    """An engine that works nothing, for an operator's commands. Raises SettingsError when the database can't be reached."""
    service = Service(settings, worker=False, clock=False)
    await _opened(service, asyncio.Event())
    try:
        yield service.engine
    finally:
        await service.close()


async def examine(settings: Settings) -> list[Finding]:
    """What is wrong with the runs. Raises SettingsError when the database can't be reached."""
    async with inspecting(settings) as engine:
        return await engine.doctor()


async def list_letters(
    settings: Settings, *, tenant: str, topic: str | None, before: str | None, limit: int
) -> AsyncIterator[str]:
    """A line for each dead letter of a tenant: first its signals, then, on the first page, the events of its topics or of `topic`.

    Payloads are not shown: they are what people wrote. Raises InputError, SettingsError, PubSubUnavailableError.
    """
    async with inspecting(settings) as engine:
        for signal in [] if topic else await engine.dead_letters.signals(tenant=tenant, limit=limit, before=before):
            yield f"{signal.id}\tsignal {signal.signal.name!r} to {signal.workflow!r}, key {signal.key!r}, died {signal.died_at:%Y-%m-%d %H:%M:%S%z}"
        for event in [] if before else await engine.dead_letters.events(tenant=tenant, topic=topic, limit=limit):
            yield f"{event.id}\tevent {event.event.type!r}, given up on after {event.deliveries} deliveries: {redact(event.error)!r}"


async def list_feedback(settings: Settings, *, tenant: str, days: int, limit: int) -> AsyncIterator[str]:
    """A line for each rating of a tenant's answers in the last days, the latest first, with the run and the trace it stands beside.

    Raises SettingsError when the database can't be reached.
    """
    async with inspecting(settings) as engine:
        start = await engine.store.now() - timedelta(days=days)
        for each in await feedback_since(engine.store, tenant, start, limit=limit):
            why = f": {redact(each.reason)!r}" if each.reason else ""
            yield f"{each.at:%Y-%m-%d %H:%M:%S%z}\trun {each.run_id}\ttrace {each.trace_id}\t{each.rating} by {each.user_id}{why}"


async def redrive_letter(settings: Settings, letter_id: str, *, tenant: str) -> str:
    """Give a dead letter back; returns where it went. Raises WorkflowError, SettingsError, PubSubUnavailableError."""
    async with inspecting(settings) as engine:
        return await engine.dead_letters.redrive(letter_id, tenant=tenant)


async def drop_letter(settings: Settings, letter_id: str, *, tenant: str) -> None:
    """Remove a dead letter for good. Raises WorkflowError, SettingsError, PubSubUnavailableError."""
    async with inspecting(settings) as engine:
        await engine.dead_letters.drop(letter_id, tenant=tenant)


async def _opened(service: Service, leaving: asyncio.Event) -> None:
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


def dev_faults(settings: Settings) -> BeforeTool | None:
    """In dev and tests, the local Slack may slow or fail a tool, so that people can watch what happens then."""
    if settings.environment == "production":
        return None
    from bot.emulator.client import EmulatorClient

    async def before_tool(name: str) -> None:
        async with EmulatorClient(settings.slack_api_url.removesuffix("/api/")) as client:
            fault = await client.take_fault(f"tool:{name}")
        if fault.get("kind") == "delay":
            await asyncio.sleep(float(fault.get("delay_s") or 1))
        elif fault.get("kind"):
            raise RuntimeError(f"{name} was told to fail: {fault['kind']}")

    return before_tool
