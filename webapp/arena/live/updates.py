"""What is new in a running match for one viewpoint, read in one statement, and the time with it.

A socket looks after every move, and nearly always only the game has moved on. Then the statement's `version`, a hash of
everything else that a table shows, is as before, and the seats need not be loaded again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from training.records import Move, Seat, SeatMove, Viewer
from webapp.arena.live.client_state import Facts
from webapp.arena.models import ViewerRow
from webapp.arena.play import services
from webapp.core.statements import execute, pipelined

STATEMENT = """
SELECT step, step_until,
  CASE WHEN state = 'running' AND NOT EXISTS (SELECT FROM arena_advice WHERE match_id = match.id) THEN md5(
    (to_jsonb(match) - '{scenario,step,step_until}'::text[])::text || (
      SELECT string_agg(
        (to_jsonb(sitting) - 'seen_at')::text || coalesce(model.state, '') || coalesce(speaker.state, ''), ''
        ORDER BY sitting.seat)
      FROM arena_matchseat sitting
      LEFT JOIN serving_deployment model ON model.id = sitting.deployment_id
      LEFT JOIN serving_deployment speaker ON speaker.id = sitting.speaker_id
      WHERE sitting.match_id = match.id)) END,
  (SELECT json_object_agg(seat, seen_at) FROM arena_matchseat WHERE match_id = match.id),
  (SELECT json_object_agg(seat, deadline ORDER BY seat) FROM arena_dueseat WHERE match_id = match.id),
  (SELECT json_agg(json_build_array(id, number, message, step, at) ORDER BY number) FROM arena_viewerrow
   WHERE match_id = match.id AND viewer = %s AND number > %s),
  (SELECT json_agg(json_build_array(seat, move) ORDER BY number) FROM arena_matchmove
   WHERE match_id = match.id AND number >= %s)
FROM arena_match match WHERE id = %s"""


@dataclass(frozen=True)
class Update:
    """What one viewpoint had not read yet. `version` is None where the statement cannot tell what else has changed:
    before and after the game, and where a coach was asked.
    """

    now: datetime
    step: int
    step_until: datetime | None
    version: str | None
    seen_at: Mapping[Seat, datetime | None]
    due: Mapping[Seat, datetime | None]
    rows: Sequence[ViewerRow]
    moves: Sequence[SeatMove]

    def applied_to(self, facts: Facts) -> Facts:
        """The facts of the same version at this update's time."""
        match, seats = copy(facts.match), [copy(seat) for seat in facts.seats]
        match.step, match.step_until = self.step, self.step_until
        for seat in seats:
            seat.seen_at = self.seen_at[seat.seat]
        return replace(facts, match=match, seats=seats, due=self.due, now=self.now)


def read(match_id: int, viewer: Viewer, last_row: int, moves: int) -> Update | None:
    """Read the rows after number `last_row` and the moves from number `moves` on; None if there is no such match."""
    with pipelined():
        reading = execute(STATEMENT, (viewer, last_row, moves, match_id))
        now = services.database_now()
        columns = reading.fetchone()
    if columns is None:
        return None
    step, step_until, version, *documents = columns
    seen_at, due, rows, new_moves = (document or [] for document in documents)
    return Update(
        now=now,
        step=step,
        step_until=step_until,
        version=version,
        seen_at=_times(seen_at),
        due=_times(due),
        rows=[_row(match_id, viewer, row) for row in rows],
        moves=[SeatMove(seat=seat, move=Move.from_dict(move)) for seat, move in new_moves],
    )


def _times(document: Mapping[str, str | None] | list[None]) -> dict[Seat, datetime | None]:
    items = document.items() if isinstance(document, Mapping) else ()
    return {int(seat): None if time is None else datetime.fromisoformat(time) for seat, time in items}


def _row(match_id: int, viewer: Viewer, row: Sequence[Any]) -> ViewerRow:
    row_id, number, message, step, at = row
    written_at = datetime.fromisoformat(at)
    return ViewerRow(
        id=row_id, match_id=match_id, viewer=viewer, number=number, message=message, step=step, at=written_at
    )
