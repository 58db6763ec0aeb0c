"""Steps that several modules of this suite use."""

from pydantic import BaseModel

from workflows import Effect, step

READ = Effect.READ


class Order(BaseModel):
    item: str
    amount: int


@step(effect=READ)
async def double(n: int) -> int:
    return n * 2


@step(effect=READ)
async def increment(n: int) -> int:
    return n + 1


@step(effect=READ)
async def boom(n: int) -> int:
    raise ValueError(f"no {n}")
