"""Runs recorded by an earlier version of the code are replayed by today's: a graph that would strand them is noticed here, before it is deployed.

After a deliberate change of version, record anew: `python -m tests.recorded <story>`. Stories not kept yet are recorded by `python -m tests.recorded`.
"""

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.recorded import operations, product
from tests.recorded.kept import KeptRun, Story, file_name, kept
from workflows import RunState, Workflow, workflow
from workflows.definition.graph import Branch, ForEach, Loop, Parallel, Then
from workflows.errors import DivergedError
from workflows.running.replay import verify

Graph = Workflow[Any, Any]
NAMES = {file_name(name): name for name in (*operations.CASES, *product.STORIES)}


def graphs(story: str) -> dict[str, Graph]:
    """Today's workflows of a story, by id."""
    name = NAMES[story]
    found = operations.flows(name) if name in operations.CASES else product.flows(name)
    return {each.id: each for each in found}


async def replayed(run: KeptRun, graph: Graph) -> None:
    assert graph.version == run.version, (
        f"{graph.id} is at version {graph.version}, and this story is of version {run.version}: record it anew (see above)"
    )
    await verify(graph, run.row(), run.recorded())


def test_every_story_is_kept_and_every_kept_story_is_known() -> None:
    assert kept() == sorted(NAMES)


@pytest.mark.parametrize("story", kept())
async def test_a_recorded_run_comes_to_its_end_over_todays_code(story: str) -> None:
    for run in Story.read(story).runs:
        await replayed(run, graphs(story)[run.workflow])


def test_the_stories_come_to_every_end() -> None:
    """And those of the product are of every workflow it has."""
    runs = [run for story in kept() for run in Story.read(story).runs]
    assert {run.state for run in runs} >= {RunState.DONE, RunState.FAILED, RunState.CANCELLED}
    assert {each.id for each in product.flows("report")} <= {run.workflow for run in runs}


def renamed(node: Any, old: str, new: str) -> Any:
    """The graph with a step that has another id."""
    if isinstance(node, Workflow):
        return replace(node, entries=tuple(_in_entry(entry, old, new) for entry in node.entries))
    return node.named(new) if node.id == old else node


def _in_entry(entry: Any, old: str, new: str) -> Any:
    match entry:
        case Then():
            node = renamed(entry.node, old, new)
            return replace(entry, id=node.id, node=node)
        case Parallel():
            return replace(entry, nodes=tuple(renamed(node, old, new) for node in entry.nodes))
        case Branch():
            arms = tuple((condition, renamed(node, old, new)) for condition, node in entry.arms)
            otherwise = None if entry.otherwise is None else renamed(entry.otherwise, old, new)
            return replace(entry, arms=arms, otherwise=otherwise)
        case ForEach() | Loop():
            node = renamed(entry.node, old, new)
            return replace(entry, node=node, id=node.id if entry.id == entry.node.id else entry.id)
    return entry


def recorded_steps(run: KeptRun) -> set[str]:
    """The ids of steps that have a record of their own."""
    names = (each.path.rpartition("/")[2] for each in run.records if not set(each.path) & set("!~@$"))
    return {re.sub(r"[#\[].*", "", name) for name in names}


@pytest.mark.parametrize("story", kept())
async def test_a_step_that_has_another_place_is_noticed_and_named(story: str) -> None:
    for run in Story.read(story).runs:
        graph = graphs(story)[run.workflow]
        for name in recorded_steps(run):
            if (changed := renamed(graph, name, "another")) == graph:
                continue  # a place of the graph's own, such as a sleep
            with pytest.raises(DivergedError, match=name):
                await replayed(run, changed)


def _then(*steps: Any) -> Graph:
    made: Any = workflow("then")
    for each in steps:
        made = made.then(each)
    committed: Graph = made.commit()
    return committed


def _two() -> tuple[list[Any], KeptRun]:
    """The steps of a graph, one after the other, and its run."""
    (run,) = Story.read("then").runs
    return [entry.node for entry in operations.flows("then")[0].entries if isinstance(entry, Then)], run


@pytest.mark.parametrize(
    ("change", "named"),
    [
        pytest.param(lambda one, two, three: (one, two), "three", id="left out at the end"),
        pytest.param(lambda one, two, three: (two, three), "one", id="left out at the beginning"),
        pytest.param(lambda one, two, three: (one, two, three, two.named("four")), "four", id="added at the end"),
        pytest.param(lambda one, two, three: (one, two.named("more"), two, three), "two", id="added in the middle"),
    ],
)
async def test_steps_that_come_and_go_are_noticed_and_named(change: Callable[..., Any], named: str) -> None:
    steps, run = _two()
    await verify(_then(*steps), run.row(), run.recorded())
    with pytest.raises(DivergedError, match=f"'{named}'.*another version"):
        await verify(_then(*change(*steps)), run.row(), run.recorded())


async def test_another_output_is_noticed() -> None:
    """What is computed between the records has no record; the end shows it."""
    steps, run = _two()
    changed = workflow("then").then(steps[0]).then(steps[1]).then(steps[2]).map(lambda n: n + 1).commit()
    with pytest.raises(DivergedError, match=r"gives 4.*gave 3"):
        await verify(changed, run.row(), run.recorded())


async def test_a_run_that_failed_and_would_not_fail_any_more_is_noticed() -> None:
    (run,) = Story.read("retry").runs
    failed = run.model_copy(
        update={"state": RunState.FAILED, "error": {"type": "BrokenError", "message": "no", "causes": []}}
    )
    (graph,) = operations.flows("retry")
    with pytest.raises(DivergedError, match=r"comes to its end.*BrokenError"):
        await verify(graph, failed.row(), failed.recorded())


async def test_another_type_of_what_was_recorded_is_noticed() -> None:
    steps, run = _two()
    lists = replace(steps[1], output=list[str])
    with pytest.raises(DivergedError, match=r"'three'.*the record of two"):
        await verify(_then(steps[0], lists, replace(steps[2], input=list[str])), run.row(), run.recorded())


async def test_a_version_that_was_raised_is_to_be_recorded_anew() -> None:
    steps, run = _two()
    with pytest.raises(AssertionError, match="record it anew"):
        await replayed(run, replace(_then(*steps), version="2"))
