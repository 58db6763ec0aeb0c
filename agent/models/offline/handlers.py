"""One handler for each kind of request: it asks the desk for what it needs, and returns the words and what is spoken of now."""

from dataclasses import dataclass, replace

from agent.models.base import ToolSchema
from agent.models.offline import changes, figures, services, talk
from agent.models.offline.copywriting import drafts
from agent.models.offline.markdown import bold, listed, plain, table
from agent.models.offline.requests import (
    Answer,
    Budget,
    Email,
    Listing,
    Performance,
    Ranking,
    Report,
    Request,
    Said,
    Schedule,
    Schedules,
    Selection,
    SetStatus,
    Topic,
)
from agent.models.offline.scene import PERFORMANCE, Chosen, Scene, read_performance


@dataclass(frozen=True, slots=True)
class Handled:
    """The words (empty while results are missing), the topic after it, and the period it was about."""

    text: str
    topic: Topic
    period: str | None = None


def handle(scene: Scene, request: Request, tools: tuple[ToolSchema, ...]) -> Handled:
    """Carry out one request as far as the results on the desk allow."""
    request = _continued(scene.topic, request)
    match request:
        case Performance():
            return _performance(scene, request)
        case Ranking():
            return _ranking(scene, request)
        case Budget() | SetStatus():
            return _change(scene, request)
        case Listing():
            return _listing(scene, request)
        case Report():
            return _report(scene, request)
        case Answer():
            return _answered(scene, request, tools)
        case Email():
            return Handled(drafts(request), replace(scene.topic, pending=None))
        case Schedule():
            return Handled(services.schedule(scene, request), replace(scene.topic, pending=None))
        case Schedules():
            return Handled(services.schedules(scene, request, tools), replace(scene.topic, pending=None))
        case Said():
            return Handled(_said(scene, request), scene.topic)


def _continued(topic: Topic, request: Request) -> Request:
    """A fragment as the request it goes on with: a choice for an open question, or another round of the last request."""
    if not isinstance(request, Performance) or not request.follow_up:
        return request
    bare = request.period is None and not request.metrics and request.compare_to is None
    if topic.pending is not None and bare and not request.which.empty:
        return _with(topic.pending, _narrowed(request.which, topic.choices))
    last = topic.last
    if isinstance(last, SetStatus | Budget) and request.also and bare and not request.which.empty:
        return replace(last, which=request.which)
    if isinstance(last, Ranking) and request.which.empty and not request.compare_to:
        metric = request.metrics[0] if request.metrics else last.metric
        return replace(last, metric=metric, period=request.period, relative=request.relative)
    return request


def _narrowed(which: Selection, choices: tuple[str, ...]) -> Selection:
    """Of two offered campaigns "the retargeting one" is clear, even if the account has more that are called so."""
    offered = {mention: [name for name in mention.candidates if name in choices] for mention in which.unclear}
    clear = tuple(names[0] for names in offered.values() if len(names) == 1)
    left = tuple(mention for mention, names in offered.items() if len(names) != 1)
    return replace(which, names=(*which.names, *clear), unclear=left)


def _with(request: Request, which: Selection) -> Request:
    """The request with campaigns chosen; those it had already stay."""
    if isinstance(request, Performance | Ranking | Budget | SetStatus | Listing | Report):
        return replace(request, which=replace(which, names=tuple(dict.fromkeys((*request.which.names, *which.names)))))
    return request


def _ask(scene: Scene, request: Request, chosen: Chosen) -> Handled:
    """A question back, or why it can't be done; what was asked stays open while there is something to choose."""
    pending = request if chosen.choices else None
    if isinstance(request, Performance | Budget | SetStatus | Report | Listing):
        pending = replace(request, which=Selection(names=request.which.names)) if chosen.choices else None
    return Handled(chosen.problem, replace(scene.topic, pending=pending, choices=chosen.choices))


def _performance(scene: Scene, request: Performance) -> Handled:
    chosen = scene.choose(request.which)
    if chosen.problem:
        return _ask(scene, request, chosen)
    inherits = request.follow_up and request.which.empty
    names = scene.topic.names if inherits else chosen.names
    everything = chosen.everything or not names
    metrics = request.metrics or (scene.topic.metrics if request.follow_up else ())
    if not metrics and request.follow_up and isinstance(scene.topic.last, Ranking) and scene.topic.last.metric:
        metrics = ()
    period = scene.period(request.period, relative=request.relative, inherit=request.follow_up)
    topic = Topic(
        names=() if everything else names, everything=everything, period=period, metrics=metrics, last=request
    )
    arguments: dict[str, object] = {"campaigns": "all" if everything else list(names), "period": period}
    if request.compare_to is not None:
        arguments["compare_to"] = request.compare_to
    return Handled(_figures(scene, request, arguments, metrics=metrics, aside=chosen.aside), topic, period)


def _figures(
    scene: Scene, request: Performance, arguments: dict[str, object], *, metrics: tuple[str, ...], aside: str
) -> str:
    outcome = scene.desk.ask(PERFORMANCE, arguments)
    if outcome is None:
        return ""
    result = read_performance(outcome)
    if result is None:
        return f"I could not get the figures: {plain(outcome.text)}"
    everything = arguments["campaigns"] == "all"
    text = figures.performance(result, metrics=metrics, side_by_side=request.side_by_side, everything=everything)
    return f"{text}\n\n{aside}" if aside else text


