"""Dead letters as an operator sees them: by tenant, given back once, dropped for good."""

import asyncio
from typing import Any

import pytest

from tests.conformance.engine.steps import READ, boom
from tests.conformance.engines import Boot, in_state, until
from workflows import Engine, InputError, LetterNotFoundError, NoExecutorError, RunState, StateError, step, workflow
from workflows.pubsub import Event, MemoryPubSub
from workflows.storage.base import DeadSignal

failing = workflow("w").map(lambda value: 1).then(boom).commit()
mended = workflow("w").wait_for("message", str).commit()


async def buried(engine: Engine, text: str = "hello", *, tenant: str = "T1") -> DeadSignal:
    """A message that two runs failed on."""
    await engine.signal_with_start(failing, tenant=tenant, key="thread", name="message", dedup_key=text, payload=text)
    (letter,) = await until(lambda: engine.dead_letters.signals(tenant=tenant))
    assert isinstance(letter, DeadSignal)
    return letter


async def test_they_are_listed_by_tenant(boot: Boot) -> None:
    async with boot(failing) as engine:
        letter = await buried(engine)
        assert (letter.workflow, letter.key, letter.signal.payload) == ("w", "thread", b'"hello"')
        assert await engine.dead_letters.signals(tenant="T2") == []
        assert await engine.dead_letters.signals(tenant="T1", before=letter.id) == []
        with pytest.raises(InputError, match="no id of a dead letter"):
            await engine.dead_letters.signals(tenant="T1", before="the last")


@pytest.mark.store_only("a signal that nobody read is kept in the history of its ended run")
class TestSignals:
    async def test_one_is_given_back_once(self, boot: Boot) -> None:
        async with boot(failing) as engine:
            letter = await buried(engine)
        async with boot(mended) as engine:
            asked = [engine.dead_letters.redrive(letter.id, tenant="T1") for _ in range(3)]
            answers = await asyncio.gather(*asked, return_exceptions=True)
            (run_id,) = [each for each in answers if isinstance(each, str)]
            assert sum(isinstance(each, LetterNotFoundError) for each in answers) == 2
            assert await (await engine.run(run_id, tenant="T1")).result(timeout=10) == "hello"

    async def test_another_tenant_neither_gives_back_nor_drops(self, boot: Boot) -> None:
        async with boot(failing) as engine:
            letter = await buried(engine)
            for act in (engine.dead_letters.redrive, engine.dead_letters.drop):
                with pytest.raises(LetterNotFoundError, match="of this tenant"):
                    await act(letter.id, tenant="T2")
            assert await engine.dead_letters.signals(tenant="T1") == [letter]

    async def test_a_dropped_one_is_gone(self, boot: Boot) -> None:
        async with boot(failing) as engine:
            letter = await buried(engine)
            await engine.dead_letters.drop(letter.id, tenant="T1")
            for act in (engine.dead_letters.redrive, engine.dead_letters.drop):
                with pytest.raises(LetterNotFoundError):
                    await act(letter.id, tenant="T1")

    async def test_what_is_no_id_is_refused(self, boot: Boot) -> None:
        async with boot(failing, worker=False) as engine:
            for act in (engine.dead_letters.redrive, engine.dead_letters.drop):
                for text in ("", "x", "1.1.\ud800", "1-1/g/T1:thread:\ud800"):
                    with pytest.raises(InputError, match="no id of a dead letter"):
                        await act(text, tenant="T1")

    async def test_a_workflow_that_nobody_here_knows_keeps_its_letter(self, boot: Boot) -> None:
        async with boot(failing) as engine:
            letter = await buried(engine)
        async with boot(workflow("other").then(boom).commit()) as engine:
            with pytest.raises(NoExecutorError):
                await engine.dead_letters.redrive(letter.id, tenant="T1")
            assert await engine.dead_letters.signals(tenant="T1") == [letter]

    @pytest.mark.parametrize("key", [None, "k"])
    async def test_a_letter_of_a_run_with_a_value_goes_to_a_live_run_or_stays(
        self, boot: Boot, key: str | None
    ) -> None:
        gate = asyncio.Event()

        @step(effect=READ)
        async def fail_first(n: int) -> int:
            await gate.wait()
            if n == 1:
                raise ValueError("no 1")
            return n

        flow = workflow("valued").then(fail_first).wait_for("note", str).commit()
        async with boot(flow) as engine:
            run = await engine.start(flow, 1, key=key)
            await engine.signal(run.id, "note", "hello")
            gate.set()
            await in_state(engine, run.id, RunState.FAILED)
            (letter,) = await engine.dead_letters.signals(tenant="default")
            with pytest.raises(InputError if key else StateError):
                await engine.dead_letters.redrive(letter.id, tenant="default")
            assert await engine.dead_letters.signals(tenant="default") == [letter]
            if key:
                again = await engine.start(flow, 2, key=key)
                assert await engine.dead_letters.redrive(letter.id, tenant="default") == again.id
                assert await again.result(timeout=10) == "hello"


async def refused(pubsub: MemoryPubSub, topic: str, data: dict[str, Any]) -> None:
    """An event that its group can't handle."""

    async def fail(event: Event) -> None:
        raise ValueError(f"can't handle {event.type}")

    member = await pubsub.subscribe(topic, fail, group="g/1")
    await pubsub.publish(topic, Event("note", data))
    await until(lambda: pubsub.dead_letters(topic))
    await pubsub.unsubscribe(member)


@pytest.mark.store_only("the bus is the same wherever runs are")
class TestEvents:
    async def test_they_are_the_tenants_by_topic_or_by_their_data(self, boot: Boot) -> None:
        pubsub = MemoryPubSub(max_deliveries=1)
        async with boot(failing, pubsub=pubsub, worker=False) as engine:
            for topic, data in (
                ("T1:thread:k", {}),
                ("T2:thread:k", {}),
                ("elsewhere", {"tenant": "T1"}),
                ("tasks", {}),
            ):
                await refused(pubsub, topic, data)
            found = await engine.dead_letters.events(tenant="T1")
            assert sorted(each.topic for each in found) == ["T1:thread:k", "elsewhere"]
            assert [each.topic for each in await engine.dead_letters.events(tenant="T2", topic="T1:thread:k")] == []

    async def test_one_goes_to_its_group_once_or_is_dropped(self, boot: Boot) -> None:
        pubsub, seen = MemoryPubSub(max_deliveries=1), list[str]()

        async def handle(event: Event) -> None:
            seen.append(event.type)

        async with boot(failing, pubsub=pubsub, worker=False) as engine:
            for topic in ("T1:thread:a", "T1:thread:b"):
                await refused(pubsub, topic, {})
            first, second = await engine.dead_letters.events(tenant="T1")
            with pytest.raises(LetterNotFoundError):
                await engine.dead_letters.redrive(first.id, tenant="T2")
            await pubsub.subscribe(first.topic, handle, group="g/1")
            await engine.dead_letters.redrive(first.id, tenant="T1")
            await engine.dead_letters.drop(second.id, tenant="T1")
            await pubsub.flush()
            assert seen == ["note"]
            assert await engine.dead_letters.events(tenant="T1") == []
            for letter, act in ((first, engine.dead_letters.redrive), (second, engine.dead_letters.drop)):
                with pytest.raises(LetterNotFoundError):
                    await act(letter.id, tenant="T1")
