"""An open sandbox for the offline model."""

from tests.agent.campaigns.conftest import world

__all__ = ["world"]
