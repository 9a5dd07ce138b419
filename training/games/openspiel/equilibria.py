"""Equilibria of Kuhn and Leduc poker, and the value of each action of a game against them.

Kuhn poker's equilibrium is exact. OpenSpiel's CFR+ solves Leduc poker in a few seconds, once per process.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import pyspiel

from training.games.openspiel.view import load
from training.records import Seat

Policy = Mapping[str, Mapping[int, float]]
"""Probability of each legal action by OpenSpiel's information state."""
ITERATIONS = 1000
"""Iterations of CFR+; a best response wins at most about 0.0003 chips per game against the average policy."""
REVIEW_ITERATIONS = 400
"""Iterations for the review of a game, in two seconds; a best response wins at most about 0.0012 chips per game."""
KUHN_ALPHA = 1 / 6
"""Kuhn poker's equilibria differ only in the probability, from 0 to 1/3, that the first player bets the Jack. In the
middle of that range, every choice of any equilibrium has a positive probability."""


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


def leduc_game() -> pyspiel.Game:
    """Return Leduc poker with the parameters that Parley uses."""
    return load("leduc_poker", (("suit_isomorphism", True),))


def solve(game: pyspiel.Game, iterations: int) -> pyspiel.TabularPolicy:
    """Return the average policy of CFR+ after `iterations`."""
    solver = pyspiel.CFRPlusSolver(game)
    for _ in range(iterations):
        solver.evaluate_and_update_policy()
    return solver.tabular_average_policy()


def plain(policy: pyspiel.TabularPolicy) -> dict[str, dict[int, float]]:
    """Return a policy of OpenSpiel as a table."""
    return {where: dict(choices) for where, choices in sorted(policy.policy_table().items())}


@dataclass(frozen=True, slots=True)
class ActionValues:
    """A seat's actions in one information state: how often the equilibrium takes each, and the expected result of each.

    `expected` is the expected result in chips given what the seat knows, if both play the equilibrium afterwards. The
    opponent's card is as likely as the equilibrium makes it; `reached` is False in states that the equilibrium never
    reaches, and there all remaining cards are equally likely.
    """

    probabilities: Mapping[int, float]
    expected: Mapping[int, float]
    reached: bool = True

    def lost(self, action: int) -> float:
        """Return the chips that an action loses against the best one."""
        return max(self.expected.values()) - self.expected[action]


class Solution:
    """A policy of a game of two for both seats, with the value of every action in every information state.

    `value` is the first seat's expected result.
    """

    def __init__(self, game: pyspiel.Game, policy: Policy) -> None:
        self._policy = policy
        self._sums: dict[str, dict[bool, dict[int, float]]] = {}
        self._weights: dict[str, dict[bool, float]] = defaultdict(lambda: {True: 0.0, False: 0.0})
        self.value = self._walk(game.new_initial_state(), 1.0, (1.0, 1.0))

    def at(self, state: pyspiel.State, seat: Seat) -> ActionValues:
        """Return the values of the actions of a seat that is to move."""
        where = state.information_state_string(seat)
        reached = self._weights[where][True] > REACHED * self._weights[where][False]
        weight = self._weights[where][reached]
        expected = {action: total / weight for action, total in self._sums[where][reached].items()}
        return ActionValues(self._policy[where], expected, reached)

    def _walk(self, state: pyspiel.State, chance: float, reach: tuple[float, float]) -> float:
        """Return the first seat's expected result, and add up the values of all actions below.

        The sums are twofold: weighted by how likely chance and the other's policy come here (True), or chance alone.
        """
        if state.is_terminal():
            return float(state.returns()[0])
        if state.is_chance_node():
            outcomes: list[tuple[int, float]] = state.chance_outcomes()
            return sum(
                probability * self._walk(state.child(outcome), chance * probability, reach)
                for outcome, probability in outcomes
            )
        seat = state.current_player()
        where, sign = state.information_state_string(seat), 1 if seat == 0 else -1
        probabilities = self._policy[where]
        results = {}
        for action in state.legal_actions():
            further = (
                (reach[0] * probabilities[action], reach[1])
                if seat == 0
                else (reach[0], reach[1] * probabilities[action])
            )
            results[action] = self._walk(state.child(action), chance, further)
        sums = self._sums.setdefault(where, {True: dict.fromkeys(results, 0.0), False: dict.fromkeys(results, 0.0)})
        for by_policy, weight in ((True, chance * reach[1 - seat]), (False, chance)):
            self._weights[where][by_policy] += weight
            for action, result in results.items():
                sums[by_policy][action] += weight * sign * result
        return sum(probabilities[action] * result for action, result in results.items())


REACHED = 1e-4
"""How often the other's policy must come to an information state, of the times that chance allows it."""


@lru_cache(maxsize=1)
def kuhn() -> Solution:
    """Return Kuhn poker's equilibrium with the values of its actions."""
    return Solution(load("kuhn_poker"), kuhn_equilibrium())


@lru_cache(maxsize=1)
def leduc() -> Solution:
    """Return CFR+'s average policy of Leduc poker with the values of its actions; two seconds at first."""
    return Solution(leduc_game(), plain(solve(leduc_game(), REVIEW_ITERATIONS)))
