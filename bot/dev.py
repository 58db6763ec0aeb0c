"""Development: the whole product in one process, on a local Slack with a web page."""

import asyncio
import os
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

from bot.emulator import Emulator, EmulatorConfig
from bot.logs import configure_logs
from bot.roles import dev_faults, leave_on_signal, listening
from bot.service import Service
from bot.settings import Settings, load_settings
from workflows.storage import SqliteStore

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
            **more,
        }
    )


async def run_dev(*, port: int | None) -> None:
    """Serve until Ctrl-C. Raises PortBusyError, SchemaError, SettingsError."""
    wanted = port if port is not None else int(os.environ.get("PORT") or PORT)
    configure_logs(os.environ.get("THREADLINE_LOG_LEVEL", "warning"), people=True)
    leaving = leave_on_signal()
    config = emulator_config(wanted)
    async with Emulator(config, environment="dev") as emulator:
        settings = dev_settings(config, emulator.api_url, PORT=0, THREADLINE_POLL_S=0.2)
        async with serving(settings, emulator):
            print(
                f"Threadline is running. Open {emulator.url} and write to it. Ctrl-C stops it; ./dev reset empties its data.",
                flush=True,
            )
            await leaving.wait()


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
