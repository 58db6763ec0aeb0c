"""views.*: modals and the Home tab."""

import json

from bot.emulator.api.call import Call, Method
from bot.emulator.blocks import check_blocks
from bot.emulator.errors import SlackError
from bot.emulator.workspace import Json

MAX_VIEW_BYTES = 250_000
MAX_VIEW_BLOCKS = 100


def open_view(call: Call) -> Json:
    view = _view(call)
    trigger = call.slack.interactions.use_trigger(call.required("trigger_id"))
    opened = call.slack.interactions.add_view(trigger.team_id, trigger.user_id, view)
    call.slack.updates.publish("view", user=trigger.user_id, view_id=opened.id)
    return {"view": opened.wire(app_id=call.slack.config.app_id, bot_id=call.installation.bot_id)}


def publish(call: Call) -> Json:
    user, view = call.user("user_id"), _view(call)
    now = call.slack.interactions.homes.get(user.id)
    if call.text("hash") and now and call.text("hash") != now.hash:
        raise SlackError("hash_conflict")
    shown = call.slack.interactions.add_view(call.workspace.id, user.id, {**view, "type": "home"})
    call.slack.updates.publish("view", user=user.id, view_id=shown.id)
    return {"view": shown.wire(app_id=call.slack.config.app_id, bot_id=call.installation.bot_id)}


def _view(call: Call) -> Json:
    view = call.structure("view", "invalid_arguments")
    if not isinstance(view, dict):
        raise SlackError("invalid_arguments")
    if len(json.dumps(view)) > MAX_VIEW_BYTES:
        raise SlackError("view_too_large")
    check_blocks(view.get("blocks", []), limit=MAX_VIEW_BLOCKS)
    return view


METHODS = {"views.open": Method(open_view), "views.publish": Method(publish)}
