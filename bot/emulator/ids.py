"""Identifiers in Slack's form. Random, so that an app which keeps them for long never meets one twice after a restart."""

import secrets

ALPHABET = "ABCDEFGHJKLMNPQRSTUVWXYZ0123456789"


def new_id(prefix: str, length: int = 10) -> str:
    """`prefix` and upper-case letters and digits, for example ``Ev0A6X…``."""
    return prefix + "0" + "".join(secrets.choice(ALPHABET) for _ in range(length))


def new_secret(prefix: str) -> str:
    """A value nobody can guess: token, code, response URL."""
    return prefix + secrets.token_hex(16)
