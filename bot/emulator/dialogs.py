"""What a person does in views: press a button, fill in and submit, or leave."""

import json

from bot.emulator.delivery import Reply
from bot.emulator.errors import NotFoundError
from bot.emulator.ids import new_secret
from bot.emulator.interactions import View
from bot.emulator.people import interaction
from bot.emulator.posting import with_block_ids
from bot.emulator.slack import Slack
from bot.emulator.workspace import Json, User

Filled = str | list[str]
"""What stands in a field: a text, or the ids of who was chosen."""


async def click_view(slack: Slack, user: User, view_id: str, action_id: str) -> Reply:
    """Press a button in a modal, or, with "home", in the Home tab."""
    view, wire = _shown(slack, user, view_id)
    for block in view.body.get("blocks", []):
        for element in [*block.get("elements", []), block.get("accessory") or {}]:
            if element.get("action_id") == action_id:
                told = {key: element[key] for key in ("type", "action_id", "text", "value") if key in element}
                action = {**told, "block_id": block.get("block_id", ""), "action_ts": slack.clock.timestamp()}
                body = {
                    **interaction(slack, user, "block_actions"),
                    "container": {"type": "view", "view_id": view.id},
                    "view": wire,
                    "actions": [action],
                }
                return await slack.deliveries.ask({"payload": json.dumps(body)})
    raise NotFoundError(f"There is no button {action_id!r} in that view.")


async def submit_view(slack: Slack, user: User, view_id: str, values: dict[str, dict[str, Filled]]) -> Reply:
    """Press Submit in a modal. `values` are what was filled in, by block id and action id; the rest is as the app had filled it.

    The view closes when the app agrees, stays with its errors, or becomes the one that the app answers with.
    """
    view, wire = _shown(slack, user, view_id)
    state = {
        block["block_id"]: _state(block, values) for block in view.body.get("blocks", []) if block["type"] == "input"
    }
    body = {**interaction(slack, user, "view_submission"), "view": {**wire, "state": {"values": state}}}
    reply = await slack.deliveries.ask({"payload": json.dumps({**body, "response_urls": []})})
    answer = _parsed(reply.body)
    if reply.problem or answer.get("response_action") == "errors":
        return reply
    if answer.get("response_action") == "update" and isinstance(answer.get("view"), dict):
        view.body, view.hash = _identified(answer["view"]), new_secret("")[:12]
        slack.updates.publish("view", user=user.id, view_id=view.id)
    else:
        close_view(slack, user, view_id)
    return reply


def _identified(view: Json) -> Json:
    return {**view, "blocks": with_block_ids(view.get("blocks", []))}


def close_view(slack: Slack, user: User, view_id: str) -> None:
    slack.interactions.views.pop(view_id, None)
    slack.updates.publish("view", user=user.id, view_id="")


def _shown(slack: Slack, user: User, view_id: str) -> tuple[View, Json]:
    """The view as it is kept, and as the app is told of it."""
    views = slack.interactions
    view = views.homes.get(user.id) if view_id == "home" else views.views.get(view_id)
    installation = slack.workspaces[user.team_id].installation
    if view is None or installation is None or view.user_id != user.id:
        raise NotFoundError(f"{user.real_name} has no view {view_id!r}.")
    return view, view.wire(app_id=slack.config.app_id, bot_id=installation.bot_id)


def _state(block: Json, values: dict[str, dict[str, Filled]]) -> Json:
    element = block["element"]
    name, kind = str(element.get("action_id", "")), str(element["type"])
    filled = values.get(block["block_id"], {}).get(name)
    key, initial = _VALUES.get(kind, ("value", "initial_value"))
    value = element.get(initial) if filled is None else filled
    if filled is not None and kind in _OPTIONS:
        chosen = [one for one in element.get("options", []) if str(one.get("value")) in _values(filled)]
        value = chosen if kind == "checkboxes" else next(iter(chosen), None)
    if kind == "users_select" and isinstance(value, list):
        value = next(iter(value), None)
    if kind in {"checkboxes", "multi_users_select"}:
        return {name: {"type": kind, key: list(value or [])}}
    return {name: {"type": kind, key: value or None}}


_VALUES = {
    "checkboxes": ("selected_options", "initial_options"),
    "datepicker": ("selected_date", "initial_date"),
    "multi_users_select": ("selected_users", "initial_users"),
    "radio_buttons": ("selected_option", "initial_option"),
    "static_select": ("selected_option", "initial_option"),
    "users_select": ("selected_user", "initial_user"),
}
"""Where a field's value stands in the state, and where the app had filled it in."""
_OPTIONS = frozenset({"checkboxes", "radio_buttons", "static_select"})


def _values(filled: Filled) -> list[str]:
    """The values of the options that were chosen."""
    return [filled] if isinstance(filled, str) else filled


def _parsed(body: str) -> Json:
    try:
        found = json.loads(body or "{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
