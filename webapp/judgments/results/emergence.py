"""How behaviours rise and fall over a run: the labels of its games by training step, as curves and against outcomes.

Labels come from one source at a time: people (a decision in place of those whom it decides between), a judge model, a
rule, or what a classifier or another source suggested. Shares of a classifier are corrected for the errors that it
states of itself, and the bands carry them. See `training.evaluate.emergence`, and `results.background` for where and
when they are computed: for each reader apart, since what is withheld differs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, get_args
from urllib.parse import urlencode

from django.db.models import BooleanField, Count, ExpressionWrapper, Max, Prefetch, Q
from django.urls import reverse

from training.evaluate.behaviours import Checkpoint, JudgedGame, OutcomeRow, by_outcome, is_asked
from training.evaluate.emergence import CurvePoint, curves
from training.labels.codebooks import Codebook, LabelType
from training.labels.prevalence import ErrorRates
from training.reading import Record
from training.records import Judgment as JudgmentRecord
from webapp.accounts.models import User
from webapp.core.queue import ANALYSE_RUN
from webapp.judgments.models import CodebookVersion, Judgment, JudgmentQuerySet, Label, LabelledGame
from webapp.judgments.results import background, suggested
from webapp.judgments.results.background import Analysis, Report, State, Work
from webapp.judgments.results.suggested import SuggestedTarget
from webapp.runs.models import Run

Outcome = Literal["survived", "won"]
PEOPLE = "people"


@dataclass(frozen=True)
class Source:
    """Who labelled: `key` in addresses, `title` on pages. `suggests`: its labels are suggestions, not judgments."""

    key: str
    title: str
    suggests: bool = False


@dataclass(frozen=True)
class Curve:
    """A behaviour's points, with where the chart draws them."""

    label_type: LabelType
    points: Sequence[CurvePoint]
    drawn: Sequence[DrawnPoint]

    @property
    def line(self) -> str:
        """The line through the shares, as an SVG path takes it."""
        return " ".join(f"{'L' if number else 'M'}{point.x} {point.y}" for number, point in enumerate(self.drawn))

    @property
    def band(self) -> str:
        """The outline of the band: along the upper bounds, and back along the lower ones."""
        upper = [(point.x, point.high) for point in self.drawn]
        lower = [(point.x, point.low) for point in reversed(self.drawn)]
        return " ".join(f"{x},{y}" for x, y in upper + lower)


@dataclass(frozen=True)
class DrawnPoint:
    """A point of a chart: positions in units of its drawing, and the search for the labels behind it."""

    point: CurvePoint
    x: float
    y: float
    low: float
    high: float
    address: str


class RunBehaviours(Record):
    """The curves of a codebook's behaviours by name, and their shares by outcome; `games` were labelled, over `steps`
    steps.

    `errors` are those of the source by label type, for which its shares are corrected.
    """

    curves: dict[str, tuple[CurvePoint, ...]] = {}
    rows: tuple[OutcomeRow, ...] = ()
    games: int = 0
    steps: int = 0
    errors: dict[str, ErrorRates] = {}


WIDTH, HEIGHT = 320.0, 120.0
"""Of the drawing of a chart, between its axes."""


Judged = Mapping[tuple[int, str], tuple[str, State]]
"""The title of an author and the state of their judgments, by codebook version and key of the source ('' = others)."""


def judged(run: Run, user: User) -> Judged:
    """Return who judged games of the run, as far as this person may read it: in one read."""
    counts = {"count": Count("pk"), "newest": Max("pk"), "last": Max("updated_at")}
    by_person = ExpressionWrapper(Q(author__isnull=False), BooleanField())
    judgments = _readable(run, user).annotate(by_person=by_person).order_by()
    groups = judgments.values("codebook_version", "judge", "judge__name", "rule", "by_person")
    rows: Any = groups.annotate(**counts, decisions=Count("pk", filter=Q(decides=True)))
    authors: dict[tuple[int, str], tuple[str, State]] = {}
    for row in rows:
        if row["by_person"]:
            key, title = PEOPLE, "people"
        elif row["judge"] is not None:
            key, title = f"judge-{row['judge']}", f"the judge model {row['judge__name']}"
        else:
            key, title = (f"rule-{row['rule']}", f"the rule {row['rule']}") if row["rule"] else ("", "")
        authors[row["codebook_version"], key] = title, {name: row[name] for name in (*counts, "decisions")}
    return authors


