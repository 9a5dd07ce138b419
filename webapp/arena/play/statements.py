"""Reads of a move, as SQL: to compile these queries takes Django several times as long as the database takes to run
them, and a move waits for all of them (`python -m bench move`).

Each statement reads rows by a key; whatever decides or filters remains in the QuerySets of `models`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import connection
from django.db.models import prefetch_related_objects

from training.records import Move, Seat, SeatMove, Viewer
from webapp.arena.models import Match, MatchSeat

LOCK = "SELECT * FROM arena_match WHERE id = %s FOR UPDATE"
SEATS = "SELECT * FROM arena_matchseat WHERE match_id = %s ORDER BY seat"
MOVES = "SELECT seat, move FROM arena_matchmove WHERE match_id = %s AND number >= %s ORDER BY number"
LAST_ROWS = "SELECT viewer, max(number) FROM arena_viewerrow WHERE match_id = %s GROUP BY viewer"
DUE_SINCE = "SELECT created_at FROM arena_dueseat WHERE match_id = %s AND seat = %s AND hint_at IS NULL"
STEPS = """
    SELECT step, ARRAY(SELECT step FROM arena_matchmove WHERE match_id = match.id AND seat = %s ORDER BY number)
    FROM arena_match match WHERE id = %s"""
SITTING = """
    SELECT seat, stand_in, seen_at IS NULL OR clock_timestamp() - seen_at > make_interval(secs => %s)
    FROM arena_matchseat WHERE match_id = %s AND user_id = %s"""


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


def due_since(match: Match, seat: Seat) -> datetime | None:
    """Since when a person's seat has been due; None if it is not, or a worker moves for it."""
    with connection.cursor() as cursor:
        cursor.execute(DUE_SINCE, [match.pk, seat])
        row = cursor.fetchone()
    return None if row is None else row[0]


def moves_since(match_id: int, number: int) -> list[SeatMove]:
    """The moves of a match from this number on, in the order received."""
    with connection.cursor() as cursor:
        cursor.execute(MOVES, [match_id, number])
        return [SeatMove(seat=seat, move=Move.from_dict(json.loads(move))) for seat, move in cursor.fetchall()]


def last_rows(match_id: int) -> dict[Viewer, int]:
    """The number of each viewer's last row."""
    with connection.cursor() as cursor:
        cursor.execute(LAST_ROWS, [match_id])
        return dict(cursor.fetchall())


def steps_of(match_id: int, seat: Seat) -> tuple[int, list[int]]:
    """The match's current step, and the steps of a seat's moves in order, in one snapshot."""
    with connection.cursor() as cursor:
        cursor.execute(STEPS, [seat, match_id])
        current, steps = cursor.fetchone()
    return current, steps


@dataclass(frozen=True)
class Sitting:
    """A person's place at a match. `unnoted`: their presence was last recorded longer ago than asked."""

    seat: Seat
    stand_in: bool
    unnoted: bool


def sitting_of(match_id: int, user_id: int, noted_within: timedelta) -> Sitting | None:
    """The place of a person at a match; None if they have none."""
    with connection.cursor() as cursor:
        cursor.execute(SITTING, [noted_within.total_seconds(), match_id, user_id])
        row = cursor.fetchone()
    return None if row is None else Sitting(*row)
