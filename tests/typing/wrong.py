"""Workflows that do not type-check. Each line marked "wrong" must be an error under mypy strict."""

from workflows import Effect, path, step, workflow


@step(effect=Effect.READ)
async def length(text: str) -> int:
    return len(text)


@step(effect=Effect.READ)
async def shout(text: str) -> str:
    return text.upper()


workflow("w").then(length).then(shout)  # wrong: shout takes str, length gives int
workflow("w").then(shout).foreach(length)  # wrong: shout gives no list
workflow("w").then(length).dowhile(shout, lambda n: True, max_iterations=2)  # wrong: shout takes str
workflow("w").then(length).parallel(shout)  # wrong: shout takes str
workflow("w").then(length).dowhile(length, path("value").gt(3), max_iterations=2)  # wrong: length takes str
workflow("w").then(shout).branch((path("value"), shout))  # wrong: a path is no condition
