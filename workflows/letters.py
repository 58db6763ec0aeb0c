"""The dead letters of a tenant, as an operator sees them: signals that no run read, and events that a group of the bus gave up on."""

from collections.abc import Callable

from workflows.beginning import begun, begun_by_signal
from workflows.definition.registry import Registry
from workflows.errors import InputError, LetterNotFoundError, StateError
from workflows.execution import Execution
from workflows.pubsub.base import DeadLetter, PubSub, topic_of
from workflows.pubsub.hints import is_of
from workflows.storage.base import DeadSignal, NewRun, RunState, Store

LIVE = [state for state in RunState if state.live]


class DeadLetters:
    """Lists, redrives and drops them, each by its `id`. Every operation names a tenant; what is another's is not found.

    An event is a tenant's if it is in the topic of one of its threads or runs, or if its data names it as `tenant`.
    """

    def __init__(
        self, execution: Callable[[], Execution], pubsub: PubSub, workflows: Registry, *, deployment: str
    ) -> None:
        self._execution = execution
        self._pubsub = pubsub
        self._workflows = workflows
        self._deployment = deployment

    async def signals(self, *, tenant: str, limit: int = 100, before: str | None = None) -> list[DeadSignal]:
        """Signals of the tenant's runs, newest first; `before` is the last id of the page before. Raises InputError if that is none."""
        return await self._execution().runs.dead_signals(tenant=tenant, limit=limit, before=before)

    async def events(self, *, tenant: str, topic: str | None = None, limit: int | None = 100) -> list[DeadLetter]:
        """Events of the tenant, of one topic or of all, oldest first. Raises PubSubUnavailableError."""
        letters = await self._pubsub.dead_letters(topic)
        return [each for each in letters if is_of(tenant, each.topic, each.event)][:limit]

    async def redrive(self, letter_id: str, *, tenant: str) -> str:
        """Give a letter back, once however many ask: a signal to the live run of its key or to a new one, an event to its group.

        Returns the id of that run, or the event's new offset. Raises LetterNotFoundError; InputError if the id is none, or if no run is live
        and a new one has to begin with a value; StateError if the signal's run had no key; NoExecutorError if nobody here knows the workflow.
        """
        if (topic := topic_of(letter_id)) is not None:
            return await self._redrive_event(await self._event(letter_id, topic, tenant))
        store = self._execution().store("letters")
        dead = await store.dead_signal(letter_id, tenant=tenant)
        if dead is None:
            raise _gone(letter_id)
        outcome = await store.redrive_signal(letter_id, await self._heir(store, dead))
        if outcome is None or outcome.run_id is None:
            raise _gone(letter_id)
        if outcome.queue is not None:
            await self._execution().tell_workers(outcome.queue)
        return outcome.run_id

    async def drop(self, letter_id: str, *, tenant: str) -> None:
        """Remove a letter for good: nobody will handle it. Raises LetterNotFoundError, InputError if the id is none."""
        if (topic := topic_of(letter_id)) is not None:
            letter = await self._event(letter_id, topic, tenant)
            try:
                await self._pubsub.drop(letter)
            except LookupError as error:
                raise _gone(letter_id) from error
        elif not await self._execution().store("letters").drop_signal(letter_id, tenant=tenant):
            raise _gone(letter_id)

    async def _heir(self, store: Store, dead: DeadSignal) -> NewRun:
        """The run that begins with it if none of its key is live."""
        if dead.key is None:
            raise StateError(f"the dead letter {dead.id} is of a run without a key: nobody would take it up. Drop it")
        workflow = self._workflows.required(dead.workflow)
        try:
            return begun(workflow, None, tenant=dead.tenant, key=dead.key, deployment=self._deployment)
        except InputError:
            if not await store.runs(
                tenant=dead.tenant, workflow=workflow.id, key=dead.key, states=LIVE, limit=1
            ):  # the live one takes it; should it end at this moment, the new one fails and the letter is there again
                raise
            return begun_by_signal(workflow, tenant=dead.tenant, key=dead.key, deployment=self._deployment)

    async def _event(self, letter_id: str, topic: str, tenant: str) -> DeadLetter:
        for each in await self.events(tenant=tenant, topic=topic, limit=None):
            if each.id == letter_id:
                return each
        raise _gone(letter_id)

    async def _redrive_event(self, letter: DeadLetter) -> str:
        try:
            return await self._pubsub.redrive(letter)
        except LookupError as error:
            raise _gone(letter.id) from error


def _gone(letter_id: str) -> LetterNotFoundError:
    return LetterNotFoundError(f"there is no dead letter {letter_id!r} of this tenant (any more)")
