"""Workflows as data: a JSON document for every workflow, and a workflow for every document that holds."""

from workflows.definition.spec.models import WorkflowSpec
from workflows.definition.spec.names import Names
from workflows.definition.spec.reader import read_spec
from workflows.definition.spec.writer import write_spec

__all__ = ["Names", "WorkflowSpec", "read_spec", "write_spec"]
