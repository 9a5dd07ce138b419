"""Judge models and rules against people: how far their labels agree with the truth that people gave for the same seats.

Judgments are paired by game and seat across queues under one codebook version; a match or an episode and the
conversations that copy it are one game. The truth is an adjudicator's decision, else the people's majority (without a
tie), and on scales the mean of their values. The agreement of
people on the same units is the practical upper bound for a judge.

A judge version is a judge model, which has a name and a temperature, or a rule. The hash of a prompt cannot tell
versions apart: it covers the conversation.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

from django.db.models import F

from training.errors import BadInput
from training.evaluate.agreement import Value
from training.evaluate.intervals import interval
from training.labels.codebooks import Codebook, LabelType
from training.labels.prevalence import rate
from training.reading import Record
from webapp.judgments.models import SITE_SOURCE, Judgment, JudgmentQuerySet, Label, Queue, Target
from webapp.judgments.models.judged import source_in_sql
from webapp.judgments.queues.similarity import distance
from webapp.judgments.results import answers as reading
from webapp.judgments.results.aggregated import place_words, value_words
from webapp.judgments.results.answers import NOT_BY_UNIT, Judged, Ratings, Unit, level_of, steps, values_at
from webapp.judgments.results.background import Report
from webapp.judgments.results.queue_agreement import Estimate, coefficient

FAR = 0.1
"""The share of a scale by which a judge must differ from people to be wrong about a target."""
MOST_MISSES = 10


class Share(Record):
    """A share of units with its 95 % interval over games (exact, with the effective sample size), of `n` units."""

    share: float
    n: int
    low: float | None = None
    high: float | None = None


class Miss(Record):
    """A unit on which a judge is far from the truth; `target` is one of the queue's."""

    target: int
    place: str
    truth: str
    said: str
    reason: str


class LabelCalibration(Record):
    """A judge against people on one label type, or on one option of it; without `agreement` they are not compared.

    `ceiling` is the agreement of people on the same units. `bias` is the mean difference from the truth on a scale,
    `sensitivity` and `specificity` are of yes or no, `confusion` counts (truth, said).
    """

    label: str
    title: str
    summary: str
    agreement: Estimate | None = None
    equal: Estimate | None = None
    ceiling: Estimate | None = None
    bias: Estimate | None = None
    sensitivity: Share | None = None
    specificity: Share | None = None
    confusion: tuple[tuple[str, str, int], ...] = ()
    misses: tuple[Miss, ...] = ()


class JudgeCalibration(Record):
    """One judge version: of the seats or games that people scored it was asked about `asked` and scored `scored`;
    `wrong` are the targets of the queue on which it differs from people in some label.
    """

    key: str
    title: str
    detail: str
    asked: int
    scored: int
    labels: tuple[LabelCalibration, ...]
    wrong: tuple[int, ...]

    def without(self, targets: Collection[int]) -> JudgeCalibration:
        """Return it without these targets' misses."""
        labels = [
            label.model_copy(update={"misses": tuple(miss for miss in label.misses if miss.target not in targets)})
            for label in self.labels
        ]
        wrong = tuple(target for target in self.wrong if target not in targets)
        return self.model_copy(update={"labels": tuple(labels), "wrong": wrong})


class QueueCalibration(Record):
    """The judges of a queue's games; `people` judged `scored` of its `targets`, of which `decided` are decisions."""

    people: int
    targets: int
    scored: int
    decided: int
    judges: tuple[JudgeCalibration, ...]

    def without(self, targets: Collection[int]) -> QueueCalibration:
        """Return it without what is said of single targets, for a reader who may not know it."""
        return self.model_copy(update={"judges": tuple(judge.without(targets) for judge in self.judges)})


@dataclass
class Author:
    """What one author said: labels by target of the queue, and the reasons of a judge's labels."""

    title: str = ""
    detail: str = ""
    asked: set[int] = field(default_factory=set)
    marks: dict[int, dict[str, dict[reading.Place, Any]]] = field(default_factory=dict)
    reasons: dict[tuple[int, str, reading.Place], str] = field(default_factory=dict)

    def values(self, label_type: LabelType, targets: Mapping[int, Judged]) -> dict[Unit, Value]:
        """Return the author's values of a label type by unit."""
        return {
            (target, place): value
            for target, marks in self.marks.items()
            for place, value in values_at(label_type, targets[target], marks)
        }


def compute(queue: Queue, report: Report) -> QueueCalibration:
    """Return every judge of the games of a queue against the people who judged them under the same codebook version."""
    targets = reading.targets_of(queue)
    people, judges, decided = _authors(queue, targets)
    scored = {target for person in people.values() for target in person.marks} - decided.asked | set(decided.marks)
    codebook, rows = queue.codebook_version.record(), []
    for done, (key, judge) in enumerate(sorted(judges.items())):
        report(done, len(judges))
        rows.append(_judge(key, judge, codebook, targets, people, decided, scored))
    return QueueCalibration(
        people=len(people), targets=len(targets), scored=len(scored), decided=len(decided.marks), judges=tuple(rows)
    )


