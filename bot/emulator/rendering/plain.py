"""A message in plain words, for transcripts: what is drawn, without the drawing."""

from html.parser import HTMLParser

BREAKS = frozenset(
    {"p", "div", "li", "tr", "h1", "h2", "h3", "h4", "h5", "h6", "pre", "blockquote", "figcaption", "figure"}
)
SILENT = frozenset({"svg", "select", "textarea"})
OPENINGS = {"li": "- ", "button": "[", "td": " | ", "th": " | "}


class _Plain(HTMLParser):
    """Collects text; a button is shown as [Approve], a table row as cells between bars."""

    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []
        self._silent = 0
        self._sortable = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._silent += tag in SILENT
        self._sortable = ("class", "sort") in attrs
        if tag in BREAKS or tag == "br":
            self.parts.append("\n")
        if not (tag == "button" and self._sortable):
            # A button that is a drawing is called by its label.
            label = dict(attrs).get("aria-label") if tag == "button" else ""
            self.parts += [OPENINGS.get(tag, ""), label or ""]

    def handle_endtag(self, tag: str) -> None:
        self._silent -= tag in SILENT
        if tag in BREAKS:
            self.parts.append("\n")
        if tag == "button" and not self._sortable:
            self.parts.append("] ")

    def handle_data(self, data: str) -> None:
        if not self._silent:
            self.parts.append(data)


def plain_text(markup: str) -> str:
    """The text of HTML that this package made; blank lines and the first bar of a row are dropped."""
    reader = _Plain()
    reader.feed(markup)
    lines = (line.strip().removeprefix("|").strip() for line in "".join(reader.parts).split("\n"))
    return "\n".join(line for line in lines if line)
