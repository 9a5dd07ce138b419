"""Writes of judgments: each function is one transaction; `BadInput` says what is wrong and changes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django.db import transaction
from django.utils import timezone

from training.errors import BadInput
from training.labels.codebooks import Codebook as CodebookRecord
from training.labels.codebooks import check_turns
from training.records import Label as LabelRecord
from webapp.accounts.models import User
from webapp.judgments import games
from webapp.judgments.models import (
    Judgment,
    Label,
    Queue,
    Target,
)
from webapp.judgments.queues import reservations
from webapp.judgments.search.games import remember

MOST_CHANGES = 100
"""Changes of one judgment: all of them are stored with it."""


def labels_of(codebook: CodebookRecord, values: Mapping[str, Any], seat: int | None) -> tuple[LabelRecord, ...]:
    """Return labels without a turn, for values by label type; those that are None are left out.

    They are about the `seat`, or about the game where their type is.
    """
    return tuple(
        LabelRecord(label=name, value=value, seat=seat if codebook.type_of(name).about == "seat" else None)
        for name, value in values.items()
        if value is not None
    )


def store_labels(judgment: Judgment, labels: Iterable[LabelRecord]) -> None:
    """Store the labels of a saved judgment in the place of those before."""
    judgment.labels.all().delete()
    kinds = {label_type.name: label_type.kind for label_type in judgment.codebook_version.record().labels}
    Label.objects.bulk_create(Label.of(record, kinds[record.label], judgment=judgment) for record in labels)
    remember([judgment.game])


@transaction.atomic
def annotate(*, target: Target, by: User, labels: Sequence[LabelRecord] | None, reason: str = "") -> Judgment:
    """Store a person's judgment of a target, or that it could not be scored; sent twice it is the same row.

    Another answer of the same person takes the place of the first, which stays in `history`; `BadInput` once the
    queue was exported with it.
    """
    comment = reason.strip()[:2000]
    if labels is None and not comment:
        raise BadInput("state briefly why it cannot be scored", "reason")
    locked = Target.objects.select_for_update().filter(pk=target.pk).first()  # its state depends on all its judgments
    if locked is None and Target.everything.filter(pk=target.pk).exists():
        raise BadInput("consent was withdrawn: the game is no longer judged", "target")
    if locked is None:
        raise BadInput("it was removed from the queue", "target")
    if labels is not None:
        check_labels(target, labels)
    judgment = locked.judgments.filter(author=by, decides=False).first()
    if judgment is None:
        reservations.check_open(locked, by)
        judgment = Judgment(
            target=locked, author=by, codebook_version=target.queue.codebook_version, seat=target.seat,
            **games.reference(target.game),
        )  # fmt: skip
    else:
        before = judgment.records()
        if (_as_set(before), judgment.reason) == (_as_set(labels), comment):
            return judgment
        check_changeable(judgment, locked.queue)
        saved_at = judgment.updated_at or judgment.created_at
        earlier = None if before is None else [label.to_dict() for label in before]
        judgment.history.append({"labels": earlier, "reason": judgment.reason, "at": saved_at.isoformat()})
    judgment.unscored, judgment.reason, judgment.updated_at = labels is None, comment, timezone.now()
    judgment.save()
    store_labels(judgment, labels or ())
    scored = locked.judgments.filter(unscored=False, decides=False).exists()
    locked.state = Target.State.SCORED if scored else Target.State.UNSCORED
    if scored and locked.seat is None and locked.turns is None:
        locked.turns = [line.turn for line in games.game_of(target).turn_lines() if line.turn is not None]
    locked.save(update_fields=["state", "turns"])
    reservations.judgment_stored(locked, judgment)
    return judgment


def check_labels(target: Target, labels: Sequence[LabelRecord]) -> None:
    """Raise `BadInput` unless the labels fit what is asked about the target, and are about its seat or game.

    Of a whole game, each seat is asked by its role.
    """
    codebook = target.codebook()
    if target.seat is not None:
        codebook.check(labels)
        for label in labels:
            if label.seat is not None and label.seat != target.seat:
                why = f"the label is about seat {label.seat + 1}, not about seat {target.seat + 1}"
                raise BadInput(why, label.label)
        return
    record = games.game_of(target)
    check_turns(labels, [entry.move.text for entry in record.moves], len(record.scenario.seats))
    for seat, role in enumerate(games.roles(target.game)):
        about_seat = [label for label in labels if label.seat in (None, seat)]
        codebook.asking(role).check(about_seat)


def _as_set(labels: Sequence[LabelRecord] | None) -> frozenset[LabelRecord] | None:
    return None if labels is None else frozenset(labels)


def check_changeable(judgment: Judgment, queue: Queue) -> None:
    """Raise `BadInput` if a judgment does not change any more: it was exported, or changed too often."""
    if queue.exported_at is not None and (judgment.updated_at or judgment.created_at) <= queue.exported_at:
        raise BadInput("it was exported as part of a dataset and stays as it is", "target")
    if len(judgment.history) >= MOST_CHANGES:
        raise BadInput(f"it was changed {MOST_CHANGES} times and stays as it is", "target")
