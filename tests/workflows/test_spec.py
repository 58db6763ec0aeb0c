"""Workflows as data: every workflow has a document, every sound document a workflow, and an unsound one says what is wrong and where."""

import json
from datetime import UTC, datetime
from typing import Any, TypedDict

import pytest
from pydantic import BaseModel

from workflows import Callbacks, Catalogue, Effect, Interrupted, SpecError, Workflow, path, project, step, workflow
from workflows.definition.boundaries import type_at
from workflows.definition.registry import Registry
from workflows.definition.spec import WorkflowSpec
from workflows.definition.spec.models import BOUNDS, OPS
from workflows.errors import BoundaryError, DefinitionError

READ = Effect.READ


class Order(BaseModel):
    item: str
    amount: int


class Progress(TypedDict, total=False):
    tries: int


@step(effect=READ)
async def double(n: int) -> int:
    return n * 2


@step(effect=READ)
async def increment(n: int) -> int:
    return n + 1


@step(effect=READ)
async def shout(text: str) -> str:
    return text.upper()


@step(effect=READ)
async def place(order: Order) -> Order:
    return order


def is_big(n: int) -> bool:
    return n > 100


def total(numbers: list[int]) -> int:
    return sum(numbers)


def as_text(n: int) -> str:
    return str(n)


CATALOGUE = Catalogue(
    double, increment, shout, place, functions={"is-big": is_big, "as-text": as_text}, types={"order": Order}
)  # fmt: skip


def spec(*entries: Any, **more: Any) -> dict[str, Any]:
    return {"id": "w", "entries": list(entries), **more}


def read(*entries: Any, **more: Any) -> Workflow[Any, Any]:
    return Workflow.from_spec(spec(*entries, **more), CATALOGUE)


def problems(data: Any, names: Any = CATALOGUE) -> dict[str, str]:
    with pytest.raises(SpecError) as caught:
        Workflow.from_spec(data, names)
    for where, message in caught.value.problems:
        assert f"{where}: {message}" if where else message in str(caught.value)
    return dict(caught.value.problems)


def same(one: Workflow[Any, Any], other: Workflow[Any, Any]) -> bool:
    """Equal in paths, behaviour and types."""
    return (one, one.input, one.output, one.state, one.callbacks) == (
        other, other.input, other.output, other.state, other.callbacks,
    )  # fmt: skip


THEN = {"op": "then", "step": "double"}


