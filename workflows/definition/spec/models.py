"""The documents: one model for every kind of entry. `WorkflowSpec.model_json_schema()` is what to show to whoever writes one."""

from dataclasses import dataclass
from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field


@dataclass(frozen=True, slots=True)
class Bounds:
    """How large a document may be; `entries` of each workflow in it, `nodes` counted as often as they are used."""

    bytes: int = 128 * 1024
    entries: int = 100
    nodes: int = 1_000
    nesting: int = 8


BOUNDS = Bounds()

Name = Annotated[str, Field(min_length=1, max_length=500)]
Id = Annotated[str, Field(min_length=1, max_length=100, pattern=r"^[^/#\[\]!~@$]+$")]
Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Json = Any
TypeSpec = Annotated[
    Any,
    Field(
        description='"any" "string" "integer" "number" "boolean" "null", {"list": T}, {"map": T}, {"object": {name: T, "optional?": T}},'
        ' {"any_of": [T, …]}, or {"named": "a type of the registry"}'
    ),
]
ConditionSpec = Annotated[
    Any,
    Field(
        description='{"gt": [{"path": "value.amount"}, 100]} and likewise eq ne lt lte gte in; {"exists": {"path": …}}; {"not": C};'
        ' {"and": [C, …]}; {"or": [C, …]}. Paths begin with value, state or (in loops) count. {"call": "a function of the registry"}'
    ),
]
TemplateSpec = Annotated[
    Any,
    Field(
        description='JSON in which {"path": "value.item", "default": …} picks what is there and {"literal": …} stands for what it holds'
    ),
]


WorkflowRef = Annotated[
    Any,
    Field(description="the id of a workflow, or a workflow written out like the whole document (without definitions)"),
]


class Document(BaseModel):
    """A part of a spec: no key but those it has, and no value of another type."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    @classmethod
    def ops(cls) -> tuple[str, ...]:
        """What `op` says of such an entry; nothing for other parts."""
        return get_args(cls.model_fields["op"].annotation) if "op" in cls.model_fields else ()


class Node(Document):
    """A step, by its name in the registry; or a workflow, by its id there or in `definitions`, or written out."""

    step: Name | None = None
    workflow: WorkflowRef = None
    version: Name | None = Field(default=None, description="of a workflow named by id; the newest if left out")
    id: Id | None = Field(default=None, description="what to call the step here, if not as in the registry")


class Arm(Node):
    """A node with its condition."""

    when: ConditionSpec


class Then(Node):
    """Run one node."""

    op: Literal["then"]


class Parallel(Document):
    """Run all nodes on the same value; the output is an object by id."""

    op: Literal["parallel"]
    id: Id | None = None
    nodes: Annotated[list[Node], Field(min_length=1)]
    limit: Annotated[int, Field(ge=1)] | None = None


class Branch(Document):
    """Run the first arm whose condition holds, or all of them."""

    op: Literal["branch"]
    id: Id | None = None
    arms: Annotated[list[Arm], Field(min_length=1)]
    otherwise: Node | None = None
    mode: Literal["first", "all"] = "first"


class ForEach(Node):
    """Run the node once per item of a list."""

    op: Literal["foreach"]
    concurrency: Annotated[int, Field(ge=1)] = 1


class Loop(Node):
    """Run the node, and again while, or until, `when` holds of its output."""

    op: Literal["dowhile", "dountil"]
    when: ConditionSpec
    max_iterations: Annotated[int, Field(ge=1)]


class Map(Document):
    """Reshape the value: `to` puts a new one together, `call` names a pure function."""

    op: Literal["map"]
    id: Id | None = None
    to: TemplateSpec = None
    call: Name | None = None


class Sleep(Document):
    """Sleep for seconds, or until a time: a literal, a path to one, or a call."""

    op: Literal["sleep"]
    id: Id | None = None
    seconds: TemplateSpec


class SleepUntil(Document):
    """Sleep until a time with a zone."""

    op: Literal["sleep_until"]
    id: Id | None = None
    until: TemplateSpec


class WaitFor(Document):
    """Wait for a signal; its payload, of `type`, is the output. After `timeout_s` seconds, `otherwise` is."""

    op: Literal["wait_for"]
    id: Id | None = None
    name: Id
    type: TypeSpec = "any"
    timeout_s: Seconds | None = None
    otherwise: Json = None
    otherwise_call: Name | None = None


class Authored(Document):
    """Walk the workflow that the value defines."""

    op: Literal["authored"]
    id: Id | None = None
    call: Name


ENTRIES: tuple[type[Document], ...] = (
    Then, Parallel, Branch, ForEach, Loop, Map, Sleep, SleepUntil, WaitFor, Authored,
)  # fmt: skip
OPS = tuple(op for each in ENTRIES for op in each.ops())

EntrySpec = Annotated[
    Then | Parallel | Branch | ForEach | Loop | Map | Sleep | SleepUntil | WaitFor | Authored, Field(discriminator="op")
]


class WorkflowSpec(Document):
    """A workflow. `definitions` are workflows that its nodes may name, so that one used twice is written once."""

    id: Id
    version: Id = "1"
    entries: list[EntrySpec]
    state: TypeSpec = None
    on_failure: Name | None = None
    max_attempts: Annotated[int, Field(ge=1)] = 5
    callbacks: Name | None = None
    definitions: list["WorkflowSpec"] = Field(default_factory=list)
