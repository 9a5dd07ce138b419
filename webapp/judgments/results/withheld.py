"""What is withheld from a reader of a queue's results: the rules of `Judgment.readable_by` as sets of keys.

They are keys because a result is kept under them, and are read by target, since a queue has far fewer targets than
judgments; a test compares both. A result is computed from all judgments but these, so it is the same for all readers
from whom the same is withheld.
"""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.db.models import Exists, F, OuterRef, Q, QuerySet

from webapp.accounts.models import User
from webapp.arena.models import Match
from webapp.judgments.models import Judgment, JudgmentQuerySet, Queue, Target
from webapp.judgments.models.judged import SITE_SOURCE, source_in_sql


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


@dataclass(frozen=True)
class Awaited:
    """What a reader has yet to judge: which `targets` of which `queues`, and which `seats` by the names of their games.

    A seat of None stands for the whole game. Equal names are the same game, as in `models.of_same_seat`: a game of this
    site and the conversations that copy it share its source, copies of a conversation the hash of its moves.
    """

    queues: frozenset[int] = frozenset()
    seats: Mapping[str, frozenset[int | None]] = field(default_factory=dict)
    targets: frozenset[int] = frozenset()

    def among(self, rows: QuerySet[Any]) -> set[int]:
        """Return the keys of those targets or judgments that are about one of these seats."""
        if not self.seats:
            return set()
        named = rows.alias(source=source_in_sql(F))
        same_game = named.filter(Q(conversation__episode_sha256__in=self.seats) | Q(source__in=self.seats))
        columns = "pk", "seat", "conversation__episode_sha256", source_in_sql(F)
        found = set()
        for pk, seat, *names in same_game.order_by().values_list(*columns):
            seats = [self.seats[name] for name in _names(*names) if name in self.seats]
            if any(seat is None or seat in each or None in each for each in seats):
                found.add(pk)
        return found


def _names(digest: str | None, source: str) -> Iterator[str]:
    """Yield the names under which a game is known, in this site and in datasets."""
    if digest is not None:
        yield digest
    if re.fullmatch(SITE_SOURCE, source):
        yield source


def awaited_by(reader: User) -> Awaited:
    """Return what a reader has yet to judge; for most readers that is nothing."""
    rows = Target.objects.awaited_by(reader).order_by()
    seats, queues, targets = defaultdict[str, set[int | None]](set), set(), set()
    columns = "pk", "queue", "seat", "conversation__episode_sha256", source_in_sql(F)
    for target, queue, seat, *names in rows.values_list(*columns):
        targets.add(target)
        queues.add(queue)
        for name in _names(*names):
            seats[name].add(seat)
    return Awaited(frozenset(queues), {name: frozenset(each) for name, each in seats.items()}, frozenset(targets))


def of_reader(queue: Queue, reader: User, awaited: Awaited | None = None) -> Withheld:
    """Return what is withheld from a reader of a queue's results; `awaited`: what they have yet to judge, if known."""
    if awaited is None:
        awaited = awaited_by(reader)
    judgments: set[int] = set()
    if awaited.seats:
        shared = awaited.among(Target.objects.filter(queue=queue))
        judgments = awaited.among(outside(queue))
        judgments |= _of_others(shared, reader) if shared else set()
    return Withheld(frozenset(judgments), frozenset(_unrevealed(queue, reader, awaits=bool(awaited.queues))))


def _unrevealed(queue: Queue, reader: User, *, awaits: bool = True) -> set[int]:
    """The matches of a queue whose players the reader has yet to be shown."""
    targets = Target.everything.filter(queue=queue, match__isnull=False)
    if not targets.exists():
        return set()
    matches = Match.objects.unrevealed_at_once(reader, awaits=awaits).filter(pk__in=targets.order_by().values("match"))
    return set(matches.values_list("pk", flat=True))


def _of_others(targets: Iterable[int], reader: User) -> set[int]:
    rows = Judgment.objects.exclude(author=reader).filter(target__in=targets)
    return set(rows.order_by().values_list("pk", flat=True))


def readable(queue: Queue, reader: User, hidden: Withheld) -> JudgmentQuerySet:
    """Return the scored judgments of a queue that are not hidden from this person, in the order of its targets."""
    # by the targets, whose index has their order: a page of rows is read without sorting all
    rows = Judgment.objects.filter(target__queue=queue).scored()
    if hidden.judgments:
        rows = rows.exclude(pk__in=hidden.judgments)
    if hidden.matches:
        rows = rows.filter(Q(author=reader) | ~Q(match__in=hidden.matches))
    return rows.order_by("target__position", "pk")


def unrevealed(queue: Queue, reader: User) -> set[int]:
    """Return the targets of matches in which the reader played and has yet to be shown who the others were."""
    matches = _unrevealed(queue, reader)
    targets = Target.objects.filter(queue=queue, match__in=matches) if matches else Target.objects.none()
    return set(targets.values_list("pk", flat=True))


def outside(queue: Queue) -> JudgmentQuerySet:
    """Return the judgments that came with a queue's conversations, by its codebook."""
    same_seat = Target.objects.filter(queue=queue, conversation=OuterRef("conversation"), seat=OuterRef("seat"))
    return Judgment.objects.outside().filter(Exists(same_seat), codebook_version=queue.codebook_version_id)
