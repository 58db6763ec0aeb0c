"""The table at the end of a run is counted from what ran, with xdist and without, and an excused conformance case fails the session."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

CASES = """
import pytest
from tests.invariants import InvariantViolation
from tests.tally import Tally

@pytest.fixture(params=["memory", "paper"])
def anything(request): return request.param

def test_holds(anything): pass

@pytest.mark.parametrize("backend", ["not one", "nor this"])
def test_of_many(anything, backend): pass

def test_of_none(): pass

def test_that_counts(anything, tally):
    tally.count("crash points", f"then, {anything}", killed=3, survived=2)
    tally.count("crash points", "all of them", killed=1, survived=1)
"""
EXCUSED = {
    "skipped": "@pytest.mark.skip\ndef test_excused(anything): pass",
    "skipped within": "def test_excused(anything): pytest.skip('not today')",
    "expected to fail": "@pytest.mark.xfail\ndef test_excused(anything): assert False",
    "expected to fail and did not": "@pytest.mark.xfail\ndef test_excused(anything): pass",
    "the module skipped": "pytest.skip('not today', allow_module_level=True)",
}
ADDED = "def test_broken(): raise ExceptionGroup('several', [InvariantViolation(['one', 'two'])])"


@pytest.fixture(params=[(), ("-n", "2")], ids=["one process", "xdist"])
def workers(request: pytest.FixtureRequest) -> tuple[str, ...]:
    found: tuple[str, ...] = request.param
    return found


def run(tmp_path: Path, workers: tuple[str, ...], *sources: str, where: str = "conformance") -> tuple[int, str]:
    """A session of its own over modules of those sources: its exit status, and what it printed."""
    directory = tmp_path / where
    directory.mkdir()
    for number, source in enumerate(sources):
        (directory / f"test_seam{number or ''}.py").write_text(source)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "tests.tally",
        "-p",
        "no:cacheprovider",
        "--rootdir",
        str(tmp_path),
        *workers,
    ]
    done = subprocess.run([*command, str(tmp_path)], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout


def test_cases_are_counted_by_backend_and_what_tests_did_is_added_up(tmp_path: Path, workers: tuple[str, ...]) -> None:
    status, text = run(tmp_path, workers, CASES)
    assert status == 0, text
    table = text[text.index("conformance cases passed") :].splitlines()
    heads, seam = table[1].split(), table[2].split()
    assert seam[0] == "seam"
    assert dict(zip(heads, map(int, seam[1:]), strict=True)) == {"memory": 4, "paper": 4, "any": 1}
    lines = [" ".join(line.split()) for line in table]
    assert "then, memory 3 killed, 2 survived" in lines
    assert "all of them 2 killed, 2 survived" in lines
    assert "all 8 killed, 6 survived" in lines


def test_violations_are_counted_also_within_a_group_of_errors(tmp_path: Path, workers: tuple[str, ...]) -> None:
    status, text = run(tmp_path, workers, f"{CASES}\n{ADDED}")
    assert status == 1
    assert "invariants\n" + " " * 35 + "2 violations" in text


def test_an_excused_conformance_case_fails_the_session(tmp_path: Path, workers: tuple[str, ...]) -> None:
    status, text = run(tmp_path, workers, *(f"{CASES}\n{excused}" for excused in EXCUSED.values()))
    assert status == 1, text
    listed = text[text.index("the session fails") :]
    for number, how in enumerate(EXCUSED):
        assert f"test_seam{number or ''}.py" in listed, how


def test_elsewhere_a_test_may_be_excused(tmp_path: Path, workers: tuple[str, ...]) -> None:
    status, text = run(tmp_path, workers, f"{CASES}\n{EXCUSED['skipped']}", where="elsewhere")
    assert (status, "conformance" in text) == (0, False), text
