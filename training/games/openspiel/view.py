"""Views put OpenSpiel's games into words for models, and into zones and words for people. There is one class per game.

A view holds no state of its own. What it returns for a viewer never says more than that viewer may know.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, ClassVar

import pyspiel

from training.analysis import AnalysisZone
from training.games.openspiel.settings import OpenSpielSettings
from training.games.prose import listed
from training.records import Seat, Viewer
from training.views import Brief, Zone


@lru_cache(maxsize=256)
def load(name: str, parameters: tuple[tuple[str, int | bool], ...] = ()) -> pyspiel.Game:
    """Return OpenSpiel's game. The caller must ensure that these parameters are valid, because OpenSpiel may abort."""
    return pyspiel.load_game(name, dict(parameters))


def pays(game: pyspiel.Game) -> bool:
    """Return whether the game gives rewards during play, which its returns then add up."""
    return bool(game.get_type().reward_model == pyspiel.GameType.RewardModel.REWARDS)


class View(ABC):
    """One game in words and as a table, for one scenario.

    `names` are the seats' display names; seat i is OpenSpiel's player i.

    `game` is OpenSpiel's name; `model` the settings; `marked`: choices stand in angle brackets; `public`: everybody may
    know every move. `keeps`: players can keep what they have received so far until the end.
    """

    game: str
    model: ClassVar[type[OpenSpielSettings]] = OpenSpielSettings
    marked: ClassVar[bool] = True
    public: bool = True
    keeps: ClassVar[bool] = False

    def __init__(self, settings: OpenSpielSettings, names: Sequence[str]) -> None:
        self.settings = settings
        self.names = tuple(names)

    def load(self) -> pyspiel.Game:
        """Return OpenSpiel's game with the parameters of the settings."""
        return load(self.game, self.parameters())

    def parameters(self) -> tuple[tuple[str, int | bool], ...]:
        """Return OpenSpiel's parameters; empty for its defaults."""
        return ()

    def deck(self) -> Counter[int]:
        """Return how often each outcome of chance can occur in one game; empty for a game without cards."""
        return Counter()

    def draws(self) -> int:
        """Return the largest number of chance outcomes in one game."""
        return self.deck().total()

    @abstractmethod
    def rules(self) -> str:
        """Return the rules, the same for every viewer."""

    @abstractmethod
    def brief(self, seat: Seat) -> str:
        """Return the private introduction of `seat`."""

    @abstractmethod
    def state(self, state: pyspiel.State, viewer: Viewer) -> str:
        """Return the state as far as `viewer` may know it."""

    @abstractmethod
    def choice(self, state: pyspiel.State, seat: Seat, action: int) -> str:
        """Return a legal action as text, without brackets."""

    def choices(self, state: pyspiel.State, seat: Seat) -> dict[str, int]:
        """Return every legal action of `seat` by its text, in OpenSpiel's order."""
        return {self.choice(state, seat, action): action for action in state.legal_actions(seat)}

    # --- for people ---

    @abstractmethod
    def guide(self) -> tuple[str, ...]:
        """Return the rules for people, as short paragraphs."""

    @abstractmethod
    def zones(self, state: pyspiel.State, viewer: Viewer, choices: Mapping[int, str]) -> tuple[Zone, ...]:
        """Return the table; `choices` are the texts of the viewer's legal actions, empty when it is not its turn."""

    def phase(self, state: pyspiel.State) -> str:
        """Return the phase of a game that is not over, by public facts; empty for a game without phases."""
        return ""

    def private(self, state: pyspiel.State, seat: Seat) -> Brief | None:
        """Return the private card of a seat; None if it knows nothing that others do not."""
        return None

    @abstractmethod
    def ask(self, state: pyspiel.State, seat: Seat) -> str:
        """Return what a seat is to do now, as one sentence."""

    @abstractmethod
    def deed(self, state: pyspiel.State, seat: Seat, action: int) -> str:
        """Return what a legal action in this state does, to be read after the seat's name."""

    @abstractmethod
    def moment(self, state: pyspiel.State) -> str:
        """Return what ended a game that nobody gave up, as one sentence."""

    def analysis(self, state: pyspiel.State) -> tuple[AnalysisZone, ...]:
        """Return what a solver says of the moves of an ended game; nothing for a game without one."""
        return ()

    def headline(self, state: pyspiel.State, result: Sequence[float], viewer: Viewer) -> str:
        """Return how the game ended for a viewer, by the results of all seats; the state may be that of giving up."""
        best = [seat for seat, value in enumerate(result) if value == max(result)]
        if len(best) == len(result):
            return "Nobody wins: a draw."
        if viewer in best:
            return "You win." if len(best) == 1 else "You win together."
        winners = listed(self.names[seat] for seat in best)
        return f"{'You lose. ' if viewer in range(len(result)) else ''}{winners} {'wins' if len(best) == 1 else 'win'}."

    # --- the end ---

    def showdown(self, state: pyspiel.State) -> str:
        """Return what the end of the game reveals; empty if it reveals nothing."""
        return ""

    @abstractmethod
    def forfeit(self, state: pyspiel.State, loser: Seat) -> Sequence[float]:
        """Return every seat's return when `loser` gives up a game of two."""


def params(**values: Any) -> tuple[tuple[str, int | bool], ...]:
    """Return parameters in the form that `load` takes."""
    return tuple(values.items())
