"""Reports and summaries as blocks: whatever is in them, Slack takes it."""

from hypothesis import given
from hypothesis import strategies as st

from agent.reports import Bars, Document, Grid, Number
from bot.emulator.blocks import check_blocks
from bot.render.documents import document_blocks, document_markdown

TEXTS = st.text(st.characters(codec="utf-8"), max_size=30)
CELLS = TEXTS | st.builds(Number, text=TEXTS, value=st.floats(allow_nan=False, allow_infinity=False))
GRIDS = st.integers(1, 25).flatmap(
    lambda width: st.lists(st.lists(CELLS, min_size=width, max_size=width).map(tuple), min_size=0, max_size=12)
)
NAMES = st.text(st.characters(codec="utf-8"), max_size=40)


@given(
    body=st.text(st.characters(codec="utf-8"), max_size=200),
    rows=GRIDS,
    caption=NAMES,
    values=st.lists(st.tuples(NAMES, st.floats(0, 1e9)), max_size=40),
)
def test_any_document_is_within_slacks_limits(
    body: str, rows: list[tuple[str | Number, ...]], caption: str, values: list[tuple[str, float]]
) -> None:
    document = Document(
        summary="s",
        body=body,
        grid=Grid(caption=caption, rows=tuple(rows)),
        bars=Bars(title=caption, series=caption, values=tuple(values)),
    )
    check_blocks(document_blocks(document))


def test_a_large_account_loses_rows_and_not_its_totals_and_is_told_so() -> None:
    rows = (("Campaign", "Spend"), *((f"Campaign {number}", "1.00") for number in range(1_000)), ("Total", "1,000.00"))
    blocks = document_blocks(Document(summary="s", body="Body.", grid=Grid(caption="c", rows=rows)))
    check_blocks(blocks)
    table = blocks[1]["rows"]
    assert len(table) == 201
    assert [cell["text"] for cell in table[-1]] == ["Total", "1,000.00"]
    assert "801 more rows did not fit" in blocks[0]["text"]


def test_wide_cells_count_too() -> None:
    rows = (("Campaign", "Spend"), *(("x" * 5_000, "y" * 5_000) for _ in range(150)), ("Total", "1"))
    blocks = document_blocks(Document(summary="s", body="Body.", grid=Grid(caption="c" * 999, rows=rows)))
    check_blocks(blocks)
    assert blocks[1]["rows"][-1][0]["text"] == "Total"
    assert "more rows did not fit" in blocks[0]["text"]


def test_a_long_body_is_cut_where_it_shows_and_pings_nobody() -> None:
    [block] = document_blocks(Document(summary="s", body="@here " * 5_000))
    check_blocks([block])
    assert block["text"].endswith(" …")
    assert "@here" not in block["text"]


def test_names_that_are_cut_alike_stay_apart() -> None:
    values = tuple((f"A very long campaign name {number}", 1.0) for number in range(30))
    [_, chart] = document_blocks(Document(summary="s", body="b", bars=Bars(title="t", series="s", values=values)))
    labels = chart["chart"]["axis_config"]["categories"]
    assert len(labels) == len(set(labels)) == 20
    check_blocks([chart])


def test_a_head_alone_is_no_table_and_nothing_is_no_chart() -> None:
    empty = Document(
        summary="s",
        body="b",
        grid=Grid(caption="c", rows=(("Campaign",),)),
        bars=Bars(title="t", series="s", values=()),
    )
    assert [block["type"] for block in document_blocks(empty)] == ["markdown"]
    check_blocks(document_blocks(empty))


def test_where_blocks_are_refused_the_table_is_markdown() -> None:
    grid = Grid(caption="c", rows=(("Campaign", "Spend"), ("A|B", "1.00")))
    words = document_markdown(Document(summary="s", body="Body.", grid=grid))
    assert words == "Body.\n\n| Campaign | Spend |\n|---|---|\n| A\\|B | 1.00 |"


def test_numbers_are_numbers_in_the_table_and_stand_right_in_markdown() -> None:
    rows = (
        ("Campaign", "Spend", "CPA"),
        ("Spring Sale", Number(text="€1,204.50", value=1204.5), "n/a"),
        ("Total", Number(text="€1,204.50", value=1204.5), Number(text="€9.00", value=9)),
    )
    document = Document(summary="s", body="Body.", grid=Grid(caption="c", rows=rows))
    [_, table] = document_blocks(document)
    head, spring, _ = table["rows"]
    assert {cell["type"] for cell in head} == {"raw_text"}
    assert spring == [
        {"type": "raw_text", "text": "Spring Sale"},
        {"type": "raw_number", "value": 1204.5, "text": "€1,204.50"},
        {"type": "raw_text", "text": "n/a"},
    ]
    check_blocks([table])
    assert "|---|---:|---:|\n| Spring Sale | €1,204.50 | n/a |" in document_markdown(document)


def test_a_document_that_waited_in_the_store_is_the_same() -> None:
    rows = (("Campaign", "Spend"), ("Spring Sale", Number(text="1.00", value=1)))
    document = Document(summary="s", body="b", grid=Grid(caption="c", rows=rows))
    assert Document.model_validate_json(document.model_dump_json()) == document
