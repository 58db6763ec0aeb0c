"""Typed boundaries hold statically: mypy accepts the right examples and rejects every wrong line."""

import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).parents[1] / "typing"


def check(name: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--no-incremental", "--no-error-summary", str(EXAMPLES / name)],
        capture_output=True, text=True, check=False, cwd=EXAMPLES.parents[1],
    )  # fmt: skip
    return done.returncode, done.stdout


def test_right_examples_are_accepted() -> None:
    status, output = check("right.py")
    assert status == 0, output


def test_every_wrong_line_is_rejected() -> None:
    _, output = check("wrong.py")
    wrong = [
        number for number, line in enumerate((EXAMPLES / "wrong.py").read_text().splitlines(), 1) if "# wrong" in line
    ]
    found = {int(line.split(":")[1]) for line in output.splitlines() if ": error:" in line}
    assert found == set(wrong), output
