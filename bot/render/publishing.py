"""Reports and summaries: posted once, with a file of what their table can't show."""

import structlog

from agent.channel import ChannelGoneError, Delivered, Notes
from agent.reports.document import Document, Grid
from agent.thread import Thread
from bot.broadcasts import neutral
from bot.render.documents import (
    document_blocks,
    document_csv,
    document_markdown,
    document_plain,
    is_cut,
    remaining_rows,
)
from bot.render.forms import Forms, posts_of, refusals
from bot.render.posting import Post
from bot.render.refusals import FileRefusedError
from bot.render.replies import reply
from bot.render.text import fallback
from bot.render.uploads import Uploads

ALL_ROWS = "All rows of the table above."
NO_FILE = "Slack does not take the file with all rows: {why}. So here is what did not fit into the table above."


class Publishing:
    """Posts documents."""

    def __init__(self, forms: Forms, uploads: Uploads) -> None:
        self._forms = forms
        self._uploads = uploads

    async def publish(
        self, thread: Thread, document: Document, *, delivery_id: str, reply_url: str | None, notes: Notes
    ) -> Delivered:
        """Post it. Where the app can't post, whoever ordered it gets it by the command's reply address.

        Raises ChannelUnavailableError, ChannelGoneError.
        """
        grid = document.grid if is_cut(document) else None
        post = _document_post(thread, document, delivery_id, attached=grid is not None)
        try:
            with refusals():
                ts = await self._forms.post(post, notes)
        except ChannelGoneError as gone:
            if reply_url is None:
                raise
            try:
                await reply(reply_url, _document_post(thread, document, delivery_id, attached=False))
            except ChannelGoneError:
                raise gone from None
            return Delivered(message_ids=())
        below = thread if thread.root else thread.model_copy(update={"root": ts})
        more = await self._attach(below, document, grid, delivery_id, notes) if grid is not None else ()
        return Delivered(message_ids=(ts, *more))

    async def _attach(
        self, thread: Thread, document: Document, grid: Grid, delivery_id: str, notes: Notes
    ) -> tuple[str, ...]:
        """Share all rows of a table below it, once; the rows that are not shown, where Slack takes no file. The report stands without them, too."""
        words = document_csv(grid)
        post = Post(thread, delivery_id, 1, "", (), parts=2, file_name="report.csv", words=words, comment=ALL_ROWS)
        try:
            with refusals():
                return (await self._uploads.once(post, notes, name="table"),)
        except FileRefusedError as refused:
            rows = f"{NO_FILE.format(why=refused.why)}\n\n{remaining_rows(document)}"
        except ChannelGoneError as gone:
            structlog.get_logger().warning("table_not_attached", error=str(gone))
            return ()
        with refusals():
            return tuple([await self._forms.post(each, notes) for each in posts_of(thread, rows, delivery_id, after=1)])


def _document_post(thread: Thread, document: Document, delivery_id: str, *, attached: bool) -> Post:
    """With a file to follow it is the first of two parts, so that it never passes for the whole."""
    return Post(
        thread, delivery_id, 0, fallback(document.summary), document_blocks(document, attached=attached), document_plain(document, attached=attached),
        parts=2 if attached else 1, file_name="report.md", words=neutral(document_markdown(document)),
    )  # fmt: skip
