"""The protocol of all games, and a game's declaration.

A game is a pure state machine over (scenario, moves), independent of models, prompts, retries, clocks and files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

from training.analysis import AnalysisZone
from training.records import Move, Observation, Probe, Scenario, Seat, Viewer
from training.views import TableView

if TYPE_CHECKING:
    from training.games.log import Settings


@runtime_checkable
class Game(Protocol):
    """One game in progress. Its constructor takes the scenario and raises `BadInput` if the settings are wrong."""

    scenario: Scenario

    def to_act(self) -> frozenset[Seat]:
        """Return the seats that must move now; empty when the game is over. For the engine, not for viewers."""

    def observe(self, viewer: Viewer) -> Observation:
        """Return everything that `viewer` was shown so far, without side effects; earlier messages never change."""

    def check(self, seat: Seat, move: Move) -> None:
        """Raise `IllegalMove`, saying why, unless `seat` may make `move` now. Used per seat before a joint step."""

    def default(self, seat: Seat) -> Move:
        """Return the legal move (origin `default`) that is played for a seat without a move of its own."""

    def step(self, moves: Mapping[Seat, Move]) -> None:
        """Apply one move of exactly the seats of `to_act`. `IllegalMove` changes nothing."""

    def returns(self) -> Mapping[Seat, float | None]:
        """Return each player's result; None = needs a judge, or the game is not over."""

    def earned(self) -> Mapping[Seat, float]:
        """Return how much of its result each player has received so far; empty for a game that pays at its end alone.

        May fall again. In an ended game it equals `returns`. For the engine, not for viewers.
        """

    def in_reach(self) -> Mapping[Seat, float]:
        """Return how much of its result each player could secure now, as far as the rules tell; empty if they do not.

        In an ended game it equals `returns`. For the engine, not for viewers.
        """

    def metrics(self) -> Mapping[str, float]:
        """Return the metrics of an ended game (agreement, length …); empty before the end."""

    def seat_metrics(self) -> Mapping[Seat, Mapping[str, float]]:
        """Return each player's metrics (points, won, survived …) in an ended game; empty before the end.

        Reports average them by role. A game that eliminates players gives every seat `eliminated`: 1.0 if it left
        before the final round, else 0.0. Seats that left early also have `eliminated_round`.
        """

    def roles(self) -> tuple[str, ...]:
        """Return each seat's role by name; empty for a game without roles. For the engine, not for viewers."""

    def acting(self, viewer: Viewer) -> frozenset[Seat]:
        """Return the seats that must move, as far as `viewer` may know."""

    def show(self, viewer: Viewer) -> TableView:
        """Return the table as a person at the place of `viewer` sees it now, by the facts of `observe`."""

    def analysis(self) -> tuple[AnalysisZone, ...]:
        """Return a review of a finished game's moves, computed from its full state; empty before the end.

        It is for readers who may see everything, and for everybody if nothing is hidden (`GameSpec.hidden`).
        """

    def with_model_names(self, text: str) -> str:
        """Return a person's text with the names that models read, if people read other names; else the same text."""

    def task(self) -> str:
        """Return what the players are to do, by public facts only; empty where it is the same in every game."""

    def probes(self) -> Mapping[Seat, Probe]:
        """Return the questions that may be asked to seats now; their answers never enter the game."""


@dataclass(frozen=True, slots=True)
class Search:
    """A search that waits for its result: in which corpus, for what, and for which seat."""

    seat: Seat
    corpus: str
    query: str


@runtime_checkable
class SearchingGame(Game, Protocol):
    """A game whose seats can search corpora of passages; `GameSpec.corpora` names them.

    While a search is pending the tool seat is to act. Its move is made from the result, in a rollout by its search tool
    and at a table by a worker.
    """

    def pending_search(self) -> Search | None:
        """Return the search whose result the tool seat is to return now, or None."""

    def retrieval(self, passages: Iterable[str]) -> Move:
        """Return the tool's move with these passages, the best first, each on one line."""

    def failure(self, why: str) -> Move:
        """Return the tool's move after a search that failed, for the reason `why`."""


Verdict = Literal["true", "false", "unknowable"]


@dataclass(frozen=True, slots=True)
class CheckedStatement:
    """A statement in a text, checked against a game's state.

    `start` and `end` are offsets in the text, `end` exclusive. `kind` is the game's word for such statements;
    `statement` is what is claimed, with the names of seats; `why` is the fact of the game that decides. It is
    `unknowable` where the game has no such fact.
    """

    start: int
    end: int
    kind: str
    statement: str
    verdict: Verdict
    why: str


