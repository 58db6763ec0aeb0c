"""A person's Monday on the page: ask, approve, order a report, set what admins set, install, stop."""

from typing import Any

import pytest

from tests.bot.bench import HARBOR
from tests.browser.screen import Screen

WIDTHS = (360, 600, 820, 1280, 1920)


async def test_a_question_is_answered_in_its_thread(screen: Screen) -> None:
    await screen.write("@Threadline how did Brand Search do last week?")
    await screen.open_thread()
    await screen.sees("Brand Search", where=screen.thread)
    await screen.sees("ROAS", where=screen.thread)
    await screen.write("and the week before?", reply=True)
    await screen.thread.get_by_role("article").nth(3).wait_for()


async def test_a_card_is_approved_with_a_click_and_says_so(screen: Screen) -> None:
    await screen.write("@Threadline raise the daily budget of Brand Search to 150")
    await screen.open_thread()
    await screen.thread.get_by_role("button", name="Approve").click()
    await screen.sees("Approved by", where=screen.thread)
    await screen.bench.idle()
    assert await screen.thread.get_by_role("button", name="Approve").count() == 0


async def test_a_reason_is_asked_for_in_a_dialog(screen: Screen) -> None:
    await screen.write("@Threadline pause Camping Stories")
    await screen.open_thread()
    await screen.thread.get_by_role("button", name="say why").click()
    await screen.dialog.get_by_role("textbox").fill("not in the season")
    await screen.dialog.get_by_role("button", name="Deny").click()
    await screen.sees("not in the season", where=screen.thread)
    assert not await screen.dialog.is_visible()


async def test_a_report_comes_with_a_table_and_a_chart(screen: Screen) -> None:
    await screen.write("/report last month")
    await screen.sees("Making the report on all campaigns, last month")
    await screen.channel.locator(".data-table").first.wait_for()
    await screen.channel.locator(".chart svg").first.wait_for()
    await screen.bench.idle()
    await screen.channel.get_by_role("article").last.evaluate("message => message.scrollIntoView()")
    await screen.picture("report")


async def test_commands_answer_only_to_whom_they_were_given(screen: Screen) -> None:
    await screen.write("/campaigns active")
    await screen.sees("a day together")
    await screen.sees("Only visible to you")


async def test_an_admin_sets_in_the_home_tab_what_another_reads(screen: Screen) -> None:
    await screen.go("Threadline")
    await screen.channel.get_by_role("tab", name="Home").click()
    await screen.channel.get_by_role("button", name="Edit settings").click()
    await screen.dialog.get_by_role("textbox").first.fill("We call ROAS the return.")
    await screen.dialog.get_by_role("combobox").first.focus()
    offered = await screen.dialog.get_by_role("option").all_inner_texts()
    assert offered == ["Ada Keller", "Ben Carter", "Chloe Tanaka", "Threadline"]
    await screen.dialog.get_by_role("option", name="Ben Carter").click()
    await screen.dialog.get_by_role("textbox").nth(2).fill("nonsense")
    await screen.dialog.get_by_role("button", name="Save").click()
    await screen.sees("is not an amount", where=screen.dialog)
    await screen.dialog.get_by_role("textbox").nth(2).fill("2000")
    await screen.dialog.get_by_role("button", name="Save").click()
    await screen.sees("We call ROAS the return.", where=screen.channel)
    await screen.sees("€2,000.00 a day", where=screen.channel)
    await screen.picture("home")


async def test_a_file_is_attached_and_downloaded(screen: Screen) -> None:
    await screen.page.set_input_files(
        "#channel input[type=file]", {"name": "spend.csv", "mimeType": "text/csv", "buffer": b"day,spend\n1,2\n"}
    )
    await screen.write("@Threadline have a look")
    await screen.channel.get_by_role("link", name="spend.csv").wait_for()
    await screen.bench.idle()


async def test_what_people_write_is_never_markup(screen: Screen) -> None:
    await screen.write('<img src=x onerror="document.title=1"> **bold** <script>document.title=2</script>')
    await screen.sees("onerror")
    assert await screen.channel.locator(".message img[src=x]").count() == 0
    assert "Local Slack" in await screen.page.title()


async def test_the_app_is_installed_in_another_workspace(screen: Screen, browser: Any) -> None:
    page = await browser.new_page()
    await page.goto(f"{screen.bench.url}/slack/install")
    await page.get_by_role("link").first.click()
    await page.get_by_label("Workspace").select_option("T0HARBOR:U0DANA")
    await page.get_by_role("button", name="Allow").click()
    await page.get_by_text("installed").first.wait_for()
    await page.close()
    assert await screen.bench.service.installs.credentials(HARBOR) is not None


@pytest.mark.parametrize("width", WIDTHS)
async def test_nothing_is_wider_than_the_window(screen: Screen, width: int) -> None:
    await screen.write("@Threadline compare all campaigns last month")
    await screen.bench.idle()
    await screen.page.set_viewport_size({"width": width, "height": 800})
    wide = await screen.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert wide <= 0


async def test_it_works_by_keyboard_alone(screen: Screen) -> None:
    await screen.channel.get_by_role("textbox").focus()
    await screen.page.keyboard.type("/camp")
    await screen.page.keyboard.press("Enter")
    await screen.page.keyboard.press("Enter")
    await screen.sees("a day together")


async def test_the_page_in_the_documents(screen: Screen) -> None:
    await screen.write("@Threadline how did our campaigns do last week, compared with the week before?")
    await screen.open_thread()
    await screen.sees("ROAS", where=screen.thread)
    await screen.bench.idle()
    await screen.write("@Threadline raise the daily budget of Brand Search to 150", reply=True)
    await screen.thread.get_by_role("button", name="Approve").wait_for()
    await screen.bench.idle()
    await screen.page.mouse.move(0, 0)
    await screen.picture("page")
