"""What an operator asks from the command line: how the runs are, which letters are dead, what people thought of answers.

These commands need the database, and the bus where there is one. Who talks to Slack and to a model needs more settings than that.
"""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

from agent.feedback import feedback_since
from agent.models import make_model
from bot.keyring import KEY_BYTES, Keyring
from bot.roles import opened
from bot.service import Service
from bot.settings import Settings
from workflows import Engine, Finding
from workflows.tracing.redaction import redact


@asynccontextmanager
async def inspecting(settings: Settings) -> AsyncIterator[Engine]:
    """An engine that works nothing. Raises SettingsError when the database can't be reached."""
    no_secrets = Keyring({"none": os.urandom(KEY_BYTES)})
    service = Service(settings, worker=False, clock=False, keyring=no_secrets, model=make_model("offline"))
    await opened(service, asyncio.Event())
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
