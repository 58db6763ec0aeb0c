"""`./dev bench engine [--quick] [--rounds N] [--json FILE] [--profile]`."""

import argparse
import asyncio
import json
import logging
import sys
from dataclasses import replace
from pathlib import Path

import structlog

from tests.bench.engine import FULL, QUICK, Scale, bench, profiles


def main() -> None:
    """Parse, run, print."""
    parser = argparse.ArgumentParser(prog="./dev bench", description=__doc__)
    parser.add_argument("suite", choices=["engine"])
    parser.add_argument("--quick", action="store_true", help="one short round: whether it runs, not how fast")
    parser.add_argument("--rounds", type=int, help="rounds instead of five")
    parser.add_argument(
        "--profile", action="store_true", help="instead: where client CPU goes, and the statements of a turn"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there")
    options = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    scale = QUICK if options.quick else FULL
    if options.profile:
        asyncio.run(_profile(scale))
        return
    report = asyncio.run(bench(replace(scale, rounds=options.rounds or scale.rounds), progress=_progress))
    print(report.text())
    if options.json:
        options.json.write_text(json.dumps(report.json(), indent=1))


async def _profile(scale: Scale) -> None:
    async for text in profiles(scale):
        print(text, flush=True)


def _progress(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
