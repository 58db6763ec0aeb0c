"""What the page shows of messages: Slack's markup drawn, and nothing a message carries run."""

import contextlib
import copy
from html.parser import HTMLParser
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.emulator import Emulator, EmulatorConfig
from bot.emulator.blocks import check_blocks
from bot.emulator.errors import SlackError
from bot.emulator.rendering import blocks_html, plain_text
from bot.emulator.rendering.markdown import markdown_html
from bot.emulator.rendering.mrkdwn import mrkdwn_html
from bot.emulator.slack import Slack
from tests.emulator.test_blocks import GOOD, chart, table

ATTACK = "<script>alert(1)</script><img src=x onerror=alert(1)>\"'"


@pytest.fixture
def slack() -> Slack:
    return Emulator(EmulatorConfig(signing_secret="s")).slack


@pytest.mark.parametrize(
    "text, shown",
    [
        ("*bold* _it_ ~no~", "<strong>bold</strong> <em>it</em> <s>no</s>"),
        ("2*3*4 snake_case_name", "2*3*4 snake_case_name"),
        ("`*code*` &amp; &lt;b&gt;", "<code>*code*</code> &amp; &lt;b&gt;"),
        ("```a\n*b*```", "<pre><code>a\n*b*</code></pre>"),
        ("&gt; one\n&gt; two\nthree", "<blockquote>one<br>two</blockquote>three"),
        ("<@U0ADA> hi", '<span class="mention" data-user="U0ADA">@Ada Keller</span> hi'),
        ("<!here>", '<span class="mention broadcast">@here</span>'),
        ("<#C0CAMPAIGNS|x>", '<a class="mention" href="#channel=C0CAMPAIGNS">#campaigns</a>'),
        (
            "*<https://x.example/?a=1&amp;b=2|the *report*>*",
            '<strong><a href="https://x.example/?a=1&amp;b=2" target="_blank" rel="noopener noreferrer">the *report*</a></strong>',
        ),
        ("<javascript:alert(1)|x>", "&lt;javascript:alert(1)|x&gt;"),
        (":white_check_mark: at 10:30:00 :unknown_one:", "✅ at 10:30:00 :unknown_one:"),
    ],
)
def test_mrkdwn_is_drawn_as_slack_does(slack: Slack, text: str, shown: str) -> None:
    assert mrkdwn_html(slack, text) == shown


@pytest.mark.parametrize(
    "text, part",
    [
        ("**b** ~~c~~", "<strong>b</strong> <s>c</s>"),
        ("one\ntwo", "one<br />\ntwo"),
        ("|a|b|\n|-|-:|\n|1|2|", '<td style="text-align:right">2</td>'),
        ("![chart](https://x.example/c.png)", '<a href="https://x.example/c.png" target="_blank"'),
        ("thanks <@U0BEN>", "@Ben Carter"),
        ("[x](https://x.example)", '<a href="https://x.example" target="_blank" rel="noopener noreferrer">x</a>'),
    ],
)
def test_markdown_is_drawn(slack: Slack, text: str, part: str) -> None:
    assert part in markdown_html(slack, text)


