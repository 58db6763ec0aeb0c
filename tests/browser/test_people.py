"""What somebody who knows Slack does without thinking: react, edit, delete, format, look who is there, ask the agent beside a channel."""

from typing import Any

from slack_sdk.web.async_client import AsyncWebClient

from tests.bot.bench import NORTHWIND, TOKEN
from tests.browser.screen import Screen


async def said_by_ada(screen: Screen, text: str) -> Any:
    await screen.write(text)
    message = screen.channel.get_by_role("article").filter(has_text=text).last
    await message.wait_for()
    return message


async def test_up_edits_the_last_message_and_keeps_its_marks_and_mentions(screen: Screen) -> None:
    await screen.write("*bold* for @Ben Carter, please")
    await screen.sees("@Ben Carter", where=screen.channel)
    await screen.channel.get_by_role("textbox").last.press("ArrowUp")
    editor = screen.channel.get_by_role("textbox", name="Edit message")
    assert await editor.input_value() == "*bold* for @Ben Carter, please"
    await editor.press("End")
    await editor.type(" and all")
    await editor.press("Enter")
    await screen.sees("(edited)", where=screen.channel)
    [message] = await screen.bench.people.messages("#campaigns")
    assert message["text"] == "*bold* for <@U0BEN>, please and all"


async def test_escape_leaves_an_edit_as_it_was(screen: Screen) -> None:
    await said_by_ada(screen, "as it was")
    await screen.channel.get_by_role("textbox").last.press("ArrowUp")
    editor = screen.channel.get_by_role("textbox", name="Edit message")
    await editor.fill("changed")
    await editor.press("Escape")
    await screen.sees("as it was", where=screen.channel)
    assert await editor.count() == 0


async def test_a_message_is_deleted_from_its_menu_only_after_a_question(screen: Screen) -> None:
    message = await said_by_ada(screen, "a slip of the tongue")
    for answer, left in (("Cancel", 1), ("Delete", 0)):
        await message.hover()
        await message.get_by_role("button", name="More actions").click()
        await screen.page.get_by_role("menuitem", name="Delete message").click()
        await screen.dialog.get_by_role("button", name=answer).click()
        await message.wait_for(state="visible" if left else "detached")
        assert len(await screen.bench.people.messages("#campaigns")) == left


async def test_a_message_of_another_can_be_linked_to_but_not_changed(screen: Screen) -> None:
    await screen.bench.people.post_message("#campaigns", "@ben", "mine")
    message = screen.channel.get_by_role("article").filter(has_text="mine")
    await message.hover()
    await message.get_by_role("button", name="More actions").click()
    assert await screen.page.get_by_role("menuitem").all_inner_texts() == ["Copy link"]


async def test_a_reaction_is_found_by_name_and_taken_back_with_a_click(screen: Screen) -> None:
    message = await said_by_ada(screen, "good news")
    await message.hover()
    await message.get_by_role("button", name="Add reaction").first.click()
    await screen.page.get_by_role("searchbox").fill("tada")
    await screen.page.get_by_role("button", name="tada").click()
    pill = message.get_by_role("button", name="🎉 1")
    await pill.wait_for()
    await pill.click()
    await pill.wait_for(state="detached")


async def test_marks_go_around_what_is_selected(screen: Screen) -> None:
    box = screen.channel.get_by_role("textbox").last
    await box.fill("plan")
    await box.press("Control+a")
    await screen.channel.get_by_role("button", name="Bold").click()
    assert await box.input_value() == "*plan*"
    await box.fill("plan")
    await box.press("Control+a")
    await box.press("Control+i")
    await box.press("Enter")
    await screen.channel.locator("em", has_text="plan").wait_for()


async def test_shift_and_enter_begin_a_new_line_and_enter_sends(screen: Screen) -> None:
    box = screen.channel.get_by_role("textbox").last
    await box.type("one")
    await box.press("Shift+Enter")
    await box.type("two")
    await box.press("Enter")
    await screen.sees("two", where=screen.channel)
    [message] = await screen.bench.people.messages("#campaigns")
    assert message["text"] == "one\ntwo"


