"""Where a conversation takes place."""

from pydantic import BaseModel, ConfigDict


class Thread(BaseModel):
    """A conversation: tenant (a workspace), channel and root message. Two conversations never share memory."""

    model_config = ConfigDict(frozen=True)

    tenant: str
    channel: str
    root: str

    @property
    def key(self) -> str:
        """What one live turn is unique by, within the tenant."""
        return f"{self.channel}:{self.root}"

    @classmethod
    def of(cls, tenant: str, key: str) -> "Thread":
        """The inverse of `key`."""
        channel, _, root = key.partition(":")
        return cls(tenant=tenant, channel=channel, root=root)
