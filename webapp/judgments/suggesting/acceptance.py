"""What annotators did with suggestions, by source."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from webapp.judgments.models import Judgment, Label, Queue, Suggestion, SuggestionRun


@dataclass
class SourceReport:
    """One source in a queue: its work, its suggestions, and what annotators who were shown them did with each.

    `accepted`: their label has the suggested value; `corrected`: it has another one; `dismissed`: they made no label
    of it. A suggestion counts once for every annotator who was shown it.
    """

    source: str
    run: SuggestionRun | None = None
    count: int = 0
    accepted: int = 0
    corrected: int = 0
    dismissed: int = 0

    @property
    def answered(self) -> int:
        """How many suggestions annotators did something with."""
        return self.accepted + self.corrected + self.dismissed

    @property
    def share(self) -> float | None:
        """The share that was accepted; None where nobody was shown any."""
        return self.accepted / self.answered if self.answered else None


def of_queue(queue: Queue) -> list[SourceReport]:
    """Return a report for every source that suggested, or was asked to, in a queue."""
    reports: dict[str, SourceReport] = {}

    def report(source: str) -> SourceReport:
        return reports.setdefault(source, SourceReport(source))

    for run in SuggestionRun.objects.filter(queue=queue):
        report(run.source).run = run
    by_target: dict[int, list[Suggestion]] = {}
    for suggestion in Suggestion.objects.filter(target__queue=queue):
        by_target.setdefault(suggestion.target_id, []).append(suggestion)
        report(suggestion.source).count += 1
    if not by_target:  # then judgments tell nothing of them
        return sorted(reports.values(), key=lambda each: each.source)
    judged = Judgment.objects.filter(queue=queue, suggestions_shown=True, decides=False, unscored=False)
    for judgment in judged.prefetch_related("labels"):
        labels = {label.suggestion_id: label for label in judgment.labels.all() if label.suggestion_id is not None}
        saved_at = judgment.updated_at or judgment.created_at
        shown = (each for each in by_target.get(judgment.target_id or 0, ()) if each.created_at <= saved_at)
        _count(report, shown, labels)
    return sorted(reports.values(), key=lambda each: each.source)


def _count(report: Callable[[str], SourceReport], shown: Iterable[Suggestion], labels: dict[int, Label]) -> None:
    for suggestion in shown:
        of_source = report(suggestion.source)
        label = labels.get(suggestion.pk)
        if label is None:
            of_source.dismissed += 1
        elif (label.value, label.text) == (suggestion.value, suggestion.text):
            of_source.accepted += 1
        else:
            of_source.corrected += 1
