"""What a step finds around it."""

from tests.conformance.engine.steps import READ
from tests.conformance.engines import Boot, until
from workflows import StepContext, step, workflow
from workflows.tracing import Span


class Kept:
    """Finished spans."""

    def __init__(self) -> None:
        self.spans: list[Span] = []

    def put(self, span: Span) -> None:
        self.spans.append(span)


async def test_a_step_says_more_about_itself_on_its_span(boot: Boot) -> None:
    kept = Kept()

    @step(effect=READ)
    async def look(n: int, ctx: StepContext) -> int:
        ctx.span.attributes.update(rows=n, token="xoxb-1234567890-secret")
        return n

    flow = workflow("w").then(look).commit()
    async with boot(flow, spans=kept) as engine:
        assert await (await engine.start(flow, 7)).result(timeout=10) == 7

        async def ended() -> bool:
            return any(span.name == "look" for span in kept.spans)

        await until(ended)
    (span,) = [span for span in kept.spans if span.name == "look"]
    assert span.attributes["rows"] == 7
    assert "secret" not in str(span.attributes)
