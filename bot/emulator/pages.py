"""The web page's files."""

from importlib import resources

from aiohttp import web

TYPES = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
# No script, style or picture from anywhere else, so that nothing a message carries can call out.
POLICY = "default-src 'self'; img-src 'self' data: https: http://127.0.0.1:* http://localhost:*; style-src 'self' 'unsafe-inline'; frame-ancestors 'none'"


def add_page_routes(app: web.Application) -> None:
    app.router.add_get("/", _index)
    app.router.add_get("/page/{name}", _asset)


async def _index(request: web.Request) -> web.StreamResponse:
    return _file("index.html")


async def _asset(request: web.Request) -> web.StreamResponse:
    return _file(request.match_info["name"])


def _file(name: str) -> web.StreamResponse:
    folder = resources.files("bot.emulator") / "page"
    known = {entry.name: entry for entry in folder.iterdir()}
    suffix = name.rpartition(".")[2]
    if name not in known or suffix not in TYPES:
        return web.Response(status=404, text="There is no such page.")
    # Read anew each time: whoever works on the page sees a change after a reload.
    headers = {"Cache-Control": "no-store", "Content-Security-Policy": POLICY, "X-Content-Type-Options": "nosniff"}
    return web.Response(body=known[name].read_bytes(), content_type=TYPES[suffix], charset="utf-8", headers=headers)
