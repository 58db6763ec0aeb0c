"""The dialog in which admins set what a workspace's agent should know, who approves, and how much may be spent."""

from decimal import Decimal

import structlog

from agent.campaigns import AdPlatform, format_micros
from agent.campaigns.money import MICROS, decimals, read_amount
from agent.preferences import GUIDANCE_LIMIT, PreferenceBook, Preferences, PreferencesChangedError
from bot.dialogs import Dialogs, Made
from bot.people import SlackPeople
from bot.views import View, modal, notice, people_input, people_of, text_input, text_of

SETTINGS = "settings"
"""The dialog's callback id."""
ADMINS_ONLY = "Settings are for the workspace's admins. My Home tab shows those in force."
NOT_OPENED = "Slack did not open the dialog; please try again."
OPENED = "The settings are open."
CHANGED_MEANWHILE = "Somebody else changed the settings meanwhile. Close this, look at them, and change them again."
AMOUNTS = {"alone_limit": "alone_limit_micros", "spend_cap": "spend_cap_micros"}
"""Field of the dialog to preference."""


class SettingsError(ValueError):
    """Fields that can't be read: block id to what is wrong."""

    def __init__(self, fields: dict[str, str]) -> None:
        super().__init__("; ".join(fields.values()))
        self.fields = fields


class SettingsDialog:
    """Opens the dialog for admins, and puts in force what they submit."""

    def __init__(self, book: PreferenceBook, platform: AdPlatform, people: SlackPeople, dialogs: Dialogs) -> None:
        self._book = book
        self._platform = platform
        self._people = people
        self._dialogs = dialogs

    async def open(self, tenant: str, user: str, trigger_id: str, *, tell: bool = False) -> str:
        """Open it; returns what the person is told, and with `tell` shows it where a refusal can't be said otherwise. Raises StoreUnavailableError."""
        made, shown = await self._dialogs.open(
            tenant, trigger_id, self._view(tenant, user), title="Threadline settings"
        )
        if isinstance(made, str):
            if tell and not shown:
                await self._dialogs.show(tenant, trigger_id, notice("Settings", made))
            return made
        return OPENED if shown else NOT_OPENED

    async def _view(self, tenant: str, user: str) -> Made:
        refusal = await self._people.refusal(tenant, user, others=ADMINS_ONLY)
        if refusal is not None:
            return refusal
        return settings_view(await self._book.of(tenant), (await self._platform.account(tenant)).currency)

    async def submitted(self, tenant: str, user: str, view: View) -> View | None:
        """Put it in force; a dialog that tells why not, or None. Raises SettingsError for fields, StoreUnavailableError."""
        refusal = await self._people.refusal(tenant, user, others=ADMINS_ONLY)
        if refusal is not None:
            return notice("Settings", refusal)
        wanted = read_settings(view, (await self._platform.account(tenant)).currency)
        try:
            changed = await self._book.change(tenant, wanted, by=user)
        except PreferencesChangedError:
            return notice("Settings", CHANGED_MEANWHILE)
        structlog.get_logger().info("settings_changed", tenant=tenant, by=user, version=changed.version)
        return None


def settings_view(now: Preferences, currency: str) -> View:
    """The dialog, filled with what is in force; it remembers the version it was made from."""
    blocks = [
        text_input(
            "guidance", "What should the agent know?", initial=now.guidance, limit=GUIDANCE_LIMIT, many_lines=True,
            hint="For everybody here: names, habits, wording, what to look at first. It can't lift approvals or limits.",
        ),
        people_input("approvers", "Who approves, besides the admins?", initial=now.approvers),
        text_input(
            "alone_limit", f"A requester may approve alone up to, in {currency} a day", initial=_amount(now.alone_limit_micros, currency), limit=20,
            hint="What a change adds to the daily spend. Above it somebody else than its requester has to approve. Empty: no such limit.",
        ),
        text_input(
            "spend_cap", f"Cap on all daily budgets together, in {currency}", initial=_amount(now.spend_cap_micros, currency), limit=20,
            hint="What the daily budgets of all active campaigns may come to. Empty: no cap.",
        ),
        people_input(
            "bots", "Which other apps may ask me?", initial=now.bots,
            hint="Their bots, which have to mention me. They approve nothing. Empty: I answer people alone.",
        ),
    ]  # fmt: skip
    return modal(SETTINGS, "Threadline settings", blocks, submit="Save", metadata=str(now.version))


def read_settings(view: View, currency: str) -> Preferences:
    """What was filled in, as the version that comes after the one it was made from. Raises SettingsError."""
    wrong: dict[str, str] = {}
    amounts: dict[str, int | None] = {}
    for block_id, name in AMOUNTS.items():
        text = text_of(view, block_id)
        try:
            amounts[name] = read_amount(text, currency) if text else None
        except ValueError as error:
            wrong[block_id] = str(error)
    version = str(view.get("private_metadata") or "")
    if not version.isdecimal():
        wrong["guidance"] = "this dialog is not known here any more; open it again"
    if wrong:
        raise SettingsError(wrong)
    return Preferences(
        guidance=text_of(view, "guidance")[:GUIDANCE_LIMIT],
        approvers=people_of(view, "approvers")[:100],
        bots=people_of(view, "bots")[:100],
        version=int(version),
        **amounts,
    )


def _amount(micros: int | None, currency: str) -> str:
    return "" if micros is None else f"{Decimal(micros) / MICROS:.{decimals(currency)}f}"


def shown_amount(micros: int | None, currency: str, *, none: str) -> str:
    """An amount a day, or words for there being none."""
    return none if micros is None else f"{format_micros(micros, currency)} a day"
