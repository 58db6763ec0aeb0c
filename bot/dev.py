"""Development: the whole product in one process, on a local Slack with a web page."""

import asyncio
import os
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

from agent.execution import BeforeTool
from agent.models import make_model
from agent.models.base import Model, ModelEvent, ModelRequest, TextDelta
from bot.emulator import Emulator, EmulatorClient, EmulatorConfig
from bot.emulator.errors import PortBusyError, StateFileError
from bot.logs import configure_logs
from bot.roles import leave_on_signal, listening
from bot.service import Service
from bot.settings import Settings, SettingsError, load_settings
from workflows.pubsub import MemoryPubSub
from workflows.storage import SqliteStore

try:
    import fcntl
except ImportError:  # Windows: two processes on one file are then told apart by the port alone
    fcntl = None  # type: ignore[assignment]

PORT = 3000
CLOCK_S = 0.3
STATE_FILE = "slack.json"
THINKING_S = 0.6
WRITING_S = 1.2
PIECE_S = 0.08
"""At most, between two pieces: a short answer need not be dragged out."""


class PacedModel:
    """A model that takes its time, so that people see what a real one would show them: the status, and an answer that grows.

    Each call waits `THINKING_S`, then spreads its pieces of text over at most `WRITING_S`.
    """

    def __init__(self, model: Model, *, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
        self.name = model.name
        self._model = model
        self._sleep = sleep

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """The events of the model within. They are all taken first: how many there are decides how far apart they come."""
        events = [event async for event in self._model.stream(request)]
        await self._sleep(THINKING_S)
        pieces = sum(isinstance(event, TextDelta) for event in events)
        for event in events:
            yield event
            if isinstance(event, TextDelta):
                await self._sleep(min(PIECE_S, WRITING_S / pieces))

    async def close(self) -> None:
        """Close the model within."""
        await self._model.close()


def emulator_config(port: int, *, state_path: Path | None = None) -> EmulatorConfig:
    """An app of its own for this run, or that of the run which `state_path` remembers; nothing here is a secret of anybody."""
    return EmulatorConfig(
        signing_secret=secrets.token_hex(16), client_id="1000000000.2000000000", client_secret=secrets.token_hex(16),
        bot_token=f"xoxb-local-{secrets.token_hex(8)}", port=port, state_path=state_path,
    )  # fmt: skip


def dev_settings(config: EmulatorConfig, api_url: str, **more: Any) -> Settings:
    """Settings of a process that talks to the local Slack."""
    return load_settings(
        **{
            "THREADLINE_ENV": "dev",
            "SLACK_SIGNING_SECRET": config.signing_secret,
            "SLACK_CLIENT_ID": config.client_id,
            "SLACK_CLIENT_SECRET": config.client_secret,
            "SLACK_BOT_TOKEN": config.bot_token,
            "SLACK_APP_TOKEN": config.app_token,
            "SLACK_API_URL": api_url,
            "DATABASE_URL": "",  # never a database that happens to be in the environment
            "REDIS_URL": "",
            **more,
        }
    )


async def run_dev(*, port: int | None) -> None:
    """Serve until Ctrl-C. Raises SchemaError, SettingsError."""
    try:
        await _run_dev(port=port)
    except (PortBusyError, StateFileError) as error:
        raise SettingsError(str(error)) from error


async def _run_dev(*, port: int | None) -> None:
    asked = load_settings(THREADLINE_ENV="dev", **({} if port is None else {"PORT": port}))
    wanted = asked.port if port is not None or os.environ.get("PORT") else PORT
    configure_logs(asked.log_level if os.environ.get("THREADLINE_LOG_LEVEL") else "warning", people=True)
    leaving = leave_on_signal()
    directory = asked.make_data_dir()
    with only_process(directory):
        config = emulator_config(wanted, state_path=directory / STATE_FILE)
        async with Emulator(config, environment="dev") as emulator:
            settings = dev_settings(emulator.config, emulator.api_url, PORT=0, THREADLINE_POLL_S=0.2)
            async with serving(settings, emulator, model=paced(settings)):
                print(
                    f"Threadline is running. Open {emulator.url} and write to it. Ctrl-C stops it; ./dev reset empties its data.",
                    flush=True,
                )
                await leaving.wait()
                print("Stopping…", flush=True)


def tool_faults(api_url: str) -> BeforeTool:
    """The local Slack may slow or fail a tool, so that people can watch what happens then."""

    async def before_tool(name: str) -> None:
        async with EmulatorClient(api_url.removesuffix("/api/")) as client:
            fault = await client.take_fault(f"tool:{name}")
        if fault.get("kind") == "delay":
            await asyncio.sleep(float(fault.get("delay_s") or 1))
        elif fault.get("kind"):
            raise RuntimeError(f"{name} was told to fail: {fault['kind']}")

    return before_tool


def paced(settings: Settings) -> Model | None:
    """The offline model at a pace that can be watched; None for any other, which has a pace of its own."""
    return PacedModel(make_model("offline")) if settings.model.strip() == "offline" else None


@contextmanager
def only_process(directory: Path) -> Iterator[None]:
    """Hold the development data for this process. Raises SettingsError if another one holds it."""
    try:
        lock = (directory / "lock").open("w")
    except OSError as error:
        raise SettingsError(
            f"the data directory {directory} can't be written to: {error.strerror}. Set THREADLINE_DATA_DIR to another one"
        ) from None
    with lock as file:
        if fcntl is not None:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise SettingsError(
                    f"another Threadline uses the data in {directory}; stop it first, or set THREADLINE_DATA_DIR"
                ) from None
        yield


@asynccontextmanager
async def serving(
    settings: Settings, emulator: Emulator, *, worker: bool = True, model: Model | None = None
) -> AsyncIterator[Service]:
    """The product beside a local Slack, with one clock for both. `model` None: the one that the settings name."""
    service = Service(
        settings, worker=worker, clock=True, before_tool=tool_faults(settings.slack_api_url), model=model,
        pubsub=None if settings.redis_url else MemoryPubSub(quiet=True),
    )  # fmt: skip
    async with service, service.listening_to_slack(), listening(service.web(), settings.host, settings.port) as url:
        emulator.set_request_url(f"{url}/slack/events")
        following = asyncio.create_task(_follow_clock(service, emulator))
        try:
            yield service
        finally:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)


async def _follow_clock(service: Service, emulator: Emulator) -> None:
    """Moving the local Slack's clock moves the product's, so that a schedule can be watched without waiting for Monday."""
    # None at first: the store may remember another offset than a local Slack that begins anew, or the other way round.
    shown: float | None = None
    while True:
        offset_s = emulator.slack.clock.offset_s
        if offset_s != shown and isinstance(service.store, SqliteStore):
            await service.store.set_clock_offset(timedelta(seconds=offset_s))
            shown = offset_s
        await asyncio.sleep(CLOCK_S)
