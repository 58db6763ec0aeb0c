"""The pub/sub seam: every behaviour holds on every backend. What only a real server can do is in faults/test_redis_pubsub.py."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import structlog

from tests.waiting import Seen, until
from workflows.pubsub import Bus, DeadLetter, Event, MemoryPubSub, PubSub, RedisPubSub
from workflows.pubsub.log import position
from workflows.pubsub.member import GroupMember
from workflows.pubsub.subscription import Subscriber

TOPIC = "T1:thread:C1:171.5"
QUICK: dict[str, Any] = {"min_idle_ms": 400, "max_deliveries": 3, "backoff": lambda failures: 0.01 * failures}


class World:
    """One bus and the processes that share it. In memory the other processes are the same one."""

    def __init__(self, backend: str, url: str, prefix: str) -> None:
        self._backend = backend
        self._url = url
        self._prefix = prefix
        self._opened: list[Bus] = []

    def bus(self, **options: Any) -> Bus:
        """A further client of the one bus."""
        if self._backend == "memory" and self._opened:
            return self._opened[0]
        options = {**QUICK, **options}
        # Ten seconds, since a loaded machine is no outage.
        bus = (
            MemoryPubSub(**options)
            if self._backend == "memory"
            else RedisPubSub(self._url, self._prefix, timeout_s=10.0, **options)
        )
        self._opened.append(bus)
        return bus

    async def close(self) -> None:
        for bus in self._opened:
            await bus.close()


@pytest.fixture(params=["memory", "redis"])
async def world(request: pytest.FixtureRequest) -> AsyncIterator[World]:
    remote = request.param == "redis"
    world = World(
        request.param,
        request.getfixturevalue("redis_url") if remote else "",
        request.getfixturevalue("redis_prefix") if remote else "",
    )
    yield world
    await world.close()


@pytest.fixture
def bus(world: World) -> Bus:
    return world.bus()


async def publish(bus: Bus, *types: str, topic: str = TOPIC) -> list[str]:
    return [await bus.publish(topic, Event(type_)) for type_ in types]


async def crash(member: object) -> None:
    """End a member as a killed process would: nothing is handed over."""
    assert isinstance(member, GroupMember)
    for task in (member._loop, member._renewal, member._handling):
        if task is not None:
            task.cancel()
            await asyncio.wait({task})
    member._loop = None


# -- fan-out ---------------------------------------------------------------------------------------------------------------


async def test_every_subscriber_sees_every_event(world: World) -> None:
    bus, other = world.bus(), world.bus()
    first, second, third = Seen(), Seen(), Seen()
    await bus.subscribe(TOPIC, first)
    await bus.subscribe(TOPIC, second)
    await other.subscribe(TOPIC, third)
    await publish(bus, "a", "b")
    for seen in (first, second, third):
        await seen.reach(2)
        assert seen.types == ["a", "b"]


async def test_an_event_arrives_with_its_data_offset_and_time(bus: Bus) -> None:
    seen = Seen()
    await bus.subscribe(TOPIC, seen)
    data = {"text": "Grüße 🚀 \u2028", "n": [1, 2.5, None, True], "nested": {"": "x"}, "half": "\ud83d"}
    offset = await bus.publish(TOPIC, Event("signal", data))
    await seen.reach(1)
    event = seen.events[0]
    assert (event.type, event.data, event.offset, event.kind, event.deliveries) == ("signal", data, offset, "event", 1)
    assert event.at is not None
    assert abs(datetime.now(UTC) - event.at) < timedelta(seconds=30)


async def test_a_subscriber_sees_nothing_from_before_it_came(bus: Bus) -> None:
    seen = Seen()
    await publish(bus, "before")
    await bus.subscribe(TOPIC, seen)
    await publish(bus, "after")
    await seen.reach(1)
    assert seen.types == ["after"]


async def test_what_is_published_right_after_subscribing_is_never_missed(bus: Bus) -> None:
    for number in range(20):
        seen = Seen()
        subscription = await bus.subscribe(f"T1:run:{number}", seen)
        await publish(bus, "first", topic=f"T1:run:{number}")
        await seen.reach(1)
        await bus.unsubscribe(subscription)


async def test_events_of_a_topic_arrive_in_the_order_of_their_offsets(world: World) -> None:
    bus, other = world.bus(), world.bus()
    seen = Seen()
    await bus.subscribe(TOPIC, seen)
    await asyncio.gather(*(publish(sender, *(str(n) for n in range(50))) for sender in (bus, other)))
    await seen.reach(100)
    numbers = [tuple(map(int, event.offset.split("-"))) for event in seen.events]
    assert numbers == sorted(set(numbers))


async def test_topics_and_tenants_do_not_hear_each_other(bus: Bus) -> None:
    mine, theirs = Seen(), Seen()
    await bus.subscribe("T1:thread:9", mine)
    await bus.subscribe("T2:thread:9", theirs)
    await publish(bus, "for T1", topic="T1:thread:9")
    await publish(bus, "for T2", topic="T2:thread:9")
    await bus.flush()
    assert (mine.types, theirs.types) == (["for T1"], ["for T2"])


async def test_a_slow_subscriber_holds_up_no_other(bus: Bus) -> None:
    gate = asyncio.Event()
    slow, quick = Seen(gate=gate), Seen()
    await bus.subscribe(TOPIC, slow)
    await bus.subscribe(TOPIC, quick)
    await publish(bus, *"abc")
    await quick.reach(3)
    assert slow.events == []
    gate.set()
    await slow.reach(3)


async def test_a_subscriber_changes_its_own_copy_of_the_data_only(bus: Bus) -> None:
    async def spoil(event: Event) -> None:
        event.data["spoiled"] = True

    seen = Seen()
    await bus.subscribe(TOPIC, spoil)
    await bus.subscribe(TOPIC, seen)
    data = {"n": 1}
    await bus.publish(TOPIC, Event("x", data))
    await bus.flush()
    assert (seen.events[0].data, data) == ({"n": 1}, {"n": 1})


async def test_a_thousand_publishers_at_once_lose_nothing(world: World) -> None:
    bus, other = world.bus(), world.bus()
    seen = Seen()
    await bus.subscribe(TOPIC, seen)
    await asyncio.gather(*(other.publish(TOPIC, Event(str(n))) for n in range(1000)))
    await seen.reach(1000)
    assert sorted(map(int, seen.types)) == list(range(1000))


# -- replay ----------------------------------------------------------------------------------------------------------------


async def test_after_replays_what_came_later_and_goes_on_live(bus: Bus) -> None:
    offsets = await publish(bus, "a", "b", "c")
    seen = Seen()
    await bus.subscribe(TOPIC, seen, after=offsets[0])
    await publish(bus, "d")
    await seen.reach(3)
    assert seen.types == ["b", "c", "d"]


async def test_after_zero_replays_everything(bus: Bus) -> None:
    await publish(bus, *(str(n) for n in range(250)))
    seen = Seen()
    await bus.subscribe(TOPIC, seen, after="0")
    await seen.reach(250)
    assert seen.types == [str(n) for n in range(250)]


async def test_after_the_newest_replays_nothing(bus: Bus) -> None:
    offsets = await publish(bus, "a", "b")
    seen = Seen()
    await bus.subscribe(TOPIC, seen, after=offsets[-1])
    await bus.flush()
    assert seen.types == []


async def test_after_an_entry_that_was_trimmed_begins_with_a_gap(world: World) -> None:
    bus = world.bus(max_len=100)
    offsets = await publish(bus, *(str(n) for n in range(500)))
    seen = Seen()
    await bus.subscribe(TOPIC, seen, after=offsets[3])
    await bus.flush()
    assert (seen.events[0].kind, seen.events[0].type, seen.events[0].offset) == ("gap", "gap", offsets[3])
    assert [event.kind for event in seen.events].count("gap") == 1
    assert seen.types[-100:] == [str(n) for n in range(400, 500)]


async def test_after_an_entry_of_a_topic_that_is_gone_is_one_gap(bus: Bus) -> None:
    seen = Seen()
    await bus.subscribe("T1:run:gone", seen, after="1700000000000-0")
    await bus.flush()
    await publish(bus, "new", topic="T1:run:gone")
    await bus.flush()
    assert seen.types == ["gap", "new"]


async def test_a_subscriber_that_falls_behind_the_trimming_sees_a_gap(world: World) -> None:
    bus = world.bus(max_len=100)
    gate = asyncio.Event()
    seen = Seen(gate=gate)
    await bus.subscribe(TOPIC, seen)
    await publish(bus, "first")
    await seen.start(1)
    await publish(bus, *(str(n) for n in range(500)))
    gate.set()
    await bus.flush()
    assert seen.types[:2] == ["first", "gap"]
    assert seen.types[-1] == "499"


async def test_a_malformed_offset_is_refused(bus: Bus) -> None:
    with pytest.raises(ValueError, match="yesterday"):
        await bus.subscribe(TOPIC, Seen(), after="yesterday")


# -- groups ----------------------------------------------------------------------------------------------------------------


async def test_exactly_one_member_of_a_group_handles_each_event(world: World) -> None:
    members = [Seen() for _ in range(4)]
    for member in members:
        await world.bus().subscribe("wake", member, group="workers")
    await publish(world.bus(), *(str(n) for n in range(200)), topic="wake")
    await until(lambda: sum(len(member.events) for member in members) >= 200, "200 deliveries")
    await world.bus().flush()
    assert sorted(int(type_) for member in members for type_ in member.types) == list(range(200))


async def test_every_group_gets_every_event(bus: Bus) -> None:
    audit, work = Seen(), Seen()
    await bus.subscribe(TOPIC, audit, group="audit")
    await bus.subscribe(TOPIC, work, group="work")
    await publish(bus, "a", "b")
    await bus.flush()
    assert (audit.types, work.types) == (["a", "b"], ["a", "b"])


async def test_a_group_and_a_fan_out_subscriber_share_a_topic(bus: Bus) -> None:
    member, watcher = Seen(), Seen()
    await bus.subscribe(TOPIC, member, group="g")
    await bus.subscribe(TOPIC, watcher)
    await publish(bus, "a", "b")
    await bus.flush()
    assert (member.types, watcher.types) == (["a", "b"], ["a", "b"])


async def test_events_wait_for_a_group_without_members(bus: Bus) -> None:
    early = Seen()
    await bus.unsubscribe(await bus.subscribe(TOPIC, early, group="g"))
    await publish(bus, "a", "b")
    late = Seen()
    await bus.subscribe(TOPIC, late, group="g")
    await late.reach(2)
    assert (early.types, late.types) == ([], ["a", "b"])


async def test_a_new_group_begins_after_the_offset_it_names(bus: Bus) -> None:
    offsets = await publish(bus, "a", "b", "c")
    seen = Seen()
    await bus.subscribe(TOPIC, seen, group="g", after=offsets[1])
    await bus.flush()
    assert seen.types == ["c"]


async def test_one_member_handles_one_event_at_a_time_in_order(bus: Bus) -> None:
    running, most, order = 0, 0, []

    async def handle(event: Event) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        order.append(event.type)
        running -= 1

    await bus.subscribe(TOPIC, handle, group="g")
    await publish(bus, *(str(n) for n in range(30)))
    await bus.flush()
    assert (most, order) == (1, [str(n) for n in range(30)])


async def test_an_acknowledged_event_is_not_delivered_again(bus: Bus) -> None:
    first, second = Seen(), Seen()
    member = await bus.subscribe(TOPIC, first, group="g")
    await publish(bus, "a")
    await bus.flush()
    await bus.unsubscribe(member)
    await bus.subscribe(TOPIC, second, group="g")
    await publish(bus, "b")
    await bus.flush()
    assert (first.types, second.types) == (["a"], ["b"])


# -- failures --------------------------------------------------------------------------------------------------------------


async def test_a_failed_event_comes_again_after_its_backoff(world: World) -> None:
    waits: list[int] = []

    def backoff(failures: int) -> float:
        waits.append(failures)
        return 0.05

    bus = world.bus(backoff=backoff)
    seen = Seen(fail=2)
    await bus.subscribe(TOPIC, seen, group="g")
    loop = asyncio.get_running_loop()
    begun = loop.time()
    await publish(bus, "a")
    await seen.reach(3)
    assert loop.time() - begun >= 0.1
    assert waits == [1, 2]
    assert [event.deliveries for event in seen.events] == [1, 2, 3]
    assert await bus.dead_letters() == []


async def test_other_events_go_on_while_a_failed_one_waits(world: World) -> None:
    bus = world.bus(backoff=lambda _: 3600.0)
    seen = Seen(fail=1)
    await bus.subscribe(TOPIC, seen, group="g")
    await publish(bus, "a", "b", "c")
    await bus.flush()
    assert seen.types == ["a", "b", "c"]


async def test_an_event_that_waits_for_its_retry_is_not_taken_by_another(world: World) -> None:
    """Its wait is longer than the idle time after which others take over."""
    options: dict[str, Any] = {"min_idle_ms": 120, "backoff": lambda _: 0.6}
    first, second = Seen(fail=1), Seen()
    bus = world.bus(**options)
    await bus.subscribe(TOPIC, first, group="g")
    await publish(bus, "a")
    await first.reach(1)
    await world.bus(**options).subscribe(TOPIC, second, group="g")
    await first.reach(2)
    assert (first.types, second.types) == (["a", "a"], [])


async def test_after_its_last_delivery_an_event_is_a_dead_letter(world: World) -> None:
    told: list[DeadLetter] = []

    async def tell(letter: DeadLetter) -> None:
        told.append(letter)

    bus = world.bus(on_dead_letter=tell)
    seen = Seen(fail=99)
    await bus.subscribe(TOPIC, seen, group="g")
    offset = await bus.publish(TOPIC, Event("poison", {"n": 1}))
    await until(lambda: bool(told), "a dead letter")
    letter = told[0]
    assert (letter.topic, letter.group, letter.deliveries, letter.error) == (TOPIC, "g", 3, "RuntimeError: failure 3")
    assert (letter.event.type, letter.event.data, letter.event.offset) == ("poison", {"n": 1}, offset)
    assert await bus.dead_letters() == [letter] == await world.bus().dead_letters(TOPIC)
    assert await bus.dead_letters("T2:thread:C1:171.5") == []
    await bus.flush()
    assert len(seen.events) == 3


async def test_a_redriven_dead_letter_goes_to_its_group_only(world: World) -> None:
    bus = world.bus(max_deliveries=1)
    failing, other, watcher = Seen(fail=1), Seen(), Seen()
    await bus.subscribe(TOPIC, failing, group="failing")
    await bus.subscribe(TOPIC, other, group="other")
    await bus.subscribe(TOPIC, watcher)
    await publish(bus, "a")
    await bus.flush()
    (letter,) = await bus.dead_letters(TOPIC)
    await bus.redrive(letter)
    await bus.flush()
    assert (failing.types, other.types, watcher.types) == (["a", "a"], ["a"], ["a"])
    assert await bus.dead_letters() == []


async def test_a_dead_letter_is_redriven_once(world: World) -> None:
    bus = world.bus(max_deliveries=1)
    await bus.subscribe(TOPIC, Seen(fail=1), group="g")
    await publish(bus, "a")
    await bus.flush()
    (letter,) = await bus.dead_letters()
    await bus.redrive(letter)
    with pytest.raises(LookupError, match="no dead letter"):
        await bus.redrive(letter)


async def test_a_dropped_dead_letter_is_gone(world: World) -> None:
    bus = world.bus(max_deliveries=1)
    seen = Seen(fail=2)
    await bus.subscribe(TOPIC, seen, group="g")
    await publish(bus, "a", "b")
    await bus.flush()
    first, second = await bus.dead_letters()
    await world.bus().drop(first)
    assert await bus.dead_letters() == [second]
    for act in (bus.drop, bus.redrive):
        with pytest.raises(LookupError, match="no dead letter"):
            await act(first)
    await bus.flush()
    assert seen.types == ["a", "b"]


@pytest.mark.parametrize("group", [None, "g"])
async def test_a_subscription_tells_what_its_handler_raised_and_goes_on(bus: Bus, group: str | None) -> None:
    told: list[str] = []
    seen = Seen(fail=1)

    async def tell(error: BaseException) -> None:
        told.append(str(error))
        raise RuntimeError("nor does this end it")

    await bus.subscribe(TOPIC, seen, group=group, on_error=tell)
    await publish(bus, "a", "b")
    await seen.reach(3 if group else 2)
    assert told == ["failure 1"]


async def test_a_group_that_fails_or_hangs_holds_up_no_other(world: World) -> None:
    bus = world.bus(max_deliveries=99, backoff=lambda _: 0.01)
    failing, hanging, healthy = Seen(fail=10_000), Seen(gate=asyncio.Event()), Seen()
    for group, seen in (("failing", failing), ("hanging", hanging), ("healthy", healthy)):
        await bus.subscribe(TOPIC, seen, group=group)
    await publish(bus, *(str(n) for n in range(20)))
    await healthy.reach(20)
    await failing.reach(25)
    await hanging.start(1)
    assert healthy.types == [str(n) for n in range(20)]
    assert hanging.gate is not None
    hanging.gate.set()


async def test_a_dead_letter_callback_that_fails_harms_nothing(world: World) -> None:
    async def tell(_: DeadLetter) -> None:
        raise RuntimeError("the database is down")

    bus = world.bus(max_deliveries=1, on_dead_letter=tell)
    seen = Seen(fail=1)
    await bus.subscribe(TOPIC, seen, group="g")
    await publish(bus, "a", "b")
    await seen.reach(2)
    assert len(await bus.dead_letters()) == 1


@pytest.mark.parametrize("group", [None, "g"])
@pytest.mark.parametrize("error", [RuntimeError("broken"), asyncio.CancelledError(), GeneratorExit()])
async def test_nothing_a_handler_raises_ends_its_subscription(
    bus: Bus, group: str | None, error: BaseException
) -> None:
    seen = Seen()

    async def handle(event: Event) -> None:
        if event.type == "bad":
            raise error
        await seen(event)

    await bus.subscribe(TOPIC, handle, group=group)
    await publish(bus, "bad", "good")
    await seen.reach(1)


# -- takeover --------------------------------------------------------------------------------------------------------------


async def test_another_member_takes_over_what_a_crashed_one_held(world: World) -> None:
    bus = world.bus(max_deliveries=3)
    stuck, healthy = Seen(gate=asyncio.Event()), Seen()
    member = await bus.subscribe(TOPIC, stuck, group="g")
    await publish(bus, "a")
    await stuck.start(1)
    await crash(member)
    await world.bus().subscribe(TOPIC, healthy, group="g")
    await healthy.reach(1)
    assert (healthy.types, healthy.events[0].deliveries) == (["a"], 2)


async def test_a_long_handler_keeps_its_event(world: World) -> None:
    """It renews at a quarter of the idle time, so it may run many times as long."""
    bus = world.bus(min_idle_ms=120)
    gate = asyncio.Event()
    slow, idle = Seen(gate=gate), Seen()
    await bus.subscribe(TOPIC, slow, group="g")
    await publish(bus, "a")
    await slow.start(1)
    other = await world.bus(min_idle_ms=120).subscribe(TOPIC, idle, group="g")
    enough = asyncio.get_running_loop().time() + 0.5
    await until(
        lambda: isinstance(other, GroupMember) and other._sweep_at > enough, "the other looks for four idle times"
    )
    gate.set()
    await slow.reach(1)
    assert (slow.started, idle.types) == (1, [])


async def test_an_event_that_kills_each_of_its_members_is_buried(world: World) -> None:
    bus = world.bus(max_deliveries=2, min_idle_ms=80)
    await publish(bus, "killer")
    for _ in range(2):
        stuck = Seen(gate=asyncio.Event())
        member = await bus.subscribe(TOPIC, stuck, group="g")
        await stuck.start(1)
        await crash(member)
    survivor = Seen()
    await bus.subscribe(TOPIC, survivor, group="g")

    async def buried() -> bool:
        return bool(await bus.dead_letters())

    await until(buried, "a dead letter")
    (letter,) = await bus.dead_letters()
    assert (letter.event.type, letter.error, survivor.types) == ("killer", "no member survived handling it", [])


async def test_a_member_that_leaves_hands_over_what_waits_for_its_retry(world: World) -> None:
    bus = world.bus(backoff=lambda _: 3600.0, min_idle_ms=3_600_000)
    failing, next_one = Seen(fail=1), Seen()
    member = await bus.subscribe(TOPIC, failing, group="g")
    await publish(bus, "a")
    await failing.reach(1)
    await bus.unsubscribe(member)
    await bus.subscribe(TOPIC, next_one, group="g")
    await next_one.reach(1)
    assert next_one.events[0].deliveries == 2


# -- unsubscribe, flush, close ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("group", [None, "g"])
async def test_unsubscribe_awaits_the_running_handler_and_takes_nothing_more(bus: Bus, group: str | None) -> None:
    gate = asyncio.Event()
    seen = Seen(gate=gate)
    subscription = await bus.subscribe(TOPIC, seen, group=group)
    await publish(bus, "a", "b")
    await seen.start(1)
    leaving = asyncio.create_task(bus.unsubscribe(subscription))
    await asyncio.sleep(0)
    assert not leaving.done()
    gate.set()
    await leaving
    assert seen.types == ["a"]


@pytest.mark.parametrize("group", [None, "g"])
async def test_a_handler_may_unsubscribe_itself(bus: Bus, group: str | None) -> None:
    seen = Seen()

    async def once(event: Event) -> None:
        await seen(event)
        await bus.unsubscribe(subscription)

    subscription = await bus.subscribe(TOPIC, once, group=group)
    await publish(bus, "a", "b")
    await seen.reach(1)
    assert isinstance(subscription, Subscriber)
    await until(lambda: subscription._loop is not None and subscription._loop.done(), "the loop ends")
    assert seen.types == ["a"]


async def test_unsubscribing_twice_is_ignored(bus: Bus) -> None:
    subscription = await bus.subscribe(TOPIC, Seen())
    await bus.unsubscribe(subscription)
    await bus.unsubscribe(subscription)


async def test_flush_waits_until_local_subscribers_have_handled_it(bus: Bus) -> None:
    seen, member = Seen(), Seen()
    await bus.subscribe(TOPIC, seen)
    await bus.subscribe(TOPIC, member, group="g")
    await publish(bus, *(str(n) for n in range(120)))
    await bus.flush()
    assert (len(seen.events), len(member.events)) == (120, 120)


async def test_flush_without_subscribers_returns(bus: Bus) -> None:
    await publish(bus, "a")
    await bus.flush()


async def test_close_awaits_handlers_and_leaves_no_task(world: World) -> None:
    before = asyncio.all_tasks()
    bus = world.bus()
    gate = asyncio.Event()
    seen = Seen(gate=gate)
    await bus.subscribe(TOPIC, seen)
    await bus.subscribe("wake", Seen(), group="workers")
    await publish(bus, "a")
    await seen.start(1)
    closing = asyncio.create_task(bus.close())
    await asyncio.sleep(0)
    gate.set()
    await closing
    assert seen.types == ["a"]
    await until(lambda: asyncio.all_tasks() <= before, "no task is left")


# -- retention -------------------------------------------------------------------------------------------------------------


async def test_trimming_loses_no_event_a_group_has_not_handled(world: World) -> None:
    bus = world.bus(max_len=100)
    gate = asyncio.Event()
    slow = Seen(gate=gate)
    await bus.subscribe(TOPIC, slow, group="g")
    await publish(bus, *(str(n) for n in range(600)))
    gate.set()
    await slow.reach(600)
    assert slow.types == [str(n) for n in range(600)]


async def test_trimming_loses_no_event_that_waits_for_its_retry(world: World) -> None:
    release = asyncio.Event()
    bus = world.bus(max_len=100, backoff=lambda _: 0.0 if release.is_set() else 0.3)
    seen = Seen(fail=1)
    await bus.subscribe(TOPIC, seen, group="g")
    await publish(bus, "early", *(str(n) for n in range(400)))
    release.set()
    await seen.reach(402)
    assert seen.types.count("early") == 2


async def test_a_topic_forgets_what_all_its_groups_have_handled(world: World) -> None:
    bus = world.bus(max_len=100)
    await bus.subscribe(TOPIC, Seen(), group="g")
    await publish(bus, *(str(n) for n in range(300)))
    await bus.flush()
    await publish(bus, *(str(n) for n in range(300)))
    replay = Seen()
    await bus.subscribe(TOPIC, replay, after="0")
    await bus.flush()
    assert replay.types[0] == "gap"
    assert len(replay.events) < 450


async def test_a_dead_group_is_destroyed_at_the_cap_with_an_alarm(world: World) -> None:
    """Nobody has been a member of it for as long as a topic lives: it must not keep the topic for ever."""
    bus = world.bus(max_len=100)
    await bus.unsubscribe(await bus.subscribe(TOPIC, Seen(), group="abandoned"))
    with structlog.testing.capture_logs() as logs:
        await publish(bus, *(str(n) for n in range(1_300)))
    alarms = [entry for entry in logs if entry["event"] == "pubsub_group_stalled"]
    assert [(entry["group"], entry["state"], entry["topic"]) for entry in alarms] == [("abandoned", "destroyed", TOPIC)]
    replay = Seen()
    await bus.subscribe(TOPIC, replay, after="0")
    await bus.flush()
    assert len(replay.events) < 400


async def test_a_live_group_that_is_too_slow_loses_nothing_and_raises_an_alarm(world: World) -> None:
    bus = world.bus(max_len=100)
    gate = asyncio.Event()
    slow = Seen(gate=gate)
    await bus.subscribe(TOPIC, slow, group="slow")
    with structlog.testing.capture_logs() as logs:
        await publish(bus, *(str(n) for n in range(1_100)))
        gate.set()
        await slow.reach(1_100, deadline_s=60)
    assert {entry["state"] for entry in logs if entry["event"] == "pubsub_group_stalled"} == {"slow"}
    assert slow.types == [str(n) for n in range(1_100)]


async def test_a_single_group_topic_keeps_nothing_that_was_handled(bus: Bus) -> None:
    await bus.subscribe("wake", Seen(), group="workers")
    await publish(bus, *"abc", topic="wake")
    await bus.flush()
    replay = Seen()
    await bus.subscribe("wake", replay, after="0")
    await bus.flush()
    assert replay.types == []


# -- erasing ---------------------------------------------------------------------------------------------------------------


async def replayed(bus: Bus, *, topic: str = TOPIC, after: str = "0") -> list[str]:
    replay = Seen()
    subscription = await bus.subscribe(topic, replay, after=after)
    await bus.flush()
    await bus.unsubscribe(subscription)
    return replay.types


async def test_what_was_erased_is_read_by_nobody_and_offsets_go_on(bus: Bus) -> None:
    last = (await publish(bus, "a", "b"))[-1]
    await publish(bus, "other", topic="T1:run:other")
    await bus.erase(TOPIC)
    assert [each for each in await replayed(bus) if each != "gap"] == []
    assert await replayed(bus, topic="T1:run:other") == ["other"]
    [after] = await publish(bus, "c")
    assert position(after) > position(last)
    assert (await replayed(bus))[-1] == "c"
    assert await replayed(bus, after=last) == ["gap", "c"]


async def test_erasing_leaves_subscribers_where_they_are(bus: Bus) -> None:
    seen = Seen()
    await bus.subscribe(TOPIC, seen)
    await publish(bus, "a")
    await seen.reach(1)
    await bus.erase(TOPIC)
    await publish(bus, "b")
    await until(lambda: "b" in seen.types, "what came after")
    assert [each for each in seen.types if each != "gap"] == ["a", "b"]


async def test_a_group_has_nothing_to_do_with_what_was_erased(world: World) -> None:
    """Neither with what it was given and has not finished, nor with what waited for it, nor with what it gave up on."""
    bus = world.bus()

    async def fail(event: Event) -> None:
        raise ValueError("never")

    failing = await bus.subscribe(TOPIC, fail, group="g")
    await publish(bus, "bad")

    async def given_up() -> bool:
        return bool(await bus.dead_letters(TOPIC))

    await until(given_up, "a dead letter")
    await publish(bus, "pending")
    await crash(failing)
    await publish(bus, "waiting")
    await bus.erase(TOPIC)
    assert await bus.dead_letters(TOPIC) == []
    seen = Seen()
    await bus.subscribe(TOPIC, seen, group="g")
    await publish(bus, "new")
    await seen.reach(1)
    assert seen.types == ["new"]


async def test_erasing_what_is_not_there_does_nothing(bus: Bus) -> None:
    await bus.erase(TOPIC)
    await bus.erase(TOPIC)
    assert await replayed(bus) == []


# -- what is refused -------------------------------------------------------------------------------------------------------


async def test_ten_megabytes_are_refused_with_the_limit_and_the_way_out(bus: Bus) -> None:
    with pytest.raises(ValueError, match=r"'big' for topic 'T1:.*262144.*store it, and publish a reference"):
        await bus.publish(TOPIC, Event("big", {"text": "x" * 10_000_000}))


@pytest.mark.parametrize(
    "data", [{"when": datetime.now(UTC)}, {"n": float("nan")}, {"raw": b"x"}, {"s": {1}}, ["list"], "text"]
)
async def test_data_that_is_no_json_object_is_refused(bus: Bus, data: Any) -> None:
    with pytest.raises(ValueError, match=r"event 'odd' for topic 'T1:thread:C1:171\.5': data"):
        await bus.publish(TOPIC, Event("odd", data))


@pytest.mark.parametrize("topic", ["", "a\nb", "x" * 600])
async def test_a_malformed_topic_is_refused(bus: Bus, topic: str) -> None:
    with pytest.raises(ValueError, match="is no topic"):
        await bus.publish(topic, Event("x"))


async def test_every_bus_is_a_pubsub(bus: Bus) -> None:
    seam: PubSub = bus  # the type checker's test
    assert callable(seam.publish)


async def test_memory_says_once_that_it_is_unfit_for_production() -> None:
    with structlog.testing.capture_logs() as logs:
        bus = MemoryPubSub()
        await bus.publish(TOPIC, Event("x"))
    assert [line["event"] for line in logs] == ["memory_pubsub_unfit_for_production"]
    await bus.close()
