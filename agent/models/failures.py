"""Which ModelError a failure of a provider's SDK means. Both SDKs come from one generator, so their exceptions have one shape."""

import math
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from agent.models.base import ModelAccessError, ModelError, ModelRequestError, ModelUnavailableError

# A failure inside a stream arrives under status 200; then the body's type tells.
_ACCESS_KINDS = {"authentication_error", "permission_error", "not_found_error", "billing_error", "insufficient_quota"}
_REQUEST_KINDS = {"invalid_request_error", "request_too_large", "context_length_exceeded"}
_ACCESS_STATUSES = {401, 402, 403, 404}
_TRY_AGAIN_STATUSES = {408, 409, 425, 429}

_LONGEST_RETRY_AFTER_S = 3_600.0


def translated(error: Exception, *, provider: str) -> ModelError:
    """The ModelError that says what the caller can do about `error`.

    429, 529, 5xx, time-outs, lost connections and whatever is unknown can be tried again; 401, 402, 403, 404 and spent credit
    need an operator; any other 4xx will fail the same way again.
    """
    status = getattr(error, "status_code", None) or 200
    kinds = _kinds(getattr(error, "body", None))
    message = (
        f"{provider} answered {status}: {error}" if status >= 400 else f"{provider}: {type(error).__name__}: {error}"
    )
    # Anthropic reports spent credit as an invalid request (400), OpenAI as a rate limit (429).
    if kinds & _ACCESS_KINDS or status in _ACCESS_STATUSES or "credit balance" in str(error).lower():
        return ModelAccessError(message)
    if status in _TRY_AGAIN_STATUSES or status >= 500:
        return ModelUnavailableError(message, retry_after_s=_retry_after_s(error))
    if status >= 400 or kinds & _REQUEST_KINDS:
        return ModelRequestError(message)
    return ModelUnavailableError(message)


def _kinds(body: Any) -> set[str]:
    if not isinstance(body, dict):
        return set()
    nested = body.get("error")
    inner = nested if isinstance(nested, dict) else body
    return {kind for kind in (inner.get("type"), inner.get("code")) if isinstance(kind, str)}


def _retry_after_s(error: Exception) -> float | None:
    """Retry-After in seconds, from a number or an HTTP date; None if there is none that makes sense."""
    headers = getattr(getattr(error, "response", None), "headers", {})
    value = headers.get("retry-after")
    if value is None:
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = (parsedate_to_datetime(value) - datetime.now(UTC)).total_seconds()
        except (ValueError, TypeError):
            return None
    return min(max(0.0, seconds), _LONGEST_RETRY_AFTER_S) if math.isfinite(seconds) else None
