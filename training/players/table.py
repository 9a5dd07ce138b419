"""Players that have solved their game: `nash` plays an equilibrium of Kuhn poker, `cfr` a near one of Leduc poker.

OpenSpiel's CFR+ solves Leduc poker on first use (some seconds); the solution is cached below PARLEY_HOME. Other games
raise `BadInput`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from random import Random

import pyspiel

from training import bases
from training.errors import BadInput
from training.games.openspiel.kuhn_poker import KuhnPoker
from training.games.openspiel.leduc_poker import LeducPoker
from training.games.openspiel.view import load
from training.players.strategic import StrategicPlayer, poker_state
from training.records import Observation, Scenario, Seat
from training.store import write_json

Policy = Mapping[str, Mapping[int, float]]
"""Probability of each legal action by OpenSpiel's information state."""
ITERATIONS = 1000
"""Iterations of CFR+; a best response wins at most about 0.0003 chips per game against the average policy."""
KUHN_ALPHA = 1 / 6
"""Kuhn poker's equilibria differ only in the probability, from 0 to 1/3, that the first player bets the Jack. In the
middle of that range, every choice of any equilibrium has a positive probability."""


@dataclass(frozen=True, slots=True)
class Solved:
    """A policy and its exploitability: a best response's mean gain over both seats, in chips per game."""

    policy: Policy
    exploitability: float


class TablePlayer(StrategicPlayer):
    """Samples from a policy at its information state."""

    def __init__(self, scenario: Scenario, seat: Seat, policy: Policy) -> None:
        super().__init__(scenario, seat)
        self._policy = policy

    def choose(self, observation: Observation, chance: Random) -> str:
        state = poker_state(self.scenario, self.seat, observation)
        choices = self._policy[state.information_state_string(self.seat)]
        action = chance.choices(list(choices), list(choices.values()))[0]
        (offered,) = observation.actions
        legal = state.legal_actions(self.seat)
        return str(offered.args[0].choices[legal.index(action)])


def kuhn_equilibrium(alpha: float = KUHN_ALPHA) -> dict[str, dict[int, float]]:
    """Return Kuhn poker's equilibrium in which the first player bets the Jack with probability `alpha`.

    The information state is the card (0 to 2) and the moves (p, b); action 1 is to bet.
    """
    bets = {
        "0": alpha,
        "1": 0.0,
        "2": 3 * alpha,
        "0pb": 0.0,
        "1pb": alpha + 1 / 3,
        "2pb": 1.0,
        "0p": 1 / 3,
        "1p": 0.0,
        "2p": 1.0,
        "0b": 0.0,
        "1b": 1 / 3,
        "2b": 1.0,
    }
    return {where: {0: 1 - bet, 1: bet} for where, bet in bets.items()}


@lru_cache(maxsize=1)
def kuhn() -> Solved:
    """Return the exact equilibrium of Kuhn poker."""
    return Solved(kuhn_equilibrium(), 0.0)


def leduc_game() -> pyspiel.Game:
    """Return Leduc poker with the parameters that Parley uses."""
    return load("leduc_poker", (("suit_isomorphism", True),))


def cache() -> Path:
    """Return the file that caches the solution of Leduc poker."""
    return bases.home() / "cache" / f"leduc-cfr-plus-{ITERATIONS}.json"


@lru_cache(maxsize=1)
def leduc() -> Solved:
    """Return CFR+'s average policy of Leduc poker, from the cache or newly solved."""
    path = cache()
    if not path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_json(path, solve(leduc_game(), ITERATIONS))
    stored = json.loads(path.read_text("utf-8"))
    policy = {where: {int(a): p for a, p in choices.items()} for where, choices in stored["policy"].items()}
    return Solved(policy, stored["exploitability"])


def solve(game: pyspiel.Game, iterations: int) -> dict[str, object]:
    """Return the average policy of CFR+ after `iterations`, and its exploitability, as plain JSON data."""
    solver = pyspiel.CFRPlusSolver(game)
    for _ in range(iterations):
        solver.evaluate_and_update_policy()
    average = solver.tabular_average_policy()
    policy = {where: {str(a): p for a, p in choices} for where, choices in sorted(average.policy_table().items())}
    return {"iterations": iterations, "exploitability": pyspiel.nash_conv(game, average) / 2, "policy": policy}


SOLVED = {"nash": (KuhnPoker.game, kuhn), "cfr": (LeducPoker.game, leduc)}
"""The game that each player has solved, and its solution."""


def solution(name: str, game: str, field: str = "players") -> Solved:
    """Return the solution that `nash` or `cfr` plays; raise `BadInput` at `field` for another game."""
    check_game(name, game, field)
    return SOLVED[name][1]()


def check_game(name: str, game: str, field: str = "players") -> None:
    """Raise `BadInput` at `field` for a game that `nash` or `cfr` does not play; this solves nothing."""
    plays = SOLVED[name][0]
    if game != plays:
        raise BadInput(f"{name} plays {plays}, not {game}", field)


def nash(scenario: Scenario, seat: Seat) -> TablePlayer:
    """Return the exact player of Kuhn poker."""
    return TablePlayer(scenario, seat, solution("nash", scenario.game).policy)


def cfr(scenario: Scenario, seat: Seat) -> TablePlayer:
    """Return the solved player of Leduc poker."""
    return TablePlayer(scenario, seat, solution("cfr", scenario.game).policy)
