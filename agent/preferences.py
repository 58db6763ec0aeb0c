"""What the people of a workspace have set: what the agent should know, who approves, and how much may be spent.

Each change is a new version, and no version is changed: what was in force at any time can be looked up.
"""

from datetime import datetime
from typing import Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from workflows.storage import Column, Insert, Select, Store, Table

GUIDANCE_LIMIT = 3000
"""Characters, which is also what one field of a dialog takes in Slack."""

PREFERENCES = Table(
    "preferences",
    (
        Column("tenant", "text"),
        Column("version", "int"),
        Column("body", "json"),
        Column("by_user", "text"),
        Column("at", "time", default="now"),
    ),
    ("tenant", "version"),
)


class Preferences(BaseModel):
    """One version. Amounts are micros of the account's currency, per day; None is no limit. `version` 0 is what nobody has set."""

    model_config = ConfigDict(frozen=True)

    guidance: str = Field("", max_length=GUIDANCE_LIMIT)
    approvers: tuple[str, ...] = Field((), max_length=100)
    alone_limit_micros: int | None = Field(None, ge=0)
    """Above it, whoever asked for a change may not be the one who approves it."""
    spend_cap_micros: int | None = Field(None, ge=0)
    """What the daily budgets of all active campaigns may come to."""
    bots: tuple[str, ...] = Field((), max_length=100)
    """Other bots that may ask the agent, by their user ids."""
    version: int = 0
    by_user: str = ""
    at: datetime | None = None

    @model_validator(mode="after")
    def _once(self) -> Self:
        for name, people in (("approver", self.approvers), ("bot", self.bots)):
            if len(set(people)) != len(people):
                raise ValueError(f"the same {name} twice")
        return self


SET = {"guidance", "approvers", "alone_limit_micros", "spend_cap_micros", "bots"}
"""What people set; the rest says when and by whom."""


class PreferencesChangedError(Exception):
    """Somebody else changed them meanwhile; nothing was changed by this."""


class PreferenceBook:
    """Reads and changes the preferences of tenants."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def of(self, tenant: str) -> Preferences:
        """Those in force."""
        rows = await self._store.read(Select(PREFERENCES, {"tenant": tenant}, order=("-version",), limit=1))
        if not rows:
            return Preferences()
        row = rows[0]
        return Preferences.model_validate({**row["body"], **{name: row[name] for name in ("version", "by_user", "at")}})

    async def change(self, tenant: str, wanted: Preferences, *, by: str) -> Preferences:
        """Put `wanted` in force, made from the version it bears. Raises PreferencesChangedError if that is not the last one."""
        values = {
            "tenant": tenant,
            "version": wanted.version + 1,
            "body": wanted.model_dump(mode="json", include=SET),
            "by_user": by,
        }
        if await self._store.write(Insert(PREFERENCES, values)) == 0:
            raise PreferencesChangedError(f"version {wanted.version} of the settings is not the last one any more")
        return await self.of(tenant)
