"""What the local Slack remembers from one start to the next: everything a person could see, in one JSON file."""

import asyncio
import contextlib
import os
import tempfile
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import structlog
from pydantic import BaseModel, ConfigDict, ValidationError

from bot.emulator.config import EmulatorConfig
from bot.emulator.delivery import Delivery
from bot.emulator.errors import StateFileError
from bot.emulator.files import File
from bot.emulator.interactions import ResponseUrl, View
from bot.emulator.messages import Message
from bot.emulator.sessions import Session
from bot.emulator.slack import Grant, Slack
from bot.emulator.workspace import Installation, Workspace

SAVE_AFTER_S = 0.2
"""Changes of one moment, such as a stream's, are saved together."""


class App(BaseModel):
    """What the app and Slack know of each other. It has to outlive a restart: the app keeps the tokens it was given."""

    signing_secret: str
    client_id: str
    client_secret: str
    bot_token: str


class Told(BaseModel):
    """How the app's being told about a message ended."""

    event_id: str
    event_type: str
    delivered: bool


class Kept(BaseModel):
    """A message. Its deliveries hold their events, which are large and of no use once they have ended."""

    message: Message
    told: list[Told]


class Remembered(BaseModel):
    """The file. Triggers are left out, they live three seconds; faults and the log of calls, because they belong to one test."""

    model_config = ConfigDict(ser_json_bytes="base64", val_json_bytes="base64")

    version: Literal[1] = 1
    app: App
    clock_offset_s: float
    workspaces: list[Workspace]
    revoked: list[Installation]
    messages: list[Kept]
    unfinished: list[Delivery]
    files: list[File]
    sessions: list[tuple[str, str, Session]]
    views: list[View]
    homes: list[View]
    response_urls: dict[str, ResponseUrl]
    grants: dict[str, Grant]


_LEFT_OUT: Any = {"messages": {"__all__": {"message": {"deliveries"}}}, "unfinished": {"__all__": {"tried"}}}


class StateFile:
    """The memory at `path`. Only one local Slack may use it at a time."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._saved = -1

    def load(self) -> Remembered | None:
        """What is remembered, or None when there is no file yet. Raises StateFileError."""
        try:
            return Remembered.model_validate_json(self._path.read_bytes())
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StateFileError(
                f"{self._path} can't be read: {error.strerror}. ./dev reset empties the data."
            ) from None
        except ValidationError:
            raise StateFileError(
                f"{self._path}, the local Slack's memory, is broken or of another version. ./dev reset empties the data."
            ) from None

    def save(self, slack: Slack) -> None:
        """Write everything. The file is whole at every moment, and nobody else may read it: it holds tokens."""
        self._saved = slack.updates.last
        _write(self._path, remembered(slack).model_dump_json(exclude=_LEFT_OUT).encode())

    async def follow(self, slack: Slack) -> None:
        """Save shortly after each change, until cancelled. A disk that is full for a while costs nothing but a warning."""
        while True:
            await slack.updates.changed(self._saved)
            await asyncio.sleep(SAVE_AFTER_S)
            try:
                self.save(slack)
            except OSError as error:
                structlog.get_logger().warning("local_slack_not_saved", path=str(self._path), error=error.strerror)


def remembered(slack: Slack) -> Remembered:
    """The state of `slack`, still sharing its objects: to be written at once."""
    config = slack.config
    return Remembered.model_construct(
        version=1,
        app=App(
            signing_secret=config.signing_secret,
            client_id=config.client_id,
            client_secret=config.client_secret,
            bot_token=config.bot_token,
        ),
        clock_offset_s=slack.clock.offset_s,
        workspaces=list(slack.workspaces.values()),
        revoked=list(slack.revoked.values()),
        messages=[Kept.model_construct(message=one, told=_told(one.deliveries)) for one in slack.timeline.everything()],
        unfinished=[delivery for delivery in slack.deliveries.log if not delivery.done],
        files=slack.files.all(),
        sessions=slack.sessions.all(),
        views=list(slack.interactions.views.values()),
        homes=list(slack.interactions.homes.values()),
        response_urls=slack.interactions.response_urls,
        grants=slack.grants,
    )


def with_app(config: EmulatorConfig, app: App) -> EmulatorConfig:
    """`config` with the secrets that are remembered, whatever new ones it came with."""
    return replace(config, **app.model_dump())


def restore(slack: Slack, memory: Remembered) -> None:
    """Put `memory` into a Slack that was just made; call it once the Slack's own address is known."""
    slack.clock.advance(memory.clock_offset_s - slack.clock.offset_s)
    slack.workspaces = {workspace.id: workspace for workspace in memory.workspaces}
    shared = {one.installation.token: one.installation for one in memory.workspaces if one.installation}
    for workspace in memory.workspaces:  # an organization's workspaces have one installation between them
        workspace.installation = shared[workspace.installation.token] if workspace.installation else None
    slack.revoked = {installation.token: installation for installation in memory.revoked}
    slack.grants = memory.grants
    slack.files.put(memory.files)
    slack.sessions.put(memory.sessions)
    slack.interactions.views = {view.id: view for view in memory.views}
    slack.interactions.homes = {view.user_id: view for view in memory.homes}
    slack.interactions.response_urls = memory.response_urls
    unfinished = {(delivery.event_id, delivery.event_type): delivery for delivery in memory.unfinished}
    for kept in memory.messages:
        _restore_message(slack, kept, unfinished)
    slack.deliveries.resume(memory.unfinished)


def _restore_message(slack: Slack, kept: Kept, unfinished: dict[tuple[str, str], Delivery]) -> None:
    message = kept.message
    message.deliveries = [
        unfinished.get((told.event_id, told.event_type))
        or Delivery(told.event_id, message.team_id, told.event_type, b"", done=True, delivered=told.delivered)
        for told in kept.told
    ]
    # A file's addresses begin with the local Slack's own, whose port may be another one now.
    files = [(wire, slack.files.find(str(wire.get("id")))) for wire in message.files]
    message.files = [file.wire(slack.url) if file else wire for wire, file in files]
    slack.timeline.add(message)


def _told(deliveries: Iterable[Delivery]) -> list[Told]:
    return [Told(event_id=one.event_id, event_type=one.event_type, delivered=one.delivered) for one in deliveries]


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    # Not synced to the disk: a development Slack need not survive a power cut, and a stream would wait for it five times a second.
    # mkstemp makes the file for its owner alone, from the first byte on.
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        Path(name).replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(name).unlink()
        raise
