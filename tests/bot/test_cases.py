"""Faults that Slack bots and agents really had, by number, and the tests that make each kind impossible here.

The table names them; those that no other file has are below it.
"""

import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from agent.models.base import Finished, Message, ModelEvent, ModelRequest, Text, TextDelta, ToolCall
from tests.bot.bench import BOT, NORTHWIND, Bench, envelope, message_event
from tests.bot.reading import is_within, letters, read

ROOT = Path(__file__).parents[2]
CHANNEL = "C0CAMPAIGNS"
ASK = f"<@{BOT}> which campaigns do we have?"

MESSAGES = "tests/acceptance/test_messages.py"
OUTAGES = "tests/acceptance/test_outages.py"
LISTENING = "tests/bot/test_listening.py"
DELIVERY = "tests/bot/test_delivery.py"
EVENTS = "tests/bot/test_events.py"
TEXT = "tests/bot/test_text.py"
SLOW = "tests/bot/test_slow_storage.py"
TABLES = "tests/bot/test_tables.py"
LOST = "tests/bot/test_lost_channels.py"
LINES = "tests/bot/test_lines.py"
HERE = "tests/bot/test_cases.py"

CASES: dict[int, tuple[str, ...]] = {
    1: (f"{MESSAGES}::test_four_deliveries_and_the_mention_pair_in_both_orders_make_one_answer",),
    2: (f"{HERE}::test_2_a_retry_may_be_the_only_copy",),
    3: (f"{HERE}::test_3_a_copy_that_is_ignored_does_not_use_up_the_key_of_its_twin",),
    4: (f"{MESSAGES}::test_three_messages_during_a_slow_tool_are_taken_in_before_the_next_model_call",),
    5: ("tests/conformance/store/test_signals.py::test_racing_messages_start_one_run_and_are_all_kept",),
    6: (f"{MESSAGES}::test_a_message_while_all_workers_are_down_is_answered_when_one_starts",),
    7: (
        f"{OUTAGES}::test_slack_failing_while_it_is_told_the_answer",
        f"{DELIVERY}::test_a_post_whose_reply_was_lost_is_found_however_late_it_is_looked_for",
    ),
    8: (f"{HERE}::test_8_a_thread_is_followed_for_ever_and_by_every_process",),
    9: (f"{MESSAGES}::test_threads_and_direct_messages_do_not_share_a_conversation",),
    10: (
        f"{MESSAGES}::test_threads_and_direct_messages_do_not_share_a_conversation",
        "tests/bot/test_install.py::test_the_same_thread_in_two_workspaces_is_two_conversations",
    ),
    11: (
        f"{LINES}::test_lines_that_follow_while_the_first_is_worked_on_are_one_turn",
        f"{LINES}::test_a_line_is_taken_in_once_and_by_whichever_replica_it_comes",
        f"{LINES}::test_what_a_person_said_in_an_earlier_conversation_can_be_looked_up_and_nothing_else",
    ),
    12: (
        "tests/bot/test_ingress.py::test_a_deletion_that_overtakes_a_redelivery_is_respected",
        f"{LISTENING}::test_a_deletion_of_what_was_taken_in_takes_the_words_away_and_is_told",
    ),
    13: (f"{LISTENING}::test_bots_are_not_answered_however_often_they_mention_us",),
    14: (
        f"{LISTENING}::test_bots_are_not_answered_however_often_they_mention_us",
        f"{LISTENING}::test_one_that_an_admin_has_allowed_is_answered_until_nobody_else_has_said_anything",
        f"{LISTENING}::test_one_that_answers_at_the_head_of_the_channel_is_not_answered_for_ever",
    ),
    15: (f"{DELIVERY}::test_a_stream_that_runs_out_at_any_piece_loses_and_doubles_none",),
    16: (f"{DELIVERY}::test_pressing_stop_ends_the_showing_and_posts_no_error",),
    17: (f"{DELIVERY}::test_the_status_is_taken_back_with_the_answer",),
    18: (f"{HERE}::test_18_the_status_is_there_again_after_a_post_in_between",),
    19: ("tests/agent/test_loop.py::test_an_empty_answer_is_still_an_answer",),
    20: (f"{HERE}::test_20_an_edit_keeps_to_its_own_limit", f"{TEXT}::test_the_fallback_keeps_to_the_limit_of_an_update"),
    21: (f"{HERE}::test_21_to_24_what_is_long_or_has_many_parts_is_shown_and_nothing_is_refused",),
    22: (f"{HERE}::test_21_to_24_what_is_long_or_has_many_parts_is_shown_and_nothing_is_refused",),
    23: (
        f"{HERE}::test_21_to_24_what_is_long_or_has_many_parts_is_shown_and_nothing_is_refused",
        f"{TABLES}::test_150_rows_are_one_table",
        f"{TABLES}::test_else_each_table_has_a_message_with_the_words_that_introduce_it",
        "tests/bot/test_documents.py::test_any_document_is_within_slacks_limits",
    ),
    24: (
        f"{HERE}::test_21_to_24_what_is_long_or_has_many_parts_is_shown_and_nothing_is_refused",
        f"{TABLES}::test_where_markdown_is_not_shown_tables_are_code_and_code_stays_what_it_is",
    ),
    25: (f"{HERE}::test_25_to_27_words_are_shown_as_they_are", f"{TABLES}::test_what_is_in_a_cell"),
    26: (f"{HERE}::test_25_to_27_words_are_shown_as_they_are", f"{TEXT}::test_escaping_is_undone_by_decoding"),
    27: (f"{HERE}::test_25_to_27_words_are_shown_as_they_are", f"{TEXT}::test_what_pings_nobody_is_left_alone"),
    28: ("tests/bot/test_files.py::test_a_message_with_nothing_but_a_file_is_answered_from_it",),
    29: (
        "tests/bot/test_pacing.py::test_in_a_storm_of_429_one_call_is_refused_and_nobody_else_tries",
        "tests/bot/test_pacing.py::test_ok_false_is_never_taken_for_success",
    ),
    30: ("tests/bot/test_rotation.py::test_replicas_that_need_a_token_at_once_refresh_it_once",),
    31: (
        f"{EVENTS}::test_in_a_shared_channel_the_workspace_is_the_one_that_is_told",
        f"{LISTENING}::test_what_a_stranger_says_is_marked_as_such",
    ),
    32: (
        "tests/bot/test_install.py::test_a_callback_that_is_not_the_end_of_an_install_is_told_why",
        "tests/bot/test_install.py::test_reloading_the_last_page_installs_nothing_twice",
        "tests/bot/test_install.py::test_a_refusal_ends_with_a_page_that_says_so",
    ),
    33: (
        "tests/bot/test_sockets.py::test_a_connection_that_hangs_half_open_is_noticed_by_its_missing_pongs",
        "tests/bot/test_sockets.py::test_an_envelope_under_way_when_its_connection_is_replaced_is_answered_once",
        "tests/bot/test_sockets.py::test_what_slack_sends_is_spread_over_the_connections",
    ),
    34: (
        f"{SLOW}::test_a_command_is_acknowledged_in_time_and_its_end_is_told",
        f"{SLOW}::test_a_click_is_acknowledged_in_time_and_decides_once",
        f"{SLOW}::test_deny_and_say_why_opens_before_its_trigger_expires",
        f"{SLOW}::test_settings_open_before_their_trigger_expires_and_are_saved_or_given_back",
        f"{SLOW}::test_feedback_is_kept_and_asked_about",
        f"{SLOW}::test_what_could_not_be_done_is_said_and_a_form_is_given_back",
    ),
    35: (
        f"{LOST}::test_the_schedule_ends_and_its_owner_is_told_once",
        f"{LOST}::test_a_channel_where_the_app_may_not_post_is_lost_too",
        f"{LOST}::test_it_is_put_right_by_an_invitation_and_the_command",
    ),
    36: (f"{LISTENING}::test_the_root_and_what_was_said_before_the_mention_are_known_and_attributed",),
    37: (
        f"{LISTENING}::test_words_heard_in_a_thread_ask_for_nothing_and_make_what_acts_ask_first",
        "tests/bot/test_files.py::test_orders_in_a_file_are_data_and_make_what_acts_ask_first",
    ),
}  # fmt: skip


