"""Dead letters from the command line, as an operator has it: another process, one workspace at a time."""

from datetime import timedelta
from pathlib import Path

import pytest

from agent.loop import LOOP
from bot.backends import TABLES
from tests.bot.test_dev import command, told
from tests.conformance.store.acts import new_id
from tests.waiting import until
from workflows.pubsub import Event, RedisPubSub
from workflows.storage import SqliteStore
from workflows.storage.base import NewRun, RunState

TURN, KEY, TOPIC = LOOP, "C1:1.5", "T1:thread:C1:1.5"


async def bury(path: Path) -> None:
    """A message in a thread of T1 that two turns ended without reading."""
    store = SqliteStore(path, tables=TABLES)
    await store.open()
    await store.signal_with_start(
        NewRun(new_id(), "T1", TURN, key=KEY), name="message", dedup_key="m1", payload=b'"for nobody else"'
    )
    await store.register("A", host="h", deployment="", lease=timedelta(minutes=1))
    for _ in range(2):
        (run,) = await store.claim("A", queues=["default"], workflows=[(TURN, "1")], limit=1)
        await store.end(run.run_id, run.fence, RunState.FAILED, inbox_seen=1, successor_id=new_id())
    await store.close()


async def give_up(redis_url: str, prefix: str) -> None:
    """An event in that thread which its group could not handle."""
    bus = RedisPubSub(redis_url, prefix, max_deliveries=1, timeout_s=10.0)

    async def fail(event: Event) -> None:
        raise ValueError(f"no {event.type}, nor xoxb-123456789-secret")

    async def buried() -> bool:
        return bool(await bus.dead_letters(TOPIC))

    await bus.subscribe(TOPIC, fail, group="g")
    await bus.publish(TOPIC, Event("note"))
    await until(buried, "a dead letter")
    await bus.close()


@pytest.fixture
async def environment(tmp_path: Path, redis_url: str, redis_prefix: str) -> dict[str, str]:
    await bury(tmp_path / "threadline.db")
    await give_up(redis_url, redis_prefix)
    return {
        "THREADLINE_ENV": "dev", "THREADLINE_DATA_DIR": str(tmp_path), "DATABASE_URL": "", "REDIS_URL": redis_url,
        "THREADLINE_REDIS_PREFIX": redis_prefix,
    }  # fmt: skip


def listed(environment: dict[str, str], *arguments: str, tenant: str = "T1") -> list[str]:
    done = command("letters", "list", "--tenant", tenant, *arguments, **environment)
    assert done.returncode == 0, done
    return done.stdout.splitlines()


def test_they_are_listed_given_back_and_dropped(environment: dict[str, str]) -> None:
    signal, event = listed(environment)
    assert f"signal 'message' to '{TURN}', key '{KEY}'" in signal
    assert "event 'note'" in event
    assert "for nobody else" not in signal, "what people wrote is not shown"
    assert "xoxb-" not in event
    assert listed(environment, tenant="T2") == []
    assert listed(environment, "--topic", TOPIC) == [event]
    signal_id, event_id = signal.split("\t")[0], event.split("\t")[0]
    assert listed(environment, "--before", signal_id) == []

    for act in ("redrive", "drop"):
        for letter in (signal_id, event_id):
            assert "of this tenant" in told(command("letters", act, "--tenant", "T2", letter, **environment))
    done = command("letters", "redrive", "--tenant", "T1", signal_id, **environment)
    assert (done.returncode, done.stdout[:14]) == (0, "given back to ")
    assert command("letters", "drop", "--tenant", "T1", event_id, **environment).returncode == 0
    assert listed(environment) == []
    assert "there is no dead letter" in told(command("letters", "redrive", "--tenant", "T1", signal_id, **environment))


def test_a_workspace_is_always_named_and_an_id_is_one(environment: dict[str, str]) -> None:
    assert "--tenant" in command("letters", "list", **environment).stderr
    assert "is no id of a dead letter" in told(command("letters", "drop", "--tenant", "T1", "7", **environment))
    assert len(listed(environment)) == 2
