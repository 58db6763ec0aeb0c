"""What the agent stores, and how it came to be. A change to one of its tables is a new migration at the end of the list."""

from agent.campaigns import CAMPAIGN_TABLES
from agent.campaigns.cap import SPEND_CLAIMS
from agent.feedback import FEEDBACK
from agent.messages import MESSAGES, PARTICIPATION
from agent.preferences import PREFERENCES
from agent.stops import STOPS
from agent.usage import USAGE
from workflows.storage import AddColumn, AddTable, Column, Index, Migration, Schema, Table, baseline

# Frozen: the tables as the first version had them.
BASELINE = baseline(
    Table(
        "messages",
        (
            Column("tenant", "text"),
            Column("thread", "text"),
            Column("id", "text"),
            Column("position", "int", null=True),
            Column("role", "text"),
            Column("notice", "bool", default=False),
            Column("author", "json", null=True),
            Column("parts", "json"),
            Column("run_id", "text", null=True),
            Column("at", "time", default="now"),
        ),
        ("tenant", "thread", "id"),
        (Index("messages_window", ("tenant", "thread", "position")), Index("messages_run", ("tenant", "run_id"))),
    ),
    Table(
        "participation",
        (Column("tenant", "text"), Column("thread", "text"), Column("since", "time", default="now")),
        ("tenant", "thread"),
    ),
    Table(
        "stops",
        (
            Column("tenant", "text"),
            Column("thread", "text"),
            Column("message_id", "text"),
            Column("by_user", "text"),
            Column("at", "time", default="now"),
        ),
        ("tenant", "thread"),
    ),
    Table(
        name="campaign_changes",
        columns=(
            Column("tenant", "text"),
            Column("key", "text"),
            Column("campaign_id", "text"),
            Column("at", "time"),
            Column("field", "text"),
            Column("old", "text"),
            Column("new", "text"),
            Column("by", "text"),
        ),
        primary_key=("tenant", "key"),
        indexes=(Index("campaign_changes_by_time", ("tenant", "at")),),
    ),
)

MIGRATIONS: tuple[Migration, ...] = (
    BASELINE,
    Migration("heard", (AddColumn("messages", Column("heard", "bool", default=False)),)),
    Migration(
        "preferences-and-usage",
        (
            AddTable(
                Table(
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
            ),
            AddTable(
                Table(
                    "usage",
                    (
                        Column("tenant", "text"),
                        Column("id", "text"),
                        Column("month", "text"),
                        Column("model", "text"),
                        Column("input_tokens", "int"),
                        Column("output_tokens", "int"),
                        Column("cached_tokens", "int"),
                        Column("at", "time", default="now"),
                    ),
                    ("tenant", "id"),
                    (Index("usage_by_month", ("tenant", "month")),),
                )
            ),
        ),
    ),
    Migration(
        "feedback",
        (
            AddTable(
                Table(
                    "feedback",
                    (
                        Column("tenant", "text"),
                        Column("run_id", "text"),
                        Column("user_id", "text"),
                        Column("trace_id", "text"),
                        Column("rating", "text"),
                        Column("reason", "text", null=True),
                        Column("at", "time", default="now"),
                    ),
                    ("tenant", "run_id", "user_id"),
                    (Index("feedback_trace", ("tenant", "trace_id")),),
                )
            ),
        ),
    ),
    Migration(
        "spend-claims",
        (
            AddTable(
                Table(
                    "spend_claims",
                    (Column("tenant", "text"), Column("key", "text"), Column("until", "time")),
                    ("tenant",),
                )
            ),
        ),
    ),
    Migration("feedback-of-threads", (AddColumn("feedback", Column("thread", "text", null=True)),)),
)

AGENT = Schema(
    "agent",
    (MESSAGES, PARTICIPATION, STOPS, PREFERENCES, USAGE, FEEDBACK, SPEND_CLAIMS, *CAMPAIGN_TABLES),
    MIGRATIONS,
)
