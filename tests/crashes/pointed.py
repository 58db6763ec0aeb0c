"""A store, a bus and a ledger whose operations have a point before and a point after."""

import inspect
from collections.abc import Awaitable, Callable
from typing import Any

from tests.crashes.points import Points
from tests.flows import Entry, Ledger
from workflows import StepContext


class Pointed:
    """Another object, each of whose operations passes two points."""

    def __init__(self, inner: Any, points: Points) -> None:
        self._inner = inner
        self._points = points

    def __getattr__(self, name: str) -> Any:
        operation = getattr(self._inner, name)
        return self._around(name, operation) if inspect.iscoroutinefunction(operation) else operation

    def _around(self, name: str, operation: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def asked(*arguments: Any, **options: Any) -> Any:
            await self._points.passing(f"before {name}")
            result = await operation(*arguments, **options)
            if result != []:  # a claim of nothing and an empty inbox change nothing
                await self._points.passing(f"after {name}")
            return result

        return asked


class PointedLedger:
    """A ledger with a point before and a point after each thing done, where `mine` says so."""

    def __init__(self, inner: Ledger, points: Points, *, mine: Callable[[], bool] = lambda: True) -> None:
        self._inner = inner
        self._points = points
        self._mine = mine

    async def did(self, what: str, ctx: StepContext) -> None:
        if self._mine():
            await self._points.passing(f"before {what}")
        await self._inner.did(what, ctx)
        if self._mine():
            await self._points.passing(f"after {what}")

    def entries(self) -> list[Entry]:
        return self._inner.entries()
