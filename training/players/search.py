"""`mcts:N`: OpenSpiel's Monte Carlo tree search, N simulations per move, for games without chance or hidden state."""

from __future__ import annotations

from random import Random

import pyspiel

from training.errors import BadInput
from training.games import lookup
from training.games.openspiel.game import OpenSpielGame
from training.players.strategic import StrategicPlayer, observed_game
from training.records import Observation, Scenario, Seat

UCT_C = 2.0
ROLLOUTS = 10
"""Number of random playouts from each new leaf."""
MEMORY_MB = 200


class SearchPlayer(StrategicPlayer):
    """Searches from scratch at every move, from the state after the observed moves."""

    def __init__(self, scenario: Scenario, seat: Seat, simulations: int) -> None:
        super().__init__(scenario, seat)
        self._simulations = simulations

    def choose(self, observation: Observation, chance: Random) -> str:
        game = observed_game(self.scenario, observation)
        seed = chance.randrange(2**31)
        bot = pyspiel.MCTSBot(
            game.state.get_game(),
            pyspiel.RandomRolloutEvaluator(ROLLOUTS, seed),
            UCT_C,
            self._simulations,
            MEMORY_MB,
            True,  # solve: proven wins and losses count as such
            seed,
            False,  # verbose
        )
        best = bot.step(game.state)
        return next(text for text, action in game.view.choices(game.state, self.seat).items() if action == best)


def mcts(scenario: Scenario, seat: Seat, simulations: int) -> SearchPlayer:
    """Return a searching player; raise `BadInput` for a game with chance or hidden information."""
    game = lookup(scenario.game).make(scenario)
    kind = game.view.load().get_type() if isinstance(game, OpenSpielGame) else None
    types = pyspiel.GameType
    if (
        kind is None
        or kind.chance_mode != types.ChanceMode.DETERMINISTIC
        or kind.information != types.Information.PERFECT_INFORMATION
    ):
        raise BadInput(
            f"mcts does not play {scenario.game!r}: only strategic games without chance and secrets", "players"
        )
    return SearchPlayer(scenario, seat, simulations)
