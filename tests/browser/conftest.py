"""Chromium, and a page on the local Slack that complains about nothing."""

import os
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import async_playwright

from tests.bot.bench import Bench
from tests.browser.screen import Screen

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-dev-shm-usage"]


def chromium() -> str:
    """The path of a Chromium. Fails the tests, with what to do, where there is none."""
    told = os.environ.get("CHROMIUM")
    found = told or next((path for name in NAMES if (path := shutil.which(name))), None)
    if found is None or not Path(found).exists():
        pytest.fail(
            f"no Chromium at {found}" if told else "no Chromium on PATH: apt install chromium, or set CHROMIUM to one",
            pytrace=False,
        )
    return found


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    async with Bench(tmp_path, {}) as bench:
        yield bench


@pytest.fixture
async def browser() -> AsyncIterator[Any]:
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=chromium(), args=FLAGS)
        yield browser
        await browser.close()


@pytest.fixture
async def screen(bench: Bench, browser: Any) -> AsyncIterator[Screen]:
    """Ada's page, in #campaigns. What the page logs as an error fails the test."""
    page = await browser.new_page(viewport={"width": 1280, "height": 860}, color_scheme="light")
    page.set_default_timeout(15_000)
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
    screen = Screen(bench, page)
    await screen.open()
    yield screen
    await page.close()
    assert problems == []
