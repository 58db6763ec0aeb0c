"""Workflows as data: a JSON document for every workflow, and a workflow for every document that holds."""

from workflows.spec.models import WorkflowSpec
from workflows.spec.names import Names
from workflows.spec.reader import read_spec
from workflows.spec.writer import write_spec

__all__ = ["Names", "WorkflowSpec", "read_spec", "write_spec"]
