"""views.*: modals and the Home tab."""

from bot.emulator.api.call import Call, Method
from bot.emulator.errors import SlackError
from bot.emulator.ids import new_secret
from bot.emulator.interactions import View
from bot.emulator.posting import with_block_ids
from bot.emulator.surfaces import check_view
from bot.emulator.workspace import Json

MAX_VIEWS = 3


def open_view(call: Call) -> Json:
    view = _view(call)
    trigger = call.slack.interactions.use_trigger(call.required("trigger_id"))
    opened = call.slack.interactions.add_view(trigger.team_id, trigger.user_id, view)
    call.slack.updates.publish("view", user=trigger.user_id, view_id=opened.id)
    return {"view": opened.wire(app_id=call.slack.config.app_id, bot_id=call.installation.bot_id)}


def push(call: Call) -> Json:
    """Another view on top of the one that the trigger came from; three of them are the most."""
    view = _view(call)
    trigger = call.slack.interactions.use_trigger(call.required("trigger_id"))
    stack = [one for one in call.slack.interactions.views.values() if one.user_id == trigger.user_id]
    if not stack:
        raise SlackError("not_found")
    if len(stack) >= MAX_VIEWS:
        raise SlackError("push_limit_reached")
    pushed = call.slack.interactions.add_view(trigger.team_id, trigger.user_id, view)
    call.slack.updates.publish("view", user=trigger.user_id, view_id=pushed.id)
    wire = pushed.wire(app_id=call.slack.config.app_id, bot_id=call.installation.bot_id)
    return {"view": {**wire, "root_view_id": stack[0].id, "previous_view_id": stack[-1].id}}


def update(call: Call) -> Json:
    """Other contents for an open modal, unless it has changed since `hash` was told."""
    interactions = call.slack.interactions
    by_name = {str(one.body.get("external_id")): one for one in interactions.views.values()}
    view = interactions.views.get(call.text("view_id")) or by_name.get(call.text("external_id") or " ")
    if view is None or not call.slack.has_app(call.installation, view.team_id):
        raise SlackError("not_found")
    body = _view(call, mine=view)
    if call.text("hash") and call.text("hash") != view.hash:
        raise SlackError("hash_conflict")
    view.body, view.hash = body, new_secret("")[:12]
    call.slack.updates.publish("view", user=view.user_id, view_id=view.id)
    return {"view": view.wire(app_id=call.slack.config.app_id, bot_id=call.installation.bot_id)}


def publish(call: Call) -> Json:
    if not call.slack.config.home_tab:
        raise SlackError("not_enabled")
    user = call.user("user_id")
    now = call.slack.interactions.homes.get(user.id)
    view = _view(call, "home", mine=now)
    if call.text("hash") and now and call.text("hash") != now.hash:
        raise SlackError("hash_conflict")
    shown = call.slack.interactions.add_view(call.workspace.id, user.id, view)
    call.slack.updates.publish("view", user=user.id, view_id=shown.id)
    return {"view": shown.wire(app_id=call.slack.config.app_id, bot_id=call.installation.bot_id)}


def _view(call: Call, kind: str = "modal", *, mine: View | None = None) -> Json:
    """The view given, whose `external_id` no other view than `mine` may have."""
    view = check_view(call.structure("view", "invalid_arguments"), kind=kind)
    name = view.get("external_id")
    views = call.slack.interactions
    others = [one for one in (*views.views.values(), *views.homes.values()) if one is not mine]
    if name and any(one.body.get("external_id") == name and one.team_id == call.workspace.id for one in others):
        raise SlackError("duplicate_external_id")
    return {**view, "blocks": with_block_ids(view["blocks"])}


METHODS = {
    "views.open": Method(open_view, required=("view",)),
    "views.publish": Method(publish, required=("user_id", "view")),
    "views.push": Method(push, required=("view",)),
    "views.update": Method(update, required=("view",)),
}
