"""The offline model: deterministic, without I/O, for development, demonstrations and tests."""

from agent.models.offline.model import OfflineModel

__all__ = ["OfflineModel"]
