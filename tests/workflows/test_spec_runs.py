"""Any workflow that can be written: its document comes back as it was, and runs as the graph does that the builder makes of it."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from workflows import Catalogue, Effect, Engine, Workflow, path, project, step, workflow
from workflows.definition.registry import Registry


@step(effect=Effect.READ)
async def double(n: int) -> int:
    return n * 2


@step(effect=Effect.PURE)
async def increment(n: int) -> int:
    return n + 1


STEPS = {each.id: each for each in (double, increment)}
MEANING: dict[str, Callable[[int], int]] = {"double": lambda n: n * 2, "increment": lambda n: n + 1}
CATALOGUE = Catalogue(double, increment)


@dataclass(frozen=True)
class Do:
    """One thing to do with a number. `name` makes its ids unique; `step` is one of STEPS."""

    kind: str
    name: int
    step: str
    number: int
    inner: tuple["Do", ...] = ()

    @property
    def id(self) -> str:
        return f"s{self.name}"

    def entries(self) -> list[dict[str, Any]]:
        """As a spec says it."""
        node = {"step": self.step, "id": self.id}
        value, limit = {"path": "value"}, self.number
        match self.kind:
            case "then":
                return [{"op": "then", **node}]
            case "project":
                to = {"op": "map", "to": {"kept": [value, limit]}}
                return [to, {"op": "map", "to": {"path": "value.kept[0]"}}]
            case "parallel":
                other = {"step": "increment", "id": f"{self.id}b"}
                both = {"op": "parallel", "nodes": [node, other], "limit": 1}
                return [both, {"op": "map", "to": {"path": f"value.{self.id}"}}]
            case "branch":
                arm = {"when": {"and": [{"gt": [value, limit]}, {"not": {"in": [value, [1, 2]]}}]}, **node}
                return [{"op": "branch", "arms": [arm], "otherwise": {"step": "increment", "id": f"{self.id}b"}}]
            case "until":
                when = {"or": [{"gte": [{"path": "count"}, 3]}, {"gt": [value, limit]}]}
                return [{"op": "dountil", **node, "when": when, "max_iterations": 3}]
            case "each":
                items = {"op": "map", "to": [value, limit]}
                return [items, {"op": "foreach", **node, "concurrency": 2}, {"op": "map", "to": {"path": "value[-1]"}}]
            case "sleep":
                return [{"op": "sleep", "seconds": 0}]
        return [{"op": "then", "workflow": {"id": self.id, "entries": entries_of(self.inner)}}]

    def build(self, flow: Any) -> Any:
        """As the builder says it."""
        node, value = STEPS[self.step].named(self.id), path("value")
        match self.kind:
            case "then":
                return flow.then(node)
            case "project":
                return flow.map(project({"kept": [value, self.number]})).map(project(path("value.kept[0]")))
            case "parallel":
                both = flow.parallel(node, increment.named(f"{self.id}b"), limit=1)
                return both.map(project(path(f"value.{self.id}")))
            case "branch":
                when = value.gt(self.number) & ~value.in_([1, 2])
                return flow.branch((when, node), otherwise=increment.named(f"{self.id}b"))
            case "until":
                when = path("count").gte(3) | value.gt(self.number)
                return flow.dountil(node, when, max_iterations=3)
            case "each":
                each = flow.map(project([value, self.number])).foreach(node, concurrency=2)
                return each.map(project(path("value[-1]")))
            case "sleep":
                return flow.sleep(0)
        return flow.then(built(self.inner, self.id))

    def mean(self, n: int) -> int:
        """What comes out, worked out without the engine."""
        does = MEANING[self.step]
        match self.kind:
            case "then" | "parallel":
                return does(n)
            case "branch":
                return does(n) if n > self.number and n not in (1, 2) else n + 1
            case "until":
                for _ in range(3):
                    n = does(n)
                    if n > self.number:
                        break
                return n
            case "each":
                return does(self.number)
            case "nested":
                for each in self.inner:
                    n = each.mean(n)
        return n


def entries_of(doing: tuple[Do, ...]) -> list[dict[str, Any]]:
    return [entry for each in doing for entry in each.entries()]


def built(doing: tuple[Do, ...], name: str) -> Workflow[Any, Any]:
    flow: Any = workflow(name)
    for each in doing:
        flow = each.build(flow)
    made: Workflow[Any, Any] = flow.commit()
    return made


@st.composite
def doings(draw: st.DrawFn, depth: int = 2) -> tuple[Do, ...]:
    kinds = ["then", "project", "parallel", "branch", "until", "each", "sleep", *(["nested"] if depth else [])]
    found = []
    for name in range(draw(st.integers(1, 4))):
        kind = draw(st.sampled_from(kinds))
        inner = draw(doings(depth - 1)) if kind == "nested" else ()
        found.append(Do(kind, name, draw(st.sampled_from(sorted(STEPS))), draw(st.integers(-5, 50)), inner))
    return tuple(found)


@given(doings())
def test_a_document_comes_back_as_it_was(doing: tuple[Do, ...]) -> None:
    graph = built(doing, "w")
    assert Workflow.from_spec({"id": "w", "entries": entries_of(doing)}, CATALOGUE) == graph
    document = json.loads(json.dumps(graph.to_spec()))
    again = Workflow.from_spec(document, Registry([graph]))
    assert (again, again.input, again.output, again.to_spec()) == (graph, graph.input, graph.output, document)


@settings(max_examples=25, deadline=None)
@given(doings(), st.integers(-3, 20))
async def test_what_is_written_at_run_time_runs_as_what_was_built(doing: tuple[Do, ...], value: int) -> None:
    graph = built(doing, "w")
    expected = value
    for each in doing:
        expected = each.mean(expected)
    async with Engine(workflows=[graph], catalogue=CATALOGUE, poll_s=0.05) as engine:
        runs = await engine.start(graph, value), await engine.author({"id": "w", "entries": entries_of(doing)}, value)
        assert [await run.result(timeout=20) for run in runs] == [expected, expected]
        recorded = [
            {(each.path, each.status, each.output) for each in await run.steps() if not each.path.endswith("@until")}
            for run in runs
        ]
        assert recorded[0] == recorded[1]