class TestRoundTrip:
    def everything(self) -> Workflow[Any, Any]:
        inner = workflow("inner", version="3").then(double.named("twice")).map(lambda n: n + 1).commit()
        typed = workflow("typed").wait_for("go", Order, timeout=60, otherwise=Interrupted()).commit()
        return (
            workflow(
                "everything",
                version="2",
                on_failure="notice",
                max_attempts=7,
                state=Progress,
                callbacks=Callbacks(on_start=print),
            )
            .then(double)
            .parallel(double.named("left"), inner, limit=2)
            .map(lambda found: found["left"])
            .branch((is_big, increment), (path("value").gt(3), double.named("small")), otherwise=double.named("none"))
            .branch((lambda n: n > 0, double.named("all")), mode="all")
            .map(project([path("value.all"), {"literal": 1}["literal"]]))
            .foreach(increment.named("each"), concurrency=3)
            .map(total)
            .dowhile(double.named("loop"), lambda n, count: n < 50, max_iterations=9)
            .dountil(double.named("again"), path("count").gte(path("state.tries")), max_iterations=2)
            .sleep(1.5)
            .sleep(lambda n: n)
            .sleep_until(datetime(2030, 1, 1, tzinfo=UTC))
            .sleep_until(lambda n: datetime(2030, 1, 1, tzinfo=UTC))
            .then(typed)
            .wait_for("list", list[int], timeout=1, otherwise=[])
            .wait_for("maybe", dict[str, int | None])
            .wait_for("any", object)
            .commit()
        )

    def test_a_workflow_of_every_operation_comes_back_equal(self) -> None:
        built = self.everything()
        document = json.loads(json.dumps(built.to_spec()))
        again = Workflow.from_spec(document, Registry([built]))
        assert same(again, built)
        assert again.to_spec() == document

    def test_all_operations_are_in_it(self) -> None:
        written = {entry["op"] for entry in self.everything().to_spec()["entries"]}
        assert written == set(OPS) - {"authored"}

    def test_what_is_python_is_named_by_its_place(self) -> None:
        entries = self.everything().to_spec()["entries"]
        assert entries[0] == {"op": "then", "step": "everything@2/double"}
        assert entries[1]["nodes"][1]["workflow"]["entries"] == [
            {"op": "then", "step": "everything@2/inner/twice"},
            {"op": "map", "call": "everything@2/inner/map-1#to"},
        ]
        assert entries[3]["arms"][0]["when"] == {"call": "everything@2/branch-3#arms[0]"}
        assert entries[3]["arms"][1]["when"] == {"gt": [{"path": "value"}, 3]}

    def test_one_that_was_read_is_written_with_the_names_it_was_read_with(self) -> None:
        document = spec(
            {"op": "then", "step": "double", "id": "twice"},
            {
                "op": "branch",
                "id": "size",
                "arms": [{"when": {"call": "is-big"}, "step": "increment"}],
                "otherwise": THEN | {"op": "then"},
            },
        )
        document["entries"][1]["otherwise"] = {"step": "double"}
        document["entries"] += [
            {"op": "map", "call": "as-text"},
            {"op": "then", "workflow": {"id": "inner", "version": "1", "entries": [{"op": "then", "step": "shout"}]}},
            {"op": "wait_for", "name": "order", "type": {"named": "order"}},
        ]
        assert Workflow.from_spec(document, CATALOGUE).to_spec() == {"version": "1", **document}

    def test_a_workflow_of_the_registry_can_be_nested_by_name(self) -> None:
        old, new = (workflow("inner", version=v).then(node).commit() for v, node in (("1", double), ("2", increment)))
        registry = Registry([old, new])
        nested = {"id": "w", "version": "1", "entries": [{"op": "then", "workflow": "inner", "version": "1"}]}
        outer = Workflow.from_spec(nested, registry)
        assert outer.entries[0].node is old  # type: ignore[union-attr]
        assert outer.to_spec() == nested
        newest = Workflow.from_spec(spec({"op": "then", "workflow": "inner"}), registry)
        assert newest.entries[0].node is new  # type: ignore[union-attr]

    def test_two_steps_of_one_name_in_two_workflows_are_not_mistaken(self) -> None:
        @step(id="ask", effect=READ)
        async def one(n: int) -> int:
            return 1

        @step(id="ask", effect=READ)
        async def two(n: int) -> int:
            return 2

        first, second = workflow("first").then(one).commit(), workflow("second").then(two).commit()
        registry = Registry([first, second])
        for each in (first, second):
            assert same(Workflow.from_spec(each.to_spec(), registry), each)

    def test_a_definition_is_written_once_and_used_often(self) -> None:
        inner = {"id": "inner", "version": "1", "entries": [{"op": "then", "step": "double"}]}
        middle = {"id": "middle", "entries": [{"op": "then", "workflow": "inner"}]}
        outer = read(
            {"op": "then", "workflow": "inner"}, {"op": "then", "workflow": "middle"}, definitions=[middle, inner]
        )
        assert [entry.node.id for entry in outer.entries] == ["inner", "middle"]  # type: ignore[union-attr]
        assert outer.to_spec()["entries"][0]["workflow"] == inner
        assert Workflow.from_spec(outer.to_spec(), CATALOGUE) == outer

    def test_types_are_computed_as_the_builder_does(self) -> None:
        found = read(
            THEN, {"op": "map", "to": {"item": "tent", "amount": {"path": "value"}}}, {"op": "then", "step": "place"}
        )
        assert (found.input, found.output) == (int, Order)

    @pytest.mark.parametrize(
        ("type_", "text", "found"),
        [
            (Any, "value[0].a", Any),
            (object, "value[0]", Any),
            (Order, "value.amount", int),
            (list[Order], "value[-1].item", str),
            (tuple[int, str], "value[0]", int | str),
            (dict[str, Order], "value.any.amount", int),
            (Order | None, "value.amount", int | None),
            (Order | int, "value.item", str | None),
            (Progress, "value.tries", int),
            (dict, "value.anything.at[0].all", Any),
        ],
    )
    def test_a_path_has_a_type(self, type_: Any, text: str, found: Any) -> None:
        assert type_at(path(text), type_) == found

    @pytest.mark.parametrize(
        ("type_", "text"), [(int, "value.a"), (Order, "value[0]"), (Progress, "value.tried"), (list[int], "value.a")]
    )
    def test_or_leads_nowhere(self, type_: Any, text: str) -> None:
        with pytest.raises(LookupError):
            type_at(path(text), type_)

    def test_objects_of_one_form_are_one_type(self) -> None:
        wait = {"op": "wait_for", "name": "go", "type": {"object": {"n": "integer", "tags?": {"list": "string"}}}}
        assert read(wait) == read(wait)
        assert read(wait).to_spec()["entries"] == [wait]

    def test_the_model_gives_a_schema_to_write_by(self) -> None:
        schema = json.dumps(WorkflowSpec.model_json_schema())
        assert all(f'"{op}"' in schema for op in OPS)


