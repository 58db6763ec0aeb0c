"""Email drafts from a template. It is no writer: it arranges the words of the brief and says so."""

import re

from agent.models.offline.clauses import Clause
from agent.models.offline.requests import Email
from agent.models.offline.words import sentence

_WRITE = frozenset(
    {
        "write",
        "draft",
        "compose",
        "create",
        "make",
        "need",
        "give",
        "generate",
        "prepare",
        "suggest",
        "want",
        "do",
        "help",
    }
)
_EMAIL = frozenset({"email", "emails", "mail", "newsletter", "e-mail", "mailing"})
_ABOUT = re.compile(r"\b(?:about|announcing|promoting|regarding|for|on)\b:?\s+(?P<subject>.+)$", re.IGNORECASE)
_OFFER = re.compile(r"\d+(?:[.,]\d+)?\s?%(?:\s?off)?|[€$£]\s?\d+(?:[.,]\d+)?(?:\s?off)?", re.IGNORECASE)


def brief(clause: Clause) -> Email | None:
    """The brief in a clause that asks for email copy, else None."""
    words = clause.all_words
    lines = "subject" in words and bool(words & {"line", "lines"})
    copy = lines or ("copy" in words and bool(words & (_WRITE | _EMAIL)))
    if not copy and not (words & _EMAIL and words & _WRITE and not clause.question):
        return None
    text = sentence(clause.tokens)
    offer = _OFFER.search(text)
    match = _ABOUT.search(text)
    subject = match["subject"] if match else ""
    if not subject:
        subject = " ".join(
            token.text for token in clause.tokens if token.kind in {"quote", "name"} and token.word not in _EMAIL
        )
    subject = re.sub(r"(?i)\b(?:an? )?(?:e-?mail|newsletter)\b(?: (?:copy|about|for))?", "", subject)
    subject = re.sub(r"(?i)^(?:our|the|my|a|an)\s+", "", subject.strip())
    subject = re.sub(
        r"(?i)[,\s]*(?:please|with|and)?[,\s]*$", "", _OFFER.sub("", subject).replace(" with ,", ",")
    ).strip(" .,!?:")
    return Email(" ".join(subject.split()), offer[0] if offer else None)


def drafts(request: Email) -> str:
    """Two variants with subject lines, as Markdown."""
    subject = request.subject or "our news"
    title = subject[:1].upper() + subject[1:]
    offer = request.offer
    reward = f"{offer if 'off' in offer.lower() else f'{offer} off'}" if offer else ""
    first_subject = f"{title}: {reward}" if reward else f"Now here: {subject}"
    first_line = f"Now here: {subject}, with {reward}." if reward else f"Now here: {subject}."
    second_subject = f"Something for your next trip: {subject}"
    second_line = f"As one of our readers you get {reward}." if reward else "You hear of it before anyone else."
    return "\n".join(
        [
            f"Two drafts about **{subject}**, from the offline model's template: the words of your brief, arranged. Edit before sending.",
            "",
            "**Variant A: straight to the point**",
            f"Subject: {first_subject}",
            "",
            "> Hello,",
            ">",
            f"> {first_line} We picked what we would take along ourselves.",
            ">",
            "> **See the selection**",
            "",
            "**Variant B: a story first**",
            f"Subject: {second_subject}",
            "",
            "> Hello,",
            ">",
            f"> the best trips begin before you leave the house. Our idea for the next one: {subject}. {second_line}",
            ">",
            "> **Take a look**",
        ]
    )
