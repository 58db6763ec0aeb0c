"""Logs: one JSON line per event outside development, secrets taken out before anything is written."""

import logging
import sys
from typing import Any

import structlog

from workflows.tracing import redact


def configure_logs(level: str, *, people: bool) -> None:
    """Set up structlog. `people`: lines for a terminal instead of JSON."""
    number = getattr(logging, level.upper())
    logging.basicConfig(level=logging.ERROR, stream=sys.stderr, format="%(levelname)s %(name)s %(message)s")
    for handler in logging.getLogger().handlers:
        handler.addFilter(_redacting)
    renderer: Any = structlog.dev.ConsoleRenderer() if people else structlog.processors.JSONRenderer()
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            _redacted,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )


def _redacted(logger: Any, method: str, event: Any) -> Any:
    return redact(dict(event))


def _redacting(record: logging.LogRecord) -> bool:
    """Libraries' own messages pass the same patterns."""
    record.msg = redact(record.getMessage())
    record.args = ()
    return True
