"""The table at the end of a test run: what was proven, counted from what ran.

* Every test below a directory `conformance/` counts for the backend that its parametrised fixture names: nothing here knows their names.
  One that is skipped or expected to fail fails the session, since a seam that a backend half keeps is not kept.
* A test says what else it did through the fixture `tally`: `tally.count("crash points", "then, sqlite", killed=7, survived=7)`.
* A test that fails with `InvariantViolation` counts its violations.

Counts travel in the reports' `user_properties`, so that the table is the same with xdist and without.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any

import pytest

from tests.invariants import InvariantViolation

CONFORMANCE = "conformance"
INVARIANTS = "invariants"
NO_BACKEND = "any"


class Tally:
    """What one test did. `count` adds up over all tests, by title and row."""

    def __init__(self, properties: list[tuple[str, object]]) -> None:
        self._properties = properties

    def count(self, title: str, row: str = "", **counts: int) -> None:
        """Add `counts` to the line `row` under `title`."""
        self._properties.append(("tally", {"title": title, "row": row, "counts": counts}))


class Totals:
    """What the session did: a plugin that takes reports and prints the table. With xdist, the controller's is the one that counts."""

    def __init__(self) -> None:
        self.conformance: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self.counts: defaultdict[str, defaultdict[str, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
        self.excused: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if _is_conformance(report.nodeid) and (report.skipped or hasattr(report, "wasxfail")):
            self.excused.append(report.nodeid)
        if report.when != "call":
            return
        for name, value in report.user_properties:
            if name == CONFORMANCE and report.passed and isinstance(value, str):
                self.conformance[_seam(report.nodeid)][value] += 1
            elif name == "tally" and isinstance(value, dict):
                self.counts[value["title"]][value["row"]].update(value["counts"])

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.skipped and _is_conformance(report.nodeid):
            self.excused.append(report.nodeid)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self.excused:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if lines := self.lines():
            terminalreporter.section("proven")
            terminalreporter.write_line("\n".join(lines))
        if self.excused:
            terminalreporter.section("conformance cases that were excused: the session fails", red=True)
            terminalreporter.write_line("\n".join(self.excused))

    def lines(self) -> list[str]:
        """The table; nothing if nothing of it ran."""
        found = []
        if self.conformance:
            found += ["conformance cases passed, by seam and backend", *self._conformance(), ""]
        for title, rows in sorted(self.counts.items()):
            found += [
                title,
                *(f"  {row:<32} {_listed(counts)}".rstrip() for row, counts in sorted(rows.items())),
                *_sum(rows),
                "",
            ]
        return found[:-1]

    def _conformance(self) -> list[str]:
        backends = sorted(
            {each for counts in self.conformance.values() for each in counts},
            key=lambda each: (each == NO_BACKEND, each),
        )
        total = sum(self.conformance.values(), Counter[str]())
        rows = [*sorted(self.conformance.items()), ("all", total)]
        widths = {backend: max(len(backend), 6) + 2 for backend in backends}
        head = f"  {'':<16}" + "".join(f"{backend:>{widths[backend]}}" for backend in backends)
        return [head, *(f"  {seam:<16}{_cells(counts, widths)}" for seam, counts in rows)]


def _cells(counts: Counter[str], widths: dict[str, int]) -> str:
    return "".join(f"{counts[backend] or '':>{width}}" for backend, width in widths.items())


def _listed(counts: Counter[str]) -> str:
    return ", ".join(f"{number:,} {name.replace('_', ' ')}" for name, number in counts.items())


def _sum(rows: dict[str, Counter[str]]) -> list[str]:
    total: Counter[str] = Counter()
    for counts in rows.values():
        total.update(counts)
    return [f"  {'all':<32} {_listed(total)}"] if len(rows) > 1 else []


def _seam(nodeid: str) -> str:
    """The directory or module of a conformance case right below `conformance/`."""
    parts = PurePosixPath(nodeid.split("::", maxsplit=1)[0]).parts
    return PurePosixPath(parts[parts.index(CONFORMANCE) + 1]).stem.removeprefix("test_")


def _is_conformance(nodeid: str) -> bool:
    return CONFORMANCE in PurePosixPath(nodeid.split("::", maxsplit=1)[0]).parts


@pytest.fixture
def tally(request: pytest.FixtureRequest) -> Tally:
    """Where a test says what it did, for the table."""
    return Tally(request.node.user_properties)


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Totals())


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if _is_conformance(item.nodeid):
            item.user_properties.append((CONFORMANCE, _backend(item)))


def _backend(item: pytest.Item) -> str:
    """What the parametrised fixtures of a test were given; arguments of its own are no backends."""
    callspec = getattr(item, "callspec", None)
    if callspec is None:
        return NO_BACKEND
    own = {name.strip() for mark in item.iter_markers("parametrize") for name in _names(mark.args[0])}
    return "+".join(str(value) for name, value in callspec.params.items() if name not in own) or NO_BACKEND


def _names(argument: Any) -> list[str]:
    return argument.split(",") if isinstance(argument, str) else list(argument)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[Any]:
    if call.excinfo is not None:
        for violation in _violations(call.excinfo.value):
            Tally(item.user_properties).count(INVARIANTS, violations=len(violation.violations))
    return (yield)


def _violations(error: BaseException) -> list[InvariantViolation]:
    if isinstance(error, BaseExceptionGroup):
        return [found for each in error.exceptions for found in _violations(each)]
    return [error] if isinstance(error, InvariantViolation) else []
