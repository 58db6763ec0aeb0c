"""A workspace: its people, channels and the app's installation in it."""

from dataclasses import dataclass, field
from typing import Any, Literal

from bot.emulator.ids import new_id

Json = dict[str, Any]
ChannelKind = Literal["channel", "group", "im", "mpim"]
Posting = Literal["everyone", "nobody", "admins", "threads_only", "no_threads"]
"""Who may post in a channel, or where; "nobody" stands for a preference of the workspace that keeps the app out."""


@dataclass(frozen=True, slots=True)
class User:
    """A person or the app's bot user. `timezone` is an IANA name, `handle` what people type after @."""

    id: str
    team_id: str
    handle: str
    real_name: str
    timezone: str
    is_admin: bool = False
    is_bot: bool = False
    title: str = ""


@dataclass(slots=True)
class Channel:
    """A public channel, a private one (`group`), a direct message (`im`) or one of several people (`mpim`). `members` are user ids, in order of joining.

    `locked_threads` are roots that admins allow no more replies to. `shared_with` are the ids of other companies' workspaces whose people are in it, by Slack Connect.
    """

    id: str
    team_id: str
    name: str
    kind: ChannelKind
    members: list[str]
    topic: str = ""
    is_archived: bool = False
    posting: Posting = "everyone"
    locked_threads: list[str] = field(default_factory=list)
    shared_with: list[str] = field(default_factory=list)

    def other(self, user_id: str) -> str:
        """The member of a direct message who is not `user_id`."""
        return next((member for member in self.members if member != user_id), user_id)


@dataclass(frozen=True, slots=True)
class Organization:
    """An Enterprise Grid organization; its workspaces name it."""

    id: str
    name: str


@dataclass(slots=True)
class Installation:
    """The app in one workspace, or with `org_id` in every workspace of an organization (`team_id` is then empty). `revoked` is the error its token gets from now on, empty while it is good.

    With token rotation the token is good until `expires_s`, and `refresh_token` gets the next pair, once. `former` are the tokens
    before it with their times.
    """

    team_id: str
    token: str
    bot_user_id: str
    bot_id: str
    scopes: tuple[str, ...]
    installer_id: str
    revoked: str = ""
    refresh_token: str = ""
    expires_s: float | None = None
    former: dict[str, float] = field(default_factory=dict)
    org_id: str = ""

    def knows(self, token: str) -> bool:
        """Whether `token` is this installation's, expired or not."""
        return token == self.token or token in self.former

    def expired(self, token: str, *, now_s: float) -> bool:
        """Whether the time of `token`, one of this installation's, is over."""
        expires_s = self.former.get(token, self.expires_s)
        return expires_s is not None and now_s >= expires_s

    def rotate(self, token: str, refresh_token: str, *, expires_s: float) -> None:
        """Go on with a new pair. Slack lets two access tokens live side by side: the one before stays good for the rest of its time."""
        self.former = {self.token: self.expires_s} if self.expires_s is not None else {}
        self.token, self.refresh_token, self.expires_s = token, refresh_token, expires_s


@dataclass(slots=True)
class Workspace:
    """`bot_user_id` and `bot_id` are fixed from the start: Slack, too, keeps them over a new installation."""

    id: str
    name: str
    domain: str
    bot_user_id: str
    bot_id: str
    users: dict[str, User] = field(default_factory=dict)
    channels: dict[str, Channel] = field(default_factory=dict)
    installation: Installation | None = None
    org: Organization | None = None

    @property
    def org_wide(self) -> bool:
        """Whether the app is here because it is in the whole organization."""
        return self.installation is not None and bool(self.installation.org_id)

    @property
    def people(self) -> list[User]:
        return [user for user in self.users.values() if not user.is_bot]

    def user_named(self, name: str) -> User | None:
        """A user by id, handle or real name, with or without @, in any case."""
        wanted = name.removeprefix("@").casefold()
        return self.users.get(name) or next(
            (user for user in self.users.values() if wanted in {user.handle.casefold(), user.real_name.casefold()}),
            None,
        )

    def channel_named(self, name: str) -> Channel | None:
        """A channel by id or name, with or without #."""
        wanted = name.removeprefix("#").casefold()
        return self.channels.get(name) or next(
            (channel for channel in self.channels.values() if channel.kind != "im" and channel.name == wanted), None
        )

    def group_message(self, user_ids: list[str]) -> Channel:
        """The conversation of these people and the app; the same people have one."""
        members = sorted({*user_ids, self.bot_user_id})
        found = next(
            (one for one in self.channels.values() if one.kind == "mpim" and sorted(one.members) == members), None
        )
        if found is None:
            handles = "--".join(self.users[user_id].handle for user_id in members)
            found = Channel(new_id("G"), self.id, f"mpdm-{handles}-1", "mpim", members)
            self.channels[found.id] = found
        return found

    def direct_message(self, user_id: str) -> Channel:
        """The conversation of `user_id` with the app; opened when it is first used."""
        channel_id = f"D{user_id[1:]}"
        return self.channels.setdefault(
            channel_id, Channel(channel_id, self.id, "", "im", members=[user_id, self.bot_user_id])
        )
