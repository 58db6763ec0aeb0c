"""What a step does to the world, and how it may be tried again. Recovery depends on both."""

import random
from dataclasses import dataclass, field
from enum import StrEnum


class Effect(StrEnum):
    """What is done on recovery, when a step's start is known and no result is recorded."""

    PURE = "pure"
    """Computed again. What looked at nothing but its value has no record; else the result rides in the next write, at no commit of its own."""
    READ = "read"
    """Run again."""
    IDEMPOTENT = "idempotent"
    """Run again with the same `ctx.idempotency_key`."""
    RECONCILE = "reconcile"
    """The step's `reconcile` function looks in the outside world: found, its result is recorded; not found, run."""
    IRREVERSIBLE = "irreversible"
    """Never run again: the recorded result is `Interrupted`, outcome unknown."""

    @property
    def needs_intent(self) -> bool:
        """Whether a record is committed before the step starts."""
        return self in (Effect.RECONCILE, Effect.IRREVERSIBLE)


@dataclass(frozen=True, slots=True)
class Retry:
    """Exponential backoff with full jitter: try n waits a random time in [0, min(cap, base * 2**(n-1))] seconds.

    `times` counts retries after the first try. Exceptions of `non_retryable` types fail at once; so does every exception of an
    `IRREVERSIBLE` step except those of `not_started`, which prove that nothing happened. An exception with a `retry_after_s`
    attribute (seconds) is never retried sooner than it says.
    """

    times: int = 3
    base: float = 0.5
    cap: float = 30.0
    non_retryable: tuple[type[Exception], ...] = field(default=())
    not_started: tuple[type[Exception], ...] = field(default=())

    def allows(self, error: Exception, *, tries: int, effect: Effect) -> bool:
        """Whether another try may follow `tries` tries, the last of which raised `error`."""
        if tries > self.times or isinstance(error, self.non_retryable):
            return False
        return effect is not Effect.IRREVERSIBLE or isinstance(error, self.not_started)

    def delay_s(self, error: Exception, *, tries: int, rng: random.Random) -> float:
        """Seconds to wait before the next try."""
        retry_after: float = getattr(error, "retry_after_s", None) or 0.0
        return max(rng.uniform(0, self.bound_s(tries)), retry_after)

    def bound_s(self, tries: int) -> float:
        """The most that jitter waits after `tries` tries, in seconds."""
        return min(self.cap, self.base * 2.0 ** (tries - 1))
