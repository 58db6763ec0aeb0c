"""Slack's events, normalised: who said what to whom, and what is nothing for us."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.thread import Thread
from bot.contents import plain
from bot.events import Changed, Left, Said, Stopped, read, tenant_of
from tests.bot.bench import BOT, NORTHWIND, envelope, message_event

TS = "1700000000.000100"
ROOT = "1699999999.000100"
CHANNEL = "C0CAMPAIGNS"
Json = dict[str, Any]


def said(text: str = "hello", **changes: Any) -> Said | None:
    found = read(
        envelope({**message_event(text, ts=TS, channel=CHANNEL, user="U0ADA"), **changes}), bot_user_id=BOT, bot_id="B0"
    )
    assert found is None or isinstance(found, Said)
    return found


def changed(before: Json, after: Json, **more: Any) -> Any:
    event = {
        "type": "message",
        "subtype": "message_changed",
        "channel": CHANNEL,
        "message": after,
        "previous_message": before,
    }
    return read(envelope({**event, **more}), bot_user_id=BOT, bot_id="B0")


@pytest.mark.parametrize(
    "text, plain_text, addressed",
    [
        (f"<@{BOT}> how are we?", "how are we?", True),
        (f"hey <@{BOT}>, how are we?", "hey , how are we?", True),
        (f"how are we, <@{BOT}|threadline>?", "how are we, ?", True),
        (f"<@U0BEN> <@{BOT}> and <@W0GRID> too", "<@U0BEN>  and <@W0GRID> too", True),
        ("<@U0BEN> how are we?", "<@U0BEN> how are we?", False),
        (f"<@{BOT}2> how are we?", f"<@{BOT}2> how are we?", False),
        (f"&lt;@{BOT}&gt; is how you mention it", f"<@{BOT}> is how you mention it", False),
        ("no mention", "no mention", False),
    ],
)  # fmt: skip
def test_a_mention_anywhere_addresses_the_bot_and_only_its_own_is_taken_out(
    text: str, plain_text: str, addressed: bool
) -> None:
    found = said(text)
    assert found is not None
    assert (found.text, found.addressed) == (plain_text, addressed)


def test_without_an_id_of_our_own_nobody_is_us() -> None:
    event = message_event("<@> <@U0BEN> hi", ts=TS, channel=CHANNEL)
    found = read(envelope(event), bot_user_id="", bot_id="")
    assert isinstance(found, Said)
    assert not found.addressed


def test_an_app_mention_addresses_the_bot_and_is_the_same_message_as_its_twin() -> None:
    message = said(f"<@{BOT}> hi")
    twin = said(f"<@{BOT}> hi", type="app_mention", channel_type=None)
    assert message == twin


def test_a_direct_message_addresses_the_bot_and_is_a_thread_of_its_own() -> None:
    found = said("hi", channel="D0ADA", channel_type="im")
    assert found is not None
    assert found.addressed
    assert found.thread == Thread(tenant=NORTHWIND, channel="D0ADA", root=TS)
    assert said("hi", channel="D0ADA", channel_type=None) == found, "an app_mention carries no channel_type"


def test_a_group_of_people_is_not_a_direct_message() -> None:
    found = said("hi", channel="G0GROUP", channel_type="mpim")
    assert found is not None
    assert not found.addressed


def test_a_reply_belongs_to_its_thread() -> None:
    found = said("hi", thread_ts=ROOT)
    assert found is not None
    assert (found.thread.root, found.id) == (ROOT, TS)


@pytest.mark.parametrize("subtype", [None, "file_share", "thread_broadcast", "me_message"])
def test_what_people_say_has_few_subtypes(subtype: str | None) -> None:
    assert said(subtype=subtype) is not None


@pytest.mark.parametrize(
    "changes",
    [
        {"subtype": "bot_message"}, {"subtype": "channel_join"}, {"subtype": "channel_topic"}, {"subtype": "message_replied"},
        {"subtype": "me_message_of_next_year"}, {"subtype": ""}, {"subtype": 5}, {"bot_id": "B0"}, {"bot_id": "B0OTHER", "user": None}, {"user": BOT},
        {"user": "USLACKBOT"}, {"user": "USLACK"}, {"user": None}, {"user": ""}, {"app_id": "A0THREADLINE"}, {"ts": None},
        {"ts": "now"}, {"channel": None}, {"channel": "C0:1"}, {"thread_ts": "x"}, {"type": "reaction_added"}, {"type": None},
    ],
)  # fmt: skip
def test_bots_and_messages_about_messages_say_nothing(changes: Json) -> None:
    assert said(**changes) is None


def test_another_bots_words_are_known_for_a_bots() -> None:
    found = said(bot_id="B0OTHER", text="stop")
    assert found is not None
    assert (found.bot, found.stop) == (True, False)


def test_an_edit_replaces_what_was_said() -> None:
    found = changed({"ts": TS, "text": "old"}, {"ts": TS, "text": f"<@{BOT}> new &amp; better", "thread_ts": ROOT})
    assert found == Changed(Thread(tenant=NORTHWIND, channel=CHANNEL, root=ROOT), TS, "new & better", TS)


def test_an_unfurl_and_a_detected_language_change_nothing() -> None:
    message = {"ts": TS, "text": "see <https://example.com>", "user": "U0ADA"}
    assert changed(message, {**message, "attachments": [{"title": "Example"}]}) is None
    assert changed(message, {**message, "language": {"locale": "de"}}) is None


def test_a_deletion_and_a_tombstone_take_it_back() -> None:
    thread = Thread(tenant=NORTHWIND, channel=CHANNEL, root=TS)
    event = {
        "type": "message",
        "subtype": "message_deleted",
        "channel": CHANNEL,
        "deleted_ts": TS,
        "previous_message": {"ts": TS},
    }
    assert read(envelope(event), bot_user_id=BOT, bot_id="B0") == Changed(thread, TS, None, TS)
    assert changed(
        {"ts": TS, "text": "a"}, {"ts": TS, "text": "This message was deleted.", "subtype": "tombstone"}
    ) == Changed(thread, TS, None, TS)


@pytest.mark.parametrize(
    "after", [None, "text", 5, {}, {"ts": 5, "text": "x"}, {"ts": TS, "text": "x", "thread_ts": {"x": 1}}]
)
def test_a_change_of_no_message_is_nothing(after: Any) -> None:
    assert changed({}, after) is None


def test_stop_names_its_thread_and_its_time() -> None:
    event = {"type": "agent_session_stopped", "channel": CHANNEL, "thread_ts": ROOT, "user": "U0ADA", "event_ts": TS}
    assert read(envelope(event), bot_user_id=BOT, bot_id="B0") == Stopped(
        Thread(tenant=NORTHWIND, channel=CHANNEL, root=ROOT), "U0ADA", TS
    )


@pytest.mark.parametrize(
    "tokens, left",
    [({"bot": [BOT]}, True), ({"bot": ["U0OTHER"]}, False), ({"oauth": ["U0ADA"]}, False), ({"bot": []}, False), ({"bot": BOT}, False), (None, False)],
)  # fmt: skip
def test_only_our_own_bot_token_ends_an_installation(tokens: Any, left: bool) -> None:
    found = read(envelope({"type": "tokens_revoked", "tokens": tokens}), bot_user_id=BOT, bot_id="B0")
    assert isinstance(found, Left) is left


@pytest.mark.parametrize("at", [None, "soon", -1, 10**18, True])
def test_an_uninstall_without_a_time_that_can_be_read_counts_from_any_time(at: Any) -> None:
    found = read(envelope({"type": "app_uninstalled"}, event_time=at), bot_user_id=BOT, bot_id="B0")
    assert isinstance(found, Left)


def test_in_a_shared_channel_the_workspace_is_the_one_that_is_told() -> None:
    """Slack Connect: the top-level team may be the other company's; the authorization says whose app this is."""
    event = message_event(f"<@{BOT}> hi", ts=TS, user="U0GUEST", team="T0OTHER", user_team="T0OTHER")
    shared = {**envelope(event), "team_id": "T0OTHER", "context_team_id": "T0OTHER", "is_ext_shared_channel": True}
    found = read(shared, bot_user_id=BOT, bot_id="B0")
    assert isinstance(found, Said)
    assert found.thread.tenant == NORTHWIND
    assert tenant_of({"team_id": "T0OTHER", "authorizations": []}) == "T0OTHER"
    assert tenant_of({"authorizations": [{"team_id": None, "enterprise_id": "E0"}]}) == "E0"
    assert tenant_of({}) == ""