def _ranking(scene: Scene, request: Ranking) -> Handled:
    chosen = scene.choose(request.which)
    if chosen.problem:
        return _ask(scene, request, chosen)
    last = scene.topic.last
    spoken = (
        last.metric if isinstance(last, Ranking) else scene.topic.metrics[0] if len(scene.topic.metrics) == 1 else None
    )
    metric = request.metric or spoken or "roas"
    period = scene.period(request.period, relative=request.relative, inherit=True)
    outcome = scene.desk.ask(PERFORMANCE, {"campaigns": list(chosen.names) or "all", "period": period})
    asked = replace(request, metric=metric)
    if outcome is None:
        # Nobody knows yet who "it" will be; until then it is nobody, and certainly not whom we spoke of before.
        return Handled("", Topic(period=period, last=asked), period)
    result = read_performance(outcome)
    if result is None:
        return Handled(f"I could not get the figures: {plain(outcome.text)}", scene.topic)
    rows = figures.ranked_rows(result, metric, best=request.best, highest=request.highest)
    names = tuple(row.name for row in rows[: max(request.top, 1)])
    text = figures.ranking(result, metric, best=request.best, highest=request.highest, top=request.top)
    return Handled(text, Topic(names=names, period=period, last=asked), period)


def _change(scene: Scene, request: Budget | SetStatus) -> Handled:
    chosen = scene.choose(request.which, changing=True)
    if chosen.unready:
        return Handled("", scene.topic)
    if chosen.problem:
        return _ask(scene, request, chosen)
    if not chosen.names and (request.which.empty or request.which.back) and len(scene.topic.names) == 1:
        chosen = Chosen(scene.topic.names)
    if not chosen.names or (request.which.back and len(chosen.names) > 1 and not request.which.several):
        names = chosen.names or tuple(campaign.name for campaign in scene.campaigns)
        word = "change" if isinstance(request, Budget) else "pause" if request.status == "paused" else "resume"
        question = (
            f"Which campaign shall I {word}: {listed(names, word='or')}?" if names else "This account has no campaigns."
        )
        return _ask(scene, request, Chosen(problem=question, choices=names))
    told = (
        changes.change_budgets(scene, request, chosen)
        if isinstance(request, Budget)
        else changes.set_statuses(scene, request, chosen)
    )
    open_amount = isinstance(request, Budget) and request.amount is None
    topic = replace(
        scene.topic, names=chosen.names, everything=False, last=request, pending=None, choices=(),
        metrics=() if not open_amount else scene.topic.metrics,
    )  # fmt: skip
    text = changes.together(told)
    return Handled(f"{text}\n\n{chosen.aside}" if chosen.aside and text else text, topic)


def _listing(scene: Scene, request: Listing) -> Handled:
    chosen = scene.choose(request.which)
    if chosen.problem:
        return _ask(scene, request, chosen)
    names = chosen.names or tuple(campaign.name for campaign in scene.campaigns)
    topic = replace(scene.topic, names=chosen.names, everything=not chosen.names, last=request, pending=None)
    if not names:
        return Handled("This account has no campaigns.", topic)
    if len(names) == 1:
        only = scene.campaign(names[0])
        text = f"{bold(only.name)} is **{only.status}** with a daily budget of **{only.daily_budget}** ({only.channel}, since {only.started_on})."
        return Handled(text, topic)
    rows = [scene.campaign(name) for name in names]
    active = sum(row.status == "active" for row in rows)
    where = bold(scene.account.account.name)
    lead = f"{len(rows)} campaigns in {where}, {active} of them active:"
    if active in {0, len(rows)}:
        lead = f"{len(rows)} {rows[0].status} campaigns in {where}:"
    body = [[plain(row.name), row.status, row.channel, row.daily_budget] for row in rows]
    return Handled(f"{lead}\n\n{table(['Campaign', 'Status', 'Channel', 'Daily budget'], body, texts=3)}", topic)


def _report(scene: Scene, request: Report) -> Handled:
    if not scene.desk.has(services.REPORT):
        return _performance(scene, Performance(which=request.which, period=request.period))
    chosen = scene.choose(request.which)
    if chosen.problem:
        return _ask(scene, request, chosen)
    campaigns = "all" if chosen.everything or not chosen.names else list(chosen.names)
    about = "all campaigns" if isinstance(campaigns, str) else listed(campaigns)
    period = scene.period(request.period, relative=request.period is not None, inherit=False)
    topic = replace(scene.topic, names=chosen.names, everything=campaigns == "all", last=request, pending=None)
    return Handled(services.report(scene, campaigns, period, about=about), topic, period)


def _said(scene: Scene, said: Said) -> str:
    still = talk.undecided(scene.waiting) if said.kind == "stop" else ""
    return f"{talk.answer(said)} {still}".strip()


def _answered(scene: Scene, answer: Answer, tools: tuple[ToolSchema, ...]) -> Handled:
    """A yes, no or choice after a question of ours. It is never an approval: those are given where they were asked for."""
    topic = scene.topic
    if topic.pending is not None:
        names = _chosen_of(answer, topic.choices)
        if answer.yes is False:
            return Handled("All right, I leave it.", replace(topic, pending=None, choices=()))
        if names:
            request = _with(topic.pending, Selection(names=names))
            return handle(replace(scene, topic=replace(topic, pending=None, choices=())), request, tools)
        return Handled(f"Which one: {listed(topic.choices, word='or')}?", topic)
    if scene.waiting and answer.yes:
        return Handled(talk.unapproved(scene.waiting), topic)
    if answer.yes is False:
        return Handled(f"All right. {talk.undecided(scene.waiting)}".strip(), topic)
    return Handled(
        "There is nothing open that I could do on that. Tell me what to do, for example: pause Spring Sale.", topic
    )


def _chosen_of(answer: Answer, choices: tuple[str, ...]) -> tuple[str, ...]:
    if answer.everything:
        return choices
    if answer.choice is not None:
        return choices[answer.choice :][:1] if answer.choice < len(choices) else ()
    return choices if answer.yes and len(choices) == 1 else ()
