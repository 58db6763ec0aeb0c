"""What a workflow's code may not do, read from the code: a replay must come to the same commands, whatever the hour and the machine."""

import ast
from pathlib import Path

import pytest

WALKED = (
    "running/interpreter", "running/effects", "running/attempt", "running/compensation", "running/suspension", "definition/boundaries", "definition/conditions",
    "definition/paths", "definition/projection", "definition/parts", "definition/state", "definition/authored", "definition/spec/reader",
    "definition/spec/entries", "definition/spec/form", "definition/spec/types", "definition/spec/names", "definition/spec/writer", "values",
    "temporal/workflow", "temporal/walk", "temporal/effects", "temporal/steps", "temporal/ending", "temporal/journal", "temporal/children",
    "temporal/located", "temporal/ids", "temporal/attributes", "temporal/messages", "temporal/payloads",
)  # fmt: skip
"""Modules whose code runs inside the workflow."""
MODULES = ("time", "random", "secrets", "socket", "os", "threading", "aiohttp", "uuid")
CALLS = ("now", "utcnow", "today", "uuid1", "uuid4", "urandom", "open", "print", "run_in_executor", "to_thread")
ROOT = Path(__file__).parents[2] / "workflows"


@pytest.mark.parametrize("name", WALKED)
def test_it_reads_no_clock_no_randomness_and_nothing_outside(name: str) -> None:
    tree = ast.parse((ROOT / f"{name}.py").read_text())
    assert [_said(node) for node in ast.walk(tree) if _forbidden(node)] == []


def _forbidden(node: ast.AST) -> bool:
    if isinstance(node, ast.Import):
        return any(each.name.split(".")[0] in MODULES for each in node.names)
    if isinstance(node, ast.ImportFrom):
        names = {each.name for each in node.names}
        return (node.module or "").split(".")[0] in MODULES and names != {"uuid5"}
    if isinstance(node, ast.Call):
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        owner = ast.unparse(node.func.value) if isinstance(node.func, ast.Attribute) else ""
        return name in CALLS and owner not in ("workflow", "self", "self._walk", "walk")
    return False


def _said(node: ast.AST) -> str:
    return f"line {getattr(node, 'lineno', '?')}: {ast.unparse(node)}"


@pytest.mark.parametrize("bad", ["import time", "from random import random", "datetime.now()", "uuid4()", "open('x')"])
def test_it_would_be_noticed(bad: str) -> None:
    assert any(_forbidden(node) for node in ast.walk(ast.parse(bad)))
