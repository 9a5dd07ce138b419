"""How far the annotators of a queue agree: for each label type, over all, for each pair of annotators, and over time.

| kind | compared by |
|---|---|
| yes or no, one of several | nominal alpha, Fleiss' kappa, Gwet's AC1, equal values; for pairs Cohen's kappa |
| any of several | alpha with the distance MASI between sets, and every option as yes or no |
| scale | interval alpha, Gwet's AC2 with quadratic weights; ordinal for up to seven whole-numbered steps |
| span | F1 of overlapping spans, alpha for unitizing, gamma (of at most `MOST_GAMMA` games drawn at random) |
| relation | F1 of equal pairs of turns |
| ranking | Kendall's tau of the turns that both annotators rank |
| text | nothing |

Coefficients of units have intervals over games (`training.evaluate.agreement`). Spans, relations and rankings are
compared game by game, and a result is the mean over games with Student's t interval.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import timedelta
from itertools import combinations
from statistics import fmean
from typing import Literal

from training.evaluate.agreement import Coefficient, Level, Value, estimate
from training.evaluate.intervals import interval
from training.labels.codebooks import LabelType
from training.reading import Record
from webapp.judgments.models import Queue
from webapp.judgments.results import answers as reading
from webapp.judgments.results.answers import Answers, Ratings, level_of, steps
from webapp.judgments.results.background import Report
from webapp.judgments.results.marked import GAMMA, MEASURES, by_game

MOST_PAIRS = 45
"""Pairs of annotators: those of ten, the ones with the most shared units first."""
MOST_PERIODS = 26
MOST_GAMMA = 50
"""Games of which gamma is computed: each takes up to a second."""
TITLES: dict[Coefficient, str] = {
    "krippendorff": "Krippendorff's α", "fleiss": "Fleiss' κ", "cohen": "Cohen's κ", "gwet": "Gwet's AC1",
    "percent": "Observed agreement",
}  # fmt: skip


class Estimate(Record):
    """One coefficient with its 95 % interval, over `units` units of `games` games; None where it is not defined."""

    name: str
    title: str
    value: float | None
    low: float | None = None
    high: float | None = None
    units: int = 0
    games: int = 0


class Pair(Record):
    """How far two annotators agree on a label type."""

    first: int
    second: int
    coefficients: tuple[Estimate, ...]


class Period(Record):
    """How far all annotators agree on what was judged in one week or batch."""

    title: str
    coefficient: Estimate


class LabelAgreement(Record):
    """The agreement on one label type, or on one option of it. `level` says how values are compared, empty for those
    that are compared game by game; the first coefficient is the one that pairs and periods begin with.
    """

    label: str
    title: str
    summary: str
    level: Literal["nominal", "ordinal", "interval", "sets", ""] = ""
    coefficients: tuple[Estimate, ...] = ()
    pairs: tuple[Pair, ...] = ()
    periods: tuple[Period, ...] = ()


class QueueAgreement(Record):
    """The agreement of a queue's annotators. `annotators` are their numbers, `by` what periods are."""

    annotators: tuple[int, ...]
    by: Literal["week", "batch"]
    labels: tuple[LabelAgreement, ...]

    def without(self, targets: Collection[int]) -> QueueAgreement:
        """Return it as it is: it says nothing of single targets."""
        return self


def compute(queue: Queue, report: Report) -> QueueAgreement:
    """Return the agreement of a queue's annotators; decisions have no part in it."""
    answers = reading.of_queue(queue)
    kinds = answers.codebook.labels
    batches = {judged.batch for judged in answers.targets.values()}
    periods = _batches(answers) if len(batches) > 1 else _weeks(answers)
    labels: list[LabelAgreement] = []
    for done, label_type in enumerate(kinds):
        report(done, len(kinds) + 1)
        labels += of_label(answers, label_type, periods)
    report(len(kinds), len(kinds) + 1)
    return QueueAgreement(
        annotators=tuple(answers.annotators),
        by="batch" if len(batches) > 1 else "week",
        labels=tuple(labels),
    )


def of_label(answers: Answers, label_type: LabelType, periods: Mapping[str, Sequence[int]]) -> list[LabelAgreement]:
    """Return the agreement on a label type, and on each option of one with several values."""
    shown = LabelAgreement(label=label_type.name, title=label_type.title, summary=label_type.summary)
    if label_type.kind == "text":
        return [shown]
    if label_type.kind in MEASURES:
        return [_by_games(answers, label_type, shown, periods)]
    ratings = reading.ratings(answers, label_type)
    rows = [_by_units(answers, ratings, level_of(label_type), steps(label_type), shown, periods)]
    if label_type.kind == "many_of":
        for option in label_type.options:
            named = shown.model_copy(update={"title": f"{label_type.title}: {option.title}", "summary": "yes or no"})
            chosen = ratings.of_option(option.name)
            rows.append(_by_units(answers, chosen, "nominal", [False, True], named, periods))
    return rows


