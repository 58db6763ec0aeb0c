"""Small talk, and the yes, no and "the first one" that answer a question of the model's."""

from agent.models.offline.clauses import Clause
from agent.models.offline.requests import Answer, Request, Said
from agent.models.offline.vocabulary import GREETINGS, NO, ORDINALS, POLITE, THANKS, YES

_STOPS = frozenset({
    ("stop",), ("stop", "it"), ("stop", "that"), ("cancel",), ("cancel", "that"), ("never", "mind"), ("nevermind",), ("forget", "it"),
})  # fmt: skip


def small_talk(clause: Clause) -> list[Request]:
    rest = [
        word
        for word in clause.words
        if word not in {"there", "team", "all", "everyone", "good", "very", "much", "so", "a", "lot"}
    ]
    if clause.names or clause.spans or len(rest) > 6:
        return []
    if rest and set(rest) <= GREETINGS | {"threadline", "how", "are", "you", "bot"} and set(rest) & GREETINGS:
        return [Said("greeting")]
    extra = {
        "you",
        "for",
        "that",
        "the",
        "help",
        "that's",
        "it",
        "is",
        "was",
        "this",
        "job",
        "work",
        "really",
        "helpful",
    }
    if set(rest) & THANKS and set(rest) <= THANKS | YES | extra | POLITE and not set(rest) & {"why", "what"}:
        return [Said("thanks")]
    if tuple(word for word in clause.words if word not in POLITE) in _STOPS:
        return [Said("stop")]
    if clause.has & {"undo", "revert"} or clause.words[:2] == ("roll", "back"):
        return [Said("undo", clause.text)]
    return []


def consent(clause: Clause) -> list[Request]:
    words = [
        word
        for word in clause.words
        if word not in {"please", "the", "one", "ones", "campaign", "i", "mean", "meant", "that", "of"}
    ]
    if clause.spans and not set(clause.words) <= YES | NO | set(ORDINALS) | {"the", "one"}:
        return []
    for_all = {"both", "all", "everything"} & set(words)
    choice = next((ORDINALS[word] for word in words if word in ORDINALS), None)
    small = next((int(word) - 1 for word in words if word.isdecimal() and 0 < int(word) < 10), None)
    filler = {"do", "it", "go", "ahead", "proceed", "is", "them", "just", "option", "number", "two"}
    if any(
        word not in YES | NO | set(ORDINALS) | filler | {"both", "all", "everything"} and not word.isdecimal()
        for word in words
    ):
        return []
    if clause.names:
        return []
    if choice is not None or small is not None or for_all:
        return (
            [Answer(choice=choice if choice is not None else small, everything=bool(for_all))] if len(words) < 6 else []
        )
    if words and (set(words) & YES or words[:2] in (["do", "it"], ["go", "ahead"]) or words == ["proceed"]):
        return [Answer(yes=True)]
    return [Answer(yes=False)] if set(words) & NO else []
