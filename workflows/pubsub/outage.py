"""An outage of the server: logged when it begins and when it ends, however many calls fail in between."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import structlog
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import RedisClusterException, RedisError
from redis.exceptions import TimeoutError as RedisTimeoutError

_log = structlog.get_logger()

UNREACHABLE = (RedisError, RedisClusterException, OSError)
"""What says that a call did not get through."""


@contextmanager
def a_call() -> Iterator[None]:
    """Around a call of the client: whatever says that it did not get through is one of UNREACHABLE.

    When one command fails, redis-py 8.1 may close connections (a cluster's client all of them) on which others are about to
    write, and those find None where their stream was.
    """
    try:
        yield
    except AttributeError as error:
        if error.obj is None and error.name in ("writelines", "drain"):
            raise RedisConnectionError("the connection was closed when another call had failed") from error
        raise


class Outage:
    """Shared by everything that talks to one server. `clock` gives seconds that never go back.

    After a call that waited in vain, `hopeless` holds for `pause_s`, so that callers who can do without need not wait as well. A
    refused connection costs nothing and is no reason to hold back.
    """

    def __init__(self, *, pause_s: float = 1.0, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._pause_s = pause_s
        self._since: float | None = None
        self._hopeless_until = 0.0

    @property
    def hopeless(self) -> bool:
        """Whether a call now would most likely wait in vain."""
        return self._since is not None and self._clock() < self._hopeless_until

    def failed(self, error: BaseException) -> None:
        """A call did not get through."""
        if isinstance(error, (TimeoutError, RedisTimeoutError)):
            self._hopeless_until = self._clock() + self._pause_s
        if self._since is None:
            self._since = self._clock()
            _log.warning("pubsub_unavailable", error=f"{type(error).__name__}: {error}")

    def succeeded(self) -> bool:
        """A call got through; True if that ends an outage."""
        if self._since is None:
            return False
        _log.info("pubsub_available_again", after_s=round(self._clock() - self._since, 3))
        self._since = None
        return True
