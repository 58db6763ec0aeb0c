"""Guidance: what the model is told about its job, as Markdown files that a deployment may replace one by one.

No instruction to a model is a Python string. Files are read at every call, so a change takes effect at the next model call.
"""

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

ORDER = ("identity", "campaigns", "money", "untrusted", "conversation", "tone")
"""The order of the files in the text. Files that only an override directory has come last, by name."""
WORKSPACE = "workspace"
"""The file that introduces what a workspace's admins have written. It may be replaced like the others, and need not be there."""

_OWN = Path(__file__).parent


class GuidanceError(Exception):
    """A directory or file of guidance is not there, or holds no text; an operator must mend it."""


class Guidance:
    """The files of `directory`, each replaced as a whole by the file of the same name in the last of `overrides` that has one.

    Raises GuidanceError, when built and when read, for a directory that does not exist.
    """

    def __init__(self, *, directory: Path = _OWN, overrides: Sequence[Path] | None = None) -> None:
        self._directories = (directory, *(overrides or ()))
        self.files()

    def files(self) -> tuple[Path, ...]:
        """The files in force, in order."""
        found: dict[str, Path] = {}
        for directory in self._directories:
            if not directory.is_dir():
                raise GuidanceError(
                    f"guidance directory {directory} does not exist; create it or take it out of the settings"
                )
            found |= {path.stem: path for path in sorted(directory.glob("*.md"))}
        found.pop(WORKSPACE, None)
        missing = [name for name in ORDER if name not in found]
        if missing:
            raise GuidanceError(
                f"guidance lacks {', '.join(f'{name}.md' for name in missing)} in {self._directories[0]}"
            )
        extra = sorted(set(found) - set(ORDER))
        return tuple(found[name] for name in (*ORDER, *extra))

    def _introduction(self) -> Path:
        places = [each / f"{WORKSPACE}.md" for each in (_OWN, *self._directories)]
        return [place for place in places if place.exists()][-1]

    def text(self, workspace: str = "") -> str:
        """All of it, as one Markdown text for `ModelRequest.system`, with what a workspace's admins have written last.

        Raises GuidanceError for a file that can't be read.
        """
        parts = [_text(path) for path in self.files()]
        if workspace.strip():
            parts += [_text(self._introduction()), workspace.strip()]
        return "\n\n".join(parts) + "\n"


def _text(path: Path) -> str:
    try:
        found = path.stat()
    except OSError as error:
        raise GuidanceError(f"guidance file {path} can't be read: {error}") from error
    return _read(path, found.st_mtime_ns, found.st_size, found.st_ino)


@lru_cache(maxsize=256)
def _read(path: Path, changed_ns: int, size: int, inode: int) -> str:
    """A file's text, read once for each state of the file."""
    try:
        text = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise GuidanceError(f"guidance file {path} can't be read: {error}") from error
    if not text:
        raise GuidanceError(f"guidance file {path} is empty; delete it to use the default")
    return text


__all__ = ["ORDER", "Guidance", "GuidanceError"]