def versions(run: Run, user: User, authors: Judged) -> list[CodebookVersion]:
    """Return the codebook versions under which this person may read labels of the run's games, newest first."""
    keys = {version for version, _ in authors} | set(suggested.versions(run, user))
    return list(CodebookVersion.objects.filter(pk__in=keys).select_related("codebook").order_by("-pk"))


def sources(run: Run, version: CodebookVersion, user: User, authors: Judged) -> list[Source]:
    """Return who labelled games of the run under this codebook version: people, judge models by name, rules, and who
    suggested labels.
    """
    titles = {
        key: title for (judged_version, key), (title, _) in authors.items() if key and judged_version == version.pk
    }
    order = {PEOPLE: 0, "judge": 1, "rule": 2}
    listed = sorted(titles, key=lambda key: (order[key.partition("-")[0]], titles[key]))
    suggesting = [Source(name, _title(name), suggests=True) for name in suggested.names(run, version, user)]
    return [Source(key, titles[key]) for key in listed] + suggesting


def _title(source: str) -> str:
    """The title of a source of suggestions."""
    kind, _, name = source.partition(":")
    kinds = {"classifier": "the classifier", "judge": "the judge model", "rule": "the rule"}
    return f"{kinds[kind]} {name}, suggestions"


def _readable(run: Run, user: User) -> JudgmentQuerySet:
    return Judgment.objects.readable_by(user).scored().filter(episode__run=run)


def _by(source: Source) -> Q:
    kind, _, name = source.key.partition("-")
    if kind == "judge":
        return Q(judge=int(name))
    return Q(rule=name) if kind == "rule" else Q(author__isnull=False)


def of_run(
    run: Run, version: CodebookVersion, source: Source, outcome: Outcome, user: User, authors: Judged
) -> Analysis:
    """Return the `RunBehaviours` of the labels of a source, as far as this person may read them."""
    return background.present(_work(run, version, source, outcome, user, authors))


def compute(run_id: int, version_id: int, source: str, outcome: str, reader_id: int) -> Record | None:
    """Compute and keep what `of_run` returns; None where something of it was deleted."""
    work = _work_of(run_id, version_id, source, outcome, reader_id)
    return None if work is None else background.compute(work)


def fail(run_id: int, version_id: int, source: str, outcome: str, reader_id: int) -> None:
    """Note that it could not be computed, so that pages do not wait for it."""
    work = _work_of(run_id, version_id, source, outcome, reader_id)
    if work is not None:
        background.fail(work)


def _work_of(run_id: int, version_id: int, source: str, outcome: str, reader_id: int) -> Work | None:
    run, reader = Run.objects.filter(pk=run_id).first(), User.objects.filter(pk=reader_id).first()
    version = CodebookVersion.objects.select_related("codebook").filter(pk=version_id).first()
    if run is None or version is None or reader is None:
        return None
    authors = judged(run, reader)
    known = next((each for each in sources(run, version, reader, authors) if each.key == source), None)
    chosen: Outcome | None = next((each for each in get_args(Outcome) if each == outcome), None)
    return None if known is None or chosen is None else _work(run, version, known, chosen, reader, authors)


def _work(run: Run, version: CodebookVersion, source: Source, outcome: Outcome, user: User, authors: Judged) -> Work:
    return Work(
        key=f"run-behaviours:{run.pk}:{version.pk}:{source.key}:{outcome}:{user.pk}",
        record=RunBehaviours,
        state=partial(_state, run, version, source, user, authors),
        compute=partial(_computed, run, version, source, outcome, user),
        task=ANALYSE_RUN,
        arguments=(run.pk, version.pk, source.key, outcome, user.pk),
        few=background.FEW,
    )


