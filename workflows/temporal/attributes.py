"""What Temporal's visibility knows of a run, so that runs can be listed: search attributes, which open() registers, and a memo."""

from typing import Any

from temporalio.api.enums.v1 import IndexedValueType
from temporalio.common import SearchAttributeKey, SearchAttributePair, SearchAttributeUpdate, TypedSearchAttributes

from workflows.storage.base import RunState
from workflows.temporal.ids import quoted
from workflows.temporal.messages import Begin, RunFacts

TENANT = SearchAttributeKey.for_keyword("RunTenant")
KEY = SearchAttributeKey.for_keyword("RunKey")
STATE = SearchAttributeKey.for_keyword("RunState")
DEAD_LETTERS = SearchAttributeKey.for_int("RunDeadLetters")

REGISTERED = {
    TENANT.name: IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD,
    KEY.name: IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD,
    STATE.name: IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD,
    DEAD_LETTERS.name: IndexedValueType.INDEXED_VALUE_TYPE_INT,
}

FACTS = "run"
OUTCOME = "outcome"


def attributes_of(run: RunFacts) -> TypedSearchAttributes:
    """The attributes of a run that starts."""
    pairs: list[SearchAttributePair[Any]] = [
        SearchAttributePair(TENANT, quoted(run.tenant)),
        SearchAttributePair(STATE, RunState.READY.value),
    ]
    return TypedSearchAttributes([*pairs, *([] if run.key is None else [SearchAttributePair(KEY, quoted(run.key))])])


def memo_of(begin: Begin) -> dict[str, Any]:
    """The memo of a run that starts: its facts, without the document of a parent."""
    return {FACTS: begin.run.model_copy(update={"parent": None})}


def changes(state: RunState, *, dead_letters: int = 0) -> list[SearchAttributeUpdate[Any]]:
    """What changes when a run comes to `state`."""
    found: list[SearchAttributeUpdate[Any]] = [STATE.value_set(state.value)]
    return [*found, DEAD_LETTERS.value_set(dead_letters)] if dead_letters else found
