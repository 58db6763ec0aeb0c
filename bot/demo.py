"""The demo: a customer's conversation on the whole stack, with a worker killed in the middle. Every step is checked, not just shown.

The local Slack, web and clock run in this process, the worker in a second one on the same SQLite file, so that it can be killed for real.
"""

import asyncio
import os
import signal
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any

from bot.dev import dev_settings, emulator_config, serving, tool_faults
from bot.emulator import Emulator
from bot.emulator.client import EmulatorClient
from bot.logs import configure_logs
from bot.render.cards import APPROVE
from bot.roles import serve
from bot.settings import Settings, load_settings

Message = dict[str, Any]
CHANNEL = "#campaigns"
LEASE_S = 3.0
"""Shorter than production's ten seconds, so that nobody waits for the take-over."""
PATIENCE_S = 20.0


class DemoFailedError(Exception):
    """Something that the demo promises did not happen."""


class WorkerProcess:
    """A worker in a process of its own."""

    def __init__(self, settings: Settings) -> None:
        secret = {
            "SLACK_SIGNING_SECRET": settings.slack_signing_secret.get_secret_value(),
            "SLACK_BOT_TOKEN": settings.slack_bot_token.get_secret_value(),
        }
        plain = {
            "THREADLINE_ENV": "dev", "SLACK_API_URL": settings.slack_api_url, "THREADLINE_DATA_DIR": settings.data_dir, "PORT": "0",
            "THREADLINE_LEASE_S": str(LEASE_S), "THREADLINE_POLL_S": "0.1", "THREADLINE_LOG_LEVEL": "error", "DATABASE_URL": "", "REDIS_URL": "", "THREADLINE_MODEL": "offline",
        }  # fmt: skip
        self._environment = {**os.environ, **secret, **plain}
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        self._process = await asyncio.create_subprocess_exec(sys.executable, "-m", "bot.demo", env=self._environment)

    async def kill(self) -> int:
        """As `kill -9` does; returns the process id."""
        assert self._process is not None
        self._process.send_signal(signal.SIGKILL)
        await self._process.wait()
        return self._process.pid

    async def stop(self) -> None:
        if self._process is not None and self._process.returncode is None:
            self._process.terminate()
            await self._process.wait()


