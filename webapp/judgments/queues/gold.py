"""Gold targets: those whose labels an adjudicator decided. They measure annotators' accuracy and qualify them.

Each write is one transaction; `BadInput` says what is wrong and changes nothing. Only an annotator's
first answer counts, since they may change it after they saw the gold labels.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from django.db import transaction
from django.db.models import Prefetch
from django.utils import timezone

from training.errors import BadInput
from training.records import Label
from webapp.accounts.models import User
from webapp.judgments.models import Judgment, Qualification, Queue
from webapp.judgments.queues.similarity import Labels, is_right

ROUNDING = 1e-9


def first_answer(judgment: Judgment) -> Labels:
    """Return the labels that an author gave first; None if they could not score it. Uses prefetched labels."""
    if not judgment.history:
        return judgment.records()
    labels = judgment.history[0]["labels"]
    return None if labels is None else [Label.from_dict(label) for label in labels]


def judged_right(answer: Judgment, decision: Judgment) -> bool:
    """Return whether an author's first answer agrees with a decision. Uses prefetched labels."""
    codebook = decision.codebook_version.record()
    return is_right(first_answer(answer), decision.records(), codebook)


@dataclass(frozen=True)
class Accuracy:
    """How many gold targets somebody judged, and how many of them correctly."""

    right: int
    items: int

    @property
    def share(self) -> float:
        """The share of correct answers."""
        return self.right / self.items if self.items else 0.0


def answers(queue: Queue) -> Iterable[tuple[Judgment, bool]]:
    """Yield every annotator's judgment of a gold target of the queue with whether it is right, the oldest first."""
    decisions = Prefetch("target__judgments", Judgment.objects.filter(decides=True).with_labels(), "decisions")
    rows = Judgment.objects.filter(queue=queue, target__gold=True, decides=False).exclude(author=None)
    games = rows.select_related(
        "target__match", "target__episode__run", "target__conversation__scenario",
        "target__queue__codebook_version__codebook",
    )  # fmt: skip
    for row in games.with_labels().prefetch_related(decisions).order_by("created_at", "pk"):
        if row.target is not None and row.target.decisions:  # type: ignore[attr-defined]
            yield row, is_right(first_answer(row), row.target.decisions[0].records(), row.target.codebook())  # type: ignore[attr-defined]


def accuracies(queue: Queue) -> dict[int, Accuracy]:
    """Return the accuracy of every annotator of gold targets, by account."""
    by_author: dict[int, Accuracy] = {}
    for row, right in answers(queue):
        before = by_author.get(row.author_id or 0, Accuracy(0, 0))
        by_author[row.author_id or 0] = Accuracy(before.right + right, before.items + 1)
    return by_author


def qualify(*, queue: Queue, user: User) -> None:
    """Decide whether a person passes the qualification test, once they have judged all of its gold targets."""
    if not queue.qualification_items:
        return
    row = Qualification.objects.select_for_update().filter(queue=queue, annotator=user).first()
    if row is not None and (row.passed or not row.by_owner):
        return
    answered = [
        right
        for judgment, right in answers(queue)
        if judgment.author_id == user.pk and (row is None or judgment.created_at > row.decided_at)
    ][: queue.qualification_items]
    if len(answered) < queue.qualification_items:
        return
    share = sum(answered) / len(answered)
    passed = share >= queue.qualification_threshold - ROUNDING
    decided = {"passed": passed, "right": share, "items": len(answered), "by_owner": False}
    Qualification.objects.update_or_create(queue=queue, annotator=user, defaults=decided)


@transaction.atomic
def decide(*, queue: Queue, user: User, passed: bool) -> None:
    """Mark an annotator as passed, or allow a retake with gold targets that they have not judged yet."""
    _check_test(queue, user)
    if not passed:
        left = queue.targets.filter(gold=True).exclude(judgments__author=user).count()
        if left < queue.qualification_items:
            needed = queue.qualification_items
            why = f"a retake needs {needed} gold targets that they have not judged, and {left} are left"
            raise BadInput(f"{why}: add more to the gold set, or mark them as passed", "gold")
    row, _ = Qualification.objects.get_or_create(queue=queue, annotator=user, defaults={"passed": passed})
    if row.passed:
        if not passed:
            raise BadInput("they have passed already", "annotator")
        row.by_owner = True
    row.passed, row.by_owner, row.decided_at = passed, True, timezone.now()
    row.save()


def _check_test(queue: Queue, user: User) -> None:
    if not queue.qualification_items:
        raise BadInput("this queue has no qualification test", "annotator")
    if not queue.annotators.filter(pk=user.pk).exists():
        raise BadInput("they are not an annotator of this queue", "annotator")
