"""Bolt, set up so that nothing is acknowledged before it is durable, and no event is dropped for want of a token."""

import re
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import structlog
from slack_bolt import BoltResponse
from slack_bolt.async_app import AsyncApp
from slack_bolt.authorization import AuthorizeResult
from slack_sdk.web.async_client import AsyncWebClient

from bot.approvals import BUTTONS, REASON, Decisions
from bot.broadcasts import neutral
from bot.clients import Clients, Credentials, CredentialsUnavailableError
from bot.commands import Command, Commands
from bot.home import EDIT, Home
from bot.ingress import Ingress
from bot.ratings import WHY, Ratings
from bot.render.feedback import RATE
from bot.settings import Settings
from bot.settings_dialog import SETTINGS, SettingsDialog, SettingsError
from workflows.storage import StoreUnavailableError

TENANT = "threadline.tenant"
REACHED = "reached"
"""Set in the context once code of ours has the request. What fails before that is a field of a type Slack never sends."""

AGAIN = "not stored; deliver it again"
NOT_INSTALLED = "Threadline is not installed in this workspace any more. An admin can install it again."


def make_bolt(
    settings: Settings,
    *,
    clients: Clients,
    ingress: Ingress,
    decisions: Decisions,
    commands: Commands,
    dialog: SettingsDialog,
    home: Home,
    ratings: Ratings,
) -> AsyncApp:
    """The Bolt app with all listeners."""
    bolt = AsyncApp(
        client=AsyncWebClient(base_url=settings.slack_api_url, timeout=5),
        signing_secret=settings.slack_signing_secret.get_secret_value(),
        authorize=_authorize(clients),
        process_before_response=True,
        user_facing_authorize_error_message=NOT_INSTALLED,
    )
    _listen(bolt, ingress)
    _listen_to_clicks(bolt, decisions)
    _listen_to_commands(bolt, commands)
    _listen_to_settings(bolt, dialog, home)
    _listen_to_ratings(bolt, ratings)
    return bolt


def _authorize(clients: Clients) -> Callable[..., Awaitable[AuthorizeResult]]:
    """From storage, without a call to Slack. Bolt's own answers 200 and drops the event on any error; this one raises."""

    async def authorize(enterprise_id: str | None, team_id: str | None, context: Any) -> AuthorizeResult | None:
        org_wide = bool(context.is_enterprise_install)
        tenants = list(filter(None, (enterprise_id, team_id) if org_wide else (team_id, enterprise_id)))
        if not all(isinstance(each, str) for each in tenants):
            raise TypeError("an id is no string")
        try:
            found = await _first(clients, tenants)
        except Exception:
            context[REACHED] = True  # whatever it is, it is ours
            raise
        if found is None:
            return None
        context[TENANT] = found.tenant
        return AuthorizeResult(
            enterprise_id=enterprise_id,
            team_id=team_id,
            bot_user_id=found.bot_user_id,
            bot_id=found.bot_id,
            bot_token=found.token,
        )

    return authorize  # type: ignore[return-value] # Bolt takes None as "not installed"


async def _first(clients: Clients, tenants: Sequence[str]) -> Credentials | None:
    """Those of the first tenant that the app is installed as."""
    for tenant in tenants:
        found = await clients.soon(tenant)  # an event has asked storage on its way here
        if found is not None:
            return found
    return None


def _listen(bolt: AsyncApp, ingress: Ingress) -> None:
    @bolt.error
    async def failed(error: Exception, context: Any) -> BoltResponse:
        words = f"{type(error).__name__}: {error}"
        if isinstance(error, StoreUnavailableError | CredentialsUnavailableError):
            structlog.get_logger().warning("not_accepted", error=words)
            return BoltResponse(status=503, body=AGAIN)
        if REACHED not in context:
            structlog.get_logger().warning("request_refused", status=400, reason=words)
            return BoltResponse(status=400, body="the body can't be read")
        structlog.get_logger().error("listener_failed", error=words, exc_info=error)
        return BoltResponse(status=500, body=AGAIN)

    @bolt.event(re.compile(".*"))
    async def happened(body: dict[str, Any], context: Any) -> None:
        """Every type and subtype: an event Bolt does not match is answered 404, which Slack counts as a failure."""
        context[REACHED] = True
        await ingress.accept(body)


