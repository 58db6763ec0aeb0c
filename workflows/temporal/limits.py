"""What runs in Temporal can't do that runs in a store can, and what to use instead. docs/temporal.md lists the same."""

from workflows.errors import UnsupportedError

LIMITS = {
    "writes": "rows can't ride in the commit of a step or a start: Temporal keeps the run, a store the rows. Write them in an IDEMPOTENT"
    " step, under ctx.idempotency_key",
    "approvals": "an approval can't be decided and its thread woken in one statement. Let a step ask with ctx.suspend, and answer with"
    " Run.resume",
    "schedules": "schedules are rows of a store, fired by its clock. Use Temporal's own schedules",
    "doctor": "the doctor looks at the runs of a store. Use Temporal's UI, or Engine.runs",
    "letters": "a signal that nobody read is kept in the history of its ended run. Send it again with Engine.signal_with_start",
    "fork": "time travel forks the records of a store. Reset the workflow with Temporal's own tools, or start a new run",
    "paused": "a paused run takes one step at a time in a store only. Use Temporal's UI, or a store on your desk",
    "redrive": "a dead run can't be put back to work. Start a new one",
    "queues": "a run has no queue of its own. Start an engine on another fleet, and start the run there",
    "priority": "those of one queue are taken in Temporal's own order. Start what is urgent in an engine on another fleet",
}


def unsupported(purpose: str) -> UnsupportedError:
    """The error that says that runs in Temporal can't do it."""
    return UnsupportedError(f"runs are in Temporal: {LIMITS[purpose]}")
