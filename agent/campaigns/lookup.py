"""Finding a campaign by what someone called it: its id, its name, or enough of its name to mean only one."""

from collections.abc import Sequence

from agent.campaigns.platform import Campaign


class CampaignLookupError(Exception):
    """No one campaign is meant. `candidates` are the names it may be, all names when nothing fits."""

    def __init__(self, message: str, candidates: Sequence[str]) -> None:
        super().__init__(message)
        self.candidates = tuple(candidates)


def fold(text: str) -> str:
    """Text as names are compared: case folded, runs of blanks as one."""
    return " ".join(text.casefold().split())


def find_campaign(campaigns: Sequence[Campaign], wanted: str) -> Campaign:
    """The campaign with this id or name, or the only one whose name contains it. Raises CampaignLookupError."""
    text = fold(wanted)
    for campaign in campaigns:
        if campaign.id == wanted.strip():
            return campaign
    exact = [campaign for campaign in campaigns if fold(campaign.name) == text]
    found = exact or [campaign for campaign in campaigns if text and text in fold(campaign.name)]
    if len(found) == 1:
        return found[0]
    if found:
        # Two campaigns may bear one and the same name; then only the ids tell them apart.
        names = [f"{each.name} ({each.id})" if len(exact) > 1 else each.name for each in found]
        raise CampaignLookupError(f"{wanted!r} may mean: {', '.join(names)}. Say which one.", names)
    names = [campaign.name for campaign in campaigns]
    raise CampaignLookupError(f"there is no campaign {wanted!r}. There are: {', '.join(names) or 'none'}.", names)
