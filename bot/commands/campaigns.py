"""`/campaigns`: the account's campaigns as they stand."""

from collections.abc import Sequence

from agent.campaigns import AdPlatform, Campaign, CampaignLookupError, find_campaign, format_micros
from bot.commands.command import Command, sentence
from bot.render.text import quoted

CAMPAIGNS_HELP = (
    "`/campaigns` lists the campaigns, `/campaigns active` and `/campaigns paused` some, `/campaigns Brand Search` one."
)
SHOWN = 40
"""Lines in one answer: more than anybody reads in a message that only they see."""
STATUSES = ("active", "paused")


class Campaigns:
    """Lists campaigns."""

    name = "campaigns"
    help = CAMPAIGNS_HELP

    def __init__(self, platform: AdPlatform) -> None:
        self._platform = platform

    async def run(self, command: Command) -> str:
        account = await self._platform.account(command.tenant)
        known = await self._platform.campaigns(command.tenant)
        wanted = command.text.lower()
        if command.text and wanted not in STATUSES:
            try:
                known = [find_campaign(known, command.text)]
            except CampaignLookupError as error:
                return f"{sentence(error)}\n{CAMPAIGNS_HELP}"
        chosen = [each for each in known if wanted not in STATUSES or each.status == wanted]
        if not chosen:
            return (
                f"{quoted(account.name)} has no {wanted} campaigns."
                if wanted
                else f"{quoted(account.name)} has no campaigns."
            )
        return "\n".join([f"*{quoted(account.name)}*", *_lines(chosen)])


def _lines(campaigns: Sequence[Campaign]) -> list[str]:
    lines = [_line(each) for each in campaigns[:SHOWN]]
    active = [each for each in campaigns if each.status == "active"]
    if len(active) > 1:
        total = format_micros(sum(each.daily_budget_micros for each in active), active[0].currency)
        lines.append(f"{len(active)} active, {total} a day together.")
    if len(campaigns) > SHOWN:
        lines.append(f"{len(campaigns) - SHOWN} more are not shown; name one, or ask for a report.")
    return lines


def _line(campaign: Campaign) -> str:
    budget = format_micros(campaign.daily_budget_micros, campaign.currency)
    return f"• *{quoted(campaign.name)}*: {campaign.status}, {budget} a day, {quoted(campaign.channel)}"
