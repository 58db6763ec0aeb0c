"""Development in one process: what a restart keeps, the model's pace, and what a person is told when it can't start."""

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from agent.models.base import Finished, Message, ModelRequest, Person, Text, TextDelta
from agent.models.offline import OfflineModel
from bot.dev import THINKING_S, WRITING_S, PacedModel
from bot.render.cards import APPROVE
from tests.bot.bench import HARBOR, Bench
from tests.bot.test_approvals import ask, card, changes, clickable
from tests.waiting import until

ROOT = Path(__file__).parents[2]


def remembering(directory: Path) -> Bench:
    """A bench whose local Slack keeps its state beside the product's, as `./dev run` has it."""
    bench = Bench(directory, {})
    bench.config = replace(bench.config, state_path=directory / "slack.json")
    return bench


async def test_a_pending_card_can_be_approved_after_a_restart(tmp_path: Path) -> None:
    async with remembering(tmp_path) as bench:
        ts, shown = await ask(bench)
        said = [each["text"] for each in await bench.replies(ts)]
    async with remembering(tmp_path) as bench:
        assert [each["text"] for each in await bench.replies(ts)] == said
        assert clickable(await card(bench, ts))
        clicked = await bench.people.click("#campaigns", shown["ts"], APPROVE, "@ada")
        assert clicked["ok"]
        await bench.answer(ts, count=3)
        assert await changes(bench) == [("daily_budget_micros", "150000000")]
        assert not clickable(await card(bench, ts))


async def test_a_workspace_installed_by_oauth_is_still_installed(tmp_path: Path) -> None:
    async with remembering(tmp_path) as bench:
        assert (await bench.install()).status == 200
    async with remembering(tmp_path) as bench:
        ts = await bench.people.post_message("#ads", "@dana", "@Threadline how did Brand Search do last week?")
        await bench.idle(HARBOR)

        async def answered() -> bool:
            return len(await bench.people.messages("#ads", thread_ts=ts)) > 1

        await until(answered, "an answer in Harbor Coffee")


async def test_the_way_through_an_installation_starts_with_our_own_page_and_ends_at_the_local_slack(
    tmp_path: Path,
) -> None:
    async with Bench(tmp_path, {}) as bench:
        begun = await bench.get(f"{bench.url}/slack/install")
        assert "Install Threadline" in begun.text
        assert re.findall(r"https?://[^/\"]+", begun.text) == [bench.emulator.url]
        assert (await bench.install()).link == f"{bench.emulator.url}/#team={HARBOR}&as=U0DANA"


# The model's pace


async def test_a_paced_model_says_the_same_over_about_two_seconds() -> None:
    request = ModelRequest(
        system="",
        messages=(
            Message(role="user", parts=(Text(text="what can you do?"),), author=Person(id="U0ADA", name="Ada Keller")),
        ),
        now=datetime(2026, 11, 30, tzinfo=UTC),
    )
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    plain = [event async for event in OfflineModel().stream(request)]
    paced = [event async for event in PacedModel(OfflineModel(), sleep=sleep).stream(request)]
    assert paced == plain
    assert isinstance(paced[-1], Finished)
    assert len(slept) == 1 + sum(isinstance(event, TextDelta) for event in paced)
    assert 1 <= sum(slept) <= THINKING_S + WRITING_S + 0.001


# What a person is told


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield int(listener.getsockname()[1])


def command(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "bot.cli", *arguments],
        cwd=ROOT, env={**os.environ, **environment}, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


def told(done: subprocess.CompletedProcess[str]) -> str:
    """The one sentence on stderr."""
    assert done.returncode == 2, done
    [line] = done.stderr.splitlines()
    assert line.startswith("threadline: ")
    return line


@pytest.mark.parametrize("arguments", [["dev", "--port", "0"], ["reset"]])
def test_a_data_directory_that_can_not_be_made(arguments: list[str]) -> None:
    assert "the data directory /proc/x can't be made" in told(command(*arguments, THREADLINE_DATA_DIR="/proc/x"))


@pytest.mark.parametrize("arguments", [["dev", "--port", "0"], ["reset"]])
def test_a_data_directory_that_is_a_file(tmp_path: Path, arguments: list[str]) -> None:
    (tmp_path / "data").write_text("")
    said = told(command(*arguments, THREADLINE_DATA_DIR=str(tmp_path / "data")))
    assert "a file has that name. Set THREADLINE_DATA_DIR" in said


def test_a_database_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "threadline.db").write_text("this is not a database, and long enough to be looked at" * 20)
    said = told(command("dev", "--port", "0", THREADLINE_DATA_DIR=str(tmp_path)))
    assert "threadline.db can't be read as a database: file is not a database" in said


def test_a_memory_of_the_local_slack_that_is_broken(tmp_path: Path) -> None:
    (tmp_path / "slack.json").write_text("{")
    said = told(command("dev", "--port", "0", THREADLINE_DATA_DIR=str(tmp_path)))
    assert "./dev reset" in said
    assert command("reset", THREADLINE_DATA_DIR=str(tmp_path)).returncode == 0
    assert not tmp_path.exists()


def test_a_port_that_is_taken(tmp_path: Path, taken: int) -> None:
    said = told(command("dev", "--port", str(taken), THREADLINE_DATA_DIR=str(tmp_path)))
    assert f"./dev run --port {taken + 1}" in said


def test_help_names_the_command_that_was_typed() -> None:
    assert command("dev", "--help").stdout.startswith("usage: ./dev run ")


def test_the_script_says_what_it_does_not_know() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "dev", "nonsense"], capture_output=True, text=True, timeout=30, check=False
    )
    assert done.returncode == 2
    assert done.stderr.startswith("dev: there is no command 'nonsense'")
    assert not done.stdout


def test_a_uv_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    """In a copy that has installed nothing yet."""
    for name in ("dev", "pyproject.toml"):
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    (tmp_path / "requirements").symlink_to(ROOT / "requirements")
    done = subprocess.run(
        [sys.executable, tmp_path / "dev", "demo"],
        env={**os.environ, "UV": "/nope/uv"}, capture_output=True, text=True, timeout=30, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert (
        done.stderr
        == "dev: UV is /nope/uv, but there is no program of that name. Unset it, or set it to the path of uv.\n"
    )


@pytest.mark.process
def test_it_starts_and_stops_with_two_lines_and_no_warning(tmp_path: Path) -> None:
    environment = {**os.environ, "THREADLINE_DATA_DIR": str(tmp_path), "THREADLINE_MODEL": "offline"}
    environment.pop("THREADLINE_LOG_LEVEL", None)
    with subprocess.Popen(
        [sys.executable, "-m", "bot.cli", "dev", "--port", "0"],
        cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        assert process.stdout.readline().startswith("Threadline is running. Open http://127.0.0.1:")
        process.send_signal(signal.SIGINT)
        rest, errors = process.communicate(timeout=30)
    assert (process.returncode, rest, errors) == (0, "Stopping…\n", "")
