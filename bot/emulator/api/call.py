"""One call of a Web API method: who calls, with which arguments."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from bot.emulator.errors import SlackError
from bot.emulator.messages import Message
from bot.emulator.slack import Slack
from bot.emulator.workspace import Channel, Installation, Json, User, Workspace


@dataclass(frozen=True, slots=True)
class Call:
    """`args` is query, form and JSON body merged; `basic` are the client's id and secret from HTTP Basic."""

    slack: Slack
    args: Json
    caller: Installation | None = None
    basic: tuple[str, str] = ("", "")

    @property
    def installation(self) -> Installation:
        """Whose token it is. The dispatcher refuses calls without one, save for the open methods."""
        if self.caller is None:
            raise SlackError("not_authed")
        return self.caller

    @property
    def workspace(self) -> Workspace:
        if not self.installation.org_id:
            return self.slack.workspaces[self.installation.team_id]
        return self._workspace_of_org()

    def _workspace_of_org(self) -> Workspace:
        """The workspace that an organization's token is used in: that of `team_id`, or of the channel or person named."""
        places = [self.slack.workspaces.get(self.text("team_id")) if self.text("team_id") else None]
        places += [self.slack.workspace_of(self.text(name)) for name in ("channel", "channel_id")]
        people = [self.slack.user(self.text(name)) for name in ("user", "user_id", "users", "channel")]
        places += [self.slack.workspaces[user.team_id] for user in people if user is not None]
        files = [self.slack.files.find(self.text("file"))]
        places += [self.slack.workspaces[file.team_id] for file in files if file is not None]
        found = next((place for place in places if place is not None), None)
        if found is None:
            raise SlackError("team_not_found" if self.text("team_id") else "missing_argument", needed="team_id")
        if found.installation is not self.installation:
            raise SlackError("team_access_not_granted")
        return found

    def text(self, name: str, default: str = "") -> str:
        value = self.args.get(name)
        return default if value is None else str(value)

    def required(self, name: str) -> str:
        value = self.text(name)
        if not value:
            raise missing(name)
        return value

    def flag(self, name: str, *, default: bool = False) -> bool:
        value = self.args.get(name, default)
        return value if isinstance(value, bool) else str(value).lower() in {"1", "true"}

    def number(self, name: str, default: int, *, most: int) -> int:
        try:
            return max(1, min(int(self.text(name) or default), most))
        except ValueError:
            raise SlackError("invalid_limit") from None

    def structure(self, name: str, error: str) -> Any:
        """An argument that is JSON: given as such, or as a string in a form. None when absent; `error` when broken."""
        value = self.args.get(name)
        if not isinstance(value, str):
            return value
        try:
            return json.loads(value) if value else None
        except ValueError:
            raise SlackError(error) from None

    def channel(self, name: str = "channel") -> Channel:
        """The conversation named by id. A private one the app is not in does not exist for it."""
        wanted = self.required(name)
        channel = self.workspace.channels.get(wanted)
        if channel is None or (channel.kind != "channel" and not self.is_member(channel)):
            raise SlackError("channel_not_found")
        return channel

    def writable_channel(self, name: str = "channel") -> Channel:
        """As `channel`, also by #name or a person's id; the app has to be a member."""
        wanted = self.text(name)
        if wanted.startswith("#"):
            named = self.workspace.channel_named(wanted)
            channel = Call(self.slack, {name: named.id if named else wanted}, self.caller).channel(name)
        elif wanted in self.workspace.users:
            channel = self.workspace.direct_message(wanted)
        else:
            channel = self.channel(name)
        if not self.is_member(channel) and "chat:write.public" not in self.installation.scopes:
            raise SlackError("not_in_channel")
        if channel.is_archived:
            raise SlackError("is_archived")
        if channel.kind == "im" and not self.slack.config.messages_tab:
            raise SlackError("messages_tab_disabled")
        return channel

    def is_member(self, channel: Channel) -> bool:
        return self.installation.bot_user_id in channel.members

    def message(self, channel: Channel, name: str = "ts") -> Message:
        found = self.slack.timeline.find(channel.id, self.required(name))
        if found is None or found.ephemeral_for:
            raise SlackError("message_not_found")
        return found

    def user(self, name: str = "user") -> User:
        wanted = self.required(name)
        user = self.workspace.users.get(wanted) or self.slack.user(wanted)
        if user is None or not self.slack.sees(self.installation, user):
            raise SlackError("user_not_found")
        return user

    def need(self, scope: str) -> None:
        """Raises SlackError missing_scope unless the token has `scope`."""
        if scope not in self.installation.scopes:
            raise SlackError("missing_scope", needed=scope, provided=",".join(self.installation.scopes))


def missing(*names: str) -> SlackError:
    """The error of a call without these arguments."""
    messages = [f"[ERROR] missing required field: {name}" for name in names]
    return SlackError("invalid_arguments", response_metadata={"messages": messages})


@dataclass(frozen=True, slots=True)
class Method:
    """How a method is answered. Any one of `scopes` is enough; an `open` method needs no token, an `app_level` one the app's.

    A call without one of the `required` arguments is invalid_arguments; a method that has its own word for one leaves it out.
    """

    handle: Callable[[Call], Json]
    scopes: tuple[str, ...] = ()
    open: bool = False
    app_level: bool = False
    required: tuple[str, ...] = ()
