"""The word Stop, as people type it."""

import pytest

from bot.stop_words import is_stop


@pytest.mark.parametrize(
    "text",
    [
        "stop", "STOP!!!", "Stop.", "Stop…", "Stop?", "*stop*", "_stop_", "~stop~", "`stop`", '"stop"', "Stop, please", "please, stop", "stop stop",
        "stop stop STOP", "stop now", "ok stop", "no, stop it!", "stop, no", "No! Pare.", "stop :octagonal_sign:", "\N{OCTAGONAL SIGN} stop \N{OCTAGONAL SIGN}\N{VARIATION SELECTOR-16}",
        "\uff33\uff34\uff2f\uff30", "cancel", "halt", "arrête", "arrete", "ARRÊTEZ !", "arrête, s'il te plaît", "stopp!", "bitte anhalten", "sofort abbrechen",
        "¡para!", "alto", "detente por favor", "pare agora", "fermati", "basta per favore", "стоп", "стоп, пожалуйста", "停止", "停止。", "请停止", "止まって",
        "やめてください", "ストップ\uff01", "멈춰", "그만해요", "zatrzymaj", "dur", "रुको", "توقف",
    ],
)  # fmt: skip
def test_nothing_but_the_word_is_stop(text: str) -> None:
    assert is_stop(text)


@pytest.mark.parametrize(
    "text",
    [
        "", "   ", "!", ":octagonal_sign:", "please", "ok", "now", "stop the Spring Sale campaign", "stop Spring Sale", "stop campaigns", "stop all",
        "non-stop", "no-stop policy", "one-stop shop", "stopwatch", "don't stop", "never stop", "when did we stop?", "stop at 5 pm", "> stop words", "para la campaña",
        "cancel the summaries", "stop " * 50, "nonstop", "停止キャンペーン", "alto rendimiento", "basta così con Spring Sale",
        "No cancele, por favor", "no pare", "no detente", "no stop", "NO  PARE", "*no* pare", "no, no pare", "por favor no cancele", "no ahora, para",
    ],
)  # fmt: skip
def test_anything_more_is_a_request_like_any_other(text: str) -> None:
    assert not is_stop(text)
