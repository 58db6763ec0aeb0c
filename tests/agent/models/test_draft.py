"""What a provider streams, put together: text and arguments that can be stored and sent."""

from agent.models.draft import Draft


def test_half_surrogates_in_text_and_arguments_become_question_marks() -> None:
    draft = Draft()
    assert draft.say("t", "caf\ud800").text == "caf?"
    draft.call("c", id_="c1", name="look", arguments='{"n": "x\\ud83d"}')
    draft.stop = "tool_calls"
    message = draft.finished().message
    assert message.text == "caf?"
    assert message.tool_calls[0].arguments == {"n": "x?"}
    message.model_dump_json()


def test_a_whole_emoji_in_two_escapes_stays_whole() -> None:
    draft = Draft()
    draft.call("c", id_="c1", name="look", arguments='{"n": "\\ud83d\\ude00"}')
    draft.stop = "tool_calls"
    assert draft.finished().message.tool_calls[0].arguments == {"n": "\U0001f600"}
