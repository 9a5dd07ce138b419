"""Writes of suggestions and classifiers. Work in the background checks its fence: once another worker has claimed it,
or it was deleted, every function raises `Superseded` and writes nothing. `BadInput` says what is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet
from django.db.models.functions import Now

from training import bases
from training.errors import BadInput
from training.labels.codebooks import check_turns
from training.labels.info import ClassifierInfo
from webapp.accounts.models import User
from webapp.core import files
from webapp.core import queue as hints
from webapp.judgments import games
from webapp.judgments.datasets import export
from webapp.judgments.models import (
    LEASE,
    Classifier,
    CodebookVersion,
    Queue,
    Suggestion,
    SuggestionRun,
    Target,
)
from webapp.judgments.queues.priorities import prioritise
from webapp.judgments.search.games import index_games
from webapp.judgments.suggesting import sources
from webapp.judgments.suggesting.sources import Answer, Suggested
from webapp.judgments.suggesting.withdrawn import has_withdrawn
from webapp.runs import services as runs
from webapp.scenarios.models import DatasetVersion

TRIES = 3
"""How often work is claimed until it fails."""
REFUSED_SHOWN = 50
"""Refused answers that a run keeps."""
Work = Classifier | SuggestionRun


class Superseded(Exception):
    """The work was deleted or taken away: nothing more may be written."""


@transaction.atomic
def suggest(*, queue: Queue, source: str) -> SuggestionRun:
    """Ask a source about every target of a queue, in the background; its earlier suggestions are replaced target by
    target. Raises `BadInput` for a source that has nothing to suggest under the queue's codebook, or that is at work.
    """
    if source not in sources.offered(queue):
        raise BadInput("it has nothing to suggest under this queue's codebook", "source")
    run, _ = SuggestionRun.objects.select_for_update().get_or_create(queue=queue, source=source)
    if run.working and run.tries:
        raise BadInput("it is at work in this queue already", "source")
    run.state, run.why, run.refused, run.done, run.tries = SuggestionRun.State.QUEUED, "", [], 0, 0
    run.answered = {}
    run.total = queue.targets.count()
    run.save()
    hints.send(hints.SUGGEST, run.pk)
    return run


@transaction.atomic
def delete_suggestions(*, queue: Queue, source: str) -> int:
    """Delete a source's suggestions in a queue, and stop it if it is at work; return how many there were.

    Labels that annotators made of them stay, and no longer say so.
    """
    SuggestionRun.objects.filter(queue=queue, source=source).delete()
    count, _ = Suggestion.objects.filter(target__queue=queue, source=source).delete()
    prioritise(queue=queue)
    return count


def fill(*, run: SuggestionRun, command: sources.Run, leave: Callable[[], None]) -> None:
    """Ask the run's source about every target and store its answers as they come; `leave` raises to abort.

    An answer that does not fit the codebook is noted with its place; the target keeps what it has.
    """
    targets = list(Target.objects.with_games().filter(queue=run.queue_id).order_by("position"))
    answered: dict[int, list[int]] = {}
    for done, answer in enumerate(sources.answers(run.source, targets, command), 1):
        leave()
        if _store(run, answer, done, len(targets)):
            answered[answer.target.pk] = list(answer.turns)
    with transaction.atomic():
        _change(run, state=SuggestionRun.State.READY, claimed_until=None, why="", answered=answered)
        prioritise(queue=run.queue)


@transaction.atomic
def _store(run: SuggestionRun, answer: Answer, done: int, total: int) -> bool:
    """Store an answer; return whether it was used."""
    _change(run, done=done, total=total, claimed_until=_lease(run))
    if Target.objects.locked(answer.target.pk) is None:  # withdrawn, or removed, while the source worked
        return False
    why = answer.why or _misfit(answer)
    if not why:
        replace(target=answer.target, source=run.source, labels=answer.labels)
        index_games([answer.target.game])
        return True
    run.refused = [*run.refused, f"{_place(answer.target)}: {why}"[:1000]][:REFUSED_SHOWN]
    _change(run, refused=run.refused)
    return False


def _misfit(answer: Answer) -> str:
    """Return why labels do not fit the codebook or the game, with the place; empty if they do."""
    labels, target = [each.label for each in answer.labels], answer.target
    try:
        target.codebook().check(labels, whole=False)
        if any(label.turn is not None for label in labels):
            record = games.game_of(target)
            check_turns(labels, [entry.move.text for entry in record.moves], len(record.scenario.seats))
    except BadInput as error:
        return str(error)
    return ""


def _place(target: Target) -> str:
    """Return what a target is about, in words."""
    seat = "" if target.seat is None else f", seat {target.seat + 1}"
    return f"{games.label(target.game)}{seat}"


@transaction.atomic
def replace(*, target: Target, source: str, labels: Sequence[Suggested]) -> None:
    """Replace a source's suggestions for a target.

    Unchanged ones are kept with new scores, so that labels still refer to them.
    """
    kinds = {label_type.name: label_type.kind for label_type in target.queue.codebook_version.record().labels}
    earlier = {
        (row.name, row.record().place): row for row in target.suggestions.filter(source=source).select_for_update()
    }
    new = []
    for each in labels:
        row = earlier.get((each.label.label, each.label.place))
        if row is not None and row.record() == each.label:
            del earlier[each.label.label, each.label.place]
            if row.score != each.score:
                row.score = each.score
                row.save(update_fields=["score"])
        else:
            fields = {"target": target, "source": source, "score": each.score}
            new.append(Suggestion.of(each.label, kinds[each.label.label], **fields))
    Suggestion.objects.filter(pk__in=[row.pk for row in earlier.values()]).delete()
    Suggestion.objects.bulk_create(new)


@transaction.atomic
def create_classifier(
    *,
    name: str,
    owner: User,
    codebook_version: CodebookVersion,
    queues: Iterable[Queue] = (),
    versions: Iterable[DatasetVersion] = (),
    base: str = "smollm2-135m",
) -> Classifier:
    """Train a classifier in the background on the labels of these queues and dataset versions.

    Raises `BadInput` if something is wrong, or if the owner has yet to judge a seat whose labels the classifier's
    suggestions would tell.
    """
    queues = list(queues)
    queue_ids, version_ids = [queue.pk for queue in queues], [version.pk for version in versions]
    if Classifier.objects.filter(name=name).exists():
        raise BadInput("another classifier has this name", "name")
    if not queue_ids and not version_ids:
        raise BadInput("choose at least one queue or dataset version", "queues")
    if not any(each.about in ("turn", "span") for each in codebook_version.record().labels):
        raise BadInput("a classifier labels turns, about which this codebook asks nothing", "codebook_version")
    if base not in bases.REGISTRY:
        raise BadInput("no registered base model has this name", "base")
    if why := runs.unprepared(base):
        raise BadInput(why, "base")
    if Classifier.objects.filter(owner=owner, state__in=("queued", "running")).exists():
        raise BadInput("another one of yours is being trained: wait for it, or delete it", "name")
    for queue in queues:
        export.check_judged(queue, owner)
    classifier = Classifier.objects.create(
        name=name,
        owner=owner,
        codebook_version=codebook_version,
        trained_on={"base": base, "queues": queue_ids, "versions": version_ids, "sources": []},
    )
    hints.send(hints.TRAIN_CLASSIFIER, classifier.pk)
    return classifier


@transaction.atomic
def retry_classifier(*, classifier: Classifier) -> None:
    """Train a classifier again whose training failed, or that learned from a game which was withdrawn since.

    Raises `BadInput` for any other.
    """
    states = [Classifier.State.FAILED, *([Classifier.State.READY] if has_withdrawn(classifier) else [])]
    again = Classifier.objects.filter(pk=classifier.pk, state__in=states)
    if not again.update(state=Classifier.State.QUEUED, tries=0, why="", done=0, total=0):
        raise BadInput("its training has not failed", classifier.name)
    hints.send(hints.TRAIN_CLASSIFIER, classifier.pk)


@transaction.atomic
def delete_classifier(*, classifier: Classifier) -> None:
    """Delete a classifier with its files, and stop its training. Its suggestions stay; runs have copies."""
    folder = classifier.folder
    Classifier.objects.filter(pk=classifier.pk).delete()
    if folder:
        transaction.on_commit(lambda: files.delete_folder(folder), robust=True)


@transaction.atomic
def claim(*, waiting: QuerySet[Any], pk: int) -> Any:
    """Claim pending work; None if there is none. Work that exceeded its number of tries fails instead."""
    work = waiting.select_for_update(skip_locked=True, of=("self",)).filter(pk=pk).first()
    if work is None:
        return None
    if work.tries >= TRIES:
        work.state, work.claimed_until = work.State.FAILED, None
        work.why = work.why or f"the worker that did it ended {TRIES} times before it was done"
        work.save(update_fields=["state", "claimed_until", "why"])
        return None
    work.state, work.claimed_until = work.State.RUNNING, _lease(work)
    work.tries, work.fence = work.tries + 1, work.fence + 1
    work.save(update_fields=["state", "claimed_until", "tries", "fence"])
    return work


def _lease(work: Work) -> Any:
    """Return the end of a worker's lease; answers of judge models can be slow."""
    return Now() + (LEASE if isinstance(work, SuggestionRun) else timedelta(seconds=settings.RUN_LEASE_SECONDS))


