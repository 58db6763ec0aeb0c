"""Files of Slack: fetched with the token of the workspace they were shared in, from Slack's own hosts, piece by piece."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urljoin, urlsplit

import aiohttp
from slack_sdk.errors import SlackApiError

from agent.channel import ChannelGoneError, ChannelUnavailableError
from agent.models.base import File
from agent.unreadable import FileUnreadableError
from bot.clients import Clients, code_of
from bot.render.posting import Posting
from bot.render.refusals import UNKNOWN

SLACK_DOMAINS = (".slack.com", ".slack-edge.com", ".slack-files.com")
NOT_THERE = "the app has no access to this workspace any more"
REDIRECTS = 5
PIECE = 64 * 1024
"""Bytes."""
TIMEOUT = aiohttp.ClientTimeout(total=60, sock_connect=5, sock_read=15)
NO_ACCESS = "Slack doesn't let the app read it: it lacks the scope files:read, or the file belongs to another workspace"
REFUSED = {
    "file_not_found": "it is not there any more",
    "file_deleted": "it was deleted",
    "missing_scope": NO_ACCESS,
    "access_denied": NO_ACCESS,
    "not_in_channel": NO_ACCESS,
}


class SlackFiles:
    """Implements `agent.files.Files`. Nothing but Slack's hosts, and the host of `api_url`, is ever asked."""

    def __init__(self, clients: Clients, *, api_url: str) -> None:
        self._posting = Posting(clients, deadline_s=8.0)
        self._home = urlsplit(api_url)

    @asynccontextmanager
    async def open(self, tenant: str, file: File) -> AsyncIterator[AsyncIterator[bytes]]:
        about = await self._about(tenant, file)
        token = await self._token(tenant)
        async with aiohttp.ClientSession(timeout=TIMEOUT, auto_decompress=True) as session:
            try:
                response = await self._fetch(session, str(about["url"]), token)
                try:
                    _check(response, about)
                    yield response.content.iter_chunked(PIECE)
                finally:
                    response.close()
            except UNKNOWN as error:
                raise ChannelUnavailableError(f"Slack did not answer: {type(error).__name__}") from error

    async def _token(self, tenant: str) -> str:
        try:
            return (await self._posting.credentials(tenant)).token
        except ChannelGoneError as error:
            raise FileUnreadableError(NOT_THERE) from error

    async def _about(self, tenant: str, file: File) -> dict[str, Any]:
        """What Slack says of the file now: the event's copy may be a stub, as in shared channels, or older than the upload."""
        try:
            client = await self._posting.client(tenant)
            asked = client.files_info(file=file.id)
            found = (await self._posting.call(asked, tenant=tenant, method="files.info")).get("file") or {}
        except SlackApiError as error:
            raise FileUnreadableError(REFUSED.get(code_of(error), f"Slack says {code_of(error)}")) from error
        except ChannelGoneError as error:
            raise FileUnreadableError(NOT_THERE) from error
        if found.get("is_external") or found.get("mode") in ("external", "tombstone"):
            raise FileUnreadableError("it is kept outside Slack; share it as an upload")
        url = found.get("url_private_download") or found.get("url_private")
        if not url or not found.get("size"):
            raise ChannelUnavailableError(f"{file.name} is empty, or its upload has not ended", retry_after_s=2)
        return {"url": url, "size": found["size"], "type": str(found.get("mimetype") or file.media_type)}

    async def _fetch(self, session: aiohttp.ClientSession, url: str, token: str) -> aiohttp.ClientResponse:
        """Follow redirects by hand: a client drops the token on the way to another host, and would go to any host."""
        for _ in range(REDIRECTS):
            self._check_host(url)
            response = await session.get(url, headers={"Authorization": f"Bearer {token}"}, allow_redirects=False)
            if response.status not in (301, 302, 303, 307, 308):
                return response
            response.close()
            url = urljoin(url, response.headers.get("Location", ""))
        raise FileUnreadableError("Slack redirects without an end")

    def _check_host(self, url: str) -> None:
        try:
            parts = urlsplit(url)
            host, port = parts.hostname or "", parts.port
        except ValueError:
            raise FileUnreadableError("its address is no address") from None
        if (parts.scheme, host, port) == (self._home.scheme, self._home.hostname, self._home.port):
            return
        if parts.scheme == "https" and port in (None, 443) and host.endswith(SLACK_DOMAINS):
            return
        raise FileUnreadableError("it is not kept on a host of Slack's")


def _check(response: aiohttp.ClientResponse, about: dict[str, Any]) -> None:
    """Slack answers a token that may not read the file with 200 and a login page."""
    if response.status == 429 or response.status >= 500:
        raise ChannelUnavailableError(f"Slack: {response.status}", retry_after_s=5)
    if response.status >= 400:
        raise FileUnreadableError(NO_ACCESS if response.status in (401, 403) else f"Slack answers {response.status}")
    if response.content_type == "text/html" and response.content_length != about["size"]:
        raise FileUnreadableError(NO_ACCESS)
