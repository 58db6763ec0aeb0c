"""On PostgreSQL each guarantee holds, and is lost when the part of the statement that gives it is left out: no part is there for nothing,
and no scenario passes whatever the store does.
"""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.storage.guarantees import inboxes, owners
from tests.storage.guarantees.parts import GUARANTEES, Guarantee, Part, Weakenable
from tests.storage.locks.writers import WORLDS

pytestmark = pytest.mark.asyncio(loop_scope="module")

SOURCES = (inboxes, owners)
"""Importing them lists their guarantees."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def table(module_database: str) -> AsyncIterator[Weakenable]:
    laid = Weakenable(module_database)
    await laid.open()
    yield laid
    await laid.close()


async def _lay(table: Weakenable, guarantee: Guarantee) -> None:
    table.leave_out(None)
    await table.clear()
    await WORLDS[guarantee.world](table.store)


@pytest.mark.parametrize("guarantee", GUARANTEES, ids=lambda guarantee: guarantee.name)
async def test_it_holds(table: Weakenable, guarantee: Guarantee) -> None:
    await _lay(table, guarantee)
    await guarantee.scenario(table)


@pytest.mark.parametrize(
    ("guarantee", "part"),
    [pytest.param(each, part, id=f"{each.name}-{n}") for each in GUARANTEES for n, part in enumerate(each.parts)],
)
async def test_it_is_lost_without_the_part_that_gives_it(table: Weakenable, guarantee: Guarantee, part: Part) -> None:
    await _lay(table, guarantee)
    table.leave_out(part)
    with pytest.raises(AssertionError):
        await guarantee.scenario(table)
    assert table.weakened, f"no statement was sent that has the part {part}: has it changed?"
