"""Uploaded files."""

import mimetypes
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from urllib.parse import quote

from bot.emulator.ids import new_id
from bot.emulator.workspace import Json


@dataclass(slots=True)
class File:
    """One file. `content` is None until its bytes have been uploaded; `shared` are the timestamps of the messages that share it, by channel."""

    id: str
    team_id: str
    user_id: str
    name: str
    title: str
    created_s: int
    content: bytes | None = None
    shared: dict[str, list[str]] = field(default_factory=dict)

    @property
    def channels(self) -> list[str]:
        return list(self.shared)

    def share(self, channel_id: str, ts: str) -> None:
        self.shared.setdefault(channel_id, []).append(ts)

    @property
    def mimetype(self) -> str:
        return mimetypes.guess_type(self.name)[0] or "application/octet-stream"

    def _shares(self, public: bool) -> Json:
        """Where an app finds the timestamp that an upload does not tell it."""
        chosen = {each: times for each, times in self.shared.items() if each.startswith("C") is public}
        return {each: [{"ts": ts, "team_id": self.team_id} for ts in times] for each, times in chosen.items()}

    def wire(self, base_url: str) -> Json:
        """Slack's file object; its `url_private` wants the bearer token of an app in the same workspace."""
        suffix = PurePosixPath(self.name).suffix.removeprefix(".").lower()
        private = f"{base_url}/files-pri/{self.team_id}-{self.id}"
        return {
            "id": self.id,
            "created": self.created_s,
            "timestamp": self.created_s,
            "name": self.name,
            "title": self.title,
            "mimetype": self.mimetype,
            "filetype": suffix or "binary",
            "pretty_type": suffix.upper() or "Binary",
            "user": self.user_id,
            "mode": "hosted",
            "is_external": False,
            "size": len(self.content or b""),
            "url_private": f"{private}/{quote(self.name)}",
            "url_private_download": f"{private}/download/{quote(self.name)}",
            "permalink": f"{base_url}/_emulator/files/{self.id}",
            "editable": False,
            "is_public": any(each.startswith("C") for each in self.channels),
            "public_url_shared": False,
            "channels": [each for each in self.channels if each.startswith("C")],
            "groups": [each for each in self.channels if each.startswith("G")],
            "ims": [each for each in self.channels if each.startswith("D")],
            "shares": {kind: found for kind in ("public", "private") if (found := self._shares(kind == "public"))},
            "file_access": "visible",
        }


class Files:
    """Files by id, those still waiting for their bytes too."""

    def __init__(self) -> None:
        self._files: dict[str, File] = {}

    def create(self, team_id: str, user_id: str, name: str, *, now_s: float, content: bytes | None = None) -> File:
        file = File(new_id("F"), team_id, user_id, name, name, int(now_s), content)
        self._files[file.id] = file
        return file

    def all(self) -> list[File]:
        return list(self._files.values())

    def put(self, files: Iterable[File]) -> None:
        """Take files that exist already."""
        self._files.update((file.id, file) for file in files)

    def remove(self, file: File) -> None:
        """Delete a file."""
        del self._files[file.id]

    def find(self, file_id: str) -> File | None:
        return self._files.get(file_id)
