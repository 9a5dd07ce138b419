"""Labels that classifiers, judge models and rules suggested for games of a run: another source of its curves.

A source counts in a queue once it has answered there, and for the games of which its answer could be used. Suggestions
about seats that a person has yet to judge are withheld from them, as others' judgments are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from django.db.models import Count, Max

from training.labels.codebooks import Codebook
from training.labels.info import ClassifierInfo
from training.labels.prevalence import ErrorRates
from webapp.accounts.models import User
from webapp.judgments.models import (
    Classifier,
    CodebookVersion,
    Suggestion,
    SuggestionRun,
    SuggestionRunQuerySet,
    Target,
    TargetQuerySet,
    of_same_seat,
)
from webapp.judgments.results.background import State
from webapp.judgments.suggesting import sources
from webapp.runs.models import Run


@dataclass(frozen=True)
class SuggestedTarget:
    """A target of which a source gave a usable answer, the turns that it read, and what it suggested."""

    target: Target
    turns: Sequence[int]
    suggestions: Sequence[Suggestion]


def versions(run: Run, user: User) -> list[int]:
    """Return the ids of the codebook versions under which a source answered about games of the run."""
    return sorted({each.queue.codebook_version_id for each in _runs(run) if _answered([each], run, user)})


def names(run: Run, version: CodebookVersion, user: User) -> list[str]:
    """Return the sources that answered about games of the run under a codebook version, as `KIND:NAME`."""
    runs = [each for each in _runs(run) if each.queue.codebook_version_id == version.pk]
    return sorted({each.source for each in runs if _answered([each], run, user)})


def targets(run: Run, version: CodebookVersion, source: str, user: User) -> list[SuggestedTarget]:
    """Return what a source answered about the run's games; of two answers about a seat or game the later counts."""
    runs = _runs(run).filter(source=source, queue__codebook_version=version)
    answered = _answered(runs, run, user)
    rows = Suggestion.objects.filter(target__in=answered, source=source)
    suggestions: dict[int, list[Suggestion]] = {pk: [] for pk in answered}
    for row in rows:
        suggestions[row.target_id].append(row)
    latest = {
        (target.episode_id, target.seat): SuggestedTarget(target, turns, suggestions[target.pk])
        for target, turns in answered.values()
    }
    return list(latest.values())


def state(run: Run, version: CodebookVersion, source: str, user: User) -> State:
    """Return the state of what `targets` and `errors_of` return: it changes whenever they do."""
    runs = _runs(run).filter(source=source, queue__codebook_version=version)
    turns = {int(pk): len(read) for each in runs for pk, read in each.answered.items()}
    rows = Suggestion.objects.filter(source=source, target__queue__suggestion_runs__in=runs)
    suggestions = rows.aggregate(suggestions=Count("pk", distinct=True), newest=Max("pk"))
    errors = {name: rates.to_dict() for name, rates in errors_of(source).items()}
    readable = _readable(turns, run, user).count()
    return {"count": readable, "turns": sum(turns.values()), "errors": errors, **suggestions}


def _runs(run: Run) -> SuggestionRunQuerySet:
    """The finished work of sources in queues with games of the run, in their order."""
    ready = SuggestionRun.objects.filter(state=SuggestionRun.State.READY, queue__targets__episode__run=run)
    return ready.select_related("queue").distinct().order_by("pk")


def _answered(runs: Iterable[SuggestionRun], run: Run, user: User) -> dict[int, tuple[Target, Sequence[int]]]:
    """The targets of which the source's answer could be used, as far as this person may know it, with the turns."""
    turns = {int(pk): read for each in runs for pk, read in each.answered.items()}
    return {target.pk: (target, turns[target.pk]) for target in _readable(turns, run, user)}


def _readable(pks: Iterable[int], run: Run, user: User) -> TargetQuerySet:
    rows = Target.objects.filter(pk__in=list(pks), episode__run=run)
    awaited = Target.objects.awaited_by(user)
    rows = rows if awaited.query.is_empty() else rows.filter(~of_same_seat(awaited))
    return rows.select_related("episode__run", "queue__codebook_version__codebook").order_by("pk")


def info_of(source: str) -> ClassifierInfo | None:
    """Return what a classifier says of itself; None for another source, and for one that was deleted."""
    kind, _, name = source.partition(":")
    classifier = Classifier.objects.ready().filter(name=name).first() if kind == "classifier" else None
    return None if classifier is None else classifier.info


def errors_of(source: str) -> Mapping[str, ErrorRates]:
    """Return by label how often a source errs, as far as it says so: a classifier does."""
    info = info_of(source)
    return {} if info is None else dict(zip(info.labels, info.accuracy, strict=True))


def known(source: str, codebook: Codebook, suggested: Sequence[SuggestedTarget]) -> Codebook | None:
    """Return the codebook with the label types that a source can suggest, of which silence is a no; None without any.

    Of a source that is lost, such as a deleted classifier, those that it suggested.
    """
    wanted = sources.filled(source, codebook)
    if wanted is None:
        wanted = {row.name for each in suggested for row in each.suggestions}
    labels = tuple(label_type for label_type in codebook.labels if label_type.name in wanted)
    return codebook.model_copy(update={"labels": labels}) if labels else None


def having(suggested: Iterable[SuggestedTarget], label: str, step: int) -> Iterator[tuple[SuggestedTarget, Suggestion]]:
    """Yield what was suggested of a label at a training step, but for what was suggested not to have it."""
    for each in suggested:
        if each.target.episode is not None and each.target.episode.step == step:
            yield from ((each, row) for row in each.suggestions if row.name == label and row.value is not False)
