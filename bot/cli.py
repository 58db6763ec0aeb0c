"""The `threadline` command: one role per process, or all of them for development."""

import argparse
import asyncio
import contextlib
import shutil
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

from bot.logs import configure_logs
from bot.settings import Settings, SettingsError, load_operator_settings, load_settings

DATA_FILES = ("threadline.db", "threadline.db-wal", "threadline.db-shm", "encryption.key", "slack.json", "lock")


def main() -> None:
    """Run a command; a problem the reader can mend is one plain sentence and exit status 2."""
    arguments = _parser().parse_args()
    try:
        raise SystemExit(arguments.run(arguments))
    except SettingsError as error:
        sys.exit(_complain(str(error)))
    except KeyboardInterrupt:
        raise SystemExit(130) from None


def _complain(message: str) -> int:
    sys.stderr.write(f"threadline: {message}\n")
    return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="threadline", description="The ad-campaign agent that lives in Slack.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for name, words in (
        ("web", "serve Slack's requests and the install pages"),
        ("worker", "run turns, reports and summaries"),
        ("clock", "fire schedules and sweeps; any number may run"),
    ):
        commands.add_parser(name, help=words).set_defaults(run=_role, role=name)
    commands.add_parser("doctor", help="say what is wrong with the runs; exit status 1 if anything is").set_defaults(
        run=_doctor
    )
    _add_feedback(commands.add_parser("feedback", help="list what people think of a workspace's answers, and why"))
    _add_letters(commands.add_parser("letters", help="list, redrive or drop a workspace's dead letters"))
    # These three are reached by the script of that name, which sets up what they need.
    dev = commands.add_parser(
        "dev", prog="./dev run", help="everything in one process, with a local Slack and its web page"
    )
    dev.add_argument("--port", type=int, default=None, help="of the local Slack's page (default: PORT, else 3000)")
    dev.set_defaults(run=_dev)
    commands.add_parser(
        "demo", prog="./dev demo", help="play a conversation, kill the worker in mid-turn, print the transcript"
    ).set_defaults(run=_demo)
    commands.add_parser("reset", prog="./dev reset", help="empty the development data").set_defaults(run=_reset)
    return parser


def _add_feedback(feedback: argparse.ArgumentParser) -> None:
    feedback.add_argument(
        "--tenant", required=True, help="the workspace, or the organization that the app is installed in"
    )
    feedback.add_argument("--days", type=_days, default=30, help="how far back")
    feedback.add_argument("--limit", type=int, default=100)
    feedback.set_defaults(run=_list_feedback)


def _days(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 3650:
        raise argparse.ArgumentTypeError("a number of days from 1 to 3650")
    return int(text)


def _add_letters(letters: argparse.ArgumentParser) -> None:
    acts = letters.add_subparsers(required=True, metavar="ACT")
    listing = acts.add_parser("list", help="signals that no run read, and events that a group of the bus gave up on")
    listing.add_argument("--topic", help="only the events of this topic")
    listing.add_argument("--before", metavar="ID", help="the signal that the page before ended with")
    listing.add_argument("--limit", type=int, default=100)
    listing.set_defaults(run=_list_letters)
    redriving = acts.add_parser("redrive", help="give one back: to its thread, or to its group of the bus")
    redriving.set_defaults(run=_redrive_letter)
    dropping = acts.add_parser("drop", help="remove one for good")
    dropping.set_defaults(run=_drop_letter)
    for each in (redriving, dropping):
        each.add_argument("id", help="as `list` shows it")
    for each in (listing, redriving, dropping):
        each.add_argument(
            "--tenant", required=True, help="the workspace, or the organization that the app is installed in"
        )


def _role(arguments: argparse.Namespace) -> int:
    from bot.roles import serve

    settings = load_settings()
    configure_logs(settings.log_level, people=settings.environment == "dev")
    role = arguments.role
    return _run(serve(settings, slack=role == "web", worker=role == "worker", clock=role == "clock"))


def _doctor(arguments: argparse.Namespace) -> int:
    from bot.operators import examine

    settings = load_operator_settings()
    configure_logs("warning", people=True)
    findings = asyncio.run(examine(settings))
    for each in findings:
        sys.stdout.write(f"{each.kind}: {each.message}\n")
    sys.stdout.write("" if findings else "all runs are well\n")
    return 1 if findings else 0


def _list_feedback(arguments: argparse.Namespace) -> int:
    from bot.operators import list_feedback

    async def show() -> None:
        wanted = {name: getattr(arguments, name) for name in ("tenant", "days", "limit")}
        async for line in list_feedback(_quiet_settings(), **wanted):
            sys.stdout.write(f"{line}\n")

    return _run(show())


def _list_letters(arguments: argparse.Namespace) -> int:
    from bot.operators import list_letters

    async def show() -> None:
        wanted = {name: getattr(arguments, name) for name in ("tenant", "topic", "before", "limit")}
        async for line in list_letters(_quiet_settings(), **wanted):
            sys.stdout.write(f"{line}\n")

    return _run(show())


def _redrive_letter(arguments: argparse.Namespace) -> int:
    from bot.operators import redrive_letter

    async def give_back() -> None:
        to = await redrive_letter(_quiet_settings(), arguments.id, tenant=arguments.tenant)
        sys.stdout.write(f"given back to {to}\n")

    return _run(give_back())


def _drop_letter(arguments: argparse.Namespace) -> int:
    from bot.operators import drop_letter

    return _run(drop_letter(_quiet_settings(), arguments.id, tenant=arguments.tenant))


def _quiet_settings() -> Settings:
    configure_logs("error", people=True)
    return load_operator_settings()


def _dev(arguments: argparse.Namespace) -> int:
    from bot.dev import run_dev

    return _run(run_dev(port=arguments.port))


def _demo(arguments: argparse.Namespace) -> int:
    from bot.demo import run_demo

    return _run(run_demo())


def _reset(arguments: argparse.Namespace) -> int:
    from bot.dev import only_process

    directory = load_settings(THREADLINE_ENV="dev").make_data_dir()
    with only_process(directory):
        return _empty(directory)


def _empty(directory: Path) -> int:
    found = [directory / name for name in DATA_FILES if (directory / name).exists()]
    for path in found:
        path.unlink()
    with contextlib.suppress(OSError):
        shutil.rmtree(directory) if directory.is_dir() and not any(directory.iterdir()) else None
    print(f"Emptied {directory}." if found else f"There was nothing in {directory}.")
    return 0


def _run(role: Coroutine[Any, Any, int | None]) -> int:
    from workflows import SchemaError, StoreUnavailableError, WorkflowError
    from workflows.pubsub import PubSubUnavailableError

    told = (SchemaError, SettingsError, StoreUnavailableError, PubSubUnavailableError, WorkflowError)

    try:
        return asyncio.run(role) or 0
    except told as error:
        return _complain(str(error))


if __name__ == "__main__":
    main()
