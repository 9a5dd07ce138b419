"""How far each annotator of a queue agrees with the others: what annotators read of themselves once they are done."""

from __future__ import annotations

from collections import defaultdict
from itertools import combinations
from statistics import mean

from training.reading import Record
from webapp.judgments.models import Judgment, Queue
from webapp.judgments.queues.similarity import similarity
from webapp.judgments.results.background import Report
from webapp.judgments.results.withheld import Withheld


class QueueSimilarity(Record):
    """By account, the mean similarity (0 to 1) of an annotator's judgments with each other one of the same targets."""

    by_author: dict[int, float]


def compute(queue: Queue, report: Report, withheld: Withheld) -> QueueSimilarity:
    """Return the similarities in a queue without what is withheld; decisions have no part in them."""
    report(0, 1)
    rows = Judgment.objects.filter(queue=queue, author__isnull=False, decides=False)
    by_target: dict[int | None, list[Judgment]] = defaultdict(list)
    for row in rows.exclude(pk__in=withheld.judgments).with_labels():
        by_target[row.target_id].append(row)
    codebook, similarities = queue.codebook_version.record(), defaultdict[int, list[float]](list)
    for judgments in by_target.values():
        for first, second in combinations(judgments, 2):
            value = similarity(first.records(), second.records(), codebook)
            similarities[first.author_id or 0].append(value)
            similarities[second.author_id or 0].append(value)
    return QueueSimilarity(by_author={author: mean(values) for author, values in similarities.items()})
