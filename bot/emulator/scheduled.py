"""Messages that the app has put off: posted when the emulator's clock shows their time."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from bot.emulator.clock import Clock
from bot.emulator.ids import new_id
from bot.emulator.workspace import Json


@dataclass(frozen=True, slots=True)
class ScheduledMessage:
    """A message for `post_at`, in whole seconds since the epoch."""

    id: str
    team_id: str
    channel_id: str
    post_at: int
    created_s: int
    text: str

    def wire(self) -> Json:
        return {
            "id": self.id, "channel_id": self.channel_id, "post_at": self.post_at, "date_created": self.created_s, "text": self.text,
        }  # fmt: skip


class Scheduled:
    """What waits, each in a task of its own. They are not remembered over a restart."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self.waiting: dict[str, ScheduledMessage] = {}

    def add(
        self, team_id: str, channel_id: str, post_at: int, text: str, post: Callable[[], object]
    ) -> ScheduledMessage:
        message = ScheduledMessage(new_id("Q"), team_id, channel_id, post_at, int(self._clock.now()), text)
        self.waiting[message.id] = message
        self._tasks[message.id] = asyncio.create_task(self._post(message, post))
        return message

    def remove(self, message_id: str) -> None:
        """Forget one that waits."""
        del self.waiting[message_id]
        self._tasks.pop(message_id).cancel()

    async def stop(self) -> None:
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _post(self, message: ScheduledMessage, post: Callable[[], object]) -> None:
        await self._clock.sleep_until(message.post_at)
        self.waiting.pop(message.id, None)
        self._tasks.pop(message.id, None)
        post()