class TestProblems:
    def test_an_unknown_step_is_named_with_one_it_may_have_meant(self) -> None:
        assert problems(spec(THEN, {"op": "then", "step": "incremet"})) == {
            "entries[1].step": "there is no step 'incremet'; did you mean 'increment'?"
        }

    @pytest.mark.parametrize(
        ("entry", "where", "message"),
        [
            ({"op": "then", "step": "shout"}, "", "'double' gives int, but 'shout' takes str"),
            ({"op": "foreach", "step": "double", "id": "each"}, "", "'double' gives int, but 'each' takes list[int]"),
            ({"op": "map", "to": {"path": "value.item"}}, "", "the path value.item leads nowhere: int has no parts"),
            ({"op": "branch", "arms": [{"when": {"gt": [{"path": "value.n"}, 1]}, "step": "increment"}]}, ".arms[0]", "int has no parts"),
            ({"op": "map", "to": {"path": "count"}}, ".to", "count is known to the condition of a loop only"),
            ({"op": "branch", "arms": [{"when": {"gt": [{"path": "count"}, 1]}, "step": "increment"}]}, ".arms[0]", "count is known"),
            ({"op": "then"}, "", "either a step or a workflow"),
            ({"op": "then", "step": "increment", "workflow": "w"}, "", "either a step or a workflow"),
            ({"op": "then", "workflow": "nobody"}, "", "there is no workflow 'nobody'"),
            ({"op": "then", "step": "increment", "retries": 3}, ".retries", "no such key here; there are step workflow version id op"),
            ({"op": "when"}, "", "an entry has an op, one of then parallel"),
            ({}, "", "an entry has an op"),
            ("then", "", "not 'then'"),
            ({"op": "then", "step": 3}, ".step", "valid string, not 3"),
            ({"op": "then", "step": "increment", "id": "a/b"}, ".id", "match pattern"),
            ({"op": "then", "step": "increment", "id": "double"}, "", "two entries called 'double'"),
            ({"op": "parallel", "nodes": []}, ".nodes", "at least 1 item"),
            ({"op": "parallel", "nodes": [{"step": "increment"}, {"step": "nope"}]}, ".nodes[1].step", "no step 'nope'"),
            ({"op": "parallel", "nodes": [{"step": "increment"}], "limit": 0}, ".limit", "greater than or equal to 1"),
            ({"op": "branch", "arms": [{"step": "increment"}]}, ".arms[0].when", "it is missing"),
            ({"op": "branch", "arms": [{"when": {"like": 1}, "step": "increment"}]}, ".arms[0].when", "no operator 'like'"),
            ({"op": "branch", "arms": [{"when": {"call": "is-bog"}, "step": "increment"}]}, ".arms[0].when", "did you mean 'is-big'?"),
            ({"op": "branch", "arms": [{"when": {"eq": [1, 1]}, "step": "increment"}], "otherwise": {"step": "x"}}, ".otherwise.step", "no step 'x'"),
            ({"op": "dowhile", "step": "increment", "when": {"eq": [1, 1]}}, ".max_iterations", "it is missing"),
            ({"op": "dowhile", "step": "increment", "when": {"eq": [1, 1]}, "max_iterations": 0}, ".max_iterations", "greater than"),
            ({"op": "dowhile", "step": "increment", "when": {"eq": [1, 1]}, "max_iterations": True}, ".max_iterations", "valid integer"),
            ({"op": "foreach", "step": "increment", "concurrency": 0}, ".concurrency", "greater than or equal to 1"),
            ({"op": "map"}, "", "either `to`, a template, or `call`"),
            ({"op": "map", "call": "nothing"}, ".call", "no function 'nothing'"),
            ({"op": "map", "to": {"a": {"path": "amount"}}}, ".to.a", "must begin with value"),
            ({"op": "sleep", "seconds": -1}, "", "0 to"),
            ({"op": "sleep", "seconds": "soon"}, ".seconds", "seconds is a number"),
            ({"op": "sleep", "seconds": True}, ".seconds", "seconds is a number"),
            ({"op": "sleep_until", "until": "2030-01-01T00:00:00"}, "", "aware datetime"),
            ({"op": "sleep_until", "until": "tomorrow"}, ".until", "a time with a zone"),
            ({"op": "sleep_until", "until": 3}, ".until", "a time with a zone"),
            ({"op": "wait_for", "name": "$cancel"}, ".name", "match pattern"),
            ({"op": "wait_for", "name": "go", "type": "int"}, ".type", "a type is one of any string integer"),
            ({"op": "wait_for", "name": "go", "type": {"list": {"named": "ordr"}}}, ".type.list.named", "no type 'ordr'; there are order"),
            ({"op": "wait_for", "name": "go", "timeout_s": -1}, ".timeout_s", "greater than or equal to 0"),
            ({"op": "authored", "call": "everything"}, ".call", "no value 'everything'"),
        ],
    )  # fmt: skip
    def test_each_says_where_and_what(self, entry: Any, where: str, message: str) -> None:
        ((at, what),) = problems(spec(THEN, entry)).items()
        assert at == f"entries[1]{where}"
        assert message in what

    @pytest.mark.parametrize(
        ("change", "where", "message"),
        [
            ({"id": None}, "id", "valid string"),
            ({"id": "a/b"}, "id", "pattern"),
            ({"version": "1@2"}, "version", "pattern"),
            ({"entries": []}, "entries", "1 to 100 entries, not 0"),
            ({"entries": {}}, "entries", "a list"),
            ({"entries": [THEN] * (BOUNDS.entries + 1)}, "entries", f"not {BOUNDS.entries + 1}"),
            ({"steps": []}, "steps", "no such key"),
            ({"max_attempts": 0}, "max_attempts", "greater than"),
            ({"state": "integer?"}, "state", "a type is one of"),
            ({"callbacks": "x"}, "callbacks", "no value 'x'"),
            ({"definitions": {}}, "definitions", "valid list"),
            ({"definitions": [{}]}, "definitions[0]", "a workflow with an id"),
        ],
    )
    def test_so_does_the_head(self, change: dict[str, Any], where: str, message: str) -> None:
        found = problems({**spec(THEN), **change})
        assert message in found[where], found

    def test_all_are_reported_at_once(self) -> None:
        inner = {"id": "inner", "entries": [{"op": "then", "step": "nope"}], "more": 1}
        found = problems(
            spec(
                THEN,
                {"op": "then", "step": "shout"},
                {"op": "map", "to": {"path": "x"}},
                {"op": "wait_for", "name": "go", "typ": "any"},
                {"op": "then", "workflow": inner},
                extra=1,
            )
        )
        assert sorted(found) == [
            "entries[1]", "entries[2].to", "entries[3].typ", "entries[4].workflow.entries[0].step", "entries[4].workflow.more", "extra",
        ]  # fmt: skip

    def test_nothing_of_a_definition_that_nobody_uses_is_overlooked(self) -> None:
        found = problems(spec(THEN, definitions=[{"id": "spare", "entries": [{"op": "then", "step": "nope"}]}]))
        assert list(found) == ["definitions[0].entries[0].step"]

    @pytest.mark.parametrize("data", [None, [], "w", {"id": object()}, {1, 2}])
    def test_what_is_no_json_object_is_refused(self, data: Any) -> None:
        assert list(problems(data)) == [""]


