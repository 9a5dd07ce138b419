"""Writes of judgments: each function is one transaction; `BadInput` says what is wrong and changes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db import transaction
from django.utils import timezone

from training.errors import BadInput
from training.labels.codebooks import Codebook as CodebookRecord
from training.labels.codebooks import check_turns
from training.records import Label as LabelRecord
from webapp.accounts.models import User
from webapp.judgments import games
from webapp.judgments.annotating import keys
from webapp.judgments.models import (
    AnnotatorSettings,
    Judgment,
    Label,
    Queue,
    Target,
)
from webapp.judgments.queues import reservations
from webapp.judgments.search.games import index_games

MOST_CHANGES = 100
"""Changes of one judgment: all of them are stored with it."""
MOST_SECONDS = 2 * 60 * 60.0
"""The time of one judgment that counts: the page counts active time only."""


def labels_of(codebook: CodebookRecord, values: Mapping[str, Any], seat: int | None) -> tuple[LabelRecord, ...]:
    """Return labels without a turn, for values by label type; those that are None are left out.

    They are about the `seat`, or about the game where their type is.
    """
    return tuple(
        LabelRecord(label=name, value=value, seat=seat if codebook.type_of(name).about == "seat" else None)
        for name, value in values.items()
        if value is not None
    )


def store_labels(
    judgment: Judgment, labels: Iterable[LabelRecord], accepted: Mapping[LabelRecord, int] | None = None
) -> None:
    """Replace the labels of a saved judgment.

    `accepted` has the ids of the suggestions from which labels were accepted or corrected.
    """
    judgment.labels.all().delete()
    kinds = {label_type.name: label_type.kind for label_type in judgment.codebook_version.record().labels}
    from_suggestions = accepted or {}
    Label.objects.bulk_create(
        Label.of(record, kinds[record.label], judgment=judgment, suggestion_id=from_suggestions.get(record))
        for record in labels
    )
    index_games([judgment.game])


@dataclass(frozen=True)
class Work:
    """How a person came to a judgment: active time in seconds (None: not measured), whether they were unsure and saw
    suggestions, and the ids of the suggestions from which labels were accepted or corrected.
    """

    seconds: float | None = None
    unsure: bool = False
    suggestions_shown: bool = False
    accepted: Mapping[LabelRecord, int] = field(default_factory=dict)


@transaction.atomic
def annotate(
    *, target: Target, by: User, labels: Sequence[LabelRecord] | None, reason: str = "", work: Work | None = None
) -> Judgment:
    """Store a person's judgment of a target, or that it could not be scored; sent twice it is the same row.

    A later answer of the same person replaces the first, which is kept in `history`, and its time is added; `BadInput`
    once the queue was exported with it.
    """
    work = work or Work()
    comment = reason.strip()[:2000]
    if labels is None and not comment:
        raise BadInput("state briefly why it cannot be scored", "reason")
    locked = Target.objects.locked(target.pk)  # its state depends on all its judgments
    if locked is None and Target.everything.filter(pk=target.pk).exists():
        raise BadInput("consent was withdrawn: the game is no longer judged", "target")
    if locked is None:
        raise BadInput("it was removed from the queue", "target")
    if labels is not None:
        _check_read(target, labels)
        check_labels(target, labels)
    _check_suggestions(target, work)
    judgment = locked.judgments.filter(author=by, decides=False).first()
    if judgment is None:
        reservations.check_open(locked, by)
        judgment = Judgment(
            target=locked, author=by, codebook_version=target.queue.codebook_version, seat=target.seat,
            **games.reference(target.game),
        )  # fmt: skip
    else:
        before = judgment.records()
        if (_as_set(before), judgment.reason, judgment.unsure) == (_as_set(labels), comment, work.unsure):
            return judgment
        check_changeable(judgment, locked.queue)
        saved_at = judgment.updated_at or judgment.created_at
        earlier = None if before is None else [label.to_dict() for label in before]
        judgment.history.append({"labels": earlier, "reason": judgment.reason, "at": saved_at.isoformat()})
    judgment.unscored, judgment.reason, judgment.updated_at = labels is None, comment, timezone.now()
    judgment.unsure, judgment.suggestions_shown = work.unsure, judgment.suggestions_shown or work.suggestions_shown
    if work.seconds is not None:
        judgment.seconds = min((judgment.seconds or 0) + max(0.0, work.seconds), MOST_SECONDS)
    judgment.save()
    store_labels(judgment, labels or (), work.accepted)
    scored = locked.judgments.filter(unscored=False, decides=False).exists()
    locked.state = Target.State.SCORED if scored else Target.State.UNSCORED
    if scored and locked.seat is None and locked.turns is None:
        locked.turns = games.game_of(target).turns_shown(hidden=target.queue.shows_hidden)
    locked.save(update_fields=["state", "turns"])
    reservations.judgment_stored(locked, judgment)
    return judgment


def _check_suggestions(target: Target, work: Work) -> None:
    """Raise `BadInput` for a label from a suggestion that was not shown."""
    named = set(work.accepted.values())
    shown = target.suggestions.filter(pk__in=named) if target.queue.shows_suggestions else target.suggestions.none()
    if named - set(shown.values_list("pk", flat=True)):
        raise BadInput("a suggestion is gone: reload the page, your draft is kept", "suggestion")


@transaction.atomic
def save_settings(*, user: User, custom_keys: Mapping[str, Iterable[str]], break_minutes: int) -> AnnotatorSettings:
    """Store how a person works; raise `BadInput` naming the action whose key is refused."""
    stored, _ = AnnotatorSettings.objects.update_or_create(
        user=user, defaults={"keys": keys.checked(custom_keys), "break_minutes": break_minutes}
    )
    return stored


def _check_read(target: Target, labels: Sequence[LabelRecord]) -> None:
    """Raise `BadInput` for labels of turns and words that annotators do not read.

    A turn that is hidden from them is refused like one that the game does not have, and the length of a text is not
    revealed.
    """
    if all(label.turn is None for label in labels):
        return
    lines = games.game_of(target).turn_lines(hidden=target.queue.shows_hidden)
    places = {line.turn: line.places for line in lines if line.turn is not None}
    for label in labels:
        for turn in (label.turn, label.other_turn):
            if turn is not None and turn not in places:
                raise BadInput(f"the game has no turn {turn + 1} to label", label.label)
        words = () if label.turn is None else places[label.turn]
        if label.end is not None and (not words or label.end > words[-1] + 1):
            raise BadInput(f"turn {(label.turn or 0) + 1} has no such words to label", label.label)


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
    movers = {turn: entry.seat for turn, entry in enumerate(record.moves)}
    codebook.check_game(labels, games.roles(target.game), movers)


def _as_set(labels: Sequence[LabelRecord] | None) -> frozenset[LabelRecord] | None:
    return None if labels is None else frozenset(labels)


def check_changeable(judgment: Judgment, queue: Queue) -> None:
    """Raise `BadInput` if a judgment can no longer be changed: it was exported, or changed too often."""
    if queue.exported_at is not None and (judgment.updated_at or judgment.created_at) <= queue.exported_at:
        raise BadInput("it was exported as part of a dataset and stays as it is", "target")
    if len(judgment.history) >= MOST_CHANGES:
        raise BadInput(f"it was changed {MOST_CHANGES} times and stays as it is", "target")