def _listen_to_clicks(bolt: AsyncApp, decisions: Decisions) -> None:
    for action_id in BUTTONS:

        @bolt.action(action_id)
        async def clicked(ack: Any, body: dict[str, Any], action: dict[str, Any], context: Any, respond: Any) -> None:
            context[REACHED] = True
            said = await decisions.clicked(
                tenant=_tenant(context),
                user=str(body["user"]["id"]),
                action=action,
                trigger_id=str(body.get("trigger_id")),
            )
            await ack()
            if said is not None:
                await _tell(respond, said)

    @bolt.view(REASON)
    async def explained(ack: Any, body: dict[str, Any], view: dict[str, Any], context: Any) -> None:
        context[REACHED] = True
        await _close(ack, await decisions.explained(tenant=_tenant(context), user=str(body["user"]["id"]), view=view))


def _listen_to_commands(bolt: AsyncApp, commands: Commands) -> None:
    for name in commands.names:

        @bolt.command(f"/{name}")
        async def commanded(ack: Any, command: dict[str, Any], context: Any) -> None:
            context[REACHED] = True
            await ack(response_type="ephemeral", text=await commands.run(Command.of_slash(_tenant(context), command)))


def _listen_to_settings(bolt: AsyncApp, dialog: SettingsDialog, home: Home) -> None:
    @bolt.action(EDIT)
    async def opened(ack: Any, body: dict[str, Any], context: Any) -> None:
        context[REACHED] = True
        await dialog.open(_tenant(context), str(body["user"]["id"]), str(body.get("trigger_id")), tell=True)
        await ack()

    @bolt.view(SETTINGS)
    async def submitted(ack: Any, body: dict[str, Any], view: dict[str, Any], context: Any) -> None:
        context[REACHED] = True
        tenant, user = _tenant(context), str(body["user"]["id"])
        try:
            refused = await dialog.submitted(tenant, user, view)
        except SettingsError as error:
            await ack(response_action="errors", errors=error.fields)
            return
        await _close(ack, refused)
        home.show(tenant, user)


def _listen_to_ratings(bolt: AsyncApp, ratings: Ratings) -> None:
    @bolt.action(RATE)
    async def rated(ack: Any, body: dict[str, Any], action: dict[str, Any], context: Any, respond: Any) -> None:
        context[REACHED] = True
        tenant = _tenant(context)
        trigger_id = str(body.get("trigger_id") or "")
        told = await ratings.clicked(tenant=tenant, user=str(body["user"]["id"]), action=action, trigger_id=trigger_id)
        await ack()
        await _tell(respond, told)

    @bolt.view(WHY)
    async def explained(ack: Any, body: dict[str, Any], view: dict[str, Any], context: Any) -> None:
        context[REACHED] = True
        await ratings.explained(tenant=_tenant(context), user=str(body["user"]["id"]), view=view)
        await ack()


async def _close(ack: Any, instead: dict[str, Any] | None) -> None:
    """Close a dialog, or show another in its place."""
    await (ack() if instead is None else ack(response_action="update", view=instead))


async def _tell(respond: Any, text: str) -> None:
    """Tell the clicker. The decision stands whether or not these words arrive."""
    try:
        await respond(text=neutral(text), response_type="ephemeral", replace_original=False)
    except Exception as error:
        structlog.get_logger().warning("clicker_not_told", error=f"{type(error).__name__}: {error}")


def _tenant(context: Any) -> str:
    """The tenant whose credentials were found: the workspace, or the org where the app is installed org-wide."""
    return str(context[TENANT])
