"""A sandbox with a clock that the test holds, and contexts to call its tools in."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from pydantic_core import from_json

from agent.campaigns import CAMPAIGN_TABLES, SandboxPlatform, campaign_tools
from agent.models.base import Person
from agent.tools import Toolbox, ToolContext
from workflows.storage import MemoryStore

SUNDAY = datetime(2026, 11, 29, 14, 20, tzinfo=UTC)
"""The tests' now: Sunday 29 November 2026, 15:20 in Berlin."""


@dataclass
class World:
    """`now` may be set. The store needs `open()` before use; `close()` frees it."""

    now: datetime = SUNDAY
    store: MemoryStore = field(default_factory=lambda: MemoryStore(tables=CAMPAIGN_TABLES))

    def __post_init__(self) -> None:
        self.platform = SandboxPlatform(self.store, clock=self.clock)
        self.tools = Toolbox(campaign_tools(self.platform))

    async def clock(self) -> datetime:
        return self.now

    def context(self, *, tenant: str = "T1", key: str = "key-1", time_zone: str = "Europe/Berlin") -> ToolContext:
        async def report(text: str) -> None:
            """Nobody watches."""

        asker = Person(id="U1", name="Ana", time_zone=time_zone)
        return ToolContext(tenant=tenant, asker=asker, now=self.now, idempotency_key=key, report=report)

    async def call(self, tool: str, *, ctx: ToolContext | None = None, **arguments: Any) -> Any:
        """The tool's answer, as the model would read it."""
        return from_json(await self.tools.get(tool).run(arguments, ctx or self.context()))
