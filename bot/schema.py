"""What the bot stores, and how it came to be. A change to one of its tables is a new migration at the end of the list."""

from bot.checkups import CHECKUPS
from bot.departures import DEPARTURES
from bot.groups import GROUPS
from bot.installs import INSTALLATIONS, KEPT_EVENTS
from bot.oauth import STATES
from bot.overheard import OVERHEARD
from workflows.storage import AddColumn, AddTable, Column, Migration, Schema, Statements, Table, baseline

# Frozen: the tables as the first version had them.
BASELINE = baseline(
    Table(
        "installations",
        (
            Column("tenant", "text"),
            Column("name", "text", default=""),
            Column("app_id", "text", default=""),
            Column("bot_user_id", "text"),
            Column("bot_id", "text"),
            Column("token", "text"),
            Column("scopes", "text", default=""),
            Column("installer", "text", default=""),
            Column("installed_at", "time", default="now"),
            Column("removed_at", "time", null=True),
        ),
        ("tenant",),
    ),
    Table(
        "oauth_states",
        (Column("state", "text"), Column("expires_at", "time")),
        ("state",),
        shared=True,
    ),
    Table(
        "kept_events",
        (
            Column("tenant", "text"),
            Column("event_id", "text"),
            Column("envelope", "json"),
            Column("at", "time", default="now"),
        ),
        ("tenant", "event_id"),
    ),
    Table(
        "overheard",
        (
            Column("tenant", "text"),
            Column("thread", "text"),
            Column("id", "text"),
            Column("said", "json"),
            Column("at", "time", default="now"),
        ),
        ("tenant", "thread", "id"),
    ),
)

TOKEN_ROTATION = Migration(
    "token rotation",
    (
        AddColumn("installations", Column("refresh_token", "text", default="")),
        AddColumn("installations", Column("expires_at", "time", null=True)),
        AddColumn("installations", Column("refreshing_until", "time", null=True)),
        AddColumn("installations", Column("lost", "bool", default=False)),
    ),
)

LEFT_BEFORE = """
insert into departures (workspace, due_at) select tenant, removed_at + {} from installations where removed_at is not null
"""
DEPARTED = Migration(
    "departures",
    (
        AddTable(
            Table(
                "departures",
                (Column("workspace", "text"), Column("due_at", "time"), Column("forgetting_until", "time", null=True)),
                ("workspace",),
                shared=True,
            )
        ),
        # Those that left before the version that deletes: after thirty days, as it says.
        Statements(
            postgres=(LEFT_BEFORE.format("interval '30 days'"),),
            sqlite=(LEFT_BEFORE.format(30 * 86_400_000_000),),
            additive=True,
        ),
    ),
)

KNOWN_BEFORE = """
insert into checkups (workspace, due_at, asked_at) select tenant, installed_at, installed_at from installations where removed_at is null
"""
CHECKED = Migration(
    "checkups",
    (
        AddTable(
            Table(
                "checkups",
                (
                    Column("workspace", "text"),
                    Column("due_at", "time"),
                    Column("asked_at", "time"),
                    Column("refused", "int", default=0),
                ),
                ("workspace",),
                shared=True,
            )
        ),
        # Those that have the app already: at once, as some may have removed it long ago.
        Statements(postgres=(KNOWN_BEFORE,), sqlite=(KNOWN_BEFORE,), additive=True),
    ),
)

GROUPED = Migration(
    "groups",
    (AddTable(Table("groups", (Column("tenant", "text"), Column("channel", "text")), ("tenant", "channel"))),),
)

MIGRATIONS: tuple[Migration, ...] = (BASELINE, TOKEN_ROTATION, DEPARTED, CHECKED, GROUPED)

BOT = Schema("bot", (INSTALLATIONS, STATES, KEPT_EVENTS, OVERHEARD, DEPARTURES, CHECKUPS, GROUPS), MIGRATIONS)
