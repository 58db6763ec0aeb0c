"""An outage of the server: logged when it begins and when it ends, however many calls fail in between."""

import time
from collections.abc import Callable

import structlog

_log = structlog.get_logger()


class Outage:
    """Shared by everything that talks to one server. `clock` gives seconds that never go back."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._since: float | None = None

    def failed(self, error: BaseException) -> None:
        """A call did not get through."""
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
