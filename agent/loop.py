"""The agent's turn, as workflows: call the model, run its tools, take in what was said meanwhile, again; then deliver."""

from dataclasses import dataclass
from typing import Any

from agent.answer import Answers
from agent.apology import Apologies
from agent.calls import Calls
from agent.channel import DELIVERY_RETRY, Channel, Delivered
from agent.execution import BeforeTool, Execution
from agent.guidance import Guidance
from agent.history import History, NoHistory, Recollection
from agent.inbox import Inbox, Serves
from agent.lost import Teller, make_lost
from agent.models.base import Model
from agent.people import People
from agent.pictures import Pictures
from agent.reasoning import RETRY as MODEL_RETRY
from agent.reasoning import Reasoning
from agent.tools import Toolbox
from agent.turn import PendingCall, Turn
from workflows import Effect, Workflow, step, workflow
from workflows.storage import Store
from workflows.tracing import Tracer

LOOP = "agentic-loop"
NOTICE = "turn-notice"
MAX_ITERATIONS = 25
MAX_TOKENS = 2_000_000
"""Of all model calls of a turn, read and written."""
PARALLEL_TOOLS = 8


@dataclass(frozen=True, slots=True)
class Agent:
    """The agent's workflows: `turn` is started by signals at a thread's key; `notice` tells of a turn that has no answer."""

    turn: Workflow[None, Any]
    notice: Workflow[Any, Any]
    lost: Workflow[Any, Any] | None = None

    @property
    def workflows(self) -> tuple[Workflow[Any, Any], ...]:
        """What an engine has to know."""
        return (self.turn, self.notice, *((self.lost,) if self.lost else ()))


def make_agent(
    *,
    store: Store,
    model: Model,
    toolbox: Toolbox,
    guidance: Guidance,
    channel: Channel,
    people: People,
    tracer: Tracer,
    max_iterations: int = MAX_ITERATIONS,
    max_tokens: int = MAX_TOKENS,
    before_tool: BeforeTool | None = None,
    history: History | None = None,
    pictures: Pictures | None = None,
    serves: Serves | None = None,
    teller: Teller | None = None,
) -> Agent:
    """Compose the agent. Each part is an ordinary step, testable alone. `pictures`: for a model that can see. Without `serves`, all tenants are.
    `teller` tells whoever asked alone where an answer can't be posted.
    """
    inbox = Inbox(store, people, channel, serves=serves)
    reasoning = Reasoning(
        store=store,
        model=model,
        toolbox=toolbox,
        guidance=guidance,
        channel=channel,
        tracer=tracer,
        max_iterations=max_iterations,
        max_tokens=max_tokens,
        pictures=pictures,
    )
    execution = Execution(channel, tracer, before_tool=before_tool)
    calls = Calls(store, toolbox, channel, people, execution=execution, workflow=LOOP)
    answers = Answers(store, channel)
    recollection = Recollection(history or NoHistory())

    iteration = (
        workflow("agentic-execution")
        .branch((is_approved, _approved_calls(calls)), otherwise=nothing.named("nothing-approved"))
        .then(step(id="call-model", effect=Effect.READ, retry=MODEL_RETRY)(reasoning.call_model))
        .branch((is_calling, _model_calls(calls)), otherwise=nothing.named("nothing-asked"))
        .then(step(id="check-background-tasks", effect=Effect.PURE)(check_background_tasks))
        .then(step(id="drain-signals", effect=Effect.PURE)(inbox.drain))
        .then(step(id="is-task-complete", effect=Effect.PURE)(reasoning.is_task_complete))
        .commit()
    )
    recall = step(id="recall", effect=Effect.READ, retry=DELIVERY_RETRY)(recollection.recall)
    conversation = (
        workflow("conversation")
        .branch((is_newcomer, recall), otherwise=nothing.named("nothing-before"))
        .dowhile(iteration, is_continued, max_iterations=max_iterations)
        .then(
            step(id="deliver", effect=Effect.RECONCILE, reconcile=answers.find, retry=DELIVERY_RETRY)(answers.deliver)
        )
        .commit()
    )
    turn = (
        workflow(LOOP, version="3", on_failure=NOTICE)
        .then(step(id="open", effect=Effect.PURE)(inbox.open))
        .branch((is_continued, conversation), otherwise=step(id="rest", effect=Effect.PURE)(rest))
        .commit()
    )
    apologies = Apologies(store, channel)
    apology = step(id="apologise", effect=Effect.RECONCILE, reconcile=apologies.find, retry=DELIVERY_RETRY)(
        apologies.apologise
    )
    lost = make_lost(store, teller) if teller else None
    notice = workflow(NOTICE, on_failure=lost.id if lost else None).then(apology).commit()
    return Agent(turn=turn, notice=notice, lost=lost)


def is_continued(turn: Turn) -> bool:
    """Whether the loop goes on."""
    return turn.continued


def is_newcomer(turn: Turn) -> bool:
    """Whether the agent was brought into a thread that others began."""
    return turn.joined_at is not None


def is_approved(turn: Turn) -> bool:
    """Whether people have approved calls that are to run now."""
    return bool(turn.approved)


def is_calling(turn: Turn) -> bool:
    """Whether the model has asked for calls."""
    return bool(turn.calls)


@step(effect=Effect.PURE)
async def nothing(turn: Turn) -> Turn:
    """No calls to run."""
    return turn


async def check_background_tasks(turn: Turn) -> Turn:
    """Background tasks tell of themselves by signals, which the drain that follows takes in: nothing waits here."""
    return turn


async def rest(turn: Turn) -> Delivered:
    """Nothing was left to do: a stop covered it, or a background task had only finished."""
    return Delivered(message_ids=())


async def list_calls(turn: Turn) -> list[PendingCall]:
    """The calls the model asked for."""
    return turn.pending(turn.calls)


async def list_approved(turn: Turn) -> list[PendingCall]:
    """The calls that people have approved."""
    return turn.pending(turn.approved)


async def keep(turn: Turn) -> Turn:
    """Carry the turn past its calls."""
    return turn


def _model_calls(calls: Calls) -> Workflow[Turn, Turn]:
    run = step(id="run-tool", effect=calls.effect, retry=DELIVERY_RETRY, reconcile=calls.nothing_found)(calls.run)
    each = (
        workflow("tools")
        .then(step(id="list-calls", effect=Effect.PURE)(list_calls))
        .foreach(run, concurrency=PARALLEL_TOOLS)
        .commit()
    )
    return _beside("run-tools", each, calls)


def _approved_calls(calls: Calls) -> Workflow[Turn, Turn]:
    run = step(id="run-approved", effect=calls.effect, retry=DELIVERY_RETRY, reconcile=calls.nothing_found)(
        calls.run_approved
    )
    each = workflow("approved").then(step(id="list-approved", effect=Effect.PURE)(list_approved)).foreach(run).commit()
    return _beside("run-approved-calls", each, calls)


def _beside(name: str, each: Workflow[Turn, Any], calls: Calls) -> Workflow[Turn, Turn]:
    """Run the calls while the turn is carried along beside them, and put both together again."""
    return (
        workflow(name)
        .parallel(step(id="keep", effect=Effect.PURE)(keep), each)
        .then(step(id="collect", effect=Effect.PURE)(calls.collect))
        .commit()
    )
