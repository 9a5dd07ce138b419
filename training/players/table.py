"""Players that have solved their game: `nash` plays an equilibrium of Kuhn poker, `cfr` a near one of Leduc poker.

OpenSpiel's CFR+ solves Leduc poker on first use (some seconds); the solution is cached below PARLEY_HOME. Other games
raise `BadInput`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from random import Random

import pyspiel

from training import bases
from training.errors import BadInput
from training.games.openspiel.equilibria import ITERATIONS, Policy, kuhn_equilibrium, leduc_game, plain, solve
from training.games.openspiel.kuhn_poker import KuhnPoker
from training.games.openspiel.leduc_poker import LeducPoker
from training.players.strategic import StrategicPlayer, poker_state
from training.records import Observation, Scenario, Seat
from training.store import write_json


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


@lru_cache(maxsize=1)
def kuhn() -> Solved:
    """Return the exact equilibrium of Kuhn poker."""
    return Solved(kuhn_equilibrium(), 0.0)


def cache() -> Path:
    """Return the file that caches the solution of Leduc poker."""
    return bases.home() / "cache" / f"leduc-cfr-plus-{ITERATIONS}.json"


@lru_cache(maxsize=1)
def leduc() -> Solved:
    """Return CFR+'s average policy of Leduc poker, from the cache or newly solved."""
    path = cache()
    if not path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_json(path, solved(leduc_game(), ITERATIONS))
    stored = json.loads(path.read_text("utf-8"))
    policy = {where: {int(a): p for a, p in choices.items()} for where, choices in stored["policy"].items()}
    return Solved(policy, stored["exploitability"])


def solved(game: pyspiel.Game, iterations: int) -> dict[str, object]:
    """Return the average policy of CFR+ after `iterations`, and its exploitability, as plain JSON data."""
    average = solve(game, iterations)
    policy = {where: {str(a): p for a, p in choices.items()} for where, choices in plain(average).items()}
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
