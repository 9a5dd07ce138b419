"""The protocol every game follows, and what a game declares about itself.

A game is a pure state machine over (scenario, moves): it knows nothing of models, prompts, retries, clocks, files.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from training.records import Move, Observation, Probe, Scenario, Seat, Viewer, Zone

if TYPE_CHECKING:
    from training.games.log import Settings


@runtime_checkable
class Game(Protocol):
    """One game in progress. Its constructor takes the scenario and raises `BadInput` if the settings are wrong."""

    scenario: Scenario

    def to_act(self) -> frozenset[Seat]:
        """Return the seats that must move now; empty when the game is over. Engine's knowledge, not a viewer's."""

    def observe(self, viewer: Viewer) -> Observation:
        """Return all that `viewer` was ever shown. Reading changes nothing; earlier messages never change."""

    def check(self, seat: Seat, move: Move) -> None:
        """Raise `IllegalMove`, saying why, unless `seat` may make `move` now. Used per seat before a joint step."""

    def default(self, seat: Seat) -> Move:
        """Return the legal move played for a silent, late or broken seat (origin `default`)."""

    def step(self, moves: Mapping[Seat, Move]) -> None:
        """Apply one move of exactly the seats of `to_act`. `IllegalMove` changes nothing."""

    def returns(self) -> Mapping[Seat, float | None]:
        """Return each player's result; None = needs a judge, or the game is not over."""

    def metrics(self) -> Mapping[str, float]:
        """Return what happened in an ended game as numbers (agreement, length …); empty before the end."""

    def seat_metrics(self) -> Mapping[Seat, Mapping[str, float]]:
        """Return each player's own numbers (points, won, survived …) in an ended game; empty before the end.

        Reports average them by role. A game that eliminates players gives every seat `eliminated`: 1.0 if it left
        before the final round, else 0.0; and those that did also `eliminated_round`.
        """

    def roles(self) -> tuple[str, ...]:
        """Return each seat's role by name; empty where the game has none. Engine's knowledge, not a viewer's."""

    def acting(self, viewer: Viewer) -> frozenset[Seat]:
        """Return the seats of which `viewer` may know now that they are to move."""

    def phase(self, viewer: Viewer) -> str:
        """Return in a few words what is going on, as `viewer` may know it; empty where turns are all there is."""

    def board(self, viewer: Viewer) -> tuple[Zone, ...]:
        """Return what lies on the table for `viewer`; empty for a game that is only talk."""

    def probes(self) -> Mapping[Seat, Probe]:
        """Return the questions that may be put aside to seats now; their answers never enter the game."""


@dataclass(frozen=True, slots=True)
class GameSpec:
    """One line of the registry: what makes it of a scenario, and what the game declares about itself.

    `low` and `high` bound a seat's return; `judged` games have no return until a judge spoke. `zero_sum`: returns
    add up to 0 in every ended game. `symmetric`: seats differ only by settings, so swapping seats is fair.
    `deadline_s`: the default time for a person's move. `settings`: the pydantic model of `Scenario.settings`.
    `label` names a scenario in lists, by what everybody may know; `private` adds what each seat alone knows, a few
    words a seat, for those who may see all of it. `actions`: the names of all actions a player is ever offered;
    their tags stay readable when other tag-like text is neutralised, and so do `marks`, all marked choices.
    `hidden`: seats hide facts from each other, which tests then hold the game to. `undealt` returns settings
    without what they state of chance, such as who was dealt what; `scenario_only` names settings that belong to a
    scenario, so that nobody chooses them for one table: what was dealt, and what only a judge answers. `start`
    returns a plain start for so many seats, None where a game needs more than their number. `opponents`: players
    that play only this game, by name. `script`: what makes the game's scripted player, as `module:function` of
    (scenario, seat); empty where it has none. `samples`: JSONL files of scenarios, each named by its file's stem.
    `rubrics`: names of the rubrics whose questions are about this game alone.
    """

    name: str
    title: str
    summary: str
    make: Callable[[Scenario], Game]
    settings: type[Settings]
    players: tuple[int, int]
    low: float
    high: float
    judged: bool = False
    zero_sum: bool = False
    symmetric: bool = True
    deadline_s: int = 120
    label: Callable[[Scenario], str] = lambda scenario: scenario.id
    private: Callable[[Scenario], tuple[str, ...]] = lambda scenario: ("",) * len(scenario.seats)
    actions: tuple[str, ...] = ()
    marks: tuple[str, ...] = ()
    hidden: bool = True
    undealt: Callable[[Mapping[str, Any]], dict[str, Any]] = dict
    scenario_only: tuple[str, ...] = ()
    start: Callable[[int], Scenario] | None = None
    opponents: tuple[str, ...] = ()
    script: str = ""
    samples: tuple[Path, ...] = ()
    rubrics: tuple[str, ...] = ()


SAMPLES = Path(__file__).parents[1] / "samples"


def sample_files(*names: str) -> tuple[Path, ...]:
    """Return the files of samples that come with Parley."""
    return tuple(SAMPLES / f"{name}.jsonl" for name in names)


def without(*names: str) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    """Return a function that leaves these settings out."""
    return lambda settings: {name: value for name, value in settings.items() if name not in names}


FORFEIT = Move(action="forfeit", origin="forfeit")
"""The move of a seat that resigns. Games recognise it by its origin, whatever the action is called."""
