"""Names of runs in Temporal. A run with a key is an execution of the one workflow id of its tenant, workflow and key, so that one is live."""

from urllib.parse import quote

from workflows.errors import InputError
from workflows.temporal.messages import RunFacts

MAX_CHARS = 900
"""Temporal takes workflow ids of 1,000 characters."""


def run_name(run: RunFacts) -> str:
    """What names a run, or all runs of its key, within one fleet."""
    if run.key is None:
        return quoted(run.run_id)
    return "/".join(map(quoted, (run.tenant, run.workflow, run.key)))


def run_id_of(run: RunFacts, execution: str) -> str:
    """The id of a run: with a key, its name and the execution of that name; the name alone is the newest one's."""
    return run_name(run) if run.key is None else f"{run_name(run)}@{execution}"


def workflow_id(fleet: str, run: RunFacts) -> str:
    """The workflow id of a run. Raises InputError if it would be too long."""
    found = f"{fleet}:{run_name(run)}"
    if len(found) > MAX_CHARS:
        raise InputError(f"tenant, workflow and key make a name of {len(found)} characters; Temporal takes {MAX_CHARS}")
    return found


def fleet_of(workflow: str) -> str:
    """The fleet that a workflow id is of."""
    return workflow.partition(":")[0]


def address(fleet: str, run_id: str) -> tuple[str, str | None]:
    """Workflow id and execution (None: the newest) of the run called `run_id`."""
    name, _, execution = run_id.partition("@")
    return f"{fleet}:{name}", execution or None


def queue_of(fleet: str, workflow: str, version: str) -> str:
    """The task queue of a workflow: only processes that know this version take its tasks."""
    return f"{fleet}/{quoted(workflow)}@{version}"


def received_id(fleet: str, tenant: str, dedup_key: str) -> str:
    """The workflow id that marks an outside event as accepted."""
    return f"{fleet}:{quoted(tenant)}/$received/{quoted(dedup_key)}"


def quoted(part: str) -> str:
    """A part of a name without what is special in names, and in what visibility is asked: it can't find a quotation mark at all."""
    return quote(part, safe=".-_~ ")
