"""A local Slack and the product, and what Slack, a person and a browser can do to them."""

import io
import json
import re
import time
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import timedelta
from html import unescape
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any, Self
from urllib.parse import parse_qsl, urlencode, urlsplit

import aiohttp

from bot.dev import dev_settings, serving
from bot.emulator import Emulator, EmulatorClient, EmulatorConfig
from bot.emulator.signing import signature_headers
from bot.render.pacing import MemoryPacer
from bot.roles import listening
from bot.service import Service
from tests.waiting import until
from workflows.engine import Engine
from workflows.storage import SqliteStore

NORTHWIND = "T0NORTHWIND"
HARBOR = "T0HARBOR"
BOT = "U0THREADLINE"
HARBOR_BOT = "U0THREADHARBOR"
SECRET = "signing-secret-of-the-tests"
CLIENT_SECRET = "client-secret-of-the-tests"
TOKEN = "xoxb-northwind-of-the-tests"

Json = dict[str, Any]
Storage = dict[str, str]


@dataclass(frozen=True)
class Page:
    """What a browser got. `state_cookie` is the Cookie header it would send from then on."""

    status: int
    text: str
    location: str = ""
    state_cookie: str = ""

    @property
    def link(self) -> str:
        """The first link on the page."""
        found = re.search(r'<a\b[^>]*?href="([^"]+)"', self.text)
        assert found, self.text
        return unescape(found[1])