def _state(run: Run, version: CodebookVersion, source: Source, user: User, authors: Judged) -> State:
    if source.suggests:
        return suggested.state(run, version, source.key, user)
    return authors[version.pk, source.key][1]


def _computed(
    run: Run, version: CodebookVersion, source: Source, outcome: Outcome, user: User, report: Report
) -> RunBehaviours:
    codebook, errors = version.record(), dict[str, ErrorRates]()
    report(0, 3)
    if source.suggests:
        answered = suggested.targets(run, version, source.key, user)
        if (known_types := suggested.known(source.key, codebook, answered)) is None:
            return RunBehaviours()
        codebook, errors = known_types, {**suggested.errors_of(source.key)}
        checkpoints = _suggested_checkpoints(answered, source, version, outcome)
    else:
        checkpoints = _checkpoints(run, version, source, outcome, user)
    report(1, 3)
    by_name = curves(checkpoints, codebook, errors)
    report(2, 3)
    return RunBehaviours(
        curves={name: tuple(points) for name, points in by_name.items()},
        rows=tuple(by_outcome(checkpoints, codebook)),
        games=sum(len(checkpoint.games) for checkpoint in checkpoints),
        steps=len(checkpoints),
        errors={name: errors[name] for name in by_name if name in errors},
    )


def drawn(behaviours: RunBehaviours, run: Run, version: CodebookVersion, source: Source) -> list[Curve]:
    """Return the charts of behaviours, in the codebook's order; each point leads to the labels behind it."""
    steps = [point.step for points in behaviours.curves.values() for point in points]
    ends = min(steps, default=0), max(steps, default=0)
    address = partial(_address, run, version, source)
    charts = []
    for label_type in version.record().labels:
        known = [point for point in behaviours.curves.get(label_type.name, ()) if point.share is not None]
        if known:
            charts.append(Curve(label_type, known, [_drawn(each, address(each, label_type), ends) for each in known]))
    return charts


def _address(run: Run, version: CodebookVersion, source: Source, point: CurvePoint, label_type: LabelType) -> str:
    """The page with the labels behind a point."""
    if source.suggests:
        query = {"codebook": version.pk, "by": source.key, "label": label_type.name, "step": point.step}
        return f"{reverse('judgments:suggested-of-run', args=[run.pk])}?{urlencode(query)}"
    query = {"label": f"{version.codebook.name}/{label_type.name}", "run": run.pk, "first": point.step}
    query |= {"last": point.step} | ({"value": "yes"} if label_type.yes_no else {})
    return f"{reverse('judgments:search')}?{urlencode(query)}"


def _drawn(point: CurvePoint, address: str, steps: tuple[int, int]) -> DrawnPoint:
    first, last = steps
    share, low, high = point.share or 0.0, point.low or 0.0, point.high or 0.0
    x = WIDTH / 2 if first == last else WIDTH * (point.step - first) / (last - first)
    y, low, high = (round(HEIGHT * (1 - value), 1) for value in (share, low, high))
    return DrawnPoint(point, round(x, 1), y, low, high, address)


def _checkpoints(run: Run, version: CodebookVersion, source: Source, outcome: Outcome, user: User) -> list[Checkpoint]:
    rows = _readable(run, user).filter(_by(source), codebook_version=version)
    labels = Label.objects.filter(name__in=_asked(version.record()))
    by_episode: dict[int, list[Judgment]] = defaultdict(list)
    steps: dict[int, int] = {}
    read = rows.select_related("target", "episode", "judge__remote").defer("history", "episode__summary")
    for row in read.prefetch_related(Prefetch("labels", labels)):
        assert row.episode is not None, "a judgment of an episode"
        by_episode[row.episode.pk].append(row)
        steps[row.episode.pk] = row.episode.step
    games = _labelled_games(by_episode)
    by_step: dict[int, list[JudgedGame]] = defaultdict(list)
    for pk, judgments in by_episode.items():
        if pk in games:
            records = [_record(row, version) for row in _deciding(judgments)]
            by_step[steps[pk]].append(_judged_game(games[pk], records, _turns(games[pk].movers, judgments), outcome))
    return [Checkpoint(step, by_step[step]) for step in sorted(by_step)]