class Demo:
    """Plays the conversation through the local Slack's control API, as a person's browser would."""

    def __init__(self, slack: EmulatorClient, worker: WorkerProcess) -> None:
        self._slack = slack
        self._worker = worker
        self._root = ""
        self._printed: set[str] = set()
        self._names: dict[str, str] = {}

    async def play(self) -> None:
        """The whole of it. Raises DemoFailedError naming the first thing that did not happen."""
        state = await self._slack.state()
        people = [user for team in state.get("workspaces", [state]) for user in team.get("users", [])]
        self._names = {user["id"]: user.get("real_name") or user.get("name") or user["id"] for user in people}
        await self._worker.start()
        await self._question_and_second_message()
        await self._budget_change()
        await self._follow_up()
        await self._killed_worker()

    async def _question_and_second_message(self) -> None:
        self._scene("A question, and a second message while the agent is still working on the first")
        await self._slack.fault("tool:campaign_performance", "delay", delay_s=1.5)
        self._root = await self._slack.post_message(CHANNEL, "@ada", "@Threadline how did our campaigns do last week?")
        await self._tool_running()
        await self._slack.post_message(
            CHANNEL, "@ben", "and which one had the best ROAS last month?", thread_ts=self._root
        )
        answers = await self._answers(1)
        await self._show()
        text = answers[0]["plain"]
        self._check("one answer covers both messages", "ROAS" in text and len(await self._ours()) == 1)

    async def _budget_change(self) -> None:
        self._scene("A budget change: it asks first, Ada approves, then it happens")
        await self._say("@ada", "please set the daily budget of Brand Search to 150")
        card = await self._wait(self._pending_card, "an approval card")
        await self._answers(2)
        await self._show()
        clicked = await self._slack.click(CHANNEL, card["ts"], APPROVE, "@ada")
        self._check("the click is acknowledged", clicked["status"] == 200)
        print("      (Ada clicks Approve)")
        answers = await self._answers(3)
        await self._show()
        self._check("the change was made once and reported", "150" in answers[-1]["plain"])
        self._check("the card tells how it was decided", await self._pending_card() is None)

    async def _follow_up(self) -> None:
        self._scene("A follow-up in the thread, without a mention")
        await self._say("@ada", "and how did Brand Search do yesterday?")
        answers = await self._answers(4)
        await self._show()
        self._check("the follow-up is answered in the thread", "Brand Search" in answers[-1]["plain"])

    async def _killed_worker(self) -> None:
        self._scene("The worker is killed in the middle of a turn")
        await self._slack.fault("tool:campaign_performance", "delay", delay_s=2)
        await self._say("@chloe", "what did we spend in total over the last 30 days?")
        await self._tool_running()
        pid = await self._worker.kill()
        began = time.monotonic()
        print(f"      (worker {pid} killed with SIGKILL while it runs a tool; another one is started)")
        await self._worker.start()
        answers = await self._answers(5)
        await self._show()
        self._check(
            f"another worker finished the turn, {time.monotonic() - began:.1f} s after the kill", len(answers) == 5
        )
        self._check("each answer stands there exactly once", len(await self._ours()) == 5)

    # What people see

    async def _say(self, user: str, text: str) -> None:
        await self._slack.post_message(CHANNEL, user, text, thread_ts=self._root)

    async def _thread(self) -> list[Message]:
        return await self._slack.messages(CHANNEL, thread_ts=self._root)

    async def _ours(self) -> list[Message]:
        """The agent's finished answers; cards are not answers."""
        return [message for message in await self._thread() if _is_answer(message)]

    async def _answers(self, number: int) -> list[Message]:
        async def enough() -> list[Message] | None:
            found = await self._ours()
            return found if len(found) >= number else None

        found: list[Message] = await self._wait(enough, f"answer number {number}")
        return found

    async def _pending_card(self) -> Message | None:
        cards = [
            message
            for message in await self._thread()
            if any(block["type"] == "actions" for block in message.get("blocks", []))
        ]
        return cards[-1] if cards else None

    async def _tool_running(self) -> None:
        """The fault that slows the tool was taken: the agent is in the middle of its work."""

        async def taken() -> bool | None:
            return not await self._slack.faults() or None

        await self._wait(taken, "the agent to begin its work")

    async def _wait(self, condition: Callable[[], Awaitable[Any]], what: str) -> Any:
        try:
            return await self._slack.wait_for(condition, timeout_s=PATIENCE_S, what=what)
        except TimeoutError as error:
            raise DemoFailedError(str(error)) from None

    async def _show(self) -> None:
        """Print what is new in the thread, as Slack shows it."""
        for message in await self._thread():
            if message["ts"] not in self._printed and message.get("streaming") != "streaming":
                self._printed.add(message["ts"])
                self._print(message)

    def _print(self, message: Message) -> None:
        who = self._names.get(str(message.get("user")), "Threadline")
        at = datetime.fromtimestamp(float(message["ts"])).astimezone()
        print(f"\n  {who}  {at:%H:%M:%S}")
        for line in _words(message).splitlines():
            print(f"    {line}")

    @staticmethod
    def _scene(title: str) -> None:
        print(f"\n--- {title} ---")

    @staticmethod
    def _check(what: str, holds: object) -> None:
        if not holds:
            raise DemoFailedError(f"this did not happen: {what}")
        print(f"\n  [ok] {what}")


def _words(message: Message) -> str:
    """A message as a terminal can show it: Markdown keeps its tables aligned enough to read, other blocks become plain words."""
    blocks = message.get("blocks") or []
    if blocks and all(block["type"] == "markdown" for block in blocks):
        return "\n\n".join(block["text"] for block in blocks)
    return str(message["plain"])


def _is_answer(message: Message) -> bool:
    payload = (message.get("metadata") or {}).get("event_payload") or {}
    return str(payload.get("delivery_id", "")).endswith(":answer")


async def run_demo() -> int:
    """Play the demo; 0 if all of it happened, 1 if not."""
    configure_logs(os.environ.get("THREADLINE_LOG_LEVEL", "error"), people=True)
    with tempfile.TemporaryDirectory(prefix="threadline-demo-") as directory:
        config = emulator_config(0)
        async with Emulator(config, environment="dev") as emulator:
            settings = dev_settings(
                config,
                emulator.api_url,
                PORT=0,
                THREADLINE_POLL_S=0.1,
                THREADLINE_DATA_DIR=directory,
                THREADLINE_MODEL="offline",
            )
            worker = WorkerProcess(settings)
            async with serving(settings, emulator, worker=False), EmulatorClient(emulator.url) as slack:
                try:
                    await Demo(slack, worker).play()
                except DemoFailedError as error:
                    print(f"\n  [failed] {error}")
                    return 1
                finally:
                    await worker.stop()
    print("\nAll of it happened.")
    return 0


def work() -> None:
    """What a `WorkerProcess` runs: a worker whose tools the local Slack may slow."""
    settings = load_settings()
    configure_logs(settings.log_level, people=True)
    faults = tool_faults(settings.slack_api_url)
    asyncio.run(serve(settings, slack=False, worker=True, clock=False, before_tool=faults))


if __name__ == "__main__":
    work()