class TestBounds:
    def test_workflows_that_name_each_other_in_a_circle_are_refused(self) -> None:
        a = {"id": "a", "entries": [{"op": "then", "workflow": "b"}]}
        b = {"id": "b", "entries": [{"op": "then", "step": "double"}, {"op": "then", "workflow": "a"}]}
        found = problems(spec({"op": "then", "workflow": "a"}, definitions=[a, b]))
        assert found == {"definitions[1].entries[1]": "a cycle: a → b → a"}

    def test_a_workflow_cannot_hold_itself(self) -> None:
        assert problems(spec(THEN, {"op": "then", "workflow": "w"})) == {"entries[1]": "a cycle: w → w"}

    def test_an_older_version_of_itself_it_can(self) -> None:
        old = workflow("w", version="1").then(double).commit()
        Workflow.from_spec(spec({"op": "then", "workflow": "w", "version": "1"}, version="2"), Registry([old]))

    def test_bytes_are_bounded(self) -> None:
        assert "bytes" in problems(spec({"op": "map", "to": "x" * BOUNDS.bytes}))[""]

    def test_nesting_is_bounded(self) -> None:
        nested: dict[str, Any] = spec(THEN)
        for n in range(BOUNDS.nesting):
            nested = {"id": f"w{n}", "entries": [{"op": "then", "workflow": nested}]}
        (message,) = problems(nested).values()
        assert f"nested {BOUNDS.nesting} deep" in message

    def test_nesting_by_name_is_bounded_too(self) -> None:
        chain = [{"id": f"w{n}", "entries": [{"op": "then", "workflow": f"w{n + 1}"}]} for n in range(300)]
        found = problems(
            spec({"op": "then", "workflow": "w0"}, definitions=[*chain, {"id": "w300", "entries": [THEN]}])
        )
        assert all("nested 8 deep" in message for message in found.values())

    def test_a_few_definitions_cannot_stand_for_millions_of_steps(self) -> None:
        def definition(level: int) -> dict[str, Any]:
            inner = [{"step": "double", "id": f"s{n}"} for n in range(50)]
            if level:
                inner = [{"workflow": f"copy{level - 1}"}]
            return {"id": f"copy{level}", "entries": [{"op": "parallel", "nodes": inner}]}

        def wide(level: int) -> dict[str, Any]:
            """Names the level below it through fifty workflows of its own."""
            uses = [
                {"workflow": {"id": f"u{n}", "entries": [{"op": "then", "workflow": f"wide{level - 1}"}]}}
                for n in range(50)
            ]
            return {"id": f"wide{level}", "entries": [{"op": "parallel", "nodes": uses}]}

        bottom = {
            "id": "wide0",
            "entries": [{"op": "parallel", "nodes": [{"step": "double", "id": f"s{n}"} for n in range(50)]}],
        }
        found = problems(
            spec({"op": "then", "workflow": "wide2"}, definitions=[wide(2), wide(1), bottom, definition(0)])
        )
        assert any("nodes, counted as often as they are used" in message for message in found.values())

    def test_json_nested_without_end_is_refused(self) -> None:
        data: Any = 1
        for _ in range(100_000):
            data = [data]
        assert list(problems(spec({"op": "map", "to": data}))) == [""]

    def test_a_spec_reaches_only_what_it_was_given(self) -> None:
        """A catalogue has no places: a definition can't reach into the workflows that a process has registered."""
        secret = workflow("secret").then(double.named("pay")).commit()
        assert same(Workflow.from_spec(secret.to_spec(), Registry([secret])), secret)
        assert list(problems(secret.to_spec(), CATALOGUE)) == ["entries[0].step"]
        assert list(problems(spec({"op": "then", "step": "__class__"}))) == ["entries[0].step"]


