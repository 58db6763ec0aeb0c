"""The benches run and their tables are whole. How fast anything is, no test says."""

import signal
from typing import Any

from tests.bench.engine import Scale, bench, profiles
from tests.bench.rounds import Load

TINY = Scale(
    rounds=2, short=Load(one_by_one=2, clients=2, each=1, warm_up=1), long=Load(one_by_one=1, warm_up=0), iterations=4
)
ROWS = (
    "minimum: 5 commits, turn with 3 calls",
    "agent (memory bus), turn with 3 calls",
    "agent (Redis), turn with 3 calls",
    "engine alone, turn with 3 calls",
    "minimum: 9 commits, 4 iterations",
    "agent (memory bus), 4 iterations",
    "engine alone, 4 iterations",
    "minimum: 5 commits, 2 iterations",
    "agent (memory bus), 2 iterations",
    "engine alone, 2 iterations",
)


async def test_the_engine_bench_has_a_row_for_everything_and_a_ratio_for_all_but_the_minimum() -> None:
    report = await bench(TINY)
    text, figures = report.text(), report.json()
    assert [row["name"] for row in figures["rows"]] == list(ROWS)
    for row in figures["rows"]:
        assert row["name"] in text
        assert len(row["rounds"]) == TINY.rounds
        _whole(row)
    assert set(figures["growth"]) == {ROWS[5], ROWS[6]}
    for peer in ("Mastra", "DBOS", "LangGraph", "our aim"):
        assert peer in text


def _whole(row: dict[str, Any]) -> None:
    least, short = row["name"].startswith("minimum"), "calls" in row["name"]
    for name in ("p50_ms", "p95_ms", "commits", "wal", "rows", "cpu_ms"):
        assert row[name] > 0, (row["name"], name)
    assert (row["times_minimum"] is None, row["wal_times_minimum"] is None) == (least, least)
    assert (row["turns_per_s"] is not None) == short
    assert (row["rate_of_minimum"] is not None) == (short and not least)
    if least:
        assert row["commits"] == row["steps"]
    else:
        assert row["times_minimum"] > 0


async def test_a_profile_tells_where_cpu_goes_and_which_statements_were_sent() -> None:
    texts = [text async for text in profiles(TINY, turns=2)]
    assert len(texts) == 7
    agent = texts[0]
    assert agent.startswith("agent (memory bus), turn with 3 calls")
    for part in ("by package", "by function, alone", "with what they call", "a turn  ", "insert steps"):
        assert part in agent
    assert signal.getitimer(signal.ITIMER_PROF) == (0, 0)
