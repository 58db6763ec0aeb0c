"""A typed client of the control API: how tests and the demo act as people."""

import asyncio
import base64
import io
from collections.abc import Awaitable, Callable
from json import dumps
from types import TracebackType
from typing import Any, Self, TypeVar

import aiohttp

from bot.emulator.errors import ControlError
from bot.emulator.faults import FaultKind
from bot.emulator.sockets import Trouble
from bot.emulator.workspace import Json

T = TypeVar("T")


class EmulatorClient:
    """Talks to the emulator at `url`. Channels and people may be ids or names: "#campaigns", "@ada", "dm:@ada"."""

    def __init__(self, url: str) -> None:
        self._base = f"{url.rstrip('/')}/_emulator/"
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        if self._session:
            await self._session.close()
            self._session = None

    async def post_message(
        self,
        channel: str,
        user: str,
        text: str,
        *,
        thread_ts: str | None = None,
        files: dict[str, bytes] | None = None,
        broadcast: bool = False,
    ) -> str:
        """Write as a person; returns the message's ts. `files` maps names to contents; `broadcast` also sends a reply to the channel."""
        attached = [
            {"name": name, "content_base64": base64.b64encode(content).decode()}
            for name, content in (files or {}).items()
        ]
        asked = {
            "channel": channel,
            "user": user,
            "text": text,
            "thread_ts": thread_ts,
            "files": attached,
            "broadcast": broadcast,
        }
        return str((await self._call("POST", "messages", json=asked))["ts"])

    async def edit_message(self, channel: str, user: str, ts: str, text: str) -> None:
        await self._call("PATCH", "messages", json={"channel": channel, "user": user, "ts": ts, "text": text})

    async def delete_message(self, channel: str, user: str, ts: str) -> None:
        await self._call("DELETE", "messages", json={"channel": channel, "user": user, "ts": ts})

    async def messages(self, channel: str, *, thread_ts: str | None = None, reader: str | None = None) -> list[Json]:
        """What stands in a channel, or in a thread (the root first). `reader` hides others' ephemeral messages.

        `text` and `blocks` are as sent; `plain` is the message in words, with [Buttons] and table rows.
        """
        found = await self._call(
            "GET", "messages", params=_given(channel=channel, thread_ts=thread_ts, **{"as": reader})
        )
        return list(found["messages"])

    async def react(self, channel: str, user: str, ts: str, name: str) -> None:
        """Add the reaction, or take it back."""
        await self._call("POST", "reactions", json={"channel": channel, "user": user, "ts": ts, "name": name})

    async def click(
        self, channel: str, message_ts: str, action_id: str, user: str, *, value: str | None = None
    ) -> Json:
        """Press a button. Returns ``{ok, status, response, problem}``: the app's acknowledgement."""
        asked = _given(channel=channel, message_ts=message_ts, action_id=action_id, user=user, value=value)
        return await self._call("POST", "actions", json=asked)

    async def command(self, channel: str, user: str, command: str, text: str = "") -> Json:
        """Type a slash command. Returns ``{status, response, ts, problem}``."""
        asked = {"channel": channel, "user": user, "command": command, "text": text}
        return await self._call("POST", "commands", json=asked)

    async def stop(self, channel: str, thread_ts: str, user: str) -> list[str]:
        """Press Stop in a thread; returns the timestamps of the streams that ended."""
        asked = {"channel": channel, "thread_ts": thread_ts, "user": user}
        return list((await self._call("POST", "stop", json=asked))["streams"])

    async def add_person(self, handle: str, real_name: str, **about: Any) -> str:
        """Somebody who joins; `about` is `team`, `timezone`, `title`, `is_admin`. Returns their id."""
        asked = {"handle": handle, "real_name": real_name, **about}
        return str((await self._call("POST", "people", json=asked))["user"])

    async def add_channel(self, user: str, name: str, **about: Any) -> str:
        """A channel that `user` makes; `about` is `private`, `topic`, `members`. Returns its id."""
        return str((await self._call("POST", "channels", json={"user": user, "name": name, **about}))["channel"])

    async def open_group(self, user: str, people: list[str]) -> str:
        """Begin a conversation of `user`, `people` and the app; returns its channel's id."""
        return str((await self._call("POST", "groups", json={"user": user, "people": people}))["channel"])

    async def add_member(self, channel: str, user: str) -> None:
        await self._call("POST", "members", json={"channel": channel, "user": user})

    async def open_home(self, user: str, tab: str = "messages", *, beside: str = "") -> None:
        """Open the app's Messages or Home tab; `beside` names the channel at whose side its pane stands."""
        await self._call("POST", "home", json={"user": user, "tab": tab, "beside": beside})

    async def change_context(self, user: str, beside: str) -> None:
        """Go to the channel `beside` while the app's pane is open."""
        await self._call("POST", "context", json={"user": user, "beside": beside})

    async def unfurl(self, channel: str, ts: str, title: str = "A preview") -> None:
        """Let Slack attach a preview to a message with a link, a moment after it was posted."""
        await self._call("POST", "unfurl", json={"channel": channel, "ts": ts, "title": title})

    async def views(self, user: str) -> Json:
        """A person's open modals and Home tab: ``{views, home}``."""
        return await self._call("GET", "views", params={"user": user})

    async def click_view(self, user: str, action_id: str, *, view_id: str = "home") -> Json:
        """Press a button in a modal or the Home tab. Returns ``{ok, status, response, problem}``."""
        return await self._call(
            "POST", "views/actions", json={"user": user, "view_id": view_id, "action_id": action_id}
        )

    async def submit_view(self, user: str, view_id: str, values: dict[str, dict[str, str | list[str]]]) -> Json:
        return await self._call("POST", "views", json={"user": user, "view_id": view_id, "values": values})

    async def close_view(self, user: str, view_id: str) -> None:
        await self._call("DELETE", "views", json={"user": user, "view_id": view_id})

    async def send_event(
        self,
        event: Json | list[Json],
        *,
        event_id: str | None = None,
        copies: int = 1,
        order: str = "given",
        team: str = "",
    ) -> list[str]:
        """Deliver a raw event, or an envelope as it is; returns the event ids."""
        asked = _given(event=event, event_id=event_id, copies=copies, order=order, team=team)
        return list((await self._call("POST", "events", json=asked))["event_ids"])

    async def deliveries(self, **wanted: str) -> list[Json]:
        """Events and their attempts; filter by `event_id`, `type`, `channel` or `ts`."""
        return list((await self._call("GET", "deliveries", params=wanted))["deliveries"])

    async def calls(self, method: str = "") -> list[Json]:
        """The app's Web API calls: ``{method, args, result, time}``."""
        return list((await self._call("GET", "calls", params={"method": method}))["calls"])

    async def status(self, channel: str, thread_ts: str) -> Json:
        return await self._call("GET", "status", params={"channel": channel, "thread_ts": thread_ts})

    async def state(self) -> Json:
        return await self._call("GET", "state")

    async def fault(self, method: str, kind: FaultKind, *, times: int = 1, **options: Any) -> None:
        """Order a fault; options are `error`, `retry_after` (seconds) and `delay_s`."""
        await self._call("POST", "faults", json={"method": method, "kind": kind, "times": times, **options})

    async def take_fault(self, method: str) -> Json:
        """Use up one fault, for example of ``tool:change_budget``; an empty object when there is none."""
        return await self._call("POST", "faults/take", json={"method": method})

    async def faults(self, method: str = "") -> list[Json]:
        """The faults that are still to happen, of one method or all."""
        return list((await self._call("GET", "faults", params=_given(method=method or None)))["faults"])

    async def clear_faults(self) -> None:
        await self._call("DELETE", "faults")

    async def advance_clock(self, advance_s: float) -> float:
        """Move the emulator's clock; returns what it shows."""
        return float((await self._call("POST", "clock", json={"advance_s": advance_s}))["now"])

    async def sockets(self) -> list[Json]:
        """The app's Socket Mode connections: ``{id, leaving, muted, sent}``."""
        return list((await self._call("GET", "sockets"))["sockets"])

    async def trouble_sockets(self, kind: Trouble, connection_id: str = "") -> int:
        """Tell connections to go, `drop` or `mute` them: all, or the one of that id. Returns how many it was."""
        asked = {"kind": kind, "id": connection_id}
        return int((await self._call("POST", "sockets", json=asked))["count"])

    async def set_request_url(self, request_url: str | list[str]) -> None:
        await self._call("POST", "config", json={"request_url": request_url})

    async def uninstall(self, team: str = "", *, user: str = "", tell: bool = True, order: str = "") -> None:
        """Remove the app from a workspace, as an admin would; a `user` who is none is refused.

        Without `tell` the app's events are left to the caller; `order` names the one that is sent first.
        """
        asked = {"team": team, "user": user, "tell": tell, "order": order}
        await self._call("POST", "uninstall", json=asked)

    async def change_channel(self, channel: str, **changes: Any) -> None:
        """What an admin sets: `is_archived`, `posting` (workspace.Posting), or `lock_thread`, a timestamp."""
        await self._call("PATCH", "channels", json={"channel": channel, **changes})

    async def wait_for(
        self, predicate: Callable[[], Awaitable[T | None]], *, timeout_s: float = 10.0, what: str = "the condition"
    ) -> T:
        """Ask `predicate` until it returns something true, and return that. Raises TimeoutError that names `what`."""
        try:
            async with asyncio.timeout(timeout_s):
                while not (found := await predicate()):  # noqa: ASYNC110, the state is in another process: nobody signals it
                    await asyncio.sleep(0.02)
        except TimeoutError:
            raise TimeoutError(f"{what} did not come true within {timeout_s} s") from None
        return found

    async def _call(self, method: str, path: str, *, json: Json | None = None, params: Json | None = None) -> Json:
        if self._session is None:
            self._session = aiohttp.ClientSession()
        # A stream, not bytes: aiohttp warns about large bodies given as bytes, and a file may be one.
        data = None if json is None else io.BytesIO(dumps(json).encode())
        async with self._session.request(method, self._base + path, data=data, params=params) as response:
            body = await response.json()
        if response.status >= 400:
            raise ControlError(response.status, body["error"])
        return dict(body)


def _given(**fields: Any) -> Json:
    return {key: value for key, value in fields.items() if value is not None}
