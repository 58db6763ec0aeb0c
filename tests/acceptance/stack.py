"""The whole product as separate processes on real servers, with a local Slack in this one. Everything it starts, it ends by id."""

import asyncio
import os
import random
import signal
import socket
import sys
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Literal, Self

import aiohttp

from bot.backends import TABLES
from bot.emulator import Emulator, EmulatorConfig
from bot.emulator.client import EmulatorClient
from bot.render.cards import APPROVE
from workflows.storage import PostgresStore

TENANT = "T0NORTHWIND"
CHANNEL = "C0CAMPAIGNS"
START_S = 30.0
Json = dict[str, Any]


class Process:
    """One process of the product."""

    def __init__(self, name: str, process: asyncio.subprocess.Process, log: Path, port: int) -> None:
        self.name = name
        self.log = log
        self.url = f"http://127.0.0.1:{port}"
        self._process = process

    @property
    def alive(self) -> bool:
        return self._process.returncode is None

    def send(self, number: signal.Signals) -> None:
        if self.alive:
            self._process.send_signal(number)

    async def kill(self) -> None:
        """As `kill -9` does."""
        self.send(signal.SIGKILL)
        await self._process.wait()

    async def terminate(self) -> int:
        """Ask it to leave in good order; returns the exit status."""
        self.send(signal.SIGTERM)
        return await self._process.wait()

    async def died(self) -> int:
        """Wait for its end."""
        return await self._process.wait()

    async def ready(self) -> None:
        async with aiohttp.ClientSession() as session, asyncio.timeout(START_S):
            while True:
                assert self.alive, f"{self.name} ended:\n{self.log.read_text()[-3000:]}"
                try:
                    async with session.get(f"{self.url}/readyz") as response:
                        if response.status == 200:
                            return
                except aiohttp.ClientError:
                    pass
                await asyncio.sleep(0.02)


