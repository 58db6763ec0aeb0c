"""Secrets taken out of values before they reach a log, a span or an exporter.

Anchored patterns by issuer rather than entropy: entropy detectors flag ordinary words and miss real keys.
"""

import re
from typing import Any

REDACTED = "[redacted]"

PATTERN = re.compile(
    r"xox[a-z](?:\.xox[a-z])?-[\w-]{8,}"  # Slack tokens
    r"|xapp-[\w-]{8,}"
    r"|xoxe-[\w-]{8,}"
    r"|sk-[A-Za-z0-9_-]{16,}"  # Anthropic, OpenAI
    r"|EAA[A-Za-z0-9]{20,}"  # Meta
    r"|ya29\.[\w-]{20,}|AIza[\w-]{30,}"  # Google
    r"|gh[pousr]_[A-Za-z0-9]{30,}"  # GitHub
    r"|AKIA[0-9A-Z]{16}"  # AWS
    r"|eyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]{5,}"  # JWT
    r"|(?<=://)[^/\s:@]+:[^/\s@]+(?=@)"  # credentials in a URL
    r"|v0=[0-9a-f]{64}"  # Slack signatures
)
SECRET_KEYS = re.compile(
    r"(?i)(token|secret|password|passwd|api_?key|authorization|cookie|signature|client_secret|refresh)$"
)


def redact(value: Any, *, depth: int = 6) -> Any:
    """A copy of `value` without secrets: by pattern in every string, by name in every mapping."""
    if isinstance(value, str):
        return PATTERN.sub(REDACTED, value)
    if depth == 0:
        return REDACTED
    if isinstance(value, dict):
        return {
            key: REDACTED if _names_a_secret(key, each) else redact(each, depth=depth - 1)
            for key, each in value.items()
        }
    if isinstance(value, list | tuple):
        return [redact(each, depth=depth - 1) for each in value]
    return value


def _names_a_secret(key: Any, value: Any) -> bool:
    return isinstance(value, str) and isinstance(key, str) and SECRET_KEYS.search(key) is not None
