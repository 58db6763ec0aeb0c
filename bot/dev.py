"""Development: the whole product in one process, on a local Slack with a web page."""

import asyncio
import os
import secrets
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

from bot.emulator import Emulator, EmulatorConfig
from bot.logs import configure_logs
from bot.roles import dev_faults, leave_on_signal, listening
from bot.service import Service
from bot.settings import Settings, SettingsError, load_settings
from workflows.storage import SqliteStore

try:
    import fcntl
except ImportError:  # Windows: two processes on one file are then told apart by the port alone
    fcntl = None  # type: ignore[assignment]

PORT = 3000
CLOCK_S = 0.3


def emulator_config(port: int) -> EmulatorConfig:
    """An app of its own for this run; nothing here is a secret of anybody."""
    return EmulatorConfig(
        signing_secret=secrets.token_hex(16), client_id="1000000000.2000000000", client_secret=secrets.token_hex(16),
        bot_token=f"xoxb-local-{secrets.token_hex(8)}", port=port,
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
            "SLACK_API_URL": api_url,
            "DATABASE_URL": "",  # never a database that happens to be in the environment
            "REDIS_URL": "",
            **more,
        }
    )


async def run_dev(*, port: int | None) -> None:
    """Serve until Ctrl-C. Raises PortBusyError, SchemaError, SettingsError."""
    asked = load_settings(THREADLINE_ENV="dev", **({} if port is None else {"PORT": port}))
    wanted = asked.port if port is not None or os.environ.get("PORT") else PORT
    configure_logs(asked.log_level if os.environ.get("THREADLINE_LOG_LEVEL") else "warning", people=True)
    leaving = leave_on_signal()
    config = emulator_config(wanted)
    async with Emulator(config, environment="dev") as emulator:
        settings = dev_settings(config, emulator.api_url, PORT=0, THREADLINE_POLL_S=0.2)
        with only_process(Path(settings.data_dir)):
            async with serving(settings, emulator):
                print(
                    f"Threadline is running. Open {emulator.url} and write to it. Ctrl-C stops it; ./dev reset empties its data.",
                    flush=True,
                )
                await leaving.wait()


@contextmanager
def only_process(directory: Path) -> Iterator[None]:
    """Hold the development data for this process. Raises SettingsError if another one holds it."""
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / "lock").open("w") as file:
        if fcntl is not None:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise SettingsError(
                    f"another Threadline uses the data in {directory}; stop it first, or set THREADLINE_DATA_DIR"
                ) from None
        yield


@asynccontextmanager
async def serving(settings: Settings, emulator: Emulator, *, worker: bool = True) -> AsyncIterator[Service]:
    """The product beside a local Slack, with one clock for both."""
    service = Service(settings, worker=worker, clock=True, before_tool=dev_faults(settings))
    async with service, listening(service.web(), settings.host, settings.port) as url:
        emulator.set_request_url(f"{url}/slack/events")
        following = asyncio.create_task(_follow_clock(service, emulator))
        try:
            yield service
        finally:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)


async def _follow_clock(service: Service, emulator: Emulator) -> None:
    """Moving the local Slack's clock moves the product's, so that a schedule can be watched without waiting for Monday."""
    shown = 0.0
    while True:
        offset_s = emulator.slack.clock.offset_s
        if offset_s != shown and isinstance(service.store, SqliteStore):
            await service.store.set_clock_offset(timedelta(seconds=offset_s))
            shown = offset_s
        await asyncio.sleep(CLOCK_S)
