"""The statements of a move, as SQL: to compile such queries takes Django several times as long as the database takes to
run them, and a move waits for all of them (`python -m bench move`).

Each statement reads or writes rows by a key; whatever decides or filters remains in the QuerySets of `models`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.backends.utils import CursorWrapper
from django.db.models import prefetch_related_objects
from psycopg.types.json import Jsonb

from training.errors import IllegalMove
from training.records import Message, Move, Seat, SeatMove, Viewer
from webapp.arena.models import DueSeat, Match, MatchMove, MatchSeat
from webapp.core.statements import Columns, execute, pipelined

MATCH, SEAT = Columns(Match), Columns(MatchSeat)
LOCK = f"SELECT {MATCH.sql} FROM arena_match WHERE id = %s FOR UPDATE"  # noqa: S608  (names of columns)
SEATS = f"SELECT {SEAT.sql} FROM arena_matchseat WHERE match_id = %s ORDER BY seat"  # noqa: S608  (as above)
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


@dataclass(frozen=True)
class Locked:
    """A match that is locked until the transaction ends, its seats, and what it has beyond a known state of it."""

    match: Match
    seats: Sequence[MatchSeat]
    """In their order, with their models."""
    moves: Sequence[SeatMove]
    """In the order received."""
    last_rows: Mapping[Viewer, int]
    """The number of each viewer's last row."""
    due_since: datetime | None
    """Since when the seat has been due; None if it is not, or a worker moves for it."""
    now: datetime


def lock(match_id: int, seat: Seat, since: int, now: Callable[[], datetime]) -> Locked:
    """Lock a match; read its moves from number `since` on, what a move of `seat` needs, and the clock.

    Raises `Match.DoesNotExist`.
    """
    with pipelined():
        locking = execute(LOCK, (match_id,))
        reading = execute(PROGRESS, {"match": match_id, "since": since, "seat": seat})
        seating = execute(SEATS, (match_id,))
        read_at = now()
        row = locking.fetchone()
        moves, last_rows, due_since = reading.fetchone()
        seats = seating.fetchall()
    if row is None:
        raise Match.DoesNotExist(f"match {match_id}")
    return Locked(
        match=MATCH.load(row),
        seats=_with_models(seats),
        moves=[SeatMove(seat=number, move=Move.from_dict(move)) for number, move in moves or ()],
        last_rows={int(viewer): number for viewer, number in (last_rows or {}).items()},
        due_since=due_since,
        now=read_at,
    )


def seats_of(match: Match) -> list[MatchSeat]:
    """The seats of a match in their order, with their models."""
    return _with_models(execute(SEATS, (match.pk,)).fetchall())


def _with_models(rows: Iterable[Sequence[Any]]) -> list[MatchSeat]:
    seats = [SEAT.load(row) for row in rows]
    seated = [seat for seat in seats if seat.deployment_id is not None or seat.speaker_id is not None]
    if seated:
        prefetch_related_objects(seated, *MatchSeat.MODELS)
    return seats


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
    row = execute(SITTING, (noted_within.total_seconds(), match_id, user_id)).fetchone()
    return None if row is None else Sitting(*row)


def append(move: MatchMove) -> CursorWrapper:
    """Store a new move, which has its number and time; the cursor has its key."""
    columns = (move.match_id, move.number, move.step, move.seat, Jsonb(move.move), move.private, move.strategy)
    return execute(APPEND, (*columns, move.after, move.took_s, Jsonb(move.attempts), move.received_at))


def write_rows(match: Match, rows: Iterable[tuple[Viewer, int, Message]], at: datetime) -> None:
    """Store new messages of viewers, each with its number."""
    new = [{"viewer": viewer, "number": number, "message": message.to_dict()} for viewer, number, message in rows]
    if new:
        execute(ROWS, (match.pk, match.step, at, Jsonb(new)))


def save_step(match: Match, due: Sequence[DueSeat]) -> None:
    """Store the step of a match and its deadline, and the seats that are due instead of those before.

    Only those for which a worker moves receive their keys.
    """
    with pipelined():
        execute(CLEAR, (match.pk,))
        written = [execute(DUE, _columns(row)) for row in due]
        execute(STEP, (match.step, match.step_until, match.pk))
        for row, cursor in zip(due, written, strict=True):
            if row.hint_at is not None:
                (row.pk,) = cursor.fetchone()


def _columns(due: DueSeat) -> tuple[object, ...]:
    return (due.match_id, due.seat, due.step, due.deadline, due.hint_at, due.not_before, due.fence, due.created_at)
