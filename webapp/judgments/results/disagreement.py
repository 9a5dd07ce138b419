"""How far the annotators of one target disagree, from 0 to 1: what adjudicators see first.

It is the mean over what they were asked: of values the mean distance of two annotators (equal or not; on a scale their
difference as a share of it; of sets MASI), of marks 1 - F1, of rankings (1 - tau) / 2, and whether it could be scored.
A turn that nobody marked is no question. Texts do not count.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import combinations

from training.evaluate.agreement import Value
from training.labels.codebooks import Codebook, LabelType
from training.reading import Record
from webapp.judgments.models import Queue
from webapp.judgments.queues.similarity import distance
from webapp.judgments.results import answers as reading
from webapp.judgments.results.answers import Answer, Answers, Judged, Marks, Place, values_at
from webapp.judgments.results.background import Report
from webapp.judgments.results.marked import overlap_f1, pair_f1, tau


class QueueDisagreement(Record):
    """The targets of a queue on which annotators disagree, most of all first, and how much on each."""

    targets: tuple[int, ...]
    scores: tuple[float, ...]

    def without(self, targets: Collection[int]) -> QueueDisagreement:
        """Return it without these targets, for a reader who may not know of them."""
        rows = [row for row in zip(self.targets, self.scores, strict=True) if row[0] not in targets]
        return QueueDisagreement(targets=tuple(pk for pk, _ in rows), scores=tuple(score for _, score in rows))


def compute(queue: Queue, report: Report) -> QueueDisagreement:
    """Return the disagreement of a queue's annotators; decisions have no part in it."""
    report(0, 1)
    rows = disagreements(reading.of_queue(queue))
    return QueueDisagreement(targets=tuple(pk for pk, _ in rows), scores=tuple(score for _, score in rows))


def disagreements(answers: Answers) -> list[tuple[int, float]]:
    """Return the targets on which annotators disagree, those on which they disagree most first."""
    scores = {
        target: disagreement(answers.codebook, answers.targets[target], by_annotator)
        for target, by_annotator in answers.by_target.items()
        if len(by_annotator) > 1 and target in answers.targets
    }
    order = {target: place for place, target in enumerate(answers.targets)}
    return sorted(
        ((target, score) for target, score in scores.items() if score > 0),
        key=lambda row: (-row[1], order[row[0]]),
    )


def disagreement(codebook: Codebook, target: Judged, answers: Mapping[int, Answer]) -> float:
    """Return how far the annotators of a target disagree."""
    marks = [answer.marks for answer in answers.values()]
    could = [answer is not None for answer in marks]
    parts = [_mean([a != b for a, b in combinations(could, 2)])] if not all(could) else []
    scored = [each for each in marks if each is not None]
    for label_type in codebook.labels:
        parts += _parts(label_type, target, scored)
    return _mean(parts)


def _parts(label_type: LabelType, target: Judged, marks: Sequence[Marks]) -> Iterator[float]:
    """Yield the disagreement at each place of a label type that two annotators judged."""
    name = label_type.name
    if label_type.kind in ("span", "relation"):
        of = overlap_f1 if label_type.kind == "span" else pair_f1
        pairwise = [of(a.get(name, {}), b.get(name, {})) for a, b in combinations(marks, 2)]
        if shares := [1 - value for value in pairwise if value is not None]:
            yield _mean(shares)
    elif label_type.kind == "ranking":
        pairwise = [tau(a.get(name, {}), b.get(name, {})) for a, b in combinations(marks, 2)]
        if shares := [(1 - value) / 2 for value in pairwise if value is not None]:
            yield _mean(shares)
    elif label_type.kind != "text":
        rows: dict[Place, list[Value]] = {}
        for each in marks:
            for place, value in values_at(label_type, target, each):
                rows.setdefault(place, []).append(value)
        for values in rows.values():
            asked = len(values) > 1 and (label_type.about != "turn" or any(values))
            if asked:
                yield _mean([distance(label_type, a, b) for a, b in combinations(values, 2)])


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0
