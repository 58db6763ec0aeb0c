"""What can be asked of the offline model, as data. `grammar` makes these from text; `plan` carries them out."""

from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

from agent.campaigns.platform import Channel, Status


@dataclass(frozen=True, slots=True)
class Unclear:
    """A mention that may mean several campaigns."""

    said: str
    candidates: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Selection:
    """Which campaigns are meant. `back` means those spoken of before (`several`: more than one); `superlative` means the best (True) or worst by `metric` over `period`.

    Nothing set means that nobody said.
    """

    names: tuple[str, ...] = ()
    unclear: tuple[Unclear, ...] = ()
    unknown: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    everything: bool = False
    back: bool = False
    several: bool = False
    channel: Channel | None = None
    status: Status | None = None
    superlative: bool | None = None
    metric: str = "roas"
    period: str | None = None

    @property
    def empty(self) -> bool:
        """Whether nobody said which."""
        return self == Selection()


@dataclass(frozen=True, slots=True)
class Performance:
    """Figures over a period. `relative` periods are counted from the period spoken of before.

    A `follow_up` ("and CTR?") keeps what it does not name from the question before; `also` ("and Spring Sale too") goes on with
    whatever was asked before, a change included.
    """

    which: Selection = Selection()
    period: str | None = None
    relative: bool = False
    compare_to: str | None = None
    metrics: tuple[str, ...] = ()
    side_by_side: bool = False
    follow_up: bool = False
    also: bool = False


@dataclass(frozen=True, slots=True)
class Ranking:
    """The best or worst campaigns by a metric. `highest` sorts by size whatever is good; None sorts by what is good."""

    metric: str | None = None
    best: bool = True
    highest: bool | None = None
    top: int = 1
    which: Selection = Selection()
    period: str | None = None
    relative: bool = False


@dataclass(frozen=True, slots=True)
class Amount:
    """How a budget changes: to a value, by a difference, or by a factor; a negative amount changes none. `currency` is the one named, if any."""

    kind: Literal["set", "add", "factor", "negative"]
    value: Decimal
    currency: str | None = None


@dataclass(frozen=True, slots=True)
class Budget:
    """Change daily budgets; `amount` None means that nobody said to what."""

    which: Selection = Selection()
    amount: Amount | None = None
    per: Literal["day", "week", "month"] = "day"


@dataclass(frozen=True, slots=True)
class SetStatus:
    """Pause or resume campaigns."""

    which: Selection
    status: Status


@dataclass(frozen=True, slots=True)
class Listing:
    """What campaigns there are, or how some of them are set up."""

    which: Selection = Selection()


@dataclass(frozen=True, slots=True)
class Report:
    """Have a report made."""

    which: Selection = Selection()
    period: str | None = None


@dataclass(frozen=True, slots=True)
class Email:
    """Draft an email. `subject` is what it is about, `offer` a percentage or an amount in the brief."""

    subject: str
    offer: str | None = None


@dataclass(frozen=True, slots=True)
class Schedule:
    """Post a summary again and again; `when` None means that nobody said."""

    when: str | None


@dataclass(frozen=True, slots=True)
class Schedules:
    """What is scheduled, or, with `cancel`, stop something of it."""

    cancel: bool = False
    which: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """A yes, a no, or a choice ("the first one": 0, "the last": -1, "both": all) after a question of the model's."""

    yes: bool | None = None
    choice: int | None = None
    everything: bool = False


Simple = Literal["greeting", "thanks", "help", "why", "advice", "keep", "later", "condition", "by_value", "forecast", "stop", "undo", "reported", "cut", "beyond", "limit",
                 "unknown"]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Said:
    """Everything that needs no tool: small talk, and what the model can't or must not do. `text` is the request as written."""

    kind: Simple
    text: str = ""


Request = (
    Performance | Ranking | Budget | SetStatus | Listing | Report | Email | Schedule | Schedules | Answer | Said
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Topic:
    """What was spoken of last, for follow-ups: which campaigns, which days (in words, or ISO once a result named them), which metrics.

    `pending` is the request whose campaigns are still to be chosen from `choices`.
    """

    names: tuple[str, ...] = ()
    everything: bool = False
    period: str | None = None
    metrics: tuple[str, ...] = ()
    last: Request | None = None
    pending: Request | None = None
    choices: tuple[str, ...] = ()
