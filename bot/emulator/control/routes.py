"""The control API's routes, and how its failures look."""

from collections.abc import Awaitable, Callable

from aiohttp import web

from bot.emulator.control import conversation, places, watching, world
from bot.emulator.errors import BadRequestError
from bot.emulator.slack import Slack
from bot.emulator.workspace import Json

Handler = Callable[[Slack, web.Request], Awaitable[Json | web.StreamResponse]]

ROUTES: tuple[tuple[str, str, Handler], ...] = (
    ("POST", "messages", conversation.post_message),
    ("GET", "messages", conversation.get_messages),
    ("PATCH", "messages", conversation.edit_message),
    ("DELETE", "messages", conversation.delete_message),
    ("POST", "reactions", conversation.react),
    ("POST", "actions", conversation.click),
    ("POST", "commands", conversation.command),
    ("POST", "stop", conversation.stop),
    ("POST", "members", places.add_member),
    ("POST", "groups", places.open_group),
    ("POST", "home", conversation.open_home),
    ("POST", "context", conversation.change_context),
    ("POST", "unfurl", conversation.unfurl),
    ("POST", "views", conversation.submit_view),
    ("DELETE", "views", conversation.close_view),
    ("POST", "views/actions", conversation.click_view),
    ("GET", "status", conversation.get_status),
    ("POST", "events", world.send_event),
    ("GET", "deliveries", world.get_deliveries),
    ("GET", "calls", world.get_calls),
    ("POST", "clock", world.advance_clock),
    ("GET", "clock", world.get_clock),
    ("POST", "faults", world.add_fault),
    ("GET", "faults", world.get_faults),
    ("DELETE", "faults", world.clear_faults),
    ("POST", "faults/take", world.take_fault),
    ("POST", "config", world.configure),
    ("POST", "people", places.add_person),
    ("POST", "channels", places.add_channel),
    ("PATCH", "channels", places.change_channel),
    ("GET", "state", world.get_state),
    ("POST", "uninstall", places.uninstall),
    ("GET", "sockets", world.get_sockets),
    ("POST", "sockets", world.trouble_sockets),
    ("GET", "updates", watching.updates),
    ("GET", "views", watching.get_view),
    ("GET", "files/{file_id}", watching.file_content),
    ("GET", "avatars/{user_id}.svg", watching.avatar),
)


def add_control_routes(app: web.Application, slack: Slack) -> None:
    for method, path, handler in ROUTES:
        app.router.add_route(method, f"/_emulator/{path}", _route(slack, handler))


def _route(slack: Slack, handler: Handler) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    async def answer(request: web.Request) -> web.StreamResponse:
        try:
            result = await handler(slack, request)
        except BadRequestError as error:
            return web.json_response({"error": str(error)}, status=error.status)
        except web.HTTPRequestEntityTooLarge:
            return web.json_response({"error": "The body is larger than 10 MB."}, status=413)
        return result if isinstance(result, web.StreamResponse) else web.json_response(result)

    return answer
