"""Budget and status changes: what to call for them, and what came of it in words."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from agent.campaigns.money import MICROS, decimals, format_micros
from agent.campaigns.results import CampaignList, CampaignResult
from agent.models.offline.desk import Outcome
from agent.models.offline.markdown import bold, plain
from agent.models.offline.requests import Amount, Budget, SetStatus
from agent.models.offline.scene import Chosen, Scene

BUDGET = "change_budget"
PAUSE, RESUME = "pause_campaign", "resume_campaign"
CHANGES = (BUDGET, PAUSE, RESUME)


@dataclass(frozen=True, slots=True)
class Told:
    """What to say, and the summary of an approval that was asked for."""

    text: str
    waiting: str = ""


def together(told: Sequence[Told]) -> str:
    """Several outcomes as one text; approvals asked for at once make one list."""
    waiting = [each for each in told if each.waiting]
    if len(waiting) < 2:
        return "\n\n".join(each.text for each in told if each.text)
    rest = [each.text for each in told if each.text and not each.waiting]
    asked = [f"I asked for approval of {len(waiting)} changes; nothing has changed yet:", ""]
    return "\n\n".join(["\n".join([*asked, *(f"* **{plain(each.waiting)}**" for each in waiting)]), *rest])


def change_budgets(scene: Scene, request: Budget, chosen: Chosen) -> list[Told]:
    """One call for each campaign, with the new amount worked out from the budget it has."""
    if request.amount is None:
        names = ", ".join(f"{bold(name)} ({scene.campaign(name).daily_budget})" for name in chosen.names)
        return [
            Told(
                f"To what amount, or by how much, shall I change the daily budget of {names}? Say for example to 120 or by 10 %."
            )
        ]
    if request.per != "day":
        return [Told(f"Budgets here are per day, not per {request.per}. Tell me the daily amount.")]
    currency = scene.account.account.currency
    if request.amount.currency not in {None, currency}:
        return [
            Told(
                f"The account is in {currency}, and I don't convert {request.amount.currency}. Tell me the amount in {currency}."
            )
        ]
    return [_change_budget(scene, scene.campaign(name), request.amount) for name in chosen.names]


def _change_budget(scene: Scene, campaign: CampaignResult, amount: Amount) -> Told:
    currency = scene.account.account.currency
    if amount.kind == "negative" or (amount.kind == "set" and amount.value == 0):
        return Told(f"A daily budget has to be above zero, so I did nothing for {bold(campaign.name)}: it stays at {campaign.daily_budget}."
                    " Tell me an amount above zero, by how much to raise or cut it, or to pause the campaign.")  # fmt: skip
    new = _new_amount(campaign, amount, currency)
    if new <= 0:
        return Told(f"The daily budget of {bold(campaign.name)} is {campaign.daily_budget}; that change would leave nothing."
                    " Pause the campaign instead if it shall stop.")  # fmt: skip
    if new * MICROS == campaign.daily_budget_micros:
        return Told(f"The daily budget of {bold(campaign.name)} is {campaign.daily_budget} already.")
    arguments = {"campaign": campaign.name, "amount": _written(new)}
    return _call(scene, BUDGET, arguments)


def _new_amount(campaign: CampaignResult, amount: Amount, currency: str) -> Decimal:
    current = Decimal(campaign.daily_budget_micros) / MICROS
    if amount.kind == "set":
        return amount.value
    if amount.kind == "add":
        return current + amount.value
    return (current * amount.value).quantize(Decimal(1).scaleb(-decimals(currency)), ROUND_HALF_UP)


def _written(amount: Decimal) -> str:
    text = f"{amount:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def set_statuses(scene: Scene, request: SetStatus, chosen: Chosen) -> list[Told]:
    """One call for each campaign that is not so already."""
    told = []
    several = len(chosen.names) > 1
    for name in chosen.names:
        if scene.campaign(name).status == request.status:
            if not (several and chosen.everything):
                told.append(Told(f"{bold(name)} is {request.status} already."))
            continue
        told.append(_call(scene, PAUSE if request.status == "paused" else RESUME, {"campaign": name}))
    return told or [Told(f"All campaigns are {request.status} already.")]


def _call(scene: Scene, tool: str, arguments: dict[str, Any]) -> Told:
    if not scene.desk.has(tool):
        return Told(f"I have no tool here to {_asked(tool, arguments, scene)}.")
    outcome = scene.desk.ask(tool, arguments)
    return Told("") if outcome is None else told_of(scene, tool, arguments, outcome)


def told_of(scene: Scene, tool: str, arguments: dict[str, Any], outcome: Outcome) -> Told:
    """What came of a change, in words. An interrupted one is read back first."""
    asked = _asked(tool, arguments, scene)
    if outcome.kind == "waiting":
        summary = outcome.text or asked
        return Told(f"I asked for approval: **{plain(summary)}**. Nothing has changed yet.", summary)
    if outcome.kind == "interrupted":
        found = scene.desk.campaigns(after=outcome.at)
        return Told("" if found is None and scene.desk.wanted else interrupted(tool, arguments, found))
    if outcome.kind == "error":
        return Told(f"I could not {asked}: {plain(outcome.text)}")
    if outcome.kind == "refused":
        return Told(f"I did not {asked}: {plain(outcome.text)}. Nothing has changed.")
    return Told(done(tool, arguments, outcome.data))


def _asked(tool: str, arguments: dict[str, Any], scene: Scene) -> str:
    name = bold(str(arguments.get("campaign", "")))
    if tool == BUDGET:
        return f"set the daily budget of {name} to {_money(arguments.get('amount'), scene.account.account.currency)}"
    return f"{'pause' if tool == PAUSE else 'resume'} {name}"


def _money(amount: Any, currency: str) -> str:
    try:
        return format_micros(int(Decimal(str(amount)) * MICROS), currency)
    except ArithmeticError:
        return plain(str(amount))


def done(tool: str, arguments: dict[str, Any], data: Any) -> str:
    """A change that was made, from its result."""
    result = data if isinstance(data, dict) else {}
    name = bold(str(result.get("campaign") or arguments.get("campaign") or "the campaign"))
    if tool == BUDGET and {"old", "new"} <= result.keys():
        difference = f", {result['difference']}" if "difference" in result else ""
        return f"The daily budget of {name} is now **{result['new']}** (it was {result['old']}{difference})."
    if tool in {PAUSE, RESUME}:
        return f"{name} is now **{plain(str(result.get('new', 'paused' if tool == PAUSE else 'active')))}**."
    return f"Done: {name}."


def interrupted(tool: str, arguments: dict[str, Any], found: CampaignList | None) -> str:
    """A change that was cut off: what reading back shows, and whether that is what was asked for."""
    name = str(arguments.get("campaign", ""))
    begin = f"The change of {bold(name)} was interrupted, and its outcome was unknown."
    now = next((each for each in found.campaigns if name in {each.name, each.id}), None) if found else None
    if now is None:
        return (
            f"{begin} I could not read it back, so I still don't know. Look at it on the platform before you try again."
        )
    if tool == BUDGET:
        shown = f"its daily budget is {now.daily_budget}"
        made = _micros(arguments.get("amount")) == now.daily_budget_micros
    else:
        shown = f"it is {now.status}"
        made = now.status == ("paused" if tool == PAUSE else "active")
    verdict = "so the change was made" if made else "so the change was not made; ask again if you still want it"
    return f"{begin} I read it back: {shown}, {verdict}."


def _micros(amount: Any) -> int | None:
    try:
        return int(Decimal(str(amount)) * MICROS)
    except ArithmeticError:
        return None
