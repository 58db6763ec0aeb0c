"""The word that does what the Stop button does, as people type it: in their language, with a please, in bold, more than once.

A message counts only if it says nothing else: "stop the Spring Sale campaign" is a request like any other. "Stop?" counts, too: whoever
types it alone wants an end, and a turn that was ended says so and can be asked for again.
"""

import re
import unicodedata

LONGEST = 100
"""Characters. Whoever says no more than the word needs fewer."""
_EMOJI = re.compile(r":[a-z0-9_+'-]+:", re.IGNORECASE)
_NEGATION = re.compile(r"\bno[\s*_~`]+\w", re.IGNORECASE)
"""In Spanish it negates the word it stands before: "no pare" asks to go on. Set off ("no, stop"), it is an answer of its own."""


def is_stop(text: str) -> bool:
    """Whether a text says to stop and nothing more."""
    if len(text) > LONGEST or _NEGATION.search(text):
        return False
    words = _folded(_EMOJI.sub(" ", text)).split()
    return any(word in _STOP for word in words) and all(word in _STOP or word in _BESIDE for word in words)


def _folded(text: str) -> str:
    """Without accents, case, marks and symbols: people leave them out or put more of them in. A hyphen makes one word ("non-stop")."""
    letters = unicodedata.normalize("NFKD", text.casefold())
    return "".join(
        each
        if (kind := unicodedata.category(each))[0] in "LN"
        else ""
        if kind in ("Mn", "Mc", "Me", "Cf", "Pd")
        else " "
        for each in letters
    )


def _set(words: str) -> frozenset[str]:
    return frozenset(_folded(words).split())


_STOP = _set(
    """
    stop stopp halt abort cancel
    arrête arrêtez arrêter annule annulez
    anhalten abbrechen aufhören stoppen
    para pare parar alto basta detente detén deténte cancela
    pára chega cancele
    ferma fermati fermo alt smetti smettila annulla
    стоп остановись остановитесь остановить хватит прекрати прекратите отмена
    停止 停 停下 停下来 停下來 终止 終止 中止 取消 请停止 請停止 请停 請停 请停下 請停下
    止めて 止めてください 止まって 止まってください とめて やめて やめてください 停止して 停止してください ストップ ストップしてください 中断 中止して
    멈춰 멈춰요 멈춰줘 멈추세요 멈춰주세요 그만 그만해 그만해요 그만하세요 중지 중지해 정지 중단 스톱 스탑
    zatrzymaj przestań
    dur durdur yeter
    रुको रुकें रुकिए रोको
    قف توقف أوقف
    """
)
"""In English, French, German and Dutch, Spanish, Portuguese, Italian, Russian, Chinese, Japanese, Korean, Polish, Turkish, Hindi and Arabic."""
_BESIDE = _set(
    """
    it that this please pls plz now right away ok okay no hey wait just
    ça cela s il te vous plaît svp stp maintenant tout de suite
    bitte sofort jetzt damit das nein alsjeblieft nu
    por favor ya ahora eso esto no agora já isso
    per favore subito ora adesso
    пожалуйста сейчас нет
    吧 请 請
    제발 지금
    proszę teraz lütfen şimdi कृपया अभी من فضلك الآن
    """
)
"""What may stand beside it."""
