"""What Slack sends, by whichever way it came: checked, kept if its workspace is not known yet, else given to Bolt."""

from collections.abc import Mapping
from typing import Any

import structlog
from slack_bolt import BoltResponse
from slack_bolt.async_app import AsyncApp
from slack_bolt.request.async_request import AsyncBoltRequest

from bot.acknowledgements import Acknowledgements
from bot.bodies import Envelope
from bot.bolt import AGAIN
from bot.broadcasts import quiet_answer
from bot.clients import Clients, CredentialsUnavailableError
from bot.events import LEAVING, as_org, kind_of, org_of, tenant_of
from bot.ingress import Ingress
from bot.takeover import Takeover
from workflows.storage import StoreUnavailableError


class Dispatch:
    """Answers envelopes that are Slack's for certain: events, commands and interactions."""

    def __init__(self, bolt: AsyncApp, clients: Clients, ingress: Ingress, takeover: Takeover) -> None:
        self._takeover = takeover
        self._bolt = bolt
        self._clients = clients
        self._ingress = ingress
        self._acknowledgements = Acknowledgements(clients)

    async def answer(self, envelope: Envelope, headers: Mapping[str, Any] | None = None) -> BoltResponse:
        """400 can't be read, 503 not stored, so that it has to come again, else 200 with what the sender is to see.

        Slack sends again what is an event. Commands, clicks and dialogs come once: they are answered in time and in words, whatever fails.
        """
        if envelope.get("type") == "app_rate_limited":
            return _limited(envelope)
        answering = self._answered(envelope, headers or {})
        if envelope.get("type") == "event_callback" or "ssl_check" in envelope:
            return await answering
        response = await self._acknowledgements.answer(envelope, answering)
        response.body = quiet_answer(response.body or "")
        return response

    async def close(self) -> None:
        """Finish what goes on behind acknowledgements, or tell people that it was cut off."""
        await self._acknowledgements.close()

    async def _answered(self, envelope: Envelope, headers: Mapping[str, Any]) -> BoltResponse:
        try:
            return await self._accepted(envelope, headers)
        except (StoreUnavailableError, CredentialsUnavailableError) as error:
            structlog.get_logger().warning("not_accepted", error=str(error))
            return BoltResponse(status=503, body=AGAIN)

    async def _accepted(self, envelope: Envelope, headers: Mapping[str, Any]) -> BoltResponse:
        if "ssl_check" in envelope:
            return BoltResponse(status=200)
        if envelope.get("type") == "event_callback":
            if not isinstance(kind_of(envelope), str):
                return refused(400, "the envelope holds no event")
            tenant = tenant_of(envelope)
            if not tenant:
                return BoltResponse(status=200)
            if await self._clients.known(tenant) is None:
                if (
                    not (org := org_of(envelope))
                    or kind_of(envelope) in LEAVING
                    or await self._clients.known(org) is None
                ):
                    await self._ingress.hold(tenant, envelope)
                    return BoltResponse(status=200)
                envelope = as_org(envelope, org)
            elif tenant == org_of(envelope):
                # One that was added to the organization's installation after that was made.
                await self._takeover.begin(tenant, str(envelope.get("team_id") or ""))
        return await self._dispatched(envelope, headers)

    async def _dispatched(self, envelope: Envelope, headers: Mapping[str, Any]) -> BoltResponse:
        """Bolt's "socket mode" is a request that was verified and read already, which this one is."""
        try:
            asked = AsyncBoltRequest(mode="socket_mode", body=envelope, headers=dict(headers))
        except Exception as error:
            # Bolt looks for ids while it makes the request, and trips over fields of a type that Slack never sends.
            return refused(400, f"the body can't be read: {type(error).__name__}")
        try:
            return await self._bolt.async_dispatch(asked)
        except (AttributeError, LookupError, TypeError) as error:
            # What our listeners raise ends in Bolt's error handler. This is that handler itself, tripping on the same fields.
            return refused(400, f"the body can't be read: {type(error).__name__}")


def _limited(envelope: Envelope) -> BoltResponse:
    """Slack holds events of a workspace back: more than 30,000 came in the hour. It does not send them later."""
    tenant, minute = (str(envelope.get(name) or "") for name in ("team_id", "minute_rate_limited"))
    structlog.get_logger().warning("events_held_back", tenant=tenant, minute=minute)
    return BoltResponse(status=200)


def refused(status: int, reason: str) -> BoltResponse:
    """An answer to what will never be taken, with its reason in the log."""
    structlog.get_logger().info("request_refused", status=status, reason=reason)
    return BoltResponse(status=status, body=reason)
