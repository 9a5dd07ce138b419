"""The statements of a move, as SQL: to compile such queries takes Django several times as long as the database takes to
run them, and a move waits for all of them (`python -m bench move`).

Each statement reads or writes rows by a key; whatever decides or filters remains in the QuerySets of `models`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import connection
from django.db.models import prefetch_related_objects

from training.errors import IllegalMove
from training.records import Message, Move, Seat, SeatMove, Viewer
from webapp.arena.models import DueSeat, Match, MatchMove, MatchSeat

LOCK = "SELECT * FROM arena_match WHERE id = %s FOR UPDATE"
SEATS = "SELECT * FROM arena_matchseat WHERE match_id = %s ORDER BY seat"
PROGRESS = """
SELECT
  (SELECT json_agg(json_build_array(seat, move) ORDER BY number) FROM arena_matchmove
   WHERE match_id = %(match)s AND number >= %(since)s),
  (SELECT json_object_agg(viewer, last) FROM
   (SELECT viewer, max(number) AS last FROM arena_viewerrow WHERE match_id = %(match)s GROUP BY viewer) AS viewers),
  (SELECT created_at FROM arena_dueseat WHERE match_id = %(match)s AND seat = %(seat)s AND hint_at IS NULL)"""
SITTING = """
SELECT seat, stand_in, seen_at IS NULL OR clock_timestamp() - seen_at > make_interval(secs => %s), match.step,
  ARRAY(SELECT step FROM arena_matchmove WHERE match_id = match.id AND seat = sitting.seat ORDER BY number)
FROM arena_matchseat sitting JOIN arena_match match ON match.id = match_id
WHERE match_id = %s AND user_id = %s"""
APPEND = """
INSERT INTO arena_matchmove
  (match_id, number, step, seat, move, private, strategy, after, took_s, attempts, received_at)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s) RETURNING id"""
ROWS = """
INSERT INTO arena_viewerrow (match_id, viewer, number, message, step, at)
SELECT %s, viewer, number, message, %s, %s
FROM jsonb_to_recordset(%s::jsonb) AS message(viewer smallint, number integer, message jsonb)"""
CLEAR = "DELETE FROM arena_dueseat WHERE match_id = %s"
DUE = """
INSERT INTO arena_dueseat (match_id, seat, step, deadline, hint_at, not_before, fence, created_at)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s) RETURNING id"""
STEP = "UPDATE arena_match SET step = %s, step_until = %s WHERE id = %s"


def lock(match_id: int) -> Match:
    """Lock a match until the transaction ends; raises `Match.DoesNotExist`."""
    for match in Match.objects.raw(LOCK, [match_id]):
        return match
    raise Match.DoesNotExist(f"match {match_id}")


def seats_of(match: Match) -> list[MatchSeat]:
    """The seats of a match in their order, with their models."""
    seats = list(MatchSeat.objects.raw(SEATS, [match.pk]))
    seated = [seat for seat in seats if seat.deployment_id is not None or seat.speaker_id is not None]
    if seated:
        prefetch_related_objects(seated, *MatchSeat.MODELS)
    return seats


@dataclass(frozen=True)
class Progress:
    """What a locked match has beyond a known state of it."""

    moves: Sequence[SeatMove]
    last_rows: dict[Viewer, int]
    """The number of each viewer's last row."""
    due_since: datetime | None
    """Since when the seat has been due; None if it is not, or a worker moves for it."""


def progress_of(match: Match, seat: Seat, since: int) -> Progress:
    """The moves of a locked match from number `since` on, in the order received, and what a move of `seat` needs."""
    with connection.cursor() as cursor:
        cursor.execute(PROGRESS, {"match": match.pk, "since": since, "seat": seat})
        moves, last_rows, due_since = cursor.fetchone()
    return Progress(
        moves=[SeatMove(seat=seat, move=Move.from_dict(move)) for seat, move in moves or ()],
        last_rows={int(viewer): number for viewer, number in (last_rows or {}).items()},
        due_since=due_since,
    )


@dataclass(frozen=True)
class Sitting:
    """A person's place at a match. `unnoted`: their presence was last recorded longer ago than asked; `step` is the
    match's current step, `steps` those of the seat's moves in order.
    """

    seat: Seat
    stand_in: bool
    unnoted: bool
    step: int
    steps: Sequence[int]

    def step_of(self, turn: int) -> int:
        """The step in which the seat has its turn number `turn`, from 0; its newest turn is in the current step.

        Raises `IllegalMove` for a turn in the future.
        """
        if turn > len(self.steps):
            raise IllegalMove("the game has moved on since you saw it: look again, then move")
        return (*self.steps, self.step)[turn]


def sitting_of(match_id: int, user_id: int, noted_within: timedelta) -> Sitting | None:
    """The place of a person at a match; None if they have none."""
    with connection.cursor() as cursor:
        cursor.execute(SITTING, [noted_within.total_seconds(), match_id, user_id])
        row = cursor.fetchone()
    return None if row is None else Sitting(*row)


def append(move: MatchMove) -> None:
    """Store a new move, which has its number and time."""
    columns = (move.match_id, move.number, move.step, move.seat, json.dumps(move.move), move.private, move.strategy)
    more = (move.after, move.took_s, json.dumps(move.attempts), move.received_at)
    with connection.cursor() as cursor:
        cursor.execute(APPEND, (*columns, *more))
        (move.pk,) = cursor.fetchone()


def write_rows(match: Match, rows: Iterable[tuple[Viewer, int, Message]], at: datetime) -> None:
    """Store new messages of viewers, each with its number."""
    new = [{"viewer": viewer, "number": number, "message": message.to_dict()} for viewer, number, message in rows]
    if new:
        with connection.cursor() as cursor:
            cursor.execute(ROWS, (match.pk, match.step, at, json.dumps(new)))


def clear_due(match: Match) -> None:
    """Remove every due seat of a match."""
    with connection.cursor() as cursor:
        cursor.execute(CLEAR, (match.pk,))


def write_due(due: DueSeat) -> None:
    """Store a new due seat."""
    columns = (due.match_id, due.seat, due.step, due.deadline, due.hint_at, due.not_before, due.fence, due.created_at)
    with connection.cursor() as cursor:
        cursor.execute(DUE, columns)
        (due.pk,) = cursor.fetchone()


def save_step(match: Match) -> None:
    """Store the step of a match and its deadline."""
    with connection.cursor() as cursor:
        cursor.execute(STEP, (match.step, match.step_until, match.pk))