@runtime_checkable
class ClaimCheckingGame(Game, Protocol):
    """A game that can check claims in table talk against its own state."""

    def claims(self, seat: Seat, text: str) -> Sequence[CheckedStatement]:
        """Return the claims of fact in a text that `seat` says now, in the order of the text, by their truth now.

        Opinions, questions, conditions, intentions and reports of what others say are no claims. Verdicts and reasons
        reveal what is hidden: only for those who may see everything. Changes nothing, and fails for no text.
        """


@dataclass(frozen=True, slots=True)
class GameSpec:
    """One entry of the registry: the game's factory and its properties.

    `low` and `high` bound a seat's return; `judged` games have no return until a judge has scored them. `zero_sum`:
    returns add up to 0 in every ended game. `cooperative`: all seats have the same return in every ended game.
    `symmetric`: seats differ only by settings, so swapping seats is fair.
    `bounds` returns the bounds for some settings, where they are narrower than `low` and `high`. `pays`: players
    receive parts of their result during the game (`Game.earned`). `reach`: the rules tell what players have within
    reach (`Game.in_reach`). `analysed_by_worker`: the analysis of a game takes seconds, so a worker does it.
    `probed`: whether its games have probes under some settings.
    `deadline_s`: the default time for a person's move. `settings`: the pydantic model of `Scenario.settings`.
    `label` names a scenario in lists, by public facts only; `private` adds a few words per seat about its private
    facts, for viewers who may see everything. `actions`: the names of all actions that a player is ever offered;
    their tags stay readable when other tag-like text is neutralised, and so do `marks`, all marked choices.
    `hidden`: seats hide facts from each other, which tests verify. `undealt` returns the settings without stated
    outcomes of chance, such as a deal. `scenario_only` names settings that belong to a scenario and cannot be chosen
    for a single table: stated deals, and settings that need a judge. `anonymised` returns the scenario with neutral
    names where the seats of a new game must not read the real ones. `start` returns a default scenario for a number of
    seats, None if a game needs more than that number. `opponents`: names of players that play only this game.
    `script`: the factory of the scripted player, as `module:function` of (scenario, seat); empty if there is none.
    `alone` returns the starts in which each seat of a scenario plays by itself, without communication; None for a game
    in which nobody can. `corpora`: of a `SearchingGame`, the name of the setting that lists the corpora that seats can
    search. `focus`: what takes the room at the table, the board or the conversation. `samples`: JSONL files of
    scenarios; a sample's name is its file's stem. `codebooks`: names of the codebooks that are about this game alone.
    `rated_by`: the name of the codebook by which its players rate each other afterwards; empty if they do not.
    """

    name: str
    title: str
    summary: str
    make: Callable[[Scenario], Game]
    settings: type[Settings]
    players: tuple[int, int]
    low: float
    high: float
    bounds: Callable[[Mapping[str, Any]], tuple[float, float]] | None = None
    judged: bool = False
    pays: bool = False
    reach: bool = False
    analysed_by_worker: bool = False
    probed: Callable[[Mapping[str, Any]], bool] = lambda settings: False
    zero_sum: bool = False
    cooperative: bool = False
    symmetric: bool = True
    deadline_s: int = 120
    label: Callable[[Scenario], str] = lambda scenario: scenario.id
    private: Callable[[Scenario], tuple[str, ...]] = lambda scenario: ("",) * len(scenario.seats)
    actions: tuple[str, ...] = ()
    marks: tuple[str, ...] = ()
    hidden: bool = True
    focus: Literal["board", "talk"] = "board"
    undealt: Callable[[Mapping[str, Any]], dict[str, Any]] = dict
    scenario_only: tuple[str, ...] = ()
    anonymised: Callable[[Scenario], Scenario] = lambda scenario: scenario
    start: Callable[[int], Scenario] | None = None
    opponents: tuple[str, ...] = ()
    script: str = ""
    alone: Callable[[Scenario], tuple[Scenario, ...]] | None = None
    corpora: str = ""
    samples: tuple[Path, ...] = ()
    codebooks: tuple[str, ...] = ()
    rated_by: str = ""

    def range_of(self, settings: Mapping[str, Any]) -> tuple[float, float]:
        """Return the lowest and the highest return of a seat under these settings."""
        return self.bounds(settings) if self.bounds else (self.low, self.high)


SAMPLES = Path(__file__).parents[1] / "samples"


def sample_files(*names: str) -> tuple[Path, ...]:
    """Return the sample files that Parley includes."""
    return tuple(SAMPLES / f"{name}.jsonl" for name in names)


def without(*names: str) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    """Return a function that removes these settings."""
    return lambda settings: {name: value for name, value in settings.items() if name not in names}


FORFEIT = Move(action="forfeit", origin="forfeit")
"""The move of a seat that resigns. Games recognise it by its origin; the action's name does not matter."""
