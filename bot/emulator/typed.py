"""What a person types, turned into what Slack sends: escaped text with links and mentions, and its rich text."""

import re
from collections.abc import Callable, Iterator
from itertools import groupby

from bot.emulator.ids import new_id
from bot.emulator.workspace import Json, Workspace

_TOKENS = re.compile(
    r"(?P<fence>```.*?```)|(?P<code>`[^`\n]+`)"
    r"|<@(?P<user_id>[UW][A-Z0-9]+)(?:\|[^>]*)?>"
    r"|(?P<url>https?://[^\s<>|]*[^\s<>|.,;:!?)\]'\"])"
    r"|(?P<email>\b[\w.+-]+@[\w-]+\.[\w.-]*\w)"
    r"|(?<![\w@])@(?P<broadcast>here|channel|everyone)\b",
    re.DOTALL,
)

_FENCE = re.compile(r"(```.*?```)", re.DOTALL)
_SIGNS = {
    "quote": re.compile(r"> ?(?=.)"),
    "bullet": re.compile(r"[-•] (?=\S)"),
    "ordered": re.compile(r"\d{1,3}\. (?=\S)"),
}
"""How a line of a quotation or a list begins, which the composer takes away as one types."""
_LEAD: dict[str, Callable[[int], str]] = {
    "plain": lambda number: "",
    "quote": lambda number: "&gt; ",
    "bullet": lambda number: "• ",
    "ordered": lambda number: f"{number}. ",
}

_STYLED = re.compile(r"(?<![\w*_~])([*_~])(?=\S)([^*_~\n]+?)(?<=\S)\1(?![\w*_~])")
_STYLES = {"*": "bold", "_": "italic", "~": "strike"}
_MARKS = {"code": "`", **{style: mark for mark, style in _STYLES.items()}}


def escape(text: str) -> str:
    """The three characters Slack escapes, and no others."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def unescape(text: str) -> str:
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


_ENTITY = re.compile(r"<(?P<kind>[@#!]?)(?P<target>[^<>|]+)(?:\|(?P<label>[^<>]*))?>")


def retyped(text: str, name_of: Callable[[str], str]) -> str:
    """What a person would have to type to write `text` again; `name_of` gives the name of a user id."""

    def plain(match: re.Match[str]) -> str:
        kind, target = match["kind"], match["target"]
        if kind == "@":
            return f"@{name_of(target)}"
        if kind == "#":
            return f"#{match['label'] or target}"
        return f"@{target}" if kind == "!" else target.removeprefix("mailto:")

    return unescape(_ENTITY.sub(plain, text))


class Typed:
    """One typed message. Code is left alone: Slack links nothing inside it."""

    def __init__(self, text: str, workspace: Workspace) -> None:
        self._workspace = workspace
        self._names = _pattern_of_names(workspace)
        self._runs = [(kind, [self._elements(line) for line in lines], end) for kind, lines, end in _runs(text)]

    @property
    def text(self) -> str:
        """The message as events carry it, for example ``<@U0THREADLINE> is A &amp; B done``."""
        return "".join(
            "\n".join(_LEAD[kind](number) + _text_of(line) for number, line in enumerate(lines, 1)) + end
            for kind, lines, end in self._runs
        )

    @property
    def blocks(self) -> list[Json]:
        """The `rich_text` block Slack's own clients put beside the text."""
        parts: list[Json] = []
        for kind, lines, _ in self._runs:
            if kind == "plain":
                for element in lines[0]:
                    _add_element(parts, element)
            elif kind == "quote":
                broken = [each for line in lines for each in (_plain("\n"), *line)][1:]
                parts.append({"type": "rich_text_quote", "elements": broken})
            else:
                items = [{"type": "rich_text_section", "elements": line} for line in lines]
                parts.append({"type": "rich_text_list", "style": kind, "indent": 0, "elements": items})
        return [{"type": "rich_text", "block_id": new_id("b", 4), "elements": parts}] if parts else []

    def _elements(self, text: str) -> list[Json]:
        return [element for element in self._parse(text) if element.get("text", True)]

    def _parse(self, text: str) -> Iterator[Json]:
        end = 0
        for match in _TOKENS.finditer(text):
            yield from self._linked(text[end : match.start()])
            yield self._element(match)
            end = match.end()
        yield from self._linked(text[end:])

    def _element(self, match: re.Match[str]) -> Json:
        kind, value = next((key, value) for key, value in match.groupdict().items() if value)
        if kind == "fence":
            return {"type": "fence", "text": value.strip("`").strip("\n")}
        if kind == "code":
            return {"type": "text", "text": value[1:-1], "style": {"code": True}}
        if kind == "user_id":
            return {"type": "user", "user_id": value} if value in self._workspace.users else _plain(match[0])
        if kind == "url":
            return {"type": "link", "url": value}
        if kind == "email":
            return {"type": "link", "url": f"mailto:{value}", "text": value}
        return {"type": "broadcast", "range": value}

    def _linked(self, text: str) -> Iterator[Json]:
        """Plain text with @names and #channels of this workspace linked."""
        end = 0
        for match in self._names.finditer(text):
            yield from _styled(text[end : match.start()])
            user, channel = (
                self._workspace.user_named(match["user"] or ""),
                self._workspace.channel_named(match["channel"] or ""),
            )
            if user:
                yield {"type": "user", "user_id": user.id}
            elif channel:
                yield {"type": "channel", "channel_id": channel.id, "name": channel.name}
            end = match.end()
        yield from _styled(text[end:])


