"""What the local Slack knows about the app under development."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

BOT_SCOPES = (
    "app_mentions:read", "assistant:write", "channels:history", "channels:read", "chat:write", "commands",
    "files:read", "files:write", "groups:history", "groups:read", "im:history", "im:read", "im:write",
    "mpim:history", "mpim:read", "reactions:write", "team:read", "users:read", "users:read.email",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class AppCommand:
    """A slash command of the app, as its manifest declares it: the page lists it, an undeclared one is refused."""

    command: str
    description: str
    usage_hint: str = ""


@dataclass(frozen=True, slots=True)
class SuggestedPrompt:
    """What the app's manifest offers in an empty conversation with it: `title` is shown, `message` is written."""

    title: str
    message: str


DEFAULT_PROMPTS = (
    SuggestedPrompt("How did we do last week?", "How did our campaigns do last week, compared with the week before?"),
    SuggestedPrompt("Best and worst", "Which campaign had the best ROAS last month, and which the worst?"),
    SuggestedPrompt("Draft an email", "Write a launch email for our new product."),
    SuggestedPrompt("What can you do?", "What can you do?"),
)
DEFAULT_COMMANDS = (
    AppCommand("/report", "Make a performance report of your campaigns", "[campaign] [period]"),
    AppCommand("/summaries", "Schedule a summary in this channel", "every monday 9:00"),
    AppCommand("/campaigns", "List your campaigns as they stand", "[name | active | paused]"),
    AppCommand(
        "/threadline", "What I do here, and what you can set", "[help | status | stop | usage | settings | forget]"
    ),
)


DEFAULT_EVENTS = (
    "agent_session_stopped", "app_home_opened", "app_mention", "app_uninstalled",
    "message.channels", "message.groups", "message.im", "message.mpim", "team_access_revoked", "tokens_revoked",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class EmulatorConfig:
    """The app's side of the agreement with Slack.

    `request_url` takes events, commands and interactivity. Several URLs are replicas: deliveries rotate over them and
    a retry goes to the next one. Empty: deliveries wait until a URL is set. An empty `bot_token` leaves the first
    workspace without the app, so that it has to be installed by OAuth. `port` 0 takes any free one.
    With a `state_path` everything a person could see is kept in that file and is there again at the next start, with the
    secrets and the token of the first one, whatever these are now. None: it is all gone at the end.
    With `token_rotation` bot tokens expire after twelve hours of the emulator's clock, as the manifest's `token_rotation_enabled`
    asks for; the first workspace's `bot_token` does not, like any that was given out before it was switched on.
    An `app_token` (``xapp-…``) switches Socket Mode on: everything goes over the connections that the app opens with it, nothing is
    POSTed.
    With `grid` there is an Enterprise Grid organization with two workspaces besides, and the app can be installed in all of it at once.
    With `connect` the first workspace has a channel, #partners, that it shares with the second one's people by Slack Connect.
    With `rate_limits` calls beyond a method's tier are refused with 429; an app that is `commercial`, sold outside the Marketplace,
    reads threads and channels once a minute and 15 messages at a time.
    `mention_order` says which event of the pair for one mention is sent first, `uninstall_order` which of the two when the app is
    removed; Slack promises neither.
    `events` are those that the app's manifest subscribes to: nothing else is sent, and of these only what the installation's scopes
    allow. An app that is no `agent`, or has no `home_tab` or `messages_tab`, is refused what belongs to them. Links to one of the
    `unfurl_domains` are reported as `link_shared`. After `edit_window_s` a message can't be edited any more; None: always.
    """

    signing_secret: str
    client_id: str = ""
    client_secret: str = ""
    bot_token: str = ""
    request_url: str | tuple[str, ...] = ()
    port: int = 0
    app_id: str = "A0THREADLINE"
    app_name: str = "Threadline"
    app_description: str = "Manages ad campaigns, writes email copy and reports on performance."
    scopes: tuple[str, ...] = BOT_SCOPES
    commands: tuple[AppCommand, ...] = DEFAULT_COMMANDS
    suggested_prompts: tuple[SuggestedPrompt, ...] = DEFAULT_PROMPTS
    redirect_urls: tuple[str, ...] = ()
    events: tuple[str, ...] = DEFAULT_EVENTS
    agent: bool = True
    home_tab: bool = True
    messages_tab: bool = True
    unfurl_domains: tuple[str, ...] = ()
    edit_window_s: float | None = None
    mention_order: Literal["app_mention", "message"] = "app_mention"
    uninstall_order: Literal["app_uninstalled", "tokens_revoked"] = "app_uninstalled"
    ack_timeout_s: float = 3.0
    state_path: Path | None = None
    token_rotation: bool = False
    app_token: str = ""
    grid: bool = False
    connect: bool = False
    rate_limits: bool = False
    commercial: bool = False


def request_urls(value: str | tuple[str, ...] | list[str]) -> tuple[str, ...]:
    """One URL or several, as a tuple without empty ones."""
    return tuple(url for url in ((value,) if isinstance(value, str) else value) if url)