@pytest.mark.parametrize(
    "text, words",
    [
        ("a &amp; b &lt;c&gt; &amp;lt;", "a & b <c> &lt;"),
        ("see <https://example.com/a?b=1&amp;c=2>", "see https://example.com/a?b=1&c=2"),
        ("see <https://example.com|example.com>", "see example.com"),
        ("write to <mailto:ada@example.com|ada@example.com>", "write to ada@example.com"),
        ("in <#C1|ads> for <!subteam^S1|@team>", "in <#C1|ads> for <!subteam^S1|@team>"),
        ("  spaces \n", "spaces"),
    ],
)  # fmt: skip
def test_text_is_decoded_before_anybody_reads_it(text: str, words: str) -> None:
    assert plain(text, BOT) == words


@given(event=st.recursive(
    st.none() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["type", "ts", "text", "channel", "message", "x"]), inner, max_size=4),
), kind=st.sampled_from(["message", "app_mention", "tokens_revoked", "agent_session_stopped"]))  # fmt: skip
def test_an_event_of_any_shape_is_read_or_is_nothing(event: Any, kind: str) -> None:
    whole = {**event, "type": kind} if isinstance(event, dict) else event
    assert isinstance(read(envelope(whole), bot_user_id=BOT, bot_id="B0"), Said | Changed | Stopped | Left | None)
