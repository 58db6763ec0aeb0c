"""Every pair of writers of `runs` in two sessions: the first holds its transaction open, the second comes, the first commits or rolls back.

Whatever happens must be what would have happened one after the other, in one order or the other; and the engine's invariants hold.
"""

import asyncio
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import pytest
import pytest_asyncio

from tests.invariants import Invariants
from tests.storage.locks.sessions import State, Table, said
from tests.storage.locks.writers import WORLDS, WRITERS, Writer
from workflows.storage.base import RunState

pytestmark = pytest.mark.asyncio(loop_scope="module")

Result = tuple[list[Any], State]
"""What each said, in the order in which they came, and what is stored."""

PAIRS = [
    pytest.param(first, second, id=f"{first.name}-{second.name}")
    for first in WRITERS.values()
    for second in WRITERS.values()
]


@pytest.fixture(scope="module")
def serial() -> dict[Any, Result]:
    """What writers do one after the other, by world and names; the same for all pairs."""
    return {}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def table(module_database: str) -> AsyncIterator[Table]:
    laid = Table(module_database)
    await laid.open()
    yield laid
    await laid.close()


async def one_after_the_other(table: Table, serial: dict[Any, Result], world: str, *writers: Writer) -> Result:
    names = (world, *(each.name for each in writers))
    if names not in serial:
        await _lay(table, world)
        answers = [said(await each.act(table.store)) for each in writers]
        serial[names] = answers, await table.state()
        await _check(table)
    return serial[names]


async def at_once(table: Table, world: str, first: Writer, second: Writer, *, commit: bool) -> Result:
    """What came of both."""
    await _lay(table, world)
    invariants = Invariants(table.store)
    await invariants.check()
    held = await table.hold()
    answer = said(await first.act(held))
    task = asyncio.create_task(second.act(table.store))
    await table.waits(task)
    await held.finish(commit=commit)
    async with asyncio.timeout(10):
        other = said(await task)
    await invariants.check()
    await _check(table)
    return [answer, other] if commit else [other], await table.state()


async def _lay(table: Table, world: str) -> None:
    await table.clear()
    await WORLDS[world](table.store)


async def _check(table: Table) -> None:
    """The invariants, and what they can't know: that no owner here has seen more than the first message."""
    await Invariants(table.store).check()
    for run in await table.store.runs(tenant="T1"):
        if run.state is RunState.SUSPENDED:
            assert run.inbox_seq <= 1, f"{run.run_id} sleeps and has not seen {run.inbox_seq - 1} of its signals"
        if run.state is RunState.DONE:
            assert run.inbox_seq <= 1, f"{run.run_id} is done and has not seen {run.inbox_seq - 1} of its signals"


@pytest.mark.parametrize(("first", "second"), PAIRS)
async def test_two_at_once_do_what_they_would_do_one_after_the_other(
    table: Table, serial: dict[Any, Result], first: Writer, second: Writer
) -> None:
    for world in first.in_:
        serially = partial(one_after_the_other, table, serial, world)
        one, other, only = await serially(first, second), await serially(second, first), await serially(first)
        allowed = [one, ([*reversed(other[0])], other[1])] + [([*only[0], none], only[1]) for none in second.skips]
        both = await at_once(table, world, first, second, commit=True)
        assert both in allowed, _told(f"{world}: {first.name} committed before {second.name} went on", both, allowed)
        alone = await at_once(table, world, first, second, commit=False)
        allowed = [await serially(second), *[([none], await _untouched(table, world)) for none in second.skips]]
        assert alone in allowed, _told(
            f"{world}: {first.name} was rolled back before {second.name} went on", alone, allowed
        )


def _told(case: str, came: Result, allowed: list[Result]) -> str:
    """What came, and how it differs from what may come."""
    lines = [case, f"  they said {came[0]}"]
    for answers, state in allowed:
        differing = {name: (came[1][name], rows) for name, rows in state.items() if rows != came[1][name]}
        lines += [
            f"  one after the other they say {answers}",
            *(f"    {name}: {a}\n      not {b}" for name, (a, b) in differing.items()),
        ]
    return "\n".join(lines)


async def _untouched(table: Table, world: str) -> State:
    await _lay(table, world)
    return await table.state()


@pytest.mark.parametrize(
    "second", ["records", "finishes", "fails", "suspends", "cancels", "writes", "decides", "releases", "reaps"]
)
async def test_whoever_comes_second_to_a_run_waits_for_the_first(table: Table, second: str) -> None:
    """Else the pairs above would show nothing."""
    await _lay(table, "running")
    held = await table.hold()
    await WRITERS["signals"].act(held)
    task = asyncio.create_task(WRITERS[second].act(table.store))
    assert await table.waits(task)
    await held.finish(commit=True)
    await task