def _paths(value: Any) -> list[list[Any]]:
    """Every place in a block, as a list of keys and indices."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path for key, entry in inside for path in ([key], *([key, *rest] for rest in _paths(entry)))]


class _Names(HTMLParser):
    """The names of all elements and attributes, as a browser would read them."""

    def __init__(self) -> None:
        super().__init__()
        self.found: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found |= {tag, *(name for name, _ in attrs)}


def _names(markup: str) -> set[str]:
    reader = _Names()
    reader.feed(markup)
    return reader.found


@pytest.mark.parametrize("text", [ATTACK, "[a](javascript:alert(1))", "<https://x|" + ATTACK + ">", "`" + ATTACK + "`"])
def test_markup_in_a_message_stays_text(slack: Slack, text: str) -> None:
    for markup in (mrkdwn_html(slack, text), markdown_html(slack, text)):
        assert not {"script", "img", "onerror"} & _names(markup)
        assert 'href="javascript' not in markup


def _poisoned(value: Any) -> Any:
    """Every text of a block replaced by an attack."""
    if isinstance(value, dict):
        kept = {"type", "value", "style", "status"}
        return {key: entry if key in kept else _poisoned(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [_poisoned(entry) for entry in value]
    return ATTACK if isinstance(value, str) else value


def test_markup_in_any_field_of_any_block_stays_text(slack: Slack) -> None:
    button = {"type": "button", "action_id": "a", "text": {"type": "plain_text", "text": "x"}, "value": "v"}
    more: list[dict[str, Any]] = [
        {"type": "actions", "elements": [button, {**button, "confirm": {"title": {"text": "x"}}}]},
        {"type": "section", "text": {"type": "mrkdwn", "text": "x"}, "accessory": button},
        {"type": "task_card", "title": "x", "status": "complete", "details": "x"},
        {"type": "plan", "title": "x", "tasks": [{"title": "x", "status": "error"}]},
        {
            "type": "input",
            "block_id": "x",
            "label": {"type": "plain_text", "text": "x"},
            "element": {"type": "plain_text_input", "action_id": "x"},
        },
        {
            "type": "rich_text",
            "elements": [
                {"type": "rich_text_section", "elements": [{"type": "text", "text": "x"}, {"type": "link", "url": "x"}]}
            ],
        },
    ]
    for block in [*GOOD, *more]:
        markup = blocks_html(slack, [_poisoned(block)])
        assert not {"script", "onerror"} & _names(markup), block["type"]


JUNK: list[Any] = [None, 0, -1.5, "", "x" * 5000, [], {}, [[]], [None], {"type": "x"}, True]
PLACES = [(block, path) for block in GOOD for path in _paths(block)]


@settings(deadline=None)
@given(st.sampled_from(PLACES), st.sampled_from(JUNK))
def test_damaged_blocks_are_refused_or_drawn_but_never_break_the_emulator(
    place: tuple[dict[str, Any], list[Any]], junk: Any
) -> None:
    block, path = copy.deepcopy(place[0]), place[1]
    target: Any = block
    for step in path[:-1]:
        target = target[step]
    target[path[-1]] = junk
    with contextlib.suppress(SlackError):
        check_blocks([block])
    assert blocks_html(Emulator(EmulatorConfig(signing_secret="s")).slack, [block])


def test_an_unknown_block_is_named(slack: Slack) -> None:
    assert "A carousel block" in blocks_html(slack, [{"type": "carousel"}])


def test_numbers_of_a_data_table_stand_right_and_can_be_sorted(slack: Slack) -> None:
    markup = blocks_html(slack, [table(2)])
    assert 'data-page-size="5"' in markup
    assert '<td class="right" data-value="1">1</td>' in markup


@pytest.mark.parametrize("kind", ["bar", "line", "area"])
def test_a_chart_is_drawn_with_a_tip_for_every_point(slack: Slack, kind: str) -> None:
    markup = blocks_html(slack, [chart(type=kind)])
    assert "<title>Spend, Tue: 2.5</title>" in markup
    assert ET.fromstring(markup) is not None


def test_a_pie_shows_shares(slack: Slack) -> None:
    segments = [{"label": "Search", "value": 45}, {"label": "Social", "value": 15}]
    block = {"type": "data_visualization", "title": "x", "chart": {"type": "pie", "segments": segments}}
    assert "Search: 45 (75%)" in blocks_html(slack, [block])


def test_a_transcript_has_buttons_and_rows_but_no_drawing(slack: Slack) -> None:
    button = {"type": "button", "action_id": "a", "text": {"type": "plain_text", "text": "Approve"}}
    blocks: list[dict[str, Any]] = [
        {"type": "markdown", "text": "Spend **rose**, <@U0ADA>.\n\n- A & B"},
        {"type": "actions", "elements": [button]},
        table(2),
        chart(),
    ]
    assert plain_text(blocks_html(slack, blocks)).split("\n") == [
        "Spend rose, @Ada Keller.",
        "- A & B",
        "[Approve]",
        "Spend",
        "Campaign | Spend",
        "Spring | 0",
        "Spring | 1",
        "Spend",
    ]


def test_a_chart_of_zeros_and_one_below_zero_are_drawn(slack: Slack) -> None:
    for values in ((0, 0), (-5, 3)):
        data = [{"label": day, "value": value} for day, value in zip(("Mon", "Tue"), values, strict=True)]
        assert "<svg" in blocks_html(slack, [chart(series=[{"name": "Change", "data": data}])])


def data_table(*rows: tuple[str, ...]) -> dict[str, Any]:
    cells = [[{"type": "raw_text", "text": text} for text in row] for row in rows]
    return {"type": "data_table", "caption": "Spend", "rows": cells}


@pytest.mark.parametrize(
    "words",
    [("€1,204.50", "€0.00"), ("-3.1 %", "\u2013"), ("+€24.00", "€1"), ("1.5k", "12"), ("n/a", "6.43"), ("USD 5", "7")],
)
def test_a_column_of_words_that_are_numbers_stands_right(slack: Slack, words: tuple[str, str]) -> None:
    markup = blocks_html(slack, [data_table(("Campaign", "Spend"), *(("Spring", word) for word in words))])
    assert markup.count('<td class="right"') == 2


@pytest.mark.parametrize("words", [("\u2013", "n/a"), ("12 days", "3"), ("paused", "€5"), ("2026-11-30", "2026-12-01")])
def test_a_column_of_other_words_does_not(slack: Slack, words: tuple[str, str]) -> None:
    markup = blocks_html(slack, [data_table(("Campaign", "Spend"), *(("Spring", word) for word in words))])
    assert 'class="right"' not in markup


def test_amounts_are_sorted_by_their_value(slack: Slack) -> None:
    markup = blocks_html(
        slack, [data_table(("Campaign", "Spend"), ("A", "€1,204.50"), ("B", "\u22123.1 %"), ("C", "\u2013"))]
    )
    for value in ("1204.50", "-3.1", ""):
        assert f'data-value="{value}"' in markup


def test_the_total_below_a_table_stands_out(slack: Slack) -> None:
    rows = ("Campaign", "Spend"), ("Spring", "€5"), ("Total", "€5")
    assert blocks_html(slack, [data_table(*rows)]).count('<tr class="total"><td data-value="Total">') == 1
    assert "total" not in blocks_html(slack, [data_table(*rows[:2])])


def test_every_bar_has_its_name_below_it_however_many_there_are(slack: Slack) -> None:
    names = [f"Summer Hiking Boots {number}"[:20] for number in range(9)] + ["Spring"]
    data = [{"label": name, "value": 1} for name in names]
    markup = blocks_html(slack, [chart(series=[{"name": "Spend", "data": data}], axis_config={"categories": names})])
    drawn = ET.fromstring(markup)
    labels = [one for one in drawn.iter("text") if one.find("title") is not None]
    assert [one.text for one in labels] == names
    assert all("rotate" in one.attrib["transform"] for one in labels)


@pytest.mark.parametrize(
    "name", ["white_check_mark", "no_entry", "hourglass", "x", "warning", "tada", "eyes", "thumbsup"]
)
def test_emoji_that_apps_use_are_drawn(slack: Slack, name: str) -> None:
    assert f":{name}:" not in mrkdwn_html(slack, f":{name}: done")