def judgments_of(queue: Queue) -> JudgmentQuerySet:
    """Return the judgments of queues that the calibration may pair: those under the same codebook version."""
    return Judgment.objects.filter(codebook_version=queue.codebook_version_id, target__isnull=False)


def _names(source: str | None, digest: str | None) -> list[str]:
    """The names by which a game and its copies are found."""
    named = source is not None and re.fullmatch(SITE_SOURCE, source) is not None
    return [f"source:{source}"] * named + [f"moves:{digest}"] * (digest is not None)


def _authors(queue: Queue, targets: Mapping[int, Judged]) -> tuple[dict[int, Author], dict[str, Author], Author]:
    """People by account, judges by key, and the decisions, as far as they are about targets of the queue."""
    columns = ("seat", "source", "conversation__episode_sha256")
    named = Target.objects.filter(queue=queue).annotate(source=source_in_sql(F)).values_list("pk", *columns)
    at = {(name, seat): pk for pk, seat, source, digest in named for name in _names(source, digest)}
    people: dict[int, Author] = defaultdict(Author)
    judges: dict[str, Author] = defaultdict(Author)
    decisions = Author()
    rows = judgments_of(queue).annotate(source=source_in_sql(F)).order_by("pk")
    fields = ("pk", "target", "author", "decides", "unscored", "rule", "judge", "judge__name", "judge__temperature",
              "judge__remote__model", *columns)  # fmt: skip
    authors: dict[int, tuple[int, Author]] = {}
    values = rows.values_list(*fields)
    for pk, own_target, person, decides, unscored, rule, judge, name, temperature, model, *place in values:
        seat, source, digest = place
        matches = (at[key, seat] for key in _names(source, digest) if (key, seat) in at)
        target = own_target if own_target in targets else next(matches, None)
        if target is None:
            continue
        if decides:
            author = decisions
        elif person is not None:
            author = people[person]
        elif judge is not None or rule:
            author = judges[f"rule:{rule}" if rule else f"judge:{judge}"]
            author.title = f"the rule {rule}" if rule else name
            author.detail = "a function of Parley" if rule else f"{model}, temperature {temperature:g}"
        else:
            continue
        author.asked.add(target)
        if not unscored:
            authors[pk] = (target, author)
            author.marks.setdefault(target, defaultdict(dict))
    _load(authors)
    return dict(people), dict(judges), decisions


def _load(authors: Mapping[int, tuple[int, Author]]) -> None:
    """Load the labels of these judgments into their authors."""
    labels = Label.objects.filter(judgment__in=list(authors)).order_by("pk")
    columns = ("judgment", "name", "value", "text", "reason", *reading.PLACE)
    for pk, name, value, text, reason, *place in labels.values_list(*columns).iterator():
        target, author = authors[pk]
        at = tuple(place)
        author.marks[target].setdefault(name, {})[at] = reading.typed(value, text)
        if reason:
            author.reasons[target, name, at] = reason


def _judge(
    key: str,
    judge: Author,
    codebook: Codebook,
    targets: Mapping[int, Judged],
    people: Mapping[int, Author],
    decided: Author,
    scored: set[int],
) -> JudgeCalibration:
    labels: list[LabelCalibration] = []
    wrong: set[int] = set()
    for label_type in codebook.labels:
        shown = LabelCalibration(label=label_type.name, title=label_type.title, summary=label_type.summary)
        if label_type.kind in NOT_BY_UNIT:
            labels.append(shown)
            continue
        said = judge.values(label_type, targets)
        by_person = {number: person.values(label_type, targets) for number, person in enumerate(people.values(), 1)}
        truth = truth_of(label_type, by_person, decided.values(label_type, targets), decided.asked)
        shared = [unit for unit in said if unit in truth]
        compared = Compared(label_type, shared, [targets[unit[0]].game for unit in shared], truth, said, by_person)
        far = {unit: apart for unit in shared if (apart := distance(label_type, truth[unit], said[unit])) > 0}
        wrong |= {unit[0] for unit, apart in far.items() if label_type.kind != "scale" or apart > FAR}
        misses = sorted(far, key=lambda unit: -far[unit])[:MOST_MISSES]
        rows = _compared(compared, shown)
        rows[0] = rows[0].model_copy(
            update={
                "misses": tuple(
                    Miss(
                        target=unit[0], place=place_words(unit[1]), truth=_words_of(truth[unit]),
                        said=_words_of(said[unit]), reason=judge.reasons.get((unit[0], label_type.name, unit[1]), ""),
                    )
                    for unit in misses
                )
            }
        )  # fmt: skip
        labels += rows
    asked = judge.asked & scored
    return JudgeCalibration(
        key=key, title=judge.title, detail=judge.detail, asked=len(asked), scored=len(asked & judge.marks.keys()),
        labels=tuple(labels), wrong=tuple(target for target in targets if target in wrong),
    )  # fmt: skip


