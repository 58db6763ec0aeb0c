"""Parts of statements, stores that leave one out, and scenarios that must notice."""

import asyncio
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import asyncpg

from tests.storage.locks.sessions import HeldStore, Table
from workflows.storage import PostgresStore

Scenario = Callable[["Weakenable"], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Part:
    """`text` (a regular expression) of the statements that contain `marker`, and what stands there `instead`."""

    marker: str
    text: str
    instead: str = ""

    def left_out(self, statement: str) -> str:
        """The statement without it; the same where it has no such part."""
        return re.sub(self.text, self.instead, statement) if self.marker in statement else statement

    def __str__(self) -> str:
        return f"{self.marker}: {self.text}" + (f" -> {self.instead}" if self.instead else "")


class WeakenedStore(PostgresStore):
    """Sends statements without `part`."""

    part: Part | None = None
    weakened = 0

    async def _fetch(self, statement: str, *parameters: Any) -> "list[asyncpg.Record]":
        if self.part is not None and (without := self.part.left_out(statement)) != statement:
            self.weakened += 1
            statement = without
        return await super()._fetch(statement, *parameters)


class WeakenedHeldStore(WeakenedStore, HeldStore):
    """The same in the first of two sessions."""


class Weakenable(Table):
    """A database all of whose sessions leave out one part of a statement."""

    store: WeakenedStore
    kinds = (WeakenedStore, WeakenedHeldStore)
    _first_store: WeakenedHeldStore | None = None

    def leave_out(self, part: Part | None) -> None:
        self.store.part, self.store.weakened, self._first_store = part, 0, None

    @property
    def weakened(self) -> int:
        """How often a statement was sent without it."""
        return self.store.weakened + (self._first_store.weakened if self._first_store is not None else 0)

    async def hold(self) -> HeldStore:
        held = await super().hold()
        assert isinstance(held, WeakenedHeldStore)
        held.part, self._first_store = self.store.part, held
        return held

    async def overtaken(
        self, first: Callable[[HeldStore], Awaitable[Any]], second: Callable[[PostgresStore], Awaitable[Any]]
    ) -> tuple[Any, Any]:
        """What each says when the second comes while the first has done its work and not committed."""
        held = await self.hold()
        answer = await first(held)
        task = asyncio.ensure_future(second(self.store))
        try:
            await self.waits(task)
        finally:
            await held.finish(commit=True)
        async with asyncio.timeout(10):
            return answer, await task


@dataclass(frozen=True, slots=True)
class Guarantee:
    """What holds in a world of `tests.storage.locks.writers`, and the parts none of which it can do without."""

    world: str
    scenario: Scenario
    parts: tuple[Part, ...]

    @property
    def name(self) -> str:
        return self.scenario.__name__


GUARANTEES: list[Guarantee] = []


def given_by(*parts: Part, world: str = "running") -> Callable[[Scenario], Scenario]:
    """The scenario shows a guarantee that each of these parts is needed for."""

    def listed(scenario: Scenario) -> Scenario:
        GUARANTEES.append(Guarantee(world, scenario, parts))
        return scenario

    return listed
