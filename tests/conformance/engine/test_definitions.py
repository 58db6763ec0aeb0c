"""What a workflow may not be."""

import pytest

from tests.conformance.engine.steps import READ, double
from workflows import (
    Retry,
    step,
    workflow,
)
from workflows.errors import (
    BoundaryError,
    DefinitionError,
)


class TestDefinitions:
    def test_a_type_mismatch_names_both_steps_and_both_types(self) -> None:
        @step(effect=READ)
        async def shout(text: str) -> str:
            return text

        with pytest.raises(BoundaryError, match=r"'double' gives int, but 'shout' takes str"):
            workflow("w").then(double).then(shout).commit()  # type: ignore[arg-type]

    def test_ids_are_unique(self) -> None:
        with pytest.raises(DefinitionError, match="two entries called 'double'"):
            workflow("w").then(double).then(double).commit()

    def test_a_retry_of_what_cannot_be_undone_is_refused(self) -> None:
        @step(retry=Retry())
        async def spend(n: int) -> int:
            return n

        with pytest.raises(DefinitionError, match="not_started"):
            workflow("w").then(spend).commit()

    def test_an_empty_workflow_is_refused(self) -> None:
        with pytest.raises(DefinitionError, match="no entries"):
            workflow("w").commit()

    def test_a_step_must_be_async(self) -> None:
        with pytest.raises(DefinitionError, match="async"):
            step(lambda n: n)
