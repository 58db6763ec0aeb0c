"""Conditions as data: what each operator says of every kind of value, in JSON and in the builder alike."""

import dataclasses
import json
from datetime import UTC, datetime
from enum import Enum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from workflows.definition.conditions import MAX_DEPTH, MAX_TERMS, OPS, Condition, read_condition
from workflows.definition.paths import MISSING, Path, Scope, path
from workflows.errors import DefinitionError


class Colour(Enum):
    RED = "red"


class Line(BaseModel):
    price: int
    colour: Colour = Colour.RED


@dataclasses.dataclass(frozen=True)
class Order:
    lines: list[Line]
    at: datetime
    note: str | None = None

    @property
    def trap(self) -> str:
        raise AssertionError("a path calls nothing")


ORDER = Order([Line(price=3), Line(price=5)], datetime(2026, 1, 2, tzinfo=UTC))


def read(data: Any) -> tuple[Condition | None, list[tuple[str, str]]]:
    problems: list[tuple[str, str]] = []
    return read_condition(data, report=lambda place, message: problems.append((place, message)), place="when"), problems


def holds(data: Any, value: Any, **more: Any) -> bool:
    condition, problems = read(data)
    assert condition is not None, problems
    assert read(condition.to_json()) == (condition, [])
    return condition.holds(Scope(value, **more))


class TestPaths:
    @pytest.mark.parametrize(
        ("text", "found"),
        [
            ("value.lines[0].price", 3),
            ("value.lines[-1].price", 5),
            ("value.lines[2].price", MISSING),
            ("value.lines.price", MISSING),
            ("value.note", None),
            ("value.note.length", MISSING),
            ("value.trap", MISSING),
            ("value.__class__", MISSING),
            ("value.lines[0].model_dump", MISSING),
            ("state.tries", 2),
            ("state.nothing", MISSING),
            ('state["a.b"]', 1),
            ("count", 4),
        ],
    )
    def test_a_path_reads_what_is_there_and_calls_nothing(self, text: str, found: Any) -> None:
        at = path(text)
        assert str(at) == text
        assert at.read(Scope(ORDER, {"tries": 2, "a.b": 1}, 4)) == found

    @pytest.mark.parametrize(
        "text", ["", "price", "value..a", "value[x]", "value[0", "value.a[", "values.a", 'value["a]', "count.a"]
    )
    def test_what_is_no_path_is_refused(self, text: str) -> None:
        with pytest.raises(DefinitionError, match="path"):
            path(text)

    def test_a_path_is_bounded(self) -> None:
        with pytest.raises(DefinitionError, match="32 parts"):
            path("value" + ".a" * 40)
        with pytest.raises(DefinitionError, match="characters"):
            path("value." + "a" * 2000)

    @given(st.lists(st.text(min_size=1) | st.integers(-999, 999), max_size=8))
    def test_every_path_can_be_written(self, parts: list[str | int]) -> None:
        at = Path("value", tuple(parts))
        assert path(str(at)) == at


class TestOperators:
    @pytest.mark.parametrize(
        ("data", "true"),
        [
            ({"eq": [{"path": "value.lines[0].price"}, 3]}, True),
            ({"eq": [{"path": "value.lines[0].price"}, 3.0]}, True),
            ({"eq": [{"path": "value.lines[0].price"}, "3"]}, False),
            ({"ne": [{"path": "value.lines[0].price"}, "3"]}, True),
            ({"eq": [{"path": "value.lines[0].colour"}, "red"]}, True),
            ({"eq": [{"path": "value.lines[0]"}, {"price": 3, "colour": "red"}]}, True),
            ({"eq": [{"path": "value.at"}, "2026-01-02T00:00:00Z"]}, True),
            ({"eq": [True, 1]}, False),
            ({"eq": [[1, [2]], [1, [2]]]}, True),
            ({"eq": [[1], [1, 2]]}, False),
            ({"lt": [{"path": "value.lines[0].price"}, {"path": "value.lines[1].price"}]}, True),
            ({"lte": [3, 3]}, True),
            ({"gt": [3, 3]}, False),
            ({"gte": [3, 3]}, True),
            ({"lt": ["a", "b"]}, True),
            ({"gt": ["b", "a"]}, True),
            ({"in": [3, [1, 2, 3]]}, True),
            ({"in": [True, [1]]}, False),
            ({"in": ["en", "tent"]}, True),
            ({"in": [1, "1"]}, False),
            ({"in": [1, None]}, False),
            ({"in": ["a", {"literal": {"path": "a"}}]}, False),
            ({"exists": {"path": "value.note"}}, True),
            ({"exists": {"path": "value.nothing"}}, False),
            ({"not": {"exists": {"path": "value.nothing"}}}, True),
            ({"and": [{"eq": [1, 1]}, {"eq": [1, 2]}]}, False),
            ({"or": [{"eq": [1, 1]}, {"eq": [1, 2]}]}, True),
            ({"eq": [{"literal": {"path": "value"}}, {"literal": {"path": "value"}}]}, True),
        ],
    )
    def test_what_each_says(self, data: Any, true: bool) -> None:
        assert holds(data, ORDER) is true

    @pytest.mark.parametrize("op", ["lt", "lte", "gt", "gte"])
    @pytest.mark.parametrize("clash", ["text", None, True, [1], {"a": 1}, {"path": "value.nothing"}])
    def test_what_has_no_order_is_neither_less_nor_greater(self, op: str, clash: Any) -> None:
        assert not holds({op: [clash, 1]}, ORDER)
        assert not holds({op: [1, clash]}, ORDER)

    def test_missing_reads_as_null(self) -> None:
        missing, null = {"path": "value.nothing"}, {"path": "value.note"}
        assert holds({"eq": [missing, None]}, ORDER)
        assert holds({"eq": [missing, null]}, ORDER)
        assert holds({"ne": [missing, 1]}, ORDER)
        assert holds({"in": [missing, [None]]}, ORDER)

    def test_what_has_no_json_form_reads_as_null(self) -> None:
        assert holds({"eq": [{"path": "value.it"}, None]}, {"it": object()})
        circle: list[Any] = []
        circle.append(circle)
        assert holds({"eq": [{"path": "value"}, None]}, circle)

    def test_values_nested_deeper_than_the_stack_are_compared(self) -> None:
        deep: Any = []
        for _ in range(5_000):
            deep = [deep]
        assert holds({"eq": [1, 1]}, deep)
        assert not holds({"eq": [{"path": "value"}, 1]}, deep)

    def test_state_and_count_are_known(self) -> None:
        assert holds({"gte": [{"path": "count"}, {"path": "state.bound"}]}, None, state={"bound": 3}, count=3)
        assert holds({"eq": [{"path": "count"}, None]}, None)

    @given(
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
            lambda it: st.lists(it) | st.dictionaries(st.text(), it),
        )
    )
    def test_every_value_gives_an_answer_and_opposites_differ(self, value: Any) -> None:
        at = path("value")
        assert at.eq("x")(value) is not at.ne("x")(value)
        for op in ("lt", "lte", "gt", "gte", "in"):
            assert Condition(op, (at, at))(value) in (True, False)


