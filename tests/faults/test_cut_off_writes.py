"""Writes that are cut off in their middle, as by the time limit of the step that waits for them."""

import asyncpg

from workflows import Effect, Engine, Retry, StepContext, step, workflow
from workflows.pubsub import MemoryPubSub
from workflows.storage import PostgresStore


async def test_what_was_being_written_when_a_steps_time_ran_out_is_written(engine_database: str) -> None:
    """The note, and the record of the arm that shared its write: somebody holds the run's row for longer than the step may take."""
    other = await asyncpg.connect(engine_database)
    holding = other.transaction()
    tries = list[int]()

    @step(effect=Effect.READ, timeout=0.3, retry=Retry(times=1, base=0))
    async def note(n: int, ctx: StepContext) -> int:
        tries.append(n)
        if len(tries) == 1:
            await holding.start()
            await other.execute("select from runs where run_id = $1 for update", ctx.run_id)
            try:
                await ctx.note("found", 5)
            finally:
                await holding.rollback()
        found: int = ctx.noted("found")
        return found

    flow = workflow("w").then(note).commit()
    async with Engine(store=PostgresStore(engine_database), pubsub=MemoryPubSub(), workflows=[flow]) as engine:
        run = await engine.start(flow, 1)
        assert await run.result(timeout=10) == 5
        assert len(tries) == 2
        assert [record.path for record in await run.steps()] == ["note!found", "note"]
    await other.close()
