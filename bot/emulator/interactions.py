"""Trigger ids, response URLs and views: what makes commands, clicks and dialogs work."""

from dataclasses import dataclass

from bot.emulator.clock import Clock
from bot.emulator.errors import SlackError
from bot.emulator.ids import new_id, new_secret
from bot.emulator.workspace import Json

TRIGGER_LIFE_S = 3.0
RESPONSE_URL_LIFE_S = 1800.0
RESPONSE_URL_USES = 5
ACTION_TOKEN_LIFE_S = 900.0
"""Slack says "real-time" and no number; this is ours."""


@dataclass(slots=True)
class Trigger:
    """The right to open one view for `user_id`, for three seconds."""

    team_id: str
    user_id: str
    expires_s: float
    used: bool = False


@dataclass(frozen=True, slots=True)
class ActionToken:
    """The right to search for `user_id`, who has just spoken to the app."""

    team_id: str
    user_id: str
    expires_s: float


@dataclass(slots=True)
class ResponseUrl:
    """Where the app answers a command or a click. `original_ts` is the message it may replace or delete."""

    team_id: str
    channel_id: str
    user_id: str
    expires_s: float
    original_ts: str = ""
    thread_ts: str | None = None
    uses_left: int = RESPONSE_URL_USES


@dataclass(slots=True)
class View:
    """An open modal or a published Home tab; `body` is the view as the app gave it."""

    id: str
    team_id: str
    user_id: str
    body: Json
    hash: str

    def wire(self, *, app_id: str, bot_id: str) -> Json:
        return {
            "callback_id": "",
            "private_metadata": "",
            "external_id": "",
            "clear_on_close": False,
            "notify_on_close": False,
            "close": None,
            "submit": None,
            "state": {"values": {}},
            **self.body,
            "id": self.id,
            "team_id": self.team_id,
            "app_id": app_id,
            "app_installed_team_id": self.team_id,
            "bot_id": bot_id,
            "hash": self.hash,
            "root_view_id": self.id,
            "previous_view_id": None,
        }


class Interactions:
    """Everything a person's click or command hands to the app for later use."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._triggers: dict[str, Trigger] = {}
        self._action_tokens: dict[str, ActionToken] = {}
        self.unfurl_ids: dict[str, tuple[str, str]] = {}
        self.response_urls: dict[str, ResponseUrl] = {}
        self.views: dict[str, View] = {}
        self.homes: dict[str, View] = {}

    def new_trigger(self, team_id: str, user_id: str) -> str:
        trigger_id = new_secret("1.2.")
        self._triggers[trigger_id] = Trigger(team_id, user_id, self._clock.now() + TRIGGER_LIFE_S)
        return trigger_id

    def use_trigger(self, trigger_id: str) -> Trigger:
        trigger = self._triggers.get(trigger_id)
        if trigger is None:
            raise SlackError("invalid_trigger_id")
        if trigger.used:
            raise SlackError("exchanged_trigger_id")
        if self._clock.now() > trigger.expires_s:
            raise SlackError("expired_trigger_id")
        trigger.used = True
        return trigger

    def new_action_token(self, team_id: str, user_id: str) -> str:
        """What an event of a person's message carries, so that the app may search on their behalf for a while."""
        now_s = self._clock.now()
        self._action_tokens = {key: one for key, one in self._action_tokens.items() if one.expires_s >= now_s}
        token = new_secret("3.4.")
        self._action_tokens[token] = ActionToken(team_id, user_id, now_s + ACTION_TOKEN_LIFE_S)
        return token

    def action_token(self, token: str) -> ActionToken | None:
        found = self._action_tokens.get(token)
        return found if found and self._clock.now() <= found.expires_s else None

    def new_unfurl_id(self, channel_id: str, ts: str) -> str:
        """Another name for the message at `ts`, which `link_shared` tells."""
        unfurl_id = new_id("Uf")
        self.unfurl_ids[unfurl_id] = (channel_id, ts)
        return unfurl_id

    def new_response_url(
        self, team_id: str, channel_id: str, user_id: str, *, original_ts: str = "", thread_ts: str | None = None
    ) -> str:
        """The id of a response URL: five uses, thirty minutes."""
        response_id = new_secret("r")
        expires_s = self._clock.now() + RESPONSE_URL_LIFE_S
        self.response_urls[response_id] = ResponseUrl(team_id, channel_id, user_id, expires_s, original_ts, thread_ts)
        return response_id

    def use_response_url(self, response_id: str) -> ResponseUrl:
        """Take one use. Raises SlackError `expired_url` or `used_url`, Slack's words for it."""
        answer = self.response_urls.get(response_id)
        if answer is None or self._clock.now() > answer.expires_s:
            raise SlackError("expired_url")
        if answer.uses_left <= 0:
            raise SlackError("used_url")
        answer.uses_left -= 1
        return answer

    def response_url(self, response_id: str) -> ResponseUrl:
        return self.response_urls[response_id]

    def add_view(self, team_id: str, user_id: str, body: Json) -> View:
        view = View(new_id("V"), team_id, user_id, body, new_secret("")[:12])
        if body.get("type") == "home":
            self.homes[user_id] = view
        else:
            self.views[view.id] = view
        return view
