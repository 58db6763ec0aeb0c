"""Replies by a command's address: five uses, no metadata, and blocks that may be refused there, too."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web

from agent.channel import ChannelGoneError, ChannelUnavailableError
from agent.thread import Thread
from bot.render.posting import Post
from bot.render.replies import CUT, REPLIES, REPLY_LIMIT, reply, tell

Json = dict[str, Any]
THREAD = Thread(tenant="T1", channel="C1", root="")
BLOCKS = [{"type": "markdown", "text": "**Report**"}]


class Address:
    """A reply address that answers as it is told to: status and body for each use, then 200."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.answers: list[tuple[int, str]] = []
        self.said: list[Json] = []

    async def answer(self, request: web.Request) -> web.Response:
        self.said.append(await request.json())
        status, body = self.answers.pop(0) if self.answers else (200, "ok")
        return web.Response(status=status, text=body)

    async def reply(self, plain: str = "Plain words.", smaller: tuple[Json, ...] = ()) -> None:
        await reply(self.url, Post(THREAD, "d", 0, "In a line.", BLOCKS, plain, smaller=smaller))


@pytest.fixture
async def address() -> AsyncIterator[Address]:
    app = web.Application()
    runner = web.AppRunner(app)
    found = Address("")
    app.router.add_post("/response/1", found.answer)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    found.url = f"http://{host}:{port}/response/1"
    yield found
    await runner.cleanup()


async def test_blocks_that_are_taken_are_all(address: Address) -> None:
    await address.reply()
    (said,) = address.said
    assert (said["text"], said["blocks"], said["response_type"]) == ("In a line.", BLOCKS, "ephemeral")


async def test_blocks_that_are_refused_are_smaller_ones_and_then_words(address: Address) -> None:
    smaller = ({"type": "markdown", "text": "less"},)
    address.answers = [(400, "invalid_blocks"), (400, "msg_blocks_too_long")]
    await address.reply(smaller=smaller)
    assert [said.get("blocks") for said in address.said] == [BLOCKS, list(smaller), None]
    assert address.said[-1]["text"] == "Plain words."


async def test_long_words_take_several_uses_and_what_does_not_fit_is_said_to(address: Address) -> None:
    words = " ".join(f"word-{number}" for number in range(1_000))
    address.answers = [(400, "invalid_blocks")]
    await address.reply(words)
    pieces = [said["text"] for said in address.said[1:]]
    assert len(pieces) <= REPLIES
    assert all(len(piece) <= REPLY_LIMIT for piece in pieces)
    assert " ".join(piece.strip() for piece in pieces) == words
    address.said.clear()
    address.answers = [(400, "invalid_blocks")]
    await address.reply(words * 9)
    assert len(address.said) == REPLIES + 1, "Slack takes five in all"
    assert [said["text"].endswith(CUT) for said in address.said[1:]] == [False] * (REPLIES - 1) + [True]


@pytest.mark.parametrize(
    ("status", "body", "error"),
    [
        (500, "", ChannelUnavailableError),
        (429, "", ChannelUnavailableError),
        (404, "expired_url", ChannelGoneError),
        (410, "used_url", ChannelGoneError),
        (400, "no_text", ChannelGoneError),
    ],
)
async def test_what_becomes_of_others_is_told_apart(
    address: Address, status: int, body: str, error: type[Exception]
) -> None:
    address.answers = [(status, body)]
    with pytest.raises(error):
        await address.reply()
    assert len(address.said) == 1


async def test_words_refused_in_words_are_not_sent_for_ever(address: Address) -> None:
    address.answers = [(400, "invalid_blocks")] * 9
    with pytest.raises(ChannelGoneError):
        await address.reply()
    assert len(address.said) == 2


async def test_nobody_at_the_address_is_no_reason_to_fail_for_a_few_words(address: Address) -> None:
    await tell("http://127.0.0.1:1/response/1", "words")
    await tell("", "words")
    address.answers = [(404, "expired_url")]
    await tell(address.url, "words")
    assert len(address.said) == 1
    with pytest.raises(ChannelUnavailableError):
        await reply("http://127.0.0.1:1/response/1", Post(THREAD, "d", 0, "In a line.", BLOCKS))
