"""Where a request is carried out: the desk, the account's campaigns, what was spoken of before, and whose clock counts."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from difflib import get_close_matches

from agent.campaigns import Period, PeriodError, UnknownPeriodError, parse_period, parse_relative
from agent.campaigns.dates import add_months
from agent.campaigns.results import CampaignList, CampaignResult, Performance
from agent.models.offline.desk import Desk, Outcome
from agent.models.offline.figures import ranked_rows
from agent.models.offline.markdown import listed, quoted
from agent.models.offline.requests import Selection, Topic, Unclear

DEFAULT_PERIOD = "last 7 days"
PERFORMANCE = "campaign_performance"


@dataclass(frozen=True, slots=True)
class Chosen:
    """Campaigns that were made out. `problem` is what to ask or say instead, with the `choices` it offers."""

    names: tuple[str, ...] = ()
    everything: bool = False
    problem: str = ""
    choices: tuple[str, ...] = ()
    aside: str = ""
    unready: bool = False


@dataclass(frozen=True)
class Scene:
    """`turn_period` is the period named earlier in this turn; with `exact`, periods go to tools as dates. `waiting` are open approvals.

    The tool reads words by the clock of one person; when people of several time zones ask in one turn, only dates are right for each.
    """

    desk: Desk
    account: CampaignList
    topic: Topic
    now: datetime
    time_zone: str
    exact: bool = False
    turn_period: str | None = None
    waiting: tuple[str, ...] = ()

    @property
    def campaigns(self) -> tuple[CampaignResult, ...]:
        """The account's campaigns."""
        return self.account.campaigns

    def campaign(self, name: str) -> CampaignResult:
        """The campaign of a name that was made out."""
        return next(each for each in self.campaigns if each.name == name)

    def period(self, text: str | None, *, relative: bool, inherit: bool) -> str:
        """The period to pass to a tool for the words of a request, or for none."""
        if text is None:
            return (self.turn_period or (self.topic.period if inherit else None)) or DEFAULT_PERIOD
        words = _bare(text)
        if relative:
            found = self._relative(words)
            if found is not None:
                return _iso(found)
        return self._dated(words) if self.exact else words

    def _relative(self, words: str) -> Period | None:
        """The period counted from the one spoken of. With none, words that can stand alone ("the week before") are the tool's to read."""
        base = self._spoken()
        if base is not None:
            return parse_relative(words, base)
        try:
            parse_period(words, now=self.now, time_zone=self.time_zone)
        except UnknownPeriodError:
            return parse_relative(words, parse_period(DEFAULT_PERIOD, now=self.now, time_zone=self.time_zone))
        except PeriodError:
            return None  # the tool says what is wrong with it
        return None

    def _dated(self, words: str) -> str:
        try:
            return _iso(parse_period(words, now=self.now, time_zone=self.time_zone))
        except PeriodError:
            return words

    def _spoken(self) -> Period | None:
        """The period spoken of before, if it could be read."""
        text = self.turn_period or self.topic.period
        try:
            return whole_months(parse_period(text, now=self.now, time_zone=self.time_zone)) if text else None
        except PeriodError:
            return None

    def choose(self, which: Selection, *, changing: bool = False) -> Chosen:
        """The campaigns a selection means. Without a word about which, nothing is chosen."""
        if which.unclear:
            return self._unclear(which.unclear[0])
        if which.superlative is not None:
            return self._extreme(which)
        aside = "" if not which.unknown else self._unknown(which.unknown)
        if which.names:
            return Chosen(which.names, aside=aside)
        if which.unknown:
            return Chosen(problem=aside, choices=self._close(which.unknown[0]))
        if which.back:
            return self._back(changing=changing)
        if which.channel or which.status or which.without or which.everything:
            return self._filtered(which)
        return Chosen()

    def _unclear(self, mention: Unclear) -> Chosen:
        if len(mention.candidates) == 1:
            ask = f"No campaign is called {quoted(mention.said)}. Do you mean {listed(mention.candidates)}?"
        else:
            ask = f"Which campaign do you mean by {quoted(mention.said)}: {listed(mention.candidates, word='or')}?"
        return Chosen(problem=ask, choices=mention.candidates)

    def _unknown(self, said: Sequence[str]) -> str:
        names = [campaign.name for campaign in self.campaigns]
        wanted = " and ".join(quoted(each) for each in said)
        if not names:
            return f"I know no campaign called {wanted}; this account has none at all."
        close = self._close(said[0])
        hint = f" Do you mean {listed(close, word='or')}?" if close else ""
        return f"I know no campaign called {wanted}.{hint} There are {listed(names)}."

    def _close(self, said: str) -> tuple[str, ...]:
        by_folded = {campaign.name.casefold(): campaign.name for campaign in self.campaigns}
        return tuple(by_folded[each] for each in get_close_matches(said.casefold(), by_folded, n=3, cutoff=0.6))

    def _back(self, *, changing: bool) -> Chosen:
        known = {campaign.name for campaign in self.campaigns}
        names = tuple(name for name in self.topic.names if name in known)
        if self.topic.everything and not changing:
            return Chosen(everything=True)
        return Chosen(names)

    def _filtered(self, which: Selection) -> Chosen:
        names = tuple(
            campaign.name
            for campaign in self.campaigns
            if which.channel in {None, campaign.channel}
            and which.status in {None, campaign.status}
            and campaign.name not in which.without
        )
        if not names:
            kind = " ".join(word for word in (which.status, which.channel) if word)
            return Chosen(
                problem=f"There is no {kind} campaign in this account." if kind else "There is no campaign left then."
            )
        return Chosen(names, everything=len(names) == len(self.campaigns))

    def _extreme(self, which: Selection) -> Chosen:
        """The best or worst campaign, by figures that have to be asked for first."""
        period = self.period(which.period, relative=False, inherit=True)
        outcome = self.desk.ask(PERFORMANCE, {"campaigns": "all", "period": period})
        if outcome is None:
            return Chosen(unready=True)
        result = read_performance(outcome)
        rows = ranked_rows(result, which.metric, best=bool(which.superlative), highest=None) if result else []
        return (
            Chosen((rows[0].name,))
            if rows
            else Chosen(problem="I could not tell which one that is: there are no figures.")
        )


def read_performance(outcome: Outcome) -> Performance | None:
    """The figures in an outcome, or None if it holds none."""
    try:
        return Performance.model_validate(outcome.data) if outcome.kind == "done" else None
    except ValueError:  # pydantic's ValidationError is one
        return None


def whole_months(period: Period) -> Period:
    """The period, known as calendar months if its days are exactly that."""
    after = period.end + timedelta(days=1)
    if period.start.day != 1 or after.day != 1:
        return period
    months = (after.year - period.start.year) * 12 + after.month - period.start.month
    assert add_months(period.start, months) == after
    return replace(period, months=months)


def _iso(period: Period) -> str:
    start: date = period.start
    return f"{start}..{period.end}"


_LEADS = ("in ", "for ", "during ", "over ", "on ", "the ", "of ", "whole ", "within ")


def _bare(text: str) -> str:
    words = " ".join(text.split())
    while words.casefold().startswith(_LEADS):
        words = words.split(" ", 1)[1]
    return words
