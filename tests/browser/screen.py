"""What a person does on the page, and sees."""

import os
from pathlib import Path
from typing import Any

from tests.bot.bench import Bench

Locator = Any


class Screen:
    """One open page."""

    def __init__(self, bench: Bench, page: Any) -> None:
        self.bench = bench
        self.page = page

    async def open(self) -> None:
        await self.page.goto(self.bench.emulator.url)
        await self.channel.get_by_role("textbox").wait_for()

    @property
    def channel(self) -> Locator:
        return self.page.locator("#channel")

    @property
    def thread(self) -> Locator:
        return self.page.locator("#thread")

    @property
    def dialog(self) -> Locator:
        return self.page.locator("#dialog")

    async def go(self, name: str) -> None:
        """To a channel or a person."""
        await self.page.locator("#sidebar").get_by_role("button", name=name).first.click()

    async def write(self, text: str, *, reply: bool = False) -> None:
        box = (self.thread if reply else self.channel).get_by_role("textbox").last
        await box.fill(text)
        await box.press("Enter")

    async def open_thread(self) -> None:
        """The newest one."""
        await self.channel.get_by_role("button", name="repl").last.click()
        await self.thread.wait_for()

    async def sees(self, text: str, *, where: Locator | None = None) -> Locator:
        """Wait until that stands there."""
        found = (where or self.page).get_by_text(text).last
        await found.wait_for()
        return found

    async def picture(self, name: str) -> None:
        """Taken for the documents, where `./dev browser --record` asks for it."""
        directory = os.environ.get("THREADLINE_PICTURES")
        if directory:
            Path(directory).mkdir(parents=True, exist_ok=True)
            await self.page.mouse.move(0, 0)
            await self.page.screenshot(path=f"{directory}/{name}.png", animations="disabled", caret="hide")