def test_all_cases_are_here() -> None:
    assert sorted(CASES) == list(range(1, 38))


@pytest.mark.parametrize("case", sorted(CASES))
def test_every_case_has_tests_that_exist(case: int) -> None:
    assert CASES[case]
    for named in CASES[case]:
        path, _, name = named.partition("::")
        assert re.search(rf"def {name}\b", (ROOT / path).read_text()), named


class Script:
    """A model that gives its replies in order."""

    name = "script"

    def __init__(self, *replies: str | ToolCall) -> None:
        self.replies = list(replies)

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        reply = self.replies.pop(0)
        if isinstance(reply, ToolCall):
            yield Finished(message=Message(role="assistant", parts=(reply,)), stop="tool_calls")
            return
        for start in range(0, len(reply), 40):
            yield TextDelta(text=reply[start : start + 40])
        yield Finished(message=Message(role="assistant", parts=(Text(text=reply),)), stop="end")


async def answered(bench: Bench, monkeypatch: pytest.MonkeyPatch, *replies: str | ToolCall) -> str:
    """Let the model say something; returns the thread, once all of it stands there."""
    monkeypatch.setattr(bench.service.model, "stream", Script(*replies).stream)
    root = await bench.asked("@Threadline go on")
    await bench.answer(root)
    await bench.idle()
    return root


def later(ts: str, seconds: int) -> str:
    whole, _, micros = ts.partition(".")
    return f"{int(whole) + seconds}.{micros}"