class Bench:
    """Everything started. `storage` are settings, `slack` the local Slack's; more replicas are made with `replica`."""

    emulator: Emulator
    service: Service
    people: EmulatorClient
    url: str

    def __init__(self, directory: Path, storage: Storage, **slack: Any) -> None:
        told = {"client_id": "1.2", "client_secret": CLIENT_SECRET, "bot_token": TOKEN, **slack}
        self.config = EmulatorConfig(signing_secret=SECRET, **told)
        self.directory = directory
        self._settings = {
            "THREADLINE_ENV": "test",
            "THREADLINE_DATA_DIR": str(directory),
            "THREADLINE_POLL_S": 0.05,
            "PORT": 0,
            **storage,
        }
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        self.emulator = await self._stack.enter_async_context(Emulator(self.config, environment="test"))
        self.people = await self._stack.enter_async_context(EmulatorClient(self.emulator.url))
        self._browser = await self._stack.enter_async_context(
            aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar())
        )
        self.service = await self._stack.enter_async_context(serving(self.settings(), self.emulator))
        await until(lambda: self.service.connected, "a connection to Slack")
        self.url = self.emulator.slack.deliveries.urls[0].removesuffix("/slack/events")
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    def settings(self, **more: Any) -> Any:
        """Settings of one more process beside this Slack."""
        return dev_settings(self.config, self.emulator.api_url, **{**self._settings, **more})

    async def replica(self, *, worker: bool = False, **more: Any) -> tuple[Service, str]:
        """One more process, that works on runs only if it is a `worker`; returns it and its URL."""
        service = Service(self.settings(**more), worker=worker, clock=False)
        await self._stack.enter_async_context(service)
        await self._stack.enter_async_context(service.listening_to_slack())
        url = await self._stack.enter_async_context(listening(service.web(), "127.0.0.1", 0))
        return service, url

    # As Slack

    async def post(
        self,
        body: bytes,
        *,
        content_type: str = "application/json",
        secret: str = SECRET,
        at_s: float | None = None,
        url: str = "",
        headers: dict[str, str] | None = None,
    ) -> Page:
        """POST to the events endpoint, signed. `headers` replace what is sent; an empty one is left out."""
        signed = signature_headers(secret, body, at_s=time.time() if at_s is None else at_s)
        sent = {
            "Content-Type": content_type,
            **signed,
            **(headers or {}),
        }
        given = {key: value for key, value in sent.items() if value}
        skipped = {"Content-Type"}  # aiohttp would add one
        target = f"{url or self.url}/slack/events"
        async with self._browser.post(
            target, data=io.BytesIO(body), headers=given, skip_auto_headers=skipped
        ) as response:
            return Page(response.status, await response.text())

    async def post_json(self, value: Any, **options: Any) -> Page:
        """POST a value as Slack posts events."""
        return await self.post(json.dumps(value).encode(), **options)

    async def post_form(self, **fields: str) -> Page:
        """POST fields as Slack posts commands."""
        body = urlencode(fields).encode()
        return await self.post(body, content_type="application/x-www-form-urlencoded")

    async def click(
        self, approval_id: str, *, user: str, team: str = NORTHWIND, action: str = "approval_approve"
    ) -> Page:
        """A click as Slack reports it, also on a button that is not shown any more."""
        payload = {
            "type": "block_actions",
            "user": {"id": user, "team_id": team},
            "team": {"id": team},
            "api_app_id": self.config.app_id,
            "actions": [
                {"type": "button", "action_id": action, "block_id": "b", "value": approval_id, "action_ts": "1.2"}
            ],
        }
        return await self.post_form(payload=json.dumps(payload))

    # As people

    async def asked(self, text: str, *, channel: str = "#campaigns", user: str = "@ada") -> str:
        """Write a message; returns its ts."""
        return await self.people.post_message(channel, user, text)

    async def replies(self, ts: str, channel: str = "#campaigns") -> list[Json]:
        """The finished messages of the agent in a thread: its answers and cards."""
        messages = await self.people.messages(channel, thread_ts=ts)
        return [message for message in messages if message["is_bot"] and message["metadata"]]

    async def time_passes(self, advance_s: float) -> None:
        """Move time, for the local Slack and for the product's store."""
        before = await self.service.store.now()
        await self.people.advance_clock(advance_s)
        if not isinstance(self.service.store, SqliteStore):  # `serving` moves only the embedded store
            await self.service.store.set_clock_offset(timedelta(seconds=self.emulator.slack.clock.offset_s))

        async def moved() -> bool:
            return (await self.service.store.now() - before).total_seconds() >= advance_s

        await until(moved, "the store's clock to follow the local Slack's")
        if isinstance(self.service.pacer, MemoryPacer):
            self.service.pacer.skip(advance_s)

    async def answer(self, ts: str, channel: str = "#campaigns", *, count: int = 1) -> Json:
        """The `count`-th finished message of the agent in a thread, once it is there."""

        async def there() -> bool:
            return len(await self.replies(ts, channel)) >= count

        await until(there, f"{count} answers in the thread {ts}")
        return (await self.replies(ts, channel))[count - 1]

    async def status_of(self, campaign: str, *, tenant: str = NORTHWIND) -> str:
        """Whether a campaign runs or is paused."""
        campaigns = await self.service.platform.campaigns(tenant)
        return str(next(each.status for each in campaigns if each.name == campaign))

    async def settled(self, **wanted: str) -> list[Json]:
        """All deliveries, once none has an attempt to come."""

        async def done() -> bool:
            deliveries = await self.people.deliveries(**wanted)
            return bool(deliveries) and all(each["done"] for each in deliveries)

        await until(done, "the end of all deliveries")
        return await self.people.deliveries(**wanted)

    async def idle(self, tenant: str = NORTHWIND) -> list[Any]:
        """The tenant's runs, once none of them is live."""
        engine: Engine = self.service.engine

        async def ended() -> bool:
            return not any(run.state.live for run in await engine.runs(tenant=tenant))

        await until(ended, f"the end of all runs of {tenant}")
        return await engine.runs(tenant=tenant)

    # As an admin's browser

    async def get(self, url: str, *, cookie: str = "") -> Page:
        """Open a page. The state cookie is Secure, so over plain http it is sent by hand."""
        headers = {"Cookie": cookie} if cookie else {}
        async with self._browser.get(url, headers=headers, allow_redirects=False) as response:
            cookies = SimpleCookie()
            for header in response.headers.getall("Set-Cookie", []):
                cookies.load(header)
            sent = "; ".join(f"{name}={morsel.value}" for name, morsel in cookies.items())
            return Page(response.status, await response.text(), response.headers.get("Location", ""), sent)

    async def consent(self, page: Page, *, decision: str = "allow", installer: str = f"{HARBOR}:U0DANA") -> str:
        """Decide on Slack's page; returns where it sends the browser."""
        asked = dict(parse_qsl(urlsplit(page.link).query))
        async with self._browser.post(
            f"{self.emulator.url}/oauth/v2/authorize",
            data={**asked, "decision": decision, "installer": installer},
            allow_redirects=False,
        ) as response:
            assert response.status == 302, await response.text()
            return response.headers["Location"]

    async def install(self, *, url: str = "", installer: str = f"{HARBOR}:U0DANA") -> Page:
        """The whole way of an admin; returns the last page."""
        begun = await self.get(f"{url or self.url}/slack/install")
        target = await self.consent(begun, installer=installer)
        return await self.get(target, cookie=begun.state_cookie)


def message_event(text: str, *, ts: str, channel: str = "C0HARBORADS", user: str = "U0DANA", **more: Any) -> Json:
    """An inner `message` event."""
    return {
        "type": "message",
        "channel": channel,
        "channel_type": "channel",
        "user": user,
        "text": text,
        "ts": ts,
        "event_ts": ts,
        **more,
    }


def envelope(event: Any, *, team: str = NORTHWIND, bot: str = BOT, **more: Any) -> Json:
    """An event as Slack wraps it."""
    authorization = {"enterprise_id": None, "team_id": team, "user_id": bot, "is_bot": True}
    return {
        "type": "event_callback",
        "team_id": team,
        "api_app_id": "A0THREADLINE",
        "event": event,
        "event_id": "Ev0TEST",
        "event_time": int(time.time()),
        "authorizations": [authorization],
        **more,
    }
