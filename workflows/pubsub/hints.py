"""Hints: events that may be lost, because the rows in storage say the same and whoever needs it asks them."""

from workflows.pubsub.base import Event, PubSub, PubSubUnavailableError


def run_topic(tenant: str, run_id: str, key: str | None) -> str:
    """The topic of a run's events: that of its thread, which all runs of a key share, or its own. Each event has the `run_id` in its data."""
    return f"{tenant}:thread:{key}" if key is not None else f"{tenant}:run:{run_id}"


def is_of(tenant: str, topic: str, event: Event) -> bool:
    """Whether an event is a tenant's: it is in the topic of one of its threads or runs, or its data names it as `tenant`."""
    return topic.startswith((f"{tenant}:thread:", f"{tenant}:run:")) or event.data.get("tenant") == tenant


def wake_topic(queue: str) -> str:
    """The topic that wakes one of the workers that serve `queue`."""
    return {"default": "wake", "tasks": "tasks"}.get(queue, f"wake:{queue}")


async def hint(pubsub: PubSub, topic: str, event: Event) -> bool:
    """Publish it. False: the bus is away, and nobody is told."""
    try:
        await pubsub.publish(topic, event)
    except PubSubUnavailableError:
        return False
    return True
