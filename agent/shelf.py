"""The seam to shared files."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from agent.models.base import File


class Files(Protocol):
    """Where shared files are kept."""

    def open(self, tenant: str, file: File) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """Its bytes in pieces, as they come. Raises FileUnreadableError, ChannelUnavailableError."""
        ...
