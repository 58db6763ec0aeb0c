"""Socket Mode over separate processes: one is killed, one leaves in good order, and nothing said is lost or answered twice."""

from pathlib import Path

import pytest

from tests.acceptance.stack import Stack

pytestmark = [pytest.mark.process, pytest.mark.timeout(180)]
QUESTION = "@Threadline how did Brand Search do last week?"


async def test_web_processes_are_killed_and_replaced_under_what_people_say(
    tmp_path: Path, engine_database: str, redis_url: str, redis_prefix: str
) -> None:
    async with Stack(
        tmp_path, dsn=engine_database, redis_url=redis_url, redis_prefix=redis_prefix, app_token="xapp-1-acceptance",
        SLACK_SIGNING_SECRET="",
    ) as stack:  # fmt: skip
        first, second = await stack.start("web", 2)
        await stack.start("worker")

        async def four() -> bool:
            return len(await stack.slack.sockets()) == 4

        await stack.wait(four, "two connections of each")
        roots = [await stack.say(QUESTION)]
        await first.kill()  # what went to it and was not acknowledged comes to the other
        roots += [await stack.say(QUESTION) for _ in range(2)]
        await stack.start("web")
        assert await second.terminate() == 0
        roots.append(await stack.say(QUESTION))
        for root in roots:
            await stack.answered(root)
        await stack.settled()
        for root in roots:
            assert len(await stack.answers(root)) == 1
            deliveries = await stack.slack.deliveries(ts=root)
            assert all(each["delivered"] and len(each["attempts"]) <= 2 for each in deliveries)
