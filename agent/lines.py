"""Lines of one thought: what a person writes one below the other in a direct message, while the first of it is still being worked on.

Each such line would be a conversation of its own, as its thread is. No clock waits for more of them: the first begins its turn at once, and
those that follow while it goes on belong to it.
"""

from agent.messages import PARTICIPATION, Transcript
from agent.stops import LIVE
from agent.thread import Thread
from workflows import Engine
from workflows.storage import Is, Select

TOGETHER_S = 20.0
"""How long after the first line of a thought a line may still belong to it."""


class Lines:
    """Finds where a line belongs. `turn` names the workflow of a turn."""

    def __init__(self, engine: Engine, *, turn: str) -> None:
        self._engine = engine
        self._turn = turn
        self._transcript = Transcript(engine.store)

    async def belongs(self, line: Thread) -> Thread:
        """The conversation of a line that stands at the head of a thread: that of the line before, while it is being worked on, or its own.

        Raises StoreUnavailableError.
        """
        before = await self._before(line)
        if before is None:
            return line
        live = await self._engine.runs(tenant=line.tenant, workflow=self._turn, key=before.key, states=LIVE, limit=1)
        return before if live and not await self._answering(live[0].run_id) else line

    async def _answering(self, run_id: str) -> bool:
        """Whether a turn's answer is on its way: who writes on now may have read it already."""
        return any(record.path.endswith("/deliver!intent") for record in await self._engine.store.load(run_id))

    async def underway(self, line: Thread) -> Thread:
        """The newest conversation before a line that is being worked on, however long ago it was begun: what "stop" is about. Else its own.

        Raises StoreUnavailableError.
        """
        runs = await self._engine.runs(tenant=line.tenant, workflow=self._turn, states=LIVE, limit=1000)
        threads = [Thread.of(line.tenant, run.key) for run in runs if run.key is not None]
        earlier = [each for each in threads if each.channel == line.channel and each.root < line.root]
        return max(earlier, key=lambda each: each.root, default=line)

    async def taken(self, line: Thread) -> Thread:
        """The conversation that has taken a line in. Raises StoreUnavailableError."""
        before = await self._before(line)
        if before is None or not await self._transcript.get(before, [line.root]):
            return line
        return before

    async def _before(self, line: Thread) -> Thread | None:
        """The latest conversation of the channel that was begun right before a line."""
        where = {"tenant": line.tenant, "thread": Is("<", line.key)}
        rows = await self._engine.store.read(Select(PARTICIPATION, where, order=("-thread",), limit=1))
        found = Thread.of(line.tenant, rows[0]["thread"]) if rows else None
        if found is None or found.channel != line.channel:
            return None
        return found if float(line.root) - float(found.root) <= TOGETHER_S else None
