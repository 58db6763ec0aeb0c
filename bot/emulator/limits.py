"""Rate limits: calls per minute by the tier of a method, per workspace, on the emulator's clock (docs.slack.dev/apis/web-api/rate-limits)."""

from collections import defaultdict, deque
from math import ceil

from bot.emulator.clock import Clock
from bot.emulator.errors import SlackError

MINUTE_S = 60.0
PER_MINUTE = {1: 1, 2: 20, 3: 50, 4: 100}
TIERS = {
    1: ("apps.uninstall",),
    2: ("auth.teams.list", "chat.startStream", "chat.stopStream", "conversations.list", "reactions.remove", "users.list", "emoji.list",
        "usergroups.list"),
    4: (
        "api.test", "assistant.threads.setSuggestedPrompts", "assistant.threads.setTitle", "chat.appendStream", "chat.postEphemeral",
        "conversations.members", "files.completeUploadExternal", "files.getUploadURLExternal", "files.info", "users.info", "users.profile.get", "views.open",
        "views.publish", "views.push", "views.update",
    ),
}  # fmt: skip
"""Every method that is in no other tier is in the third."""
SPECIAL = frozenset(
    {
        "assistant.threads.setStatus",
        "apps.event.authorizations.list",
        "assistant.search.context",
        "auth.test",
        "blocks.validate",
        "chat.getPermalink",
        "oauth.v2.access",
        "oauth.v2.exchange",
    }
)
"""Limited by rules of their own, so generous that an app does not meet them."""
POST = "chat.postMessage"
POSTS_PER_MINUTE = 60
HISTORY = frozenset({"conversations.history", "conversations.replies"})
"""One call a minute for apps that are sold outside the Marketplace."""

_TIER_OF = {method: tier for tier, methods in TIERS.items() for method in methods}


def tier_of(method: str) -> int:
    """Slack's tier of `method`, 1 to 4, or 5 for one with a limit of its own."""
    return 5 if method in SPECIAL or method == POST else _TIER_OF.get(method, 3)


class RateLimitedError(SlackError):
    """`ratelimited`; `retry_after_s` is what the answer's Retry-After says, in whole seconds."""

    def __init__(self, retry_after_s: int) -> None:
        super().__init__("ratelimited")
        self.retry_after_s = retry_after_s


class Limits:
    """Counts calls. `enforced`: refuses those beyond the tier. `commercial`: threads are read once a minute, 15 messages at a time."""

    def __init__(self, clock: Clock, *, enforced: bool, commercial: bool) -> None:
        self._clock = clock
        self._calls: dict[tuple[str, str], deque[float]] = defaultdict(deque)
        self.enforced = enforced
        self.commercial = commercial

    def take(self, method: str, *, place: str, channel: str = "") -> None:
        """Count one call of the installation at `place`. Raises RateLimitedError. Posts are counted by channel."""
        allowed = self._allowed(method)
        if allowed is None:
            return
        now_s = self._clock.now()
        calls = self._calls[method, channel if method == POST else place]
        while calls and calls[0] <= now_s - MINUTE_S:
            calls.popleft()
        if len(calls) >= allowed:
            raise RateLimitedError(max(1, ceil(calls[0] + MINUTE_S - now_s)))
        calls.append(now_s)

    def _allowed(self, method: str) -> int | None:
        if self.commercial and method in HISTORY:
            return 1
        if not self.enforced or method in SPECIAL:
            return None
        return POSTS_PER_MINUTE if method == POST else PER_MINUTE[tier_of(method)]
