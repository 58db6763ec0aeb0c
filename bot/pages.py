"""The pages an installing admin sees."""

from html import escape

from slack_bolt import BoltResponse
from slack_sdk.oauth.installation_store.models.installation import Installation

REASONS = {
    "access_denied": "You did not allow the app. Nothing was installed.",
    "invalid_browser": "This installation was begun in another browser, or its cookie was blocked. Please begin again.",
    "invalid_state": "This link was used already or is older than ten minutes. Please begin again.",
    "missing_code": "Slack sent no code. Please begin again.",
    "invalid_code": "Slack did not accept the code; it works once and for ten minutes. Please begin again.",
    "storage_error": "The installation could not be saved. Please begin again in a minute.",
    "unreachable": "Slack did not answer. Please begin again in a minute.",
}

PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{title}</title><style>body{{font:17px/1.5 system-ui,sans-serif;max-width:34rem;margin:15vh auto;padding:0 1rem;color:#1d1c1d}}
a{{color:#1264a3}}.button{{display:inline-block;background:#007a5a;color:#fff;padding:.6rem 1.4rem;border-radius:8px;font-weight:600;text-decoration:none}}
</style><h1>{title}</h1><p>{text}</p>{link}</html>"""


def install_page(url: str) -> str:
    """Where an installation begins; `url` is Slack's page that asks the admin. Nothing on it comes from elsewhere."""
    text = "It manages ad campaigns, writes email copy and reports on performance. An admin of the workspace has to allow it."
    link = f'<p><a class="button" href="{escape(url)}">Add to Slack</a></p>'
    return PAGE.format(title="Install Threadline", text=text, link=link)


def success_page(installation: Installation, *, slack_url: str = "") -> BoltResponse:
    """The workspace is connected. `slack_url` is the address of a Slack that is not Slack's own: the local one."""
    team = installation.team_name or installation.enterprise_name or "your workspace"
    text = f"Threadline is now in {escape(team)}. Mention it in a channel, or open a direct message with it."
    target = f"slack://app?team={escape(installation.team_id or '')}&amp;id={escape(installation.app_id or '')}"
    if slack_url:
        target = (
            f"{escape(slack_url)}#team={escape(installation.team_id or '')}&amp;as={escape(installation.user_id or '')}"
        )
    return _page(200, "Threadline is installed", text, f'<p><a href="{target}">Open Slack</a></p>')


def failure_page(reason: str) -> BoltResponse:
    """What went wrong, in words, and how to begin again."""
    text = REASONS.get(reason, "Something went wrong during the installation. Please begin again.")
    return _page(
        503 if reason in ("storage_error", "unreachable") else 400,
        "Threadline was not installed",
        text,
        '<p><a href="/slack/install">Begin again</a></p>',
    )


def _page(status: int, title: str, text: str, link: str) -> BoltResponse:
    body = PAGE.format(title=escape(title), text=text, link=link)
    return BoltResponse(
        status=status, headers={"content-type": "text/html; charset=utf-8", "cache-control": "no-store"}, body=body
    )