def _asked(codebook: Codebook) -> list[str]:
    """The label types of which there is a share."""
    return [label_type.name for label_type in codebook.labels if is_asked(label_type)]


def _suggested_checkpoints(
    answered: Sequence[SuggestedTarget], source: Source, version: CodebookVersion, outcome: Outcome
) -> list[Checkpoint]:
    """Return the games about which a source answered, each with its suggestions as the judgment of one author."""
    by_episode: dict[int, list[SuggestedTarget]] = defaultdict(list)
    for each in answered:
        assert each.target.episode_id is not None, "a target of the run"
        by_episode[each.target.episode_id].append(each)
    games = _labelled_games(by_episode)
    by_step: dict[int, list[JudgedGame]] = defaultdict(list)
    for pk, rows in by_episode.items():
        assert rows[0].target.episode is not None, "a target of the run"
        if pk in games:
            movers = games[pk].movers
            turns = {turn: movers[turn] for each in rows for turn in each.turns if turn < len(movers)}
            records = [_suggested_record(each, source, version) for each in rows]
            by_step[rows[0].target.episode.step].append(_judged_game(games[pk], records, turns, outcome))
    return [Checkpoint(step, by_step[step]) for step in sorted(by_step)]


def _labelled_games(episodes: Iterable[int]) -> dict[int | None, LabelledGame]:
    rows = LabelledGame.objects.filter(episode__in=list(episodes)).defer("text", "words")
    return {game.episode_id: game for game in rows}


def _judged_game(
    game: LabelledGame, judgments: Sequence[JudgmentRecord], turns: Mapping[int, int], outcome: Outcome
) -> JudgedGame:
    outcomes = game.won if outcome == "won" else game.survived
    seats = max([len(game.roles), len(outcomes), *(seat + 1 for seat in game.movers)], default=0)
    return JudgedGame(
        roles=game.roles or [""] * seats, outcomes=outcomes or [None] * seats, judgments=judgments, turns=turns
    )


def _deciding(judgments: Iterable[Judgment]) -> list[Judgment]:
    """Return the decision about each target, or all its judgments where nobody has decided."""
    by_target: dict[int | None, list[Judgment]] = defaultdict(list)
    for row in judgments:
        by_target[row.target_id].append(row)
    return [row for rows in by_target.values() for row in ([each for each in rows if each.decides] or rows)]


def _turns(movers: Sequence[int], judgments: Iterable[Judgment]) -> Mapping[int, int]:
    """Return the seat of every turn that could be marked."""
    known = [row.target.turns for row in judgments if row.target is not None and row.target.turns is not None]
    offered = known[0] if known else range(len(movers))
    return {turn: movers[turn] for turn in offered if turn < len(movers)}


def _record(row: Judgment, version: CodebookVersion) -> JudgmentRecord:
    return JudgmentRecord(
        codebook=version.codebook.name,
        codebook_version=version.number,
        episode=str(row.episode_id),
        seat=row.seat,
        author=row.by,
        labels=row.records(),
        decides=row.decides,
    )


def _suggested_record(answered: SuggestedTarget, source: Source, version: CodebookVersion) -> JudgmentRecord:
    return JudgmentRecord(
        codebook=version.codebook.name,
        codebook_version=version.number,
        episode=str(answered.target.episode_id),
        seat=answered.target.seat,
        author=source.key,
        labels=tuple(row.record() for row in answered.suggestions),
    )
