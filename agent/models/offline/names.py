"""Finding campaigns in running text: whole names, parts of them, and names with a typo in them."""

from collections.abc import Sequence
from dataclasses import replace
from difflib import get_close_matches

from agent.campaigns.dates import SEASONS
from agent.campaigns.results import CampaignResult
from agent.models.offline.vocabulary import CAMPAIGN, CHANNELS, CORRECTED, KNOWN, METRICS, TYPOS
from agent.models.offline.words import Token, tokenise

_LONGEST = 10
_PLURAL = frozenset({"campaigns", "ones", "ads", "campaings", "campains"})


def mark(tokens: Sequence[Token], campaigns: Sequence[CampaignResult]) -> list[Token]:
    """The tokens with each mention of a campaign as one name token, which lists the campaigns it may mean.

    The longest mention at a place counts, a whole name before a part of one. A quote that is a name is a mention too.
    """
    parts = {campaign.name: _parts(campaign.name) for campaign in campaigns}
    corrected = [_correct(token, parts) for token in tokens]
    marked: list[Token] = []
    at = 0
    while at < len(corrected):
        length, found = (0, ()) if _is_season(corrected, at) else _mention(corrected, at, parts)
        if found:
            text = " ".join(token.text for token in tokens[at : at + length])
            spoken = " ".join(token.word for token in corrected[at : at + length])
            marked.append(Token(text, spoken, "name", names=found))
        else:
            marked.append(corrected[at])
        at += max(length, 1)
    return _with_plurals(_merged(marked, parts))


def _is_season(tokens: Sequence[Token], at: int) -> bool:
    """In "in winter" and "last summer 2025" the season is a time, and not the beginning of a name."""
    if tokens[at].word not in SEASONS:
        return False
    before = tokens[at - 1].word if at else ""
    after = tokens[at + 1] if at + 1 < len(tokens) else None
    timed = after is None or after.kind in {"mark", "number"}
    return timed and (
        before in {"in", "during", "last", "this", "since"} or (after is not None and after.kind == "number")
    )


def _parts(name: str) -> tuple[str, ...]:
    return tuple(token.word for token in tokenise(name) if token.kind != "mark")


def _correct(token: Token, parts: dict[str, tuple[str, ...]]) -> Token:
    """The token with a typo mended, in a word of a campaign's name first, else in a keyword."""
    if token.word in TYPOS:
        return replace(token, word=TYPOS[token.word], text=TYPOS[token.word])
    vocabulary = {word for words in parts.values() for word in words}
    if token.kind != "word" or len(token.word) < 4 or token.word in KNOWN or token.word in vocabulary:
        return token
    close = get_close_matches(token.word, sorted(vocabulary), n=1, cutoff=0.8 if len(token.word) < 6 else 0.76)
    close = close or get_close_matches(token.word, CORRECTED, n=1, cutoff=0.84)
    if not close:
        return token
    return replace(token, word=close[0]) if close[0] in vocabulary else replace(token, word=close[0], text=close[0])


def _mention(tokens: Sequence[Token], at: int, parts: dict[str, tuple[str, ...]]) -> tuple[int, tuple[str, ...]]:
    if tokens[at].kind == "quote":
        quoted = _parts(tokens[at].text)
        return 1, _fitting(quoted, parts, quoted=True) if quoted else ()
    spoken: list[str] = []
    best: tuple[int, tuple[str, ...]] = (0, ())
    for offset, token in enumerate(tokens[at : at + 2 * _LONGEST]):
        if token.kind == "mark" and token.text in {"-", "&", "/", "+"} and spoken:
            continue
        if token.kind not in {"word", "number"}:
            break
        spoken.append(token.word)
        found = _fitting(tuple(spoken), parts, followed_by=tokens[at + offset + 1 : at + offset + 2])
        if found:
            best = (offset + 1, found)
        if len(spoken) >= _LONGEST:
            break
    return best


def _fitting(
    spoken: tuple[str, ...],
    parts: dict[str, tuple[str, ...]],
    *,
    quoted: bool = False,
    followed_by: Sequence[Token] = (),
) -> tuple[str, ...]:
    exact = tuple(name for name, words in parts.items() if words == spoken)
    if exact:
        return exact
    if len(spoken) == 1 and not quoted and not _may_stand_alone(spoken[0], followed_by):
        return ()
    if all(word in KNOWN and word not in CHANNELS for word in spoken):
        return ()
    if (spoken[0] in KNOWN or spoken[-1] in KNOWN) and not {spoken[0], spoken[-1]} & {
        w for ws in parts.values() for w in ws
    }:
        return ()
    found = tuple(name for name, words in parts.items() if _in_order(spoken, words))
    # "search" alone is a channel unless it can only mean one campaign.
    return () if len(spoken) == 1 and spoken[0] in CHANNELS and len(found) != 1 and not quoted else found


def _may_stand_alone(word: str, followed_by: Sequence[Token]) -> bool:
    if word in CHANNELS:
        return not followed_by or followed_by[0].word not in CAMPAIGN | {"copy", "text", "for", "about"}
    return word not in KNOWN and len(word) > 2


def _in_order(spoken: tuple[str, ...], name: tuple[str, ...]) -> bool:
    rest = iter(name)
    return all(word in rest for word in spoken)


def _merged(tokens: list[Token], parts: dict[str, tuple[str, ...]]) -> list[Token]:
    """Words that stand together are one name: "Winter Sale" is not "Winter Clearance" and some sale, and "Hiking Promo" is unsure."""
    merged: list[Token] = []
    for token in tokens:
        last = merged[-1] if merged else None
        if last is not None and _one_name(last, token, parts):
            said = [name for each in (last, token) for name in each.names or _with_word(each.word, parts)]
            text = f"{last.text} {token.text}"
            merged[-1] = Token(text, text.casefold(), "name", names=tuple(dict.fromkeys(said)), unsure=True)
        else:
            merged.append(token)
    return merged


def _one_name(left: Token, right: Token, parts: dict[str, tuple[str, ...]]) -> bool:
    if left.kind == "name" and right.kind == "name":
        return not (_whole(left, parts) and _whole(right, parts))
    for name, other in ((left, right), (right, left)):
        if name.kind != "name" or other.kind != "word" or other.word in METRICS:
            continue
        if other.word not in KNOWN:
            return other.text[:1].isupper() or not _whole(name, parts)
        if not _whole(name, parts) and other.word not in CHANNELS and _with_word(other.word, parts):
            return True
    return False


def _with_word(word: str, parts: dict[str, tuple[str, ...]]) -> list[str]:
    return [name for name, words in parts.items() if word in words]


def _whole(token: Token, parts: dict[str, tuple[str, ...]]) -> bool:
    return not token.unsure and len(token.names) >= 1 and parts[token.names[0]] == _parts(token.word)


def _with_plurals(tokens: list[Token]) -> list[Token]:
    """With "both" or a plural all that fit are meant: "both retargeting campaigns" , but not "the retargeting campaign"."""
    for at, token in enumerate(tokens):
        if token.kind != "name" or len(token.names) < 2 or token.unsure:
            continue
        around = {tokens[at - 1].word if at else "", tokens[at - 2].word if at > 1 else ""}
        after = tokens[at + 1].word if at + 1 < len(tokens) else ""
        if after in _PLURAL or around & {"both", "all", "every"}:
            tokens[at] = replace(token, plural=True)
    return tokens
