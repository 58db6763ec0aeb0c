"""From an HTTP request under /api/ to a method and back."""

from collections.abc import Mapping

from aiohttp import web

from bot.emulator.api import (
    apps,
    assistant,
    chat,
    conversations,
    files,
    oauth,
    reactions,
    scheduling,
    search,
    streams,
    unfurls,
    users,
    views,
)
from bot.emulator.api.arguments import arguments, basic, token
from bot.emulator.api.call import Call, Method, missing
from bot.emulator.errors import SlackError
from bot.emulator.faults import Fault
from bot.emulator.limits import RateLimitedError
from bot.emulator.slack import Slack
from bot.emulator.workspace import Json

METHODS: Mapping[str, Method] = {
    name: method
    for family in (
        apps,
        assistant,
        chat,
        conversations,
        files,
        oauth,
        reactions,
        scheduling,
        search,
        streams,
        unfurls,
        users,
        views,
    )
    for name, method in family.METHODS.items()
}

_SECRET_ARGS = frozenset({"token", "client_secret", "code", "refresh_token"})


async def answer(slack: Slack, request: web.Request) -> web.StreamResponse:
    """Answer one call, with the fault that was ordered for it, and write it to the log of calls."""
    name = request.match_info["method"]
    fault = slack.faults.take(name)
    if fault and (spoilt := await _spoilt(slack, name, fault)):
        return spoilt
    args: Json = {}
    caller = None
    try:
        args = await arguments(request)
        caller = slack.installation_of(token(request, args))
        result = {"ok": True, **_run(Call(slack, args, caller, basic(request)), name, token(request, args))}
    except RateLimitedError as error:
        result = {"ok": False, "error": error.code}
        _record(slack, name, args, result)
        return web.json_response(result, status=429, headers={"Retry-After": str(error.retry_after_s)})
    except SlackError as error:
        result = {"ok": False, "error": error.code, **error.extra}
    _record(slack, name, args, result)
    if fault and fault.kind == "reset_after_commit" and request.transport:
        request.transport.abort()
    headers = {"X-OAuth-Scopes": ",".join(caller.scopes)} if caller else None
    return web.json_response(result, headers=headers)


def _run(call: Call, name: str, given_token: str) -> Json:
    method = METHODS.get(name)
    if method is None:
        raise SlackError("unknown_method", req_method=name)
    if method.app_level:
        _check_app(call, given_token)
    elif not method.open:
        _authorize(call, method, given_token)
        caller = call.installation
        call.slack.limits.take(name, place=caller.team_id or caller.org_id, channel=call.text("channel"))
    absent = [each for each in method.required if call.args.get(each) is None]
    if absent:
        raise missing(*absent)
    return method.handle(call)


def _check_app(call: Call, given_token: str) -> None:
    if not given_token:
        raise SlackError("not_authed")
    if given_token != call.slack.config.app_token:
        raise SlackError("not_allowed_token_type" if call.caller else "invalid_auth")


def _authorize(call: Call, method: Method, given_token: str) -> None:
    if not given_token:
        raise SlackError("not_authed")
    if call.caller is None:
        raise SlackError("invalid_auth")
    if call.caller.revoked:
        raise SlackError(call.caller.revoked)
    if call.caller.expired(given_token, now_s=call.slack.clock.now()):
        raise SlackError("token_expired")
    if method.scopes and not set(method.scopes) & set(call.caller.scopes):
        raise SlackError("missing_scope", needed=",".join(method.scopes), provided=",".join(call.caller.scopes))


async def _spoilt(slack: Slack, name: str, fault: Fault) -> web.Response | None:
    """The answer that takes the place of the method's own, or None when the method is to run."""
    if fault.kind == "delay":
        await slack.clock.sleep(fault.delay_s)
        return None
    if fault.kind == "reset_after_commit":
        return None
    error = fault.error if fault.kind == "error" else fault.kind
    _record(slack, name, {}, {"ok": False, "error": error, "fault": True})
    if fault.kind == "http_500":
        return web.Response(status=500, text="Internal Server Error")
    if fault.kind == "ratelimited":
        headers = {"Retry-After": str(fault.retry_after)}
        return web.json_response({"ok": False, "error": "ratelimited"}, status=429, headers=headers)
    return web.json_response({"ok": False, "error": error})


def _record(slack: Slack, name: str, args: Json, result: Json) -> None:
    shown = {key: value for key, value in args.items() if key not in _SECRET_ARGS}
    kept = {key: value for key, value in result.items() if key not in {"access_token", "refresh_token"}}
    slack.calls.append({"method": name, "args": shown, "result": kept, "time": slack.clock.now()})