def _by_units(
    answers: Answers,
    ratings: Ratings,
    level: Level,
    categories: Sequence[Value],
    shown: LabelAgreement,
    periods: Mapping[str, Sequence[int]],
) -> LabelAgreement:
    everybody = answers.annotators
    names: list[Coefficient] = ["krippendorff"]
    if level == "nominal":
        names += ["fleiss", "gwet"]
    elif level != "sets":
        names.append("gwet")
    pairs = []
    for first, second in _pairs(ratings.values):
        shared, both = ratings.shared(first, second), [first, second]
        if len(shared.units) < 2:
            continue
        coefficients = [coefficient("krippendorff", shared, both, level)]
        if level == "nominal":
            coefficients.append(coefficient("cohen", shared, both, level))
        coefficients.append(_equal(shared, both, level))
        pairs.append(Pair(first=first, second=second, coefficients=tuple(coefficients)))
    overall = [coefficient(name, ratings, everybody, level, categories) for name in names]
    return shown.model_copy(
        update={
            "level": level,
            "coefficients": (*overall, _equal(ratings, everybody, level)),
            "pairs": tuple(pairs),
            "periods": tuple(
                Period(title=title, coefficient=coefficient("krippendorff", ratings.among(targets), everybody, level))
                for title, targets in periods.items()
            ),
        }
    )


def _equal(ratings: Ratings, annotators: Sequence[int], level: Level) -> Estimate:
    return coefficient("percent", ratings, annotators, "nominal" if level == "sets" else level)


def coefficient(
    name: Coefficient,
    ratings: Ratings,
    annotators: Sequence[int],
    level: Level,
    categories: Sequence[Value] = (),
) -> Estimate:
    """Return a coefficient of these annotators; `categories` are all values of a scale, where there are few."""
    if not ratings.units:
        return Estimate(name=name, title=_title(name, level), value=None)
    rows = ratings.rows(annotators)
    scale = None
    if name == "gwet" and categories and {value for row in rows for value in row} <= {*categories, None}:
        scale = categories
    of_values: Level = level if name in {"krippendorff", "gwet"} else "nominal"
    result = estimate(name, rows, ratings.clusters, level=of_values, categories=scale)
    return Estimate(
        name=name, title=_title(name, level), value=result.value, low=result.low, high=result.high,
        units=result.units, games=result.clusters,
    )  # fmt: skip


def _title(name: Coefficient, level: Level) -> str:
    if name == "gwet" and level != "nominal":
        return "Gwet's AC2"
    return TITLES[name]


def _pairs(values: Mapping[int, Mapping[reading.Unit, Value]]) -> list[tuple[int, int]]:
    """The pairs of annotators with the most shared units, in the order of their numbers."""
    shared = {(a, b): len(values[a].keys() & values[b].keys()) for a, b in combinations(sorted(values), 2)}
    return sorted(sorted(shared, key=lambda pair: -shared[pair])[:MOST_PAIRS])


def _by_games(
    answers: Answers, label_type: LabelType, shown: LabelAgreement, periods: Mapping[str, Sequence[int]]
) -> LabelAgreement:
    """The agreement on spans, relations or rankings: means over games of what pairs of annotators agree."""
    measures = MEASURES[label_type.kind]
    main = measures[0]
    by_pair = by_game(answers, label_type, main, None)
    over_all = {target: fmean(pairs.values()) for target, pairs in by_pair.items() if pairs}
    coefficients = [_mean(main.name, main.title, over_all)]
    for measure in measures[1:]:
        targets = None if measure is not GAMMA else _drawn(over_all)
        values = by_game(answers, label_type, measure, targets)
        means = {target: fmean(pair_values.values()) for target, pair_values in values.items() if pair_values}
        coefficients.append(_mean(measure.name, measure.title, means))
    pairs: dict[tuple[int, int], dict[int, float]] = defaultdict(dict)
    for target, pair_values in by_pair.items():
        for pair, value in pair_values.items():
            pairs[pair][target] = value
    most = sorted(pairs, key=lambda pair: -len(pairs[pair]))[:MOST_PAIRS]
    return shown.model_copy(
        update={
            "coefficients": tuple(coefficients),
            "pairs": tuple(
                Pair(first=a, second=b, coefficients=(_mean(main.name, main.title, pairs[a, b]),))
                for a, b in sorted(most)
            ),
            "periods": tuple(
                Period(
                    title=title,
                    coefficient=_mean(main.name, main.title, {t: over_all[t] for t in targets if t in over_all}),
                )
                for title, targets in periods.items()
            ),
        }
    )


def _drawn(targets: Iterable[int]) -> set[int]:
    """At most `MOST_GAMMA` of these targets, always the same."""
    rows = sorted(targets)
    return set(random.Random(0).sample(rows, min(MOST_GAMMA, len(rows))))


def _mean(name: str, title: str, by_target: Mapping[int, float]) -> Estimate:
    """The mean over games; its interval needs three of them that differ."""
    values = list(by_target.values())
    if not values:
        return Estimate(name=name, title=title, value=None)
    low = high = None
    if len(values) > 2 and max(values) > min(values):
        result = interval(values, scale=(-1.0, 1.0))
        low, high = result.low, min(1.0, result.high)
    return Estimate(
        name=name, title=title, value=fmean(values), low=low, high=high, units=len(values), games=len(values)
    )


def _weeks(answers: Answers) -> dict[str, list[int]]:
    """The targets of each week, named by its Monday, by when the last of their judgments was first saved."""
    weeks: dict[str, list[int]] = defaultdict(list)
    for target, by_annotator in answers.by_target.items():
        at = max(answer.at for answer in by_annotator.values())
        weeks[(at - timedelta(days=at.weekday())).date().isoformat()].append(target)
    return {title: weeks[title] for title in sorted(weeks)[-MOST_PERIODS:]}


def _batches(answers: Answers) -> dict[str, list[int]]:
    batches: dict[int, list[int]] = defaultdict(list)
    for target, judged in answers.targets.items():
        batches[judged.batch].append(target)
    return {str(batch): batches[batch] for batch in sorted(batches)[-MOST_PERIODS:]}
