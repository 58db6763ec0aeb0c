"""The public pages of a deployment: what the app is, what it keeps and for how long, where help is. Slack's listing asks for each."""

from dataclasses import dataclass
from html import escape

from bot.pages import PAGE
from bot.settings import Settings

PROVIDERS = {"anthropic": "Anthropic", "openai": "OpenAI"}
LANDING = """<ul><li>Ask in a channel or in a direct message how campaigns did, compare periods, have reports and weekly summaries made.</li>
<li>Have budgets changed and campaigns paused. What spends money or can't be undone is shown to an admin first, and is done only when it was approved.</li>
<li>Have email copy drafted.</li></ul>
<p><strong>Answers are made by a language model{model} and may be wrong.</strong> Figures come from the ad account itself. Nothing said in Slack is used to
train models by us.</p>"""
PRIVACY = """<h2>What is stored</h2>
<ul><li>Messages that mention the app, messages in threads it takes part in and in direct messages with it, and its answers. Of a thread it is brought into,
what was said there before. Of other threads, replies for ten minutes, because a mention may be delivered after them.</li>
<li>Shared files are read from Slack when they are needed and are not stored; what was read of them is part of the conversation.</li>
<li>The ids, names and time zones of the people who write to it, approvals and who decided them, settings, ratings of answers, and counts of what was used.</li>
<li>The token of the installation, encrypted.</li></ul>
<h2>Who sees it</h2>
<p>Conversations the app takes part in are sent to {provider} to be answered. Nobody else is given anything, and nothing is used to train models by us.{region}</p>
<h2>How long</h2>
<ul><li>Conversations: until they are forgotten, by <code>/threadline forget</code> in their channel, or the app is removed.</li>
<li>Records of work: {runs} days. Approvals, once decided: 90 days. Traces, which hold no conversation: 30 days.</li>
<li>When the app is removed from a workspace it stops at once, its token is deleted, and all data of the workspace {departed}.</li></ul>
<p><a href="/support">Questions, and copies of what is stored</a></p>"""
SUPPORT = """<p>In Slack, <code>/threadline help</code> says what the app can do, and <code>/threadline status</code> what it is doing.
The app's Home tab shows what it may do and what was set. {contact}</p>"""
ADD = '<p><a class="button" href="/slack/install">Add to Slack</a></p>'
LINKS = '<p><a href="/">What it is</a> · <a href="/privacy">Privacy</a> · <a href="/support">Support</a></p>'


@dataclass(frozen=True, slots=True)
class About:
    """What the pages tell of one deployment. `provider`: empty where the model runs in this process; days as in the settings."""

    provider: str
    region: str
    support_email: str
    run_days: float
    departed_days: float
    installable: bool

    @classmethod
    def of(cls, settings: Settings) -> "About":
        """The facts of a deployment."""
        kind = settings.model.partition(":")[0]
        own = settings.anthropic_base_url if kind == "anthropic" else settings.openai_base_url
        named = "" if kind == "offline" else "the model's provider" if own else PROVIDERS.get(kind, kind)
        return cls(
            named,
            settings.data_region,
            settings.support_email,
            settings.retention_days,
            settings.departed_days,
            bool(settings.slack_client_id),
        )

    def landing(self) -> str:
        """What the app does, that its answers may be wrong, and how to install it."""
        model = f" of {escape(self.provider, quote=False)}" if self.provider else ""
        body = LANDING.format(model=model) + (ADD if self.installable else "")
        return _page(
            "Threadline", "It manages ad campaigns, writes email copy and reports on performance, in Slack.", body
        )

    def privacy(self) -> str:
        """What is stored, who sees it, how long it stays."""
        body = PRIVACY.format(
            provider=escape(self.provider, quote=False) or "no other service: the model runs with the app",
            region=f" Everything is stored in {escape(self.region)}." if self.region else "",
            runs=f"{self.run_days:g}",
            departed=f"is deleted after {_days(self.departed_days)}" if self.departed_days else "is deleted",
        )
        return _page("Privacy", "What Threadline keeps of what people say to it.", body)

    def support(self) -> str:
        """Where help is."""
        mail = escape(self.support_email)
        contact = (
            f'Write to <a href="mailto:{mail}">{mail}</a>, also for a copy of what is stored or to have it deleted.'
            if mail
            else "For all else, ask whoever runs this deployment for your workspace."
        )
        return _page("Support", "Help with Threadline.", SUPPORT.format(contact=contact))


def _days(days: float) -> str:
    return f"{days:g} day{'' if days == 1 else 's'}"


def _page(title: str, lead: str, body: str) -> str:
    return PAGE.format(title=title, text=lead, link=f"{body}{LINKS}")