def truth_of(
    label_type: LabelType,
    people: Mapping[int, Mapping[Unit, Value]],
    decisions: Mapping[Unit, Value],
    decided: Collection[int] = (),
) -> dict[Unit, Value]:
    """Return the truth of every unit that has one: the decision, else the majority without a tie, or a scale's mean.

    `decided` are all targets with a decision: of those, no other value is the truth.
    """
    values_by_unit: dict[Unit, list[Value]] = defaultdict(list)
    for each in people.values():
        for unit, value in each.items():
            if unit[0] not in decided:
                values_by_unit[unit].append(value)
    truth: dict[Unit, Value] = {}
    for unit, values in values_by_unit.items():
        if label_type.kind == "scale":
            truth[unit] = fmean(float(value) for value in values if isinstance(value, int | float))
            continue
        (first, times), *others = Counter(values).most_common(2)
        if not others or others[0][1] < times:
            truth[unit] = first
    return truth | dict(decisions)


@dataclass(frozen=True)
class Compared:
    """The units of a label type that both have a truth and a judge's value."""

    label_type: LabelType
    units: Sequence[Unit]
    games: Sequence[Hashable]
    truth: Mapping[Unit, Value]
    said: Mapping[Unit, Value]
    people: Mapping[int, Mapping[Unit, Value]]

    def of_option(self, option: str) -> Compared:
        """Return whether the option was chosen, in place of the sets."""

        def chosen(values: Mapping[Unit, Value]) -> dict[Unit, Value]:
            return {unit: isinstance(value, frozenset) and option in value for unit, value in values.items()}

        people = {number: chosen(values) for number, values in self.people.items()}
        return Compared(self.label_type, self.units, self.games, chosen(self.truth), chosen(self.said), people)


def _compared(compared: Compared, shown: LabelCalibration) -> list[LabelCalibration]:
    label_type = compared.label_type
    rows = [_row(compared, level_of(label_type), shown, numbers=label_type.kind == "scale")]
    if label_type.yes_no:
        rows[0] = rows[0].model_copy(update=_errors(compared))
    for option in label_type.options if label_type.kind == "many_of" else ():
        chosen = compared.of_option(option.name)
        named = shown.model_copy(update={"title": f"{label_type.title}: {option.title}", "summary": "yes or no"})
        rows.append(_row(chosen, "nominal", named, numbers=False).model_copy(update=_errors(chosen)))
    return rows


def _row(compared: Compared, level: Any, shown: LabelCalibration, *, numbers: bool) -> LabelCalibration:
    both = Ratings(compared.units, compared.games, {1: compared.truth, 2: compared.said})
    people = Ratings(compared.units, compared.games, compared.people)
    pairs = Counter((_words_of(compared.truth[unit]), _words_of(compared.said[unit])) for unit in compared.units)
    few = level == "nominal" or steps(compared.label_type)
    return shown.model_copy(
        update={
            "agreement": coefficient("krippendorff", both, [1, 2], level),
            "equal": coefficient("percent", both, [1, 2], level),
            "ceiling": coefficient("krippendorff", people, list(compared.people), level),
            "bias": _bias(compared) if numbers else None,
            "confusion": tuple((*pair, times) for pair, times in sorted(pairs.items())) if few else (),
        }
    )


def _bias(compared: Compared) -> Estimate:
    """The mean difference of the judge's values from the truth, as a mean over games."""
    games: dict[Hashable, list[float]] = defaultdict(list)
    for unit, game in zip(compared.units, compared.games, strict=True):
        truth, said = compared.truth[unit], compared.said[unit]
        if isinstance(truth, int | float) and isinstance(said, int | float):
            games[game].append(said - truth)
    means = [fmean(differences) for differences in games.values()]
    if not means:
        return Estimate(name="bias", title="Bias", value=None)
    low = high = None
    if len(means) > 2 and max(means) > min(means):
        estimate = interval(means, scale=(-1e9, 1e9))
        low, high = estimate.low, estimate.high
    return Estimate(
        name="bias", title="Bias", value=fmean(means), low=low, high=high, units=len(compared.units), games=len(means)
    )


def _errors(compared: Compared) -> dict[str, Share | None]:
    """Sensitivity and specificity of yes or no."""
    counts: dict[bool, dict[Hashable, list[int]]] = {
        True: defaultdict(lambda: [0, 0]),
        False: defaultdict(lambda: [0, 0]),
    }
    for unit, game in zip(compared.units, compared.games, strict=True):
        truth = bool(compared.truth[unit])
        counts[truth][game][0] += compared.said[unit] == compared.truth[unit]
        counts[truth][game][1] += 1
    return {"sensitivity": _share(counts[True]), "specificity": _share(counts[False])}


def _share(games: Mapping[Hashable, Sequence[int]]) -> Share | None:
    right, n = (sum(counts[at] for counts in games.values()) for at in (0, 1))
    if not n:
        return None
    try:
        estimate = rate([(counts[0], counts[1]) for counts in games.values()])
    except BadInput:  # of one game alone
        return Share(share=right / n, n=n)
    return Share(share=right / n, n=n, low=estimate.low, high=estimate.high)


def _words_of(value: Value) -> str:
    return ", ".join(sorted(value)) or "none" if isinstance(value, frozenset) else value_words(value)
