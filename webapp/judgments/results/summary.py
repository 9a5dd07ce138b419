"""What the page of a queue says of its judgments: means by player, the behaviour table, and the authors compared."""

from __future__ import annotations

from training.evaluate.behaviours import Table
from training.reading import Record
from webapp.judgments.models import Queue
from webapp.judgments.results import behaviours, comparison, estimates
from webapp.judgments.results.background import Report
from webapp.judgments.results.comparison import Comparison
from webapp.judgments.results.estimates import Estimate
from webapp.judgments.results.withheld import Withheld


class QueueSummary(Record):
    """The estimates of a queue by player, its behaviour table (None: it has none), and its authors."""

    estimates: dict[str, list[Estimate]]
    table: Table | None
    comparison: Comparison


def compute(queue: Queue, report: Report, withheld: Withheld) -> QueueSummary:
    """Return the summary of a queue without what is withheld."""
    report(0, 3)
    by_player = estimates.of_queue(queue, withheld)
    report(1, 3)
    table = behaviours.of_queue(queue, withheld)
    report(2, 3)
    return QueueSummary(estimates=by_player, table=table, comparison=comparison.of_queue(queue, withheld))
