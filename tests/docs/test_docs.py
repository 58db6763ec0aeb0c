"""Every Python example in the documents runs, so that none of them can rot. Each is a program of its own; `await` is allowed in it."""

import ast
import inspect
import re
from pathlib import Path
from types import CodeType
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
DOCUMENTS = (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md")))
EXAMPLE = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\[[^\]]*\]\((?!https?:)([^)#\s]*)(?:#([^)\s]*))?\)")
TEST = re.compile(r"`(tests/[\w/]+\.py)(?:::(\w+))?`")
SETTING = re.compile(r"`([A-Z][A-Z_]{3,})`")


def _examples() -> list[Any]:
    found = []
    for document in DOCUMENTS:
        text = document.read_text()
        for match in EXAMPLE.finditer(text):
            line = text.count("\n", 0, match.start()) + 2
            found.append(pytest.param(document, line, match[1], id=f"{document.name}:{line}"))
    return found


def _compiled(document: Path, line: int, source: str) -> CodeType:
    """Compiled with its place in the document, so that a failure names the line there."""
    code = compile("\n" * (line - 1) + source, str(document), "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    assert isinstance(code, CodeType)
    return code


@pytest.mark.parametrize(("document", "line", "source"), _examples())
async def test_an_example_runs(
    document: Path, line: int, source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = eval(_compiled(document, line, source), {"__name__": "example"})
    if inspect.isawaitable(result):
        await result


def _headings(text: str) -> set[str]:
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: document.name)
def test_links_lead_somewhere(document: Path) -> None:
    for path, heading in LINK.findall(document.read_text()):
        target = document.parent / path if path else document
        assert target.exists(), f"{document.name} links to {path}, which is not there"
        assert not heading or heading in _headings(target.read_text()), f"{path} has no heading {heading}"


def test_the_tests_that_guarantees_name_exist() -> None:
    named = TEST.findall((ROOT / "docs" / "guarantees.md").read_text())
    assert len(named) > 40
    for path, name in named:
        assert (ROOT / path).exists(), f"there is no {path}"
        assert not name or f"def {name}(" in (ROOT / path).read_text(), f"{path} has no {name}"


def test_every_setting_is_in_operating_and_nothing_else_is() -> None:
    from bot.settings import Settings

    known = {str(field.alias) for field in Settings.model_fields.values()}
    text = (ROOT / "docs" / "operating.md").read_text()
    table = text[text.index("## Environment") : text.index("## What to do when")]
    rows = [line for line in table.splitlines() if line.startswith("| `")]
    assert {name for row in rows for name in SETTING.findall(row.split("|")[1])} | {"HOST", "PORT"} == known