def _change(work: Work, **values: Any) -> None:
    rows = type(work).objects.filter(pk=work.pk, fence=work.fence, state=work.State.RUNNING)
    if not rows.update(**values):
        raise Superseded(f"{work} was deleted or taken away")


def beat(*, work: Work, done: int | None = None, total: int | None = None) -> None:
    """Renew the lease, and store the progress of a training."""
    progress = {} if not total or isinstance(work, SuggestionRun) else {"done": done, "total": total}
    _change(work, claimed_until=_lease(work), **progress)


def fail(*, work: Work, why: str) -> None:
    """Record a failure; does nothing if the work was deleted meanwhile."""
    rows = type(work).objects.filter(pk=work.pk, fence=work.fence)
    rows.update(state=work.State.FAILED, why=why[:2000], claimed_until=None)


@transaction.atomic
def give_back(*, work: Work, why: str = "") -> None:
    """Queue it again: its process died (`why`), or its worker was shut down, which does not count as a try."""
    tries = {} if why else {"tries": max(0, work.tries - 1)}
    rows = type(work).objects.filter(pk=work.pk, fence=work.fence, state=work.State.RUNNING)
    if rows.update(state=work.State.QUEUED, why=why[:2000], claimed_until=None, **tries):
        hints.send(hints.SUGGEST if isinstance(work, SuggestionRun) else hints.TRAIN_CLASSIFIER, work.pk)


@transaction.atomic
def finish_training(
    *, classifier: Classifier, folder: str, info: ClassifierInfo, sources: Sequence[dict[str, Any]]
) -> None:
    """Record a trained classifier with its folder in the storage, and what it was trained on."""
    trained_on, earlier = {**classifier.trained_on, "sources": list(sources)}, classifier.folder
    if earlier and earlier != folder:
        transaction.on_commit(lambda: files.delete_folder(earlier), robust=True)
    _change(
        classifier,
        state=Classifier.State.READY,
        folder=folder,
        accuracy=info.to_dict(),
        trained_on=trained_on,
        claimed_until=None,
        why="",
    )