class TestBuilder:
    """What is checked in a spec is checked in the builder, too."""

    def test_a_condition_looks_at_what_is_there(self) -> None:
        with pytest.raises(DefinitionError, match="Order has no field 'amuont'; it has item, amount"):
            workflow("w").then(place).branch((path("value.amuont").gt(1), place.named("again"))).commit()

    def test_a_projection_has_a_type(self) -> None:
        with pytest.raises(BoundaryError, match="'map-1' gives str, but 'double' takes int"):
            workflow("w").then(place).map(project(path("value.item"))).then(double).commit()

    def test_a_projected_object_must_fit_the_model_that_takes_it(self) -> None:
        with pytest.raises(BoundaryError, match=r"gives \{item: str\}, but 'place' takes Order"):
            workflow("w").then(double).map(project({"item": "tent"})).then(place).commit()
        workflow("w").then(double).map(project({"item": "tent", "amount": path("value")})).then(place).commit()

    @pytest.mark.parametrize("name", ["$cancel", "", "a/b"])
    def test_a_signal_cannot_have_a_reserved_name(self, name: str) -> None:
        with pytest.raises(DefinitionError, match="name"):
            workflow("w").wait_for(name, int).commit()

    def test_a_version_is_free_of_reserved_characters(self) -> None:
        with pytest.raises(DefinitionError, match="version"):
            workflow("w", version="1/2")

    def test_a_catalogue_has_no_two_of_a_name(self) -> None:
        with pytest.raises(DefinitionError, match="two of a name: step 'double'"):
            Catalogue(double, increment.named("double"))
        with pytest.raises(DefinitionError, match="free of"):
            Catalogue(functions={"a@b": is_big})