async def test_what_is_new_elsewhere_is_bold_counted_and_marked_on_arrival(screen: Screen) -> None:
    await said_by_ada(screen, "old")
    await screen.go("general")
    await screen.bench.people.post_message("#campaigns", "@ben", "news")
    entry = screen.page.locator("#sidebar .side-item", has_text="campaigns")
    await screen.page.locator("#sidebar .side-item.unread", has_text="campaigns").wait_for()
    assert await entry.locator(".pill").count() == 0
    await screen.bench.people.post_message("#campaigns", "@ben", "@Ada Keller look")
    await entry.locator(".pill", has_text="1").wait_for()
    await screen.go("campaigns")
    await screen.channel.locator(".line.new + article", has_text="news").wait_for()
    assert await screen.page.locator("#sidebar .unread").count() == 0


async def test_a_group_message_is_named_for_its_people(screen: Screen) -> None:
    await screen.bench.people.post_message("dm:@ada,@ben", "@ben", "the three of us")
    entry = screen.page.locator("#sidebar .side-item", has_text="Ben Carter, Threadline")
    await entry.wait_for()
    assert await entry.locator(".number").inner_text() == "2"
    await entry.click()
    await screen.sees("the very beginning of your direct message history", where=screen.channel)
    await screen.channel.get_by_role("button", name="3 members").click()
    await screen.sees("Campaign Manager", where=screen.dialog)


async def test_a_group_message_is_begun_with_people_of_the_workspace(screen: Screen) -> None:
    await screen.page.get_by_role("button", name="New group message").click()
    await screen.dialog.get_by_role("combobox").fill("b")
    assert await screen.dialog.get_by_role("option").all_inner_texts() == ["Ben Carter"]
    await screen.dialog.get_by_role("combobox").press("Enter")
    await screen.dialog.get_by_role("button", name="Start").click()
    await screen.channel.get_by_role("heading", name="Ben Carter, Threadline").first.wait_for()
    await screen.write("@Threadline what can you do? ")
    await screen.open_thread()
    await screen.sees("campaigns", where=screen.thread)
    await screen.bench.idle()


async def test_a_channel_is_created_and_the_app_invited(screen: Screen) -> None:
    await screen.page.get_by_role("button", name="Create a channel").click()
    await screen.dialog.get_by_label("Name").type("Spring Launch")
    await screen.dialog.get_by_role("button", name="Create").click()
    await screen.channel.get_by_role("heading", name="spring-launch").first.wait_for()
    await screen.sees("Threadline is not here yet.", where=screen.channel)
    await screen.write("/invite @Threadline ")
    await screen.sees("has joined the channel", where=screen.channel)
    await screen.write("@Threadline what can you do? ")
    await screen.open_thread()
    await screen.sees("campaigns", where=screen.thread)
    await screen.bench.idle()


async def test_a_reply_can_also_be_sent_to_the_channel(screen: Screen) -> None:
    message = await said_by_ada(screen, "a question for Ben")
    await message.hover()
    await message.get_by_role("button", name="Reply in thread").click()
    await screen.thread.get_by_label("Also send to #campaigns").check()
    await screen.write("asked and answered", reply=True)
    await screen.sees("asked and answered", where=screen.channel)
    await screen.write("only here", reply=True)
    await screen.sees("only here", where=screen.thread)
    assert await screen.channel.get_by_text("only here").count() == 0


async def test_a_table_is_sorted_by_a_click_on_its_header(screen: Screen) -> None:
    await screen.write("/report last month")
    table = screen.channel.locator(".data-table").first
    await table.wait_for()
    header = table.get_by_role("button", name="Spend")
    for least_first in (True, False):
        await header.click()
        rows = await table.locator("tbody tr:not(.total) td:nth-child(2)").evaluate_all(
            "cells => cells.map(cell => Number(cell.dataset.value))"
        )
        assert len(rows) > 5
        assert rows == sorted(rows, reverse=not least_first)
    assert (await table.locator("tbody tr").last.inner_text()).startswith("Total")
    await screen.bench.idle()