def _runs(text: str) -> Iterator[tuple[str, list[str], str]]:
    """Runs of lines of one kind: plain text as it stands, the lines of a quotation or a list without their signs, and the line break behind."""
    for odd, piece in enumerate(_FENCE.split(text)):
        lines = [piece] if odd % 2 else piece.splitlines(keepends=True)
        for kind, run in groupby(lines, key=(lambda line: "plain") if odd % 2 else _kind):
            if kind == "plain":
                yield "plain", ["".join(run)], ""
            else:
                raw = list(run)
                yield kind, [_SIGNS[kind].sub("", line.rstrip("\n")) for line in raw], "\n" * raw[-1].endswith("\n")


def _kind(line: str) -> str:
    return next((kind for kind, sign in _SIGNS.items() if sign.match(line)), "plain")


def _add_element(parts: list[Json], element: Json) -> None:
    """Beside what stands in the same paragraph; a fence is a part of its own."""
    if element["type"] == "fence":
        parts.append({"type": "rich_text_preformatted", "elements": [{"type": "text", "text": element["text"]}]})
    elif parts and parts[-1]["type"] == "rich_text_section":
        parts[-1]["elements"].append(element)
    else:
        parts.append({"type": "rich_text_section", "elements": [element]})


def _text_of(elements: list[Json]) -> str:
    return "".join(_TEXT_OF[element["type"]](element) for element in elements)


def _pattern_of_names(workspace: Workspace) -> re.Pattern[str]:
    """Longest first: "@Ada Keller" must not be read as "@Ada" and a word."""
    users = {name for user in workspace.users.values() for name in (user.handle, user.real_name)}
    channels = {channel.name for channel in workspace.channels.values() if channel.name}
    alternatives = [
        "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True)) for names in (users, channels)
    ]
    return re.compile(
        rf"(?<![\w@])@(?P<user>{alternatives[0]})\b|(?<![\w#&])#(?P<channel>{alternatives[1]})\b", re.IGNORECASE
    )


def _styled(text: str) -> Iterator[Json]:
    """Plain text with *bold*, _italic_ and ~struck~ runs as elements of their own."""
    end = 0
    for match in _STYLED.finditer(text):
        yield _plain(text[end : match.start()])
        yield {"type": "text", "text": match[2], "style": {_STYLES[match[1]]: True}}
        end = match.end()
    yield _plain(text[end:])


def _plain(text: str) -> Json:
    return {"type": "text", "text": text}


def _text_of_text(element: Json) -> str:
    style = next(iter(element.get("style", {})), "")
    mark = _MARKS.get(style, "")
    return f"{mark}{escape(element['text'])}{mark}"


def _text_of_link(element: Json) -> str:
    url = escape(element["url"])
    return f"<{url}|{escape(element['text'])}>" if "text" in element else f"<{url}>"


_TEXT_OF: dict[str, Callable[[Json], str]] = {
    "text": _text_of_text,
    "fence": lambda element: f"```{escape(element['text'])}```",
    "user": lambda element: f"<@{element['user_id']}>",
    "channel": lambda element: f"<#{element['channel_id']}|{element['name']}>",
    "link": _text_of_link,
    "broadcast": lambda element: f"<!{element['range']}>",
}
