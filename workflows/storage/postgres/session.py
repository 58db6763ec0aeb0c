"""What every session must have, asked for when it begins and then asserted: a pooler in between may have dropped it."""

from typing import Any

from workflows.errors import DurabilityError

SETTINGS = {"synchronous_commit": "on", "default_transaction_isolation": "read committed", "timezone": "UTC"}

STANDING = "select current_setting('transaction_isolation'), current_setting('synchronous_commit')"

DURABLE = ("on", "remote_apply")


async def assert_durable(connection: Any) -> None:
    """Raise DurabilityError unless what is acknowledged here survives, and statements see what was committed before them.

    Without `synchronous_commit` a crash of the server took up to 500 of 1,500 acknowledged rows. The statements lock the run's row and
    check its fence anew once they have the lock, which only READ COMMITTED does.
    """
    isolation, commit = await connection.fetchrow(STANDING)
    if isolation != "read committed":
        raise DurabilityError(
            f"this PostgreSQL session has the isolation level {isolation!r} and needs 'read committed'. Set "
            "default_transaction_isolation so for this role, or let the connection pooler pass it on"
        )
    if commit not in DURABLE:
        raise DurabilityError(
            f"this PostgreSQL session has synchronous_commit = {commit} and needs 'on': what is acknowledged could be lost. "
            "Set it so for this role, or let the connection pooler pass it on"
        )
