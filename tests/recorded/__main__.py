"""`python -m tests.recorded [story …]` plays stories and keeps them: those named, or those not kept yet. A story is named as its file is."""

import asyncio
import sys

from tests.recorded import operations, product
from tests.recorded.kept import Story, file_name, kept


def main(wanted: list[str]) -> None:
    """Keep what is wanted. Exits for a story nobody knows."""
    names = {file_name(name): name for name in (*operations.CASES, *product.STORIES)}
    if unknown := set(wanted) - names.keys():
        raise SystemExit(f"there are no stories {sorted(unknown)}; there are {sorted(names)}")
    for each in wanted or sorted(names.keys() - set(kept())):
        _played(names[each]).write(each)
        print("kept", each)


def _played(name: str) -> Story:
    return operations.play(name) if name in operations.CASES else asyncio.run(product.play(name))


if __name__ == "__main__":
    main(sys.argv[1:])
