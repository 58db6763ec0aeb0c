"""Payloads: how large they may be."""

from pydantic import BaseModel

from workflows.errors import InputError

MAX_BYTES = 1_900_000
"""Temporal refuses payloads of 2 MiB, and what carries one adds to it."""


def too_large(what: str, size: int) -> InputError:
    """The error that says so, and what to do."""
    return InputError(
        f"{what} is {size} bytes; Temporal takes {MAX_BYTES}. Keep large values in a store or a bucket, and pass their key on"
    )


def fitting(what: str, message: BaseModel) -> None:
    """Raise InputError if a message is too large to be sent."""
    if (size := len(message.model_dump_json())) > MAX_BYTES:
        raise too_large(what, size)
