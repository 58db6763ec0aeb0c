"""Arguments of a Web API request, from wherever a client puts them."""

import base64
import binascii
import json

from aiohttp import web

from bot.emulator.errors import SlackError
from bot.emulator.workspace import Json


async def arguments(request: web.Request) -> Json:
    """Query, form, multipart and JSON body merged. slack_sdk sends many POSTs as a query with an empty body.

    Raises:
        SlackError: invalid_json, json_not_object.

    """
    merged: Json = dict(request.query)
    if request.content_type == "application/json":
        merged.update(_json_object(await request.text()))
    elif request.content_type in {"application/x-www-form-urlencoded", "multipart/form-data"}:
        merged.update({key: value for key, value in (await request.post()).items() if isinstance(value, str)})
    return merged


def token(request: web.Request, args: Json) -> str:
    """The bearer token, or the `token` argument."""
    scheme, _, value = request.headers.get("Authorization", "").partition(" ")
    return value.strip() if scheme.lower() == "bearer" else str(args.get("token") or "")


def basic(request: web.Request) -> tuple[str, str]:
    """Client id and secret from HTTP Basic, empty when there is none."""
    scheme, _, value = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() != "basic":
        return "", ""
    try:
        client_id, _, client_secret = base64.b64decode(value).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        return "", ""
    return client_id, client_secret


def _json_object(body: str) -> Json:
    try:
        value = json.loads(body or "{}")
    except ValueError:
        raise SlackError("invalid_json") from None
    if not isinstance(value, dict):
        raise SlackError("json_not_object")
    return value