class Stack:
    """A local Slack and any number of processes on one PostgreSQL and one Redis. `settings` are environment variables."""

    def __init__(
        self,
        directory: Path,
        *,
        dsn: str,
        redis_url: str,
        redis_prefix: str,
        mention_order: Literal["app_mention", "message"] = "app_mention",
        app_token: str = "",
        **settings: str,
    ) -> None:
        self._directory = directory
        self._config = EmulatorConfig(
            signing_secret="secret-of-the-tests",
            client_id="1.2",
            client_secret="client-secret",
            bot_token="xoxb-acceptance-tests",
            mention_order=mention_order,
            app_token=app_token,
        )
        self.emulator = Emulator(self._config, environment="test")
        self.slack: EmulatorClient
        self.store = PostgresStore(dsn, tables=TABLES)
        self.processes: list[Process] = []
        self._settings = {
            "DATABASE_URL": dsn,
            "REDIS_URL": redis_url,
            "THREADLINE_REDIS_PREFIX": redis_prefix,
            "THREADLINE_POLL_S": "0.2",
            "THREADLINE_LOG_LEVEL": "info",
            **settings,
        }

    async def __aenter__(self) -> Self:
        await self.emulator.start()
        self.slack = EmulatorClient(self.emulator.url)
        await self.store.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        for process in self.processes:
            process.send(signal.SIGCONT)
        await asyncio.gather(*(process.kill() for process in self.processes))
        await self.slack.close()
        await self.store.close()
        await self.emulator.stop()

    async def start(
        self, role: str, count: int = 1, *, settings: Mapping[str, str] | None = None, ready: bool = True
    ) -> list[Process]:
        """Start processes of a role and wait until they are ready; web replicas share Slack's deliveries."""
        more = dict(settings or {})
        started = [await self._spawn(role, more) for _ in range(count)]
        if ready:
            await asyncio.gather(*(process.ready() for process in started))
        if role == "web":
            webs = [process for process in self.processes if process.name.startswith("web")]
            self.emulator.set_request_url(tuple(f"{process.url}/slack/events" for process in webs))
        return started

    async def _spawn(self, role: str, more: dict[str, str]) -> Process:
        port = _free_port()
        environment = {
            **os.environ,
            "THREADLINE_ENV": "test",
            "SLACK_SIGNING_SECRET": self._config.signing_secret,
            "SLACK_BOT_TOKEN": self._config.bot_token,
            "SLACK_APP_TOKEN": self._config.app_token,
            "SLACK_API_URL": self.emulator.api_url,
            "THREADLINE_DATA_DIR": str(self._directory),
            "PORT": str(port),
            **self._settings,
            **more,
        }
        name = f"{role}-{len(self.processes)}"
        log = self._directory / f"{name}.log"
        with log.open("wb") as file:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "tests.acceptance.process",
                role,
                env=environment,
                stdout=file,
                stderr=file,
                stdin=asyncio.subprocess.DEVNULL,
            )
        self.processes.append(Process(name, process, log, port))
        return self.processes[-1]

    # What people do and see

    async def say(self, text: str, *, user: str = "@ada", thread: str | None = None) -> str:
        return await self.slack.post_message(CHANNEL, user, text, thread_ts=thread)

    async def thread(self, root: str) -> list[Json]:
        return await self.slack.messages(CHANNEL, thread_ts=root)

    async def answers(self, root: str) -> list[Json]:
        """The agent's finished answers in a thread."""
        return [message for message in await self.thread(root) if is_answer(message)]

    async def answered(self, root: str, count: int = 1, *, timeout_s: float = 30) -> list[Json]:
        """Wait for so many answers."""

        async def enough() -> list[Json] | None:
            found = await self.answers(root)
            return found if len(found) >= count else None

        try:
            found: list[Json] = await self.slack.wait_for(enough, timeout_s=timeout_s, what=f"{count} answers")
        except TimeoutError as error:
            raise AssertionError(
                f"{error}; the thread: {[m['plain'] for m in await self.thread(root)]}\n{self.logs()}"
            ) from None
        return found

    async def card(self, root: str) -> Json:
        """Wait for an approval card that can be answered."""

        async def pending() -> Json | None:
            for message in await self.thread(root):
                if any(block["type"] == "actions" for block in message.get("blocks", [])):
                    return message
            return None

        found: Json = await self.slack.wait_for(pending, timeout_s=20, what="an approval card")
        return found

    async def approve(self, root: str) -> None:
        card = await self.card(root)
        assert (await self.slack.click(CHANNEL, card["ts"], APPROVE, "@ada"))["status"] == 200

    async def wait(self, condition: Callable[[], Awaitable[Any]], what: str, *, timeout_s: float = 20) -> Any:
        try:
            return await self.slack.wait_for(condition, timeout_s=timeout_s, what=what)
        except TimeoutError as error:
            raise AssertionError(f"{error}\n{self.logs()}") from None

    async def live(self) -> bool:
        """Whether any run can still go on."""
        return any(run.state.live for run in await self.store.runs(limit=1000))

    async def settled(self) -> None:
        """Wait until no run is live: nothing more can appear."""

        async def none_live() -> bool:
            return not await self.live()

        await self.wait(none_live, "every run to end", timeout_s=40)

    async def settled_after(self, root: str) -> None:
        """Wait for a first answer, and then until nothing more can appear."""
        await self.answered(root)
        await self.settled()

    async def tool_taken(self, name: str) -> None:
        """Wait until a fault ordered for a tool was taken: the tool is running."""

        async def taken() -> bool:
            return not await self.slack.faults(f"tool:{name}")

        await self.wait(taken, f"{name} to run")

    def logs(self) -> str:
        return "\n".join(f"== {process.name}\n{process.log.read_text()[-1500:]}" for process in self.processes)


def is_answer(message: Json) -> bool:
    payload = (message.get("metadata") or {}).get("event_payload") or {}
    return str(payload.get("delivery_id", "")).endswith(":answer")


def _free_port() -> int:
    """Below those that systems give to connections, so that none of the many here takes it before the process is there."""
    while True:
        port = random.randrange(12_000, 32_000)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
