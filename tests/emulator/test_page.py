"""The page's files: all there, and closed to whatever a message could try."""

import re

import aiohttp
import pytest

from bot.emulator import Emulator, EmulatorClient


async def fetch(emulator: Emulator, path: str) -> tuple[int, str, str]:
    async with aiohttp.ClientSession() as session, session.get(emulator.url + path) as response:
        return response.status, response.headers.get("Content-Security-Policy", ""), await response.text()


async def test_the_page_loads_everything_it_names_from_here(emulator: Emulator) -> None:
    status, policy, index = await fetch(emulator, "/")
    assert status == 200
    assert "default-src 'self'" in policy
    wanted = set(re.findall(r'(?:src|href)="([^"]+)"', index))
    seen: set[str] = set()
    while wanted - seen:
        path = (wanted - seen).pop()
        seen.add(path)
        status, _, text = await fetch(emulator, path)
        assert status == 200, path
        wanted |= {f"/page/{name}" for name in re.findall(r'from "\./([\w.]+)"', text)}
    assert all(path.startswith("/page/") for path in seen)
    assert "/page/composer.js" in seen


@pytest.mark.parametrize("path", ["/page/nothing.js", "/page/..%2Fconfig.py", "/page/__init__.py"])
async def test_nothing_else_is_served(emulator: Emulator, path: str) -> None:
    status, _, text = await fetch(emulator, path)
    assert (status, text) == (404, "There is no such page.")


async def test_only_images_are_shown_and_other_files_are_downloads(emulator: Emulator, people: EmulatorClient) -> None:
    await people.post_message("#campaigns", "@ada", "x", files={"evil.html": b"<script>", "a.png": b"\x89PNG"})
    [message] = await people.messages("#campaigns")
    async with aiohttp.ClientSession() as session:
        for file, kind, shown in zip(
            message["files"], ("application/octet-stream", "image/png"), (False, True), strict=True
        ):
            async with session.get(file["permalink"]) as response:
                assert response.content_type == kind
                assert ("Content-Disposition" not in response.headers) is shown