async def test_the_agents_pane_answers_beside_a_channel_and_knows_which(screen: Screen) -> None:
    await screen.channel.get_by_role("button", name="Ask Threadline").click()
    pane = screen.page.locator("#agent")
    await pane.get_by_role("button", name="Best and worst").click()
    await screen.sees("ROAS", where=pane)
    await screen.bench.idle()
    await pane.get_by_role("log").evaluate("log => log.scrollTo(0, 0)")
    await screen.picture("agent")
    await screen.go("general")
    await screen.sees("general", where=screen.channel)
    opened = await screen.bench.people.deliveries(type="app_home_opened")
    assert opened[-1]["delivered"]
    await pane.get_by_role("button", name="New chat").click()
    await pane.get_by_role("button", name="Which campaign had the best").click()
    await screen.sees("ROAS", where=pane)
    await screen.page.keyboard.press("Escape")
    await pane.wait_for(state="hidden")


async def test_an_admin_removes_the_app_and_another_can_not(screen: Screen) -> None:
    await screen.go("Threadline")
    await screen.channel.get_by_role("tab", name="About").click()
    await screen.channel.get_by_role("button", name="Remove App").click()
    await screen.dialog.get_by_role("button", name="Cancel").click()
    northwind = screen.bench.emulator.slack.workspaces[NORTHWIND]
    assert northwind.installation is not None
    await screen.page.get_by_label("You are").select_option("U0BEN")
    await screen.go("Threadline")
    await screen.channel.get_by_role("tab", name="About").click()
    await screen.sees("Only an admin of Northwind Outdoors can remove Threadline.", where=screen.channel)
    await screen.page.get_by_label("You are").select_option("U0ADA")
    await screen.go("Threadline")
    await screen.channel.get_by_role("tab", name="About").click()
    await screen.channel.get_by_role("button", name="Remove App").click()
    await screen.dialog.get_by_role("button", name="Remove App").click()
    await screen.sees("is not installed in this workspace")
    assert northwind.installation is None


async def test_a_command_that_the_app_does_not_take_fails_in_slacks_words(screen: Screen) -> None:
    await screen.bench.people.set_request_url("http://127.0.0.1:9/slack/events")
    await screen.write("/report")
    await screen.sees("/report failed with the error “dispatch_failed”", where=screen.channel)


async def test_a_file_stands_in_the_box_until_it_is_sent_or_taken_out(screen: Screen) -> None:
    file = {"name": "spend.csv", "mimeType": "text/csv", "buffer": b"day,spend\n1,2\n"}
    await screen.page.set_input_files("#channel input[type=file]", file)
    await screen.channel.get_by_role("button", name="Remove spend.csv").click()
    assert await screen.channel.get_by_role("button", name="Send").is_disabled()
    await screen.page.set_input_files("#channel input[type=file]", file)
    await screen.channel.get_by_role("button", name="Send").click()
    await screen.channel.get_by_role("link", name="spend.csv").wait_for()


async def test_what_the_app_suggests_in_a_thread_is_asked_with_a_click(screen: Screen) -> None:
    await screen.go("Threadline")
    await screen.write("what can you do?")
    await screen.sees("APP", where=screen.thread)
    await screen.bench.idle()
    ts = (await screen.bench.people.messages("dm:@ada"))[-1]["ts"]
    api = AsyncWebClient(TOKEN, base_url=screen.bench.emulator.api_url)
    prompts = [{"title": "The best one", "message": "Which campaign had the best ROAS last month?"}]
    await api.assistant_threads_setSuggestedPrompts(channel_id="D0ADA", thread_ts=ts, prompts=prompts)
    button = screen.thread.get_by_role("button", name="The best one")
    await button.click()
    await screen.sees("Which campaign had the best ROAS last month?", where=screen.thread)
    await button.wait_for(state="detached")
    await screen.bench.idle()
