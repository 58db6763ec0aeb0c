"""Logs: one JSON line per event outside development, secrets taken out before anything is written."""

import logging
import sys
from typing import Any

import structlog
from structlog.stdlib import ProcessorFormatter

from workflows.tracing import redact

_STAMP = structlog.processors.TimeStamper(fmt="iso", utc=True)


def configure_logs(level: str, *, people: bool) -> None:
    """Set up structlog, and libraries' own loggers in the same form, errors only. `people`: lines for a terminal instead of JSON."""
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            _STAMP,
            *_last(people=people),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(getattr(logging, level.upper())),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(library_lines(people=people))
    logging.basicConfig(level=logging.ERROR, handlers=[handler], force=True)


def library_lines(*, people: bool) -> logging.Formatter:
    """How what a library logs is written: as our own lines are, with the name of its logger."""
    return ProcessorFormatter(
        foreign_pre_chain=[structlog.stdlib.add_log_level, structlog.stdlib.add_logger_name, _STAMP],
        processors=[ProcessorFormatter.remove_processors_meta, *_last(people=people)],
    )


def _last(*, people: bool) -> tuple[Any, ...]:
    renderer: Any = structlog.dev.ConsoleRenderer() if people else structlog.processors.JSONRenderer()
    return structlog.processors.format_exc_info, _redacted, renderer


def _redacted(logger: Any, method: str, event: Any) -> Any:
    return redact(dict(event))
