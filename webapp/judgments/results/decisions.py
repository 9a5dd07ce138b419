"""Decisions of adjudicators: each function is one transaction; `BadInput` says what is wrong and changes nothing.

A decision is made over the judgments of a queue's annotators, by the queue's owner or an admin. It is the truth of its
target: results use it in place of the annotators' labels. It changes until the queue is exported, as judgments do.
"""

from __future__ import annotations

from collections.abc import Sequence

from django.db import transaction
from django.utils import timezone

from training.errors import BadInput
from training.records import Label as LabelRecord
from webapp.accounts.models import User
from webapp.arena.models import Match
from webapp.judgments import games
from webapp.judgments.annotating.services import check_changeable, check_labels, store_labels
from webapp.judgments.models import Judgment, JudgmentQuerySet, Target
from webapp.judgments.results import access


def annotators_of(target: Target) -> JudgmentQuerySet:
    """Return the judgments of a target's annotators with their labels."""
    return Judgment.objects.filter(target=target, author__isnull=False, decides=False).with_labels().order_by("pk")


@transaction.atomic
def decide(*, target: Target, by: User, labels: Sequence[LabelRecord] | None, note: str = "") -> Judgment:
    """Store the decision on a target (loaded `with_games`), or that it cannot be scored; sent twice it is the same row.

    `note` says why: it is needed where no annotator gave one of the labels, and where there are none. A decision that
    took another's place keeps it in its history.
    """
    note = note.strip()[:2000]
    locked = Target.objects.locked(target.pk)
    if locked is None:
        raise BadInput("it was removed from the queue", "target")
    if awaited := access.awaited_in(target.queue, by):
        raise BadInput(f"judge your remaining seats of queue “{awaited.name}” first", "target")
    answers = [judgment.records() for judgment in annotators_of(target)]
    if not answers:
        raise BadInput("nobody has judged it yet", "target")
    if labels is not None:
        check_labels(target, labels)
        if target.match_id and not Match.objects.exportable().filter(pk=target.match_id).exists():
            raise BadInput("a player has withdrawn consent: the game is no longer judged", "target")
    _check_note(labels, answers, note)
    decision = _changed(locked, target, by, labels, note)
    if labels is None and locked.gold:
        locked.gold = False
        locked.save(update_fields=["gold"])
    return decision


def _changed(locked: Target, target: Target, by: User, labels: Sequence[LabelRecord] | None, note: str) -> Judgment:
    decision = locked.judgments.filter(decides=True).first()
    if decision is None:
        decision = Judgment(
            target=locked, codebook_version=target.queue.codebook_version, seat=target.seat, decides=True,
            **games.reference(target.game),
        )  # fmt: skip
    else:
        before = decision.records()
        same = (None if before is None else set(before)) == (None if labels is None else set(labels))
        if same and decision.reason == note:
            return decision
        check_changeable(decision, target.queue)
        earlier = None if before is None else [label.to_dict() for label in before]
        at = (decision.updated_at or decision.created_at).isoformat()
        decision.history.append({"labels": earlier, "reason": decision.reason, "at": at, "author": decision.author_id})
    decision.author, decision.unscored, decision.reason = by, labels is None, note
    decision.updated_at = timezone.now()
    decision.save()
    store_labels(decision, labels or ())
    return decision


def _check_note(
    labels: Sequence[LabelRecord] | None, answers: Sequence[Sequence[LabelRecord] | None], note: str
) -> None:
    if note:
        return
    if labels is None:
        raise BadInput("state briefly why it cannot be scored", "note")
    said = {_statement(label) for answer in answers for label in answer or ()}
    if any(_statement(label) not in said for label in labels):
        raise BadInput("say why, as no annotator gave one of these labels", "note")


def _statement(label: LabelRecord) -> tuple[object, ...]:
    return label.label, label.place, label.value


@transaction.atomic
def set_gold(*, target: Target, gold: bool) -> None:
    """Make a decided target part of the gold set, or take it out."""
    locked = Target.objects.locked(target.pk)
    if locked is None:
        raise BadInput("it was removed from the queue", "target")
    if gold and not locked.judgments.filter(decides=True, unscored=False).exists():
        raise BadInput("decide on its labels first", "target")
    locked.gold = gold
    locked.save(update_fields=["gold"])
