"""The table, and the same figures as JSON."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import median, quantiles
from typing import Any

from tests.bench.rounds import Figures
from tests.bench.subject import Shape

PEERS = (
    ("Mastra, durable agent", "59 x", "365 x, storage quadratic"),
    ("DBOS", "10 x", ""),
    ("LangGraph", "9 x", ""),
    ("Mastra, plain workflow", "3.7 x", ""),
)
"""The same work beside the same minimum, measured once on two cores; not measured again here."""
AIMS = ("<= 1.3 x", "<= 2 x, WAL <= 1.5 x, growth 1.0, 1000 turns/s at 32")
HEAD = (
    "",
    "p50 ms",
    "p95 ms",
    "x min",
    "turns/s",
    "of min",
    "commits",
    "WAL B",
    "x min",
    "stored B",
    "rows B",
    "CPU ms",
    "CPU at 32",
)


@dataclass(frozen=True, slots=True)
class Row:
    """A subject over all rounds; `against` is its minimum's name, None for a minimum itself."""

    kind: str
    shape: Shape
    name: str
    against: str | None
    rounds: tuple[Figures, ...]

    @property
    def p50_ms(self) -> float:
        return median(self._latencies)

    @property
    def p95_ms(self) -> float:
        return (
            quantiles(self._latencies, n=20, method="inclusive")[-1] if len(self._latencies) > 1 else self._latencies[0]
        )

    @property
    def _latencies(self) -> list[float]:
        return [each for figures in self.rounds for each in figures.latencies_ms]

    def middle(self, field: str) -> float | None:
        """The median of a figure over the rounds; None if it was not measured."""
        values = [getattr(figures, field) for figures in self.rounds]
        return None if None in values else median(values)


class Report:
    """All rows, in order."""

    def __init__(self, rows: Sequence[Row], *, setting: str) -> None:
        self.rows = {row.name: row for row in rows}
        self._setting = setting

    def ratio(self, row: Row, field: str) -> float | None:
        """A row's figure by its minimum's, round by round, and the median of that: noise that lasts a round hits both."""
        if row.against is None:
            return None
        pairs = zip(row.rounds, self.rows[row.against].rounds, strict=True)
        values = [(_of(ours, field), _of(least, field)) for ours, least in pairs]
        return None if any(a is None or b is None for a, b in values) else median(a / b for a, b in values if a and b)

    def text(self) -> str:
        """For people."""
        lines = [
            self._setting,
            "",
            *_aligned([HEAD, *(self._cells(row) for row in self.rows.values())]),
            "",
            *self._growth(),
        ]
        lines += ["", "turn and long turn as multiples of the minimum:"]
        lines += [f"  {name:38}{turn:10}{long}" for name, turn, long in PEERS]
        lines += [f"  {'our aim':38}{AIMS[0]:10}{AIMS[1]}", *self._ours()]
        return "\n".join(lines)

    def json(self) -> dict[str, Any]:
        """For machines: every round of every row, and the medians."""
        return {
            "setting": self._setting,
            "growth": self.growth(),
            "rows": [self._dump(row) for row in self.rows.values()],
        }

    def growth(self) -> dict[str, dict[str, float]]:
        """By subject: log2 of what twice the iterations take. 1.0 is linear, 2.0 quadratic."""
        found = {}
        for row in self.rows.values():
            half = next(
                (
                    each
                    for each in self.rows.values()
                    if each.kind == row.kind and each.shape.rounds * 2 == row.shape.rounds
                ),
                None,
            )
            if half is not None and not half.shape.short and row.against is not None:
                found[row.name] = {
                    "time": math.log2(row.p50_ms / half.p50_ms),
                    **{field: _log2(row.middle(field), half.middle(field)) for field in ("rows", "stored", "wal")},
                }
        return found

    def _growth(self) -> list[str]:
        lines = ["growth with twice the iterations (1.0 is linear):"]
        for name, by in self.growth().items():
            lines.append(f"  {name:38}" + "   ".join(f"{field} {exponent:.2f}" for field, exponent in by.items()))
        return lines

    def _ours(self) -> list[str]:
        lines = []
        for row in self.rows.values():
            if (ratio := self.ratio(row, "p50")) is not None:
                wal = self.ratio(row, "wal")
                lines.append(f"  {row.name:38}{ratio:.1f} x, WAL {wal:.1f} x")
        return lines

    def _cells(self, row: Row) -> tuple[str, ...]:
        middle = row.middle
        return (
            row.name, _number(row.p50_ms, 2), _number(row.p95_ms, 2), _times(self.ratio(row, "p50")), _number(middle("turns_per_s")),
            _number(self.ratio(row, "turns_per_s"), 2), _number(middle("commits"), 1), _number(middle("wal")), _times(self.ratio(row, "wal")),
            _number(middle("stored")), _number(middle("rows")), _number(middle("cpu_ms"), 2), _number(middle("cpu_ms_at_once"), 2),
        )  # fmt: skip

    def _dump(self, row: Row) -> dict[str, Any]:
        fields = ("turns_per_s", "commits", "wal", "stored", "rows", "cpu_ms", "cpu_ms_at_once")
        return {
            "name": row.name,
            "steps": row.shape.steps,
            "p50_ms": row.p50_ms,
            "p95_ms": row.p95_ms,
            "times_minimum": self.ratio(row, "p50"),
            "wal_times_minimum": self.ratio(row, "wal"),
            "rate_of_minimum": self.ratio(row, "turns_per_s"),
            **{field: row.middle(field) for field in fields},
            "rounds": [asdict(figures) for figures in row.rounds],
        }


def _of(figures: Figures, field: str) -> float | None:
    return median(figures.latencies_ms) if field == "p50" else getattr(figures, field)


def _log2(whole: float | None, half: float | None) -> float:
    return math.log2(whole / half) if whole and half else math.nan


def _number(value: float | None, digits: int = 0) -> str:
    return "" if value is None else f"{value:,.{digits}f}"


def _times(value: float | None) -> str:
    return "" if value is None else f"{value:.2f} x"


def _aligned(rows: Sequence[tuple[str, ...]]) -> list[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return [
        "  ".join(
            cell.ljust(width) if column == 0 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]