@pytest.mark.parametrize("number", ["1", "2", "3"])
async def test_2_a_retry_may_be_the_only_copy(bench: Bench, number: str) -> None:
    event = message_event(ASK, ts="1795000000.000100", channel=CHANNEL, user="U0ADA")
    headers = {"X-Slack-Retry-Num": number, "X-Slack-Retry-Reason": "connection_failed"}
    assert (await bench.post_json(envelope(event), headers=headers)).status == 200
    assert len(await bench.service.engine.runs(tenant=NORTHWIND)) == 1


async def test_3_a_copy_that_is_ignored_does_not_use_up_the_key_of_its_twin(bench: Bench) -> None:
    """The `message` of a reply without a mention in a thread we are not in, then its `app_mention`, as an edit brings it."""
    root = await bench.asked("a thread of others", user="@ben")
    reply = message_event("any numbers?", ts=later(root, 1), channel=CHANNEL, user="U0ADA", thread_ts=root)
    mention = {**reply, "type": "app_mention", "text": ASK, "edited": {"user": "U0ADA", "ts": later(root, 2)}}
    for event in (reply, reply, mention, mention):
        assert (await bench.post_json(envelope(event))).status == 200
    await bench.answer(root)
    await bench.idle()
    assert len(await bench.replies(root)) == 1


async def test_8_a_thread_is_followed_for_ever_and_by_every_process(bench: Bench) -> None:
    root = await bench.asked("@Threadline which campaigns do we have?")
    await bench.answer(root)
    await bench.people.advance_clock(61 * 60)
    _, url = await bench.replica()
    reply = message_event("and last month?", ts=later(root, 61 * 60), channel=CHANNEL, user="U0ADA", thread_ts=root)
    assert (await bench.post_json(envelope(reply), url=url)).status == 200
    await bench.answer(root, count=2)


async def test_18_the_status_is_there_again_after_a_post_in_between(bench: Bench) -> None:
    """A card is posted in the middle of the turn, which clears the status; the next call of the model sets it again."""
    root = await bench.asked("@Threadline set Spring Sale to 120")
    await bench.answer(root, count=2)
    await bench.idle()
    calls = [(call["method"], call["args"].get("status")) for call in await bench.people.calls()]
    card = calls.index(("chat.postMessage", None))
    assert ("assistant.threads.setStatus", "is thinking…") in calls[card + 1 :]
    assert (await bench.people.status("#campaigns", root))["status"] == ""


async def test_20_an_edit_keeps_to_its_own_limit(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """6,000 characters whose stream runs out, so that they are shown by edits."""
    await bench.people.fault("chat.appendStream", "error", error="message_not_in_streaming_state", times=99)
    said = "It goes on and on, word by word. " * 190
    root = await answered(bench, monkeypatch, said)
    edits = await bench.people.calls("chat.update")
    assert edits
    assert all(call["result"]["ok"] and len(call["args"]["text"]) <= 4_000 for call in edits)
    (answer,) = await bench.replies(root)
    assert answer["plain"].count("word by word") == 190


LIST = "\n".join(f"* {'item ' * 10}{number}" for number in range(60))
HEADS = "\n\n".join(f"### Head {number}\n\n| a | b |\n|---|---|\n| {number} | |" for number in range(60))
ROWS = "\n".join(
    ["| Campaign | Spend |", "|---|---|", *(f"| Campaign {number} | {number}.00 |" for number in range(150))]
)


@pytest.mark.parametrize("said", [LIST, HEADS, ROWS, "|a|b|\n|-|-|\n||x|"], ids=["list", "heads", "rows", "empty cell"])
async def test_21_to_24_what_is_long_or_has_many_parts_is_shown_and_nothing_is_refused(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, said: str
) -> None:
    root = await answered(bench, monkeypatch, said)
    refused = [
        call for call in await bench.people.calls() if call["method"].startswith("chat.") and not call["result"]["ok"]
    ]
    assert refused == []
    shown = read([message["blocks"] for message in await bench.replies(root)])
    assert is_within(letters(said), letters(shown))


@pytest.mark.parametrize(
    "said",
    [
        "```\n| a | b |\n|--|--|\n**raw** <!-- x -->\n```",
        "|**x**|`| y`|\n|---|---|\n|1|2|",
        "if a < b && b > c, AT&T, <script>, &amp; and 2*3*4",
        "write to user@example.com, see https://x.io/@u/a and `@vercel/postgres`\n\n```\n@George\n```",
    ],
    ids=["code", "cells", "signs", "handles"],
)
async def test_25_to_27_words_are_shown_as_they_are(bench: Bench, monkeypatch: pytest.MonkeyPatch, said: str) -> None:
    root = await answered(bench, monkeypatch, said)
    (answer,) = await bench.replies(root)
    (block,) = [block for block in answer["blocks"] if block["type"] == "markdown"]
    assert block["text"] == said
    assert "<@" not in answer["text"]
    plain: Any = (
        answer["text"].replace("&amp;", "&").replace("&lt;", "<").replace("&gt;", ">") if answer["text"] else said
    )
    assert plain.replace("```\n", "").replace("\n```", "") == said.replace("```\n", "").replace("\n```", "")
