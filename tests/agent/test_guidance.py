"""Guidance is Markdown on disk, read fresh, and replaceable file by file."""

from pathlib import Path

import pytest

from agent.guidance import ORDER, Guidance, GuidanceError


def write(directory: Path, **files: str) -> Path:
    directory.mkdir(exist_ok=True)
    for name, text in files.items():
        (directory / f"{name}.md").write_text(text, encoding="utf-8")
    return directory


def complete(directory: Path) -> Path:
    return write(directory, **{name: f"# {name}" for name in ORDER})


def test_the_shipped_guidance_is_complete_and_begins_with_who_the_agent_is() -> None:
    guidance = Guidance()
    assert [path.stem for path in guidance.files()] == list(ORDER)
    text = guidance.text()
    assert text.startswith("# Who you are")
    assert [text.index(path.read_text(encoding="utf-8").strip()) for path in guidance.files()] == sorted(
        text.index(path.read_text(encoding="utf-8").strip()) for path in guidance.files()
    )


def test_the_order_is_stated_and_extra_files_come_last(tmp_path: Path) -> None:
    base = complete(tmp_path / "base")
    mine = write(tmp_path / "mine", zebra="# zebra", brand="# brand")
    text = Guidance(directory=base, overrides=[mine]).text()
    assert text == "\n\n".join(f"# {name}" for name in (*ORDER, "brand", "zebra")) + "\n"


def test_a_file_is_replaced_as_a_whole_and_the_last_override_wins(tmp_path: Path) -> None:
    base = complete(tmp_path / "base")
    deployment = write(tmp_path / "deployment", tone="# formal", identity="# ours")
    tenant = write(tmp_path / "tenant", tone="# pirate")
    text = Guidance(directory=base, overrides=[deployment, tenant]).text()
    assert "# ours" in text
    assert "# pirate" in text
    assert "# formal" not in text
    assert "# tone" not in text


def test_a_change_on_disk_shows_at_the_next_read(tmp_path: Path) -> None:
    guidance = Guidance(directory=complete(tmp_path / "base"))
    before = guidance.text()
    write(tmp_path / "base", tone="# changed")
    assert guidance.text() != before
    assert "# changed" in guidance.text()


def test_a_missing_override_directory_is_named(tmp_path: Path) -> None:
    with pytest.raises(GuidanceError, match="nowhere"):
        Guidance(overrides=[tmp_path / "nowhere"])


@pytest.mark.parametrize("fault", ["missing", "empty", "binary"])
def test_a_broken_file_is_named(tmp_path: Path, fault: str) -> None:
    base = complete(tmp_path / "base")
    path = base / "money.md"
    if fault == "missing":
        path.unlink()
    else:
        path.write_bytes(b"" if fault == "empty" else b"\xff\xfe\x00")
    with pytest.raises(GuidanceError, match=r"money\.md"):
        Guidance(directory=base).text()
