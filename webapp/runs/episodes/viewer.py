"""The replay viewer of matches and episodes: a finished game from one viewpoint at one step.

A page creates a `ReplayView` and renders `runs/viewer.html` with it as `view`. Texts come from people and models; the
template escapes them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from django.http import Http404

from training.analysis import AnalysisZone
from training.games import Game, lookup
from training.records import ALL, SPECTATOR, Seat, Viewer
from training.views import Line, TableView
from webapp.core.stage import Stage
from webapp.runs.episodes import beliefs
from webapp.runs.episodes.beliefs import BeliefPoint, QuestionTable, SeatBeliefs
from webapp.runs.episodes.discussions import Discussion, discussions
from webapp.runs.episodes.replaying import Course


class LogRow(Protocol):
    """One line of a viewer's log, numbered from 1."""

    @property
    def number(self) -> int:
        """Its number in this viewer's log."""

    @property
    def message(self) -> Mapping[str, Any]:
        """A `training.records.Message` as a dictionary."""

    @property
    def lines(self) -> Sequence[Line]:
        """What people read of it."""


@dataclass(frozen=True)
class Row:
    """A log line that is not stored."""

    number: int
    message: Mapping[str, Any]
    lines: Sequence[Line] = ()


@dataclass(frozen=True)
class ReplayView:
    """Data of the viewer. `roles` are (seat, name, role), empty while hidden; `has_roles` says if the game has roles.

    `view` is the table, and `analysis` what is known of the moves of an ended game; `asked` are the beliefs at the
    step, `believed` over time.
    `discussions` have what messages changed in them; only the all-seeing view has any.
    """

    names: Sequence[str]
    viewpoints: Sequence[Viewer]
    viewer: Viewer
    step: int
    steps: int
    view: TableView
    rows: Sequence[LogRow]
    roles: Sequence[tuple[Seat, str, str]] = ()
    has_roles: bool = False
    asked: Sequence[QuestionTable] = ()
    believed: Sequence[SeatBeliefs] = ()
    discussions: Sequence[Discussion] = ()
    analysis: Sequence[AnalysisZone] = ()

    @property
    def labels(self) -> list[tuple[Viewer, str]]:
        """Every viewpoint with its name in the switch."""
        return viewpoint_labels(self.names, self.viewpoints)

    @property
    def stage(self) -> Stage:
        """What the zones' templates read; nothing can be pressed."""
        return Stage(self.names, self.viewer)

    @property
    def before(self) -> int | None:
        """The step before this one; None at the start."""
        return self.step - 1 if self.step > 0 else None

    @property
    def after(self) -> int | None:
        """The step after this one; None at the end."""
        return self.step + 1 if self.step < self.steps else None


def viewpoint_labels(names: Sequence[str], viewpoints: Sequence[Viewer]) -> list[tuple[Viewer, str]]:
    """Every viewpoint with its name in a switch."""
    special = {ALL: "All-seeing", SPECTATOR: "Spectator"}
    return [(place, special.get(place) or f"As {names[place]}") for place in viewpoints]


def requested_viewpoint(text: str, allowed: Sequence[Viewer]) -> Viewer:
    """The viewpoint in the query string, by default the first allowed one; 404 for any other."""
    for viewer in allowed:
        if text == str(viewer) or not text:
            return viewer
    raise Http404


def log_rows(game: Game, viewer: Viewer) -> list[Row]:
    """All messages of a viewer's observation."""
    messages = enumerate(game.observe(viewer).messages, 1)
    return [Row(number, message.to_dict(), message.lines) for number, message in messages]


def named_roles(names: Sequence[str], roles: Sequence[str]) -> list[tuple[Seat, str, str]]:
    """Each seat with its name and its role in words; empty without roles."""
    return [(seat, names[seat], role.replace("_", " ")) for seat, role in enumerate(roles)]


def belief_layers(
    answers: Sequence[BeliefPoint], names: Sequence[str], roles: Sequence[str], step: int
) -> dict[str, Sequence[Any]]:
    """The fields `asked` and `believed` of a view."""
    return {"asked": beliefs.at_step(answers, names, step), "believed": beliefs.over_time(answers, names, roles)}


def view_of_course(course: Course, roles: Sequence[str], viewer: Viewer, step: int) -> ReplayView:
    """A recorded episode from one viewpoint at one step; a seat's viewpoint has its own beliefs only."""
    game, names = course.after(step), course.scenario.seats
    answers = [answer for answer in course.believed if viewer in (ALL, answer.seat)]
    return ReplayView(
        names=names,
        viewpoints=course.viewers,
        viewer=viewer,
        step=step,
        steps=course.steps,
        view=game.show(viewer),
        rows=log_rows(game, viewer),
        roles=named_roles(names, roles) if viewer == ALL or step == course.steps else [],
        has_roles=bool(roles),
        analysis=_analysis(game, viewer),
        discussions=discussions(answers, course.spoken, names, roles) if viewer == ALL else (),
        **belief_layers(answers, names, roles, step),
    )


def _analysis(game: Game, viewer: Viewer) -> Sequence[AnalysisZone]:
    """The analysis of an ended episode for viewers who may see everything; none where an engine would take seconds."""
    spec = lookup(game.scenario.game)
    return () if spec.analysed_by_worker or (spec.hidden and viewer != ALL) else game.analysis()
