"""Any other game of OpenSpiel by its name, `openspiel:liars_dice`, in OpenSpiel's own words and with its defaults.

`spec` raises `BadInput` for a name that cannot be played here, saying why, before OpenSpiel loads anything.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache, partial

import pyspiel

from training.errors import BadInput
from training.games.actions import clean
from training.games.base import GameSpec
from training.games.openspiel.game import OpenSpielGame
from training.games.openspiel.settings import OpenSpielSettings, undealt
from training.games.openspiel.view import View, load, pays
from training.records import ALL, SPECTATOR, Seat, Viewer
from training.views import Brief, Passage, Passages

PREFIX = "openspiel:"
_BRACKETS = str.maketrans("<>", "()")


class GenericView(View):
    """A game in OpenSpiel's words. In games with hidden information, only the player who moved reads the move."""

    marked = False

    def __init__(self, name: str, settings: OpenSpielSettings, names: Sequence[str]) -> None:
        super().__init__(settings, names)
        self.game = name
        self.kind = self.load().get_type()
        self.public = self.kind.information == pyspiel.GameType.Information.PERFECT_INFORMATION

    def rules(self) -> str:
        game = self.load()
        visibility = "Everybody is told every move." if self.public else "What others do is told only by the state."
        return (
            f"The game is {self.kind.long_name}, as OpenSpiel plays it, for {len(self.names)} players: "
            f"{', '.join(self.names)}. {visibility}\n"
            f"A result lies between {game.min_utility():g} and {game.max_utility():g}."
        )

    def brief(self, seat: Seat) -> str:
        return f"You are {self.names[seat]}, player {seat}."

    def state(self, state: pyspiel.State, viewer: Viewer) -> str:
        if viewer in (ALL, len(self.names)):
            return str(state)
        if viewer == SPECTATOR:
            return str(state) if self.public else ""
        if self.kind.provides_observation_string:
            return str(state.observation_string(viewer))
        return str(state.information_state_string(viewer))

    def choice(self, state: pyspiel.State, seat: Seat, action: int) -> str:
        return clean(state.action_to_string(seat, action)).translate(_BRACKETS)

    def choices(self, state: pyspiel.State, seat: Seat) -> dict[str, int]:
        """Return the legal actions as text; actions that differ only in case have their number appended."""
        written = {action: self.choice(state, seat, action) for action in state.legal_actions(seat)}
        often = Counter(text.lower() for text in written.values())
        return {text if often[text.lower()] == 1 else f"{text} #{action}": action for action, text in written.items()}

    def guide(self) -> tuple[str, ...]:
        game = self.load()
        visibility = "Everybody sees every move." if self.public else "What others do is seen only in the state."
        return (
            f"{self.kind.long_name}, as OpenSpiel plays it, with OpenSpiel's words for states and moves.",
            visibility,
            f"A result lies between {game.min_utility():g} and {game.max_utility():g}; more is better.",
        )

    def zones(self, state: pyspiel.State, viewer: Viewer, choices: Mapping[int, str]) -> tuple[Passages, ...]:
        shown = self.state(state, viewer).strip()
        passage = Passage(title=self.kind.long_name, text=shown, aligned=True)
        return (Passages(title="The state", passages=(passage,)),) if shown else ()

    def private(self, state: pyspiel.State, seat: Seat) -> Brief:
        return Brief(title=f"You are player {seat} in the state's numbering")

    def ask(self, state: pyspiel.State, seat: Seat) -> str:
        return "Choose your move."

    def deed(self, state: pyspiel.State, seat: Seat, action: int) -> str:
        return f"plays {self.choice(state, seat, action)}"

    def moment(self, state: pyspiel.State) -> str:
        results = ", ".join(f"{name} {value:g}" for name, value in zip(self.names, state.returns(), strict=True))
        return f"The results: {results}."

    def forfeit(self, state: pyspiel.State, loser: Seat) -> Sequence[float]:
        low, utility = self.load().min_utility(), self.kind.utility
        if utility in (pyspiel.GameType.Utility.ZERO_SUM, pyspiel.GameType.Utility.CONSTANT_SUM):
            other = self.load().utility_sum() - low
        else:
            together = utility == pyspiel.GameType.Utility.IDENTICAL
            other = low if together else max(low, state.player_return(1 - loser))
        return [low if seat == loser else other for seat in (0, 1)]


@lru_cache(maxsize=1)
def _kinds() -> dict[str, pyspiel.GameType]:
    return {kind.short_name: kind for kind in pyspiel.registered_games()}


def refusal(name: str) -> str:
    """Return the reason why OpenSpiel's game `name` cannot be played; empty if it can."""
    kind = _kinds().get(name)
    if kind is None:
        return f"OpenSpiel has no game {name!r}"
    if kind.dynamics != pyspiel.GameType.Dynamics.SEQUENTIAL:
        return "only games in which one player moves at a time can be played"
    if not kind.default_loadable:
        return "the game needs parameters, and only defaults can be played"
    if kind.chance_mode == pyspiel.GameType.ChanceMode.SAMPLED_STOCHASTIC:
        return "the game draws its own chance, so that no seed could repeat it"
    if kind.max_num_players < 2:
        return "the game is for one player"
    return ""


@lru_cache(maxsize=256)
def spec(name: str) -> GameSpec:
    """Return the declaration of the game `openspiel:NAME`; raise `BadInput` if it cannot be played."""
    short = name.removeprefix(PREFIX)
    if why := refusal(short):
        raise BadInput(why, f"game {name}")
    game = load(short)
    kind = game.get_type()
    return GameSpec(
        name=name,
        title=kind.long_name,
        summary=f"{kind.long_name}, as OpenSpiel plays it.",
        make=partial(OpenSpielGame, partial(GenericView, short)),
        settings=OpenSpielSettings,
        players=(game.num_players(), game.num_players()),
        low=game.min_utility(),
        high=game.max_utility(),
        pays=pays(game),
        zero_sum=kind.utility == pyspiel.GameType.Utility.ZERO_SUM,
        cooperative=kind.utility == pyspiel.GameType.Utility.IDENTICAL,
        symmetric=game.num_players() == 2,
        label=lambda scenario: kind.long_name,
        actions=("answer",),
        undealt=undealt,
        hidden=kind.information != pyspiel.GameType.Information.PERFECT_INFORMATION,
    )
