"""Faults on demand: what goes wrong, in which method, how many times."""

from dataclasses import asdict, dataclass
from typing import Literal

from bot.emulator.workspace import Json

FaultKind = Literal["error", "http_500", "ratelimited", "reset_after_commit", "delay"]


@dataclass(slots=True)
class Fault:
    """`method` is a Web API method, ``*`` for all of them, or ``tool:<name>``, which the product's dev tools ask for.

    `times` uses are left. `retry_after` and `delay_s` are seconds.
    """

    method: str
    kind: FaultKind
    times: int = 1
    error: str = "internal_error"
    retry_after: int = 1
    delay_s: float = 1.0


class Faults:
    """The faults still to come, oldest first."""

    def __init__(self) -> None:
        self._pending: list[Fault] = []

    def add(self, fault: Fault) -> None:
        self._pending.append(fault)

    def clear(self) -> None:
        self._pending.clear()

    def take(self, method: str) -> Fault | None:
        """Use up one fault of `method`. Nothing else runs in between, so two callers never share a use."""
        for fault in self._pending:
            if fault.method == method or (fault.method == "*" and not method.startswith("tool:")):
                fault.times -= 1
                if fault.times <= 0:
                    self._pending.remove(fault)
                return fault
        return None

    def list(self, method: str = "") -> list[Json]:
        return [asdict(fault) for fault in self._pending if not method or fault.method == method]
