"""Workflows that type-check. Each line here must be accepted by mypy strict."""

from typing import assert_type

from workflows import Effect, StepContext, Workflow, path, project, step, workflow


@step(effect=Effect.READ)
async def length(text: str) -> int:
    return len(text)


@step
async def double(n: int, ctx: StepContext) -> int:
    return n * 2


@step(effect=Effect.READ)
async def words(text: str) -> list[str]:
    return text.split()


assert_type(workflow("w").then(length).then(double).commit(), Workflow[str, int])
assert_type(workflow("w").then(words).foreach(length).commit(), Workflow[str, list[int]])
assert_type(
    workflow("w").then(length).dowhile(double, lambda n, count: count < 3, max_iterations=5).commit(),
    Workflow[str, int],
)
assert_type(workflow("w").then(length).map(lambda n: f"{n}").commit(), Workflow[str, str])


@step(effect=Effect.READ)
async def maybe(text: str | None) -> int:
    return len(text or "")


assert_type(
    workflow("w").then(words).foreach(maybe).commit(), Workflow[str, list[int]]
)  # a step may accept more than it is given

# conditions and projections as data, where a function could stand
assert_type(
    workflow("w").then(length).branch((path("value").gt(3), double), otherwise=double.named("else")).commit(),
    Workflow[str, int],
)
assert_type(
    workflow("w").then(length).dountil(double, path("count").gte(3) | path("value").gt(9), max_iterations=5).commit(),
    Workflow[str, int],
)
workflow("w").then(length).map(project(path("value"))).then(double).commit()

# sleeps by the value, or by it and the run's state
assert_type(
    workflow("w").then(length).sleep(lambda n: n * 2.0).sleep(lambda n, state: state["pause"]).then(double).commit(),
    Workflow[str, int],
)
