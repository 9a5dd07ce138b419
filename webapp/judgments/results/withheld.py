"""What is withheld from a reader of a queue's results: the rules of `Judgment.readable_by` as sets of keys.

They are keys because a result is kept under them, and are read by target, since a queue has far fewer targets than
judgments; a test compares both. A result is computed from all judgments but these, so it is the same for all readers
from whom the same is withheld.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from django.db.models import Exists, OuterRef, Q

from webapp.accounts.models import User
from webapp.arena.models import Match
from webapp.judgments.models import Judgment, JudgmentQuerySet, Queue, Target, of_same_seat


@dataclass(frozen=True)
class Withheld:
    """The judgments of others about seats that the reader has yet to judge, and the matches in which the reader played
    and has neither rated the others nor asked who they were.
    """

    judgments: frozenset[int] = frozenset()
    matches: frozenset[int] = frozenset()

    @property
    def digest(self) -> str:
        """A name of this set."""
        return hashlib.sha256(f"{sorted(self.judgments)} {sorted(self.matches)}".encode()).hexdigest()

    def __bool__(self) -> bool:
        return bool(self.judgments or self.matches)


NOTHING = Withheld()


def of_reader(queue: Queue, reader: User) -> Withheld:
    """Return what is withheld from a reader of a queue's results."""
    matches = Match.objects.unrevealed_to(reader).filter(targets__queue=queue)
    judgments: set[int] = set()
    awaited = Target.objects.awaited_by(reader)
    if awaited.exists():  # most readers await nothing
        same_seat = of_same_seat(awaited)
        targets = Target.objects.filter(queue=queue).filter(same_seat).order_by().values_list("pk", flat=True)
        others = Judgment.objects.exclude(author=reader)
        read = [others.filter(target__in=shared)] if (shared := list(targets)) else []
        if outside(queue).exists():
            read.append(outside(queue).filter(same_seat))
        for rows in read:
            judgments |= set(rows.order_by().values_list("pk", flat=True))
    return Withheld(frozenset(judgments), frozenset(matches.values_list("pk", flat=True)))


def readable(queue: Queue, reader: User, hidden: Withheld) -> JudgmentQuerySet:
    """Return the scored judgments of a queue that are not hidden from this person, in the order of its targets."""
    rows = Judgment.everything.filter(target__in=Target.objects.filter(queue=queue)).scored()
    rows = rows.exclude(pk__in=hidden.judgments).filter(Q(author=reader) | ~Q(match__in=hidden.matches))
    return rows.order_by("target__position", "pk")


def unrevealed(queue: Queue, reader: User) -> set[int]:
    """Return the targets of matches in which the reader played and has yet to be shown who the others were."""
    matches = Match.objects.unrevealed_to(reader).filter(targets__queue=queue)
    return set(Target.objects.filter(queue=queue, match__in=matches.values("pk")).values_list("pk", flat=True))


def outside(queue: Queue) -> JudgmentQuerySet:
    """Return the judgments that came with a queue's conversations, by its codebook."""
    same_seat = Target.objects.filter(queue=queue, conversation=OuterRef("conversation"), seat=OuterRef("seat"))
    return Judgment.objects.outside().filter(Exists(same_seat), codebook_version=queue.codebook_version_id)
