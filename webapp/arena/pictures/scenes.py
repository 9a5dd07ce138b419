"""The positions of a finished match from one viewpoint, as a picture shows them: what the replay shows there."""

from __future__ import annotations

from collections.abc import Sequence

from training.errors import BadInput, IllegalMove
from training.games import make
from training.records import Viewer
from training.views import Line, TableView
from webapp.arena.live import client_state
from webapp.arena.models import Match, ViewerRow
from webapp.arena.pictures import zones
from webapp.arena.pictures.frames import Frame, Picture
from webapp.arena.play import services

MOST = 200
"""Steps of one animation."""


def picture_of(match: Match) -> Picture:
    """Return what the pictures of a match share."""
    names = match.scenario["seats"]
    return Picture(f"{match.game_title}: {', '.join(names)}", names)


def frames_of(match: Match, place: Viewer, first: int, last: int) -> list[Frame]:
    """Return the positions after the steps from `first` to `last`.

    A match that cannot be replayed any more has its lines alone.
    """
    rows = client_state.rows_after(match, place, 0)
    views = _views(match, place, first, last)
    return [_frame(match, place, step, views.get(step, TableView()), rows) for step in range(first, last + 1)]


def _frame(match: Match, place: Viewer, step: int, view: TableView, rows: Sequence[ViewerRow]) -> Frame:
    lines = [_with_seat(row, line) for row in rows if row.step <= step for line in row.lines]
    names = match.scenario["seats"]
    deeds = [
        line.model_copy(update={"text": f"{names[line.seat]} {line.text}"})
        if line.kind == "deed" and line.seat is not None and line.seat < len(names)
        else line
        for line in lines
    ]
    return Frame(step, match.step, zones.drawn(view.zones), deeds, view.headline)


def _with_seat(row: ViewerRow, line: Line) -> Line:
    """Return a line with the seat that wrote the message."""
    author = row.message["author"]
    return line if line.seat is not None or author is None else line.model_copy(update={"seat": author})


def _views(match: Match, place: Viewer, first: int, last: int) -> dict[int, TableView]:
    """Return the table after each of these steps."""
    views: dict[int, TableView] = {}
    try:
        state = services.MatchState(make(services.scenario_of(match)))
        if first == 0:
            views[0] = state.game.show(place)
        for entry in services.moves_of(match, steps=last):
            before = state.step
            services.catch_up(state, [entry])
            if state.step != before and state.step >= first:
                views[state.step] = state.game.show(place)
    except (BadInput, IllegalMove):
        return views
    return views
