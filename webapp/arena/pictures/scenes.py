"""The positions of a finished match from one viewpoint, as a picture shows them: what the replay shows there."""

from __future__ import annotations

from bisect import bisect_right
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
    steps, lines = _lines(match, place)
    views = _views(match, place, first, last)
    frames = []
    for step in range(first, last + 1):
        view = views.get(step, TableView())
        so_far = lines[: bisect_right(steps, step)]
        frames.append(Frame(step, match.step, zones.drawn(view.zones), so_far, view.headline))
    return frames


def _lines(match: Match, place: Viewer) -> tuple[list[int], list[Line]]:
    """Return all lines of a viewpoint in order, and beside them the step of each."""
    names = match.scenario["seats"]
    rows = client_state.rows_after(match, place, 0)
    shown = [(row.step, _named(_with_seat(row, line), names)) for row in rows for line in row.lines]
    return [step for step, _ in shown], [line for _, line in shown]


def _named(line: Line, names: Sequence[str]) -> Line:
    """Return a line whose text begins with the name of who acted, if it is a deed."""
    if line.kind == "deed" and line.seat is not None and line.seat < len(names):
        return line.model_copy(update={"text": f"{names[line.seat]} {line.text}"})
    return line


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
