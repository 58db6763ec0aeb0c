"""Slack's request signature, version 0 (docs.slack.dev/authentication/verifying-requests-from-slack)."""

import hashlib
import hmac


def signature_headers(secret: str, body: bytes, *, at_s: float) -> dict[str, str]:
    """Headers that prove `body` comes from Slack. `at_s` is real time: the app compares it with its own clock."""
    timestamp = str(int(at_s))
    digest = hmac.new(secret.encode(), b"v0:" + timestamp.encode() + b":" + body, hashlib.sha256).hexdigest()
    return {"X-Slack-Request-Timestamp": timestamp, "X-Slack-Signature": f"v0={digest}"}