class TestBuilding:
    def test_the_builders_form_and_json_are_the_same(self) -> None:
        built = path("value.amount").gt(100) & ~path("state.by").exists() | path("value.tag").in_(["a", "b"])
        assert built.to_json() == {
            "or": [
                {"and": [{"gt": [{"path": "value.amount"}, 100]}, {"not": {"exists": {"path": "state.by"}}}]},
                {"in": [{"path": "value.tag"}, ["a", "b"]]},
            ]
        }
        assert read(built.to_json())[0] == built
        assert built({"amount": 101, "tag": "c"})
        assert not built({"amount": 101, "tag": "c"}, state={"by": "ada"})

    def test_a_long_chain_is_one_list(self) -> None:
        chained = path("value").eq(0)
        for n in range(1, 50):
            chained |= path("value").eq(n)
        assert (chained.depth, chained(49), chained(50)) == (2, True, False)

    @pytest.mark.parametrize("op", OPS)
    def test_every_operator_comes_back_from_json(self, op: str) -> None:
        inner = {"eq": [{"path": "value"}, 1]}
        data = {
            op: inner
            if op == "not"
            else {"path": "value"}
            if op == "exists"
            else [inner, inner]
            if op in ("and", "or")
            else [1, 2]
        }
        condition, problems = read(json.loads(json.dumps(data)))
        assert condition is not None, problems
        assert condition.to_json() == data

    @pytest.mark.parametrize("literal", [object(), float("inf"), {1: object()}])
    def test_a_literal_is_json(self, literal: Any) -> None:
        with pytest.raises(DefinitionError, match="JSON"):
            path("value").eq(literal)


class TestProblems:
    @pytest.mark.parametrize(
        ("data", "place", "message"),
        [
            ("x", "when", "one key"),
            ({}, "when", "one key"),
            ({"eq": [1, 1], "ne": [1, 1]}, "when", "one key"),
            ({"like": [1, 2]}, "when", "no operator 'like'"),
            ({"eq": [1]}, "when.eq", "two operands, not 1"),
            ({"eq": 1}, "when.eq", "takes a list"),
            ({"and": []}, "when.and", "at least one"),
            ({"exists": 1}, "when.exists", "takes a path"),
            ({"not": 1}, "when.not", "one key"),
            ({"and": [{"eq": [1, 1]}, {"gt": [{"path": "amount"}, 1]}]}, "when.and[1].gt[0]", "must begin with value"),
            ({"eq": [{"path": 1}, 1]}, "when.eq[0]", "a path is text"),
        ],
    )
    def test_a_bad_condition_says_where_and_what(self, data: Any, place: str, message: str) -> None:
        condition, problems = read(data)
        assert condition is None
        ((where, what),) = problems
        assert where == place
        assert message in what

    def test_several_are_found_at_once(self) -> None:
        _, problems = read({"or": [{"like": 1}, {"eq": [1]}, {"gt": [{"path": "x"}, 1]}]})
        assert [place for place, _ in problems] == ["when.or[0]", "when.or[1].eq", "when.or[2].gt[0]"]

    def test_depth_and_size_are_bounded(self) -> None:
        deep: Any = {"eq": [1, 1]}
        for _ in range(MAX_DEPTH):
            deep = {"not": deep}
        assert "deep" in read(deep)[1][0][1]
        assert "terms" in read({"and": [{"eq": [1, 1]}] * MAX_TERMS})[1][0][1]
        with pytest.raises(DefinitionError, match="terms"):
            Condition("and", (path("value").eq(1),) * MAX_TERMS)
