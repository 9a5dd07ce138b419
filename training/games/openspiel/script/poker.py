"""Scripts for poker: Kuhn by its exact equilibrium, Leduc by the strength of the hand; both give reasons."""

from __future__ import annotations

from random import Random

from training.games.actions import write
from training.games.openspiel.kuhn_poker import KuhnPoker
from training.games.openspiel.leduc_poker import LeducPoker
from training.games.openspiel.poker import CARDS
from training.players.scripted import Script
from training.players.strategic import poker_state
from training.players.table import kuhn
from training.records import Observation, Scenario, Seat

REASONS = {
    ("Jack", 1): "The Jack never wins when the cards are shown; a bluff now and then may win the pot.",
    ("Jack", 0): "The Jack is the lowest card, so I risk no more chips.",
    ("Queen", 1): "The Queen beats only a bluff with the Jack, but I must not let every bluff through.",
    ("Queen", 0): "The Queen is in the middle: a bet would be answered only by the King.",
    ("King", 1): "The King is the highest card, so I want more chips in the pot.",
    ("King", 0): "The King wins anyway; now and then I wait and let the other bet.",
}


class KuhnScript(Script):
    """Plays the equilibrium."""

    def __init__(self, scenario: Scenario, seat: Seat) -> None:
        super().__init__(scenario, seat)
        self._scenario = scenario

    def answer(self, observation: Observation, chance: Random) -> str:
        where = poker_state(self._scenario, self.seat, observation).information_state_string(self.seat)
        bets = chance.random() < kuhn().policy[where][1]
        return write(
            observation.actions[0], {"choice": KuhnPoker.marks[bets]}, REASONS[CARDS[int(where[0])], int(bets)]
        )


class LeducScript(Script):
    """Raises with a pair or the King, calls with a hand that may still win, folds otherwise."""

    def __init__(self, scenario: Scenario, seat: Seat) -> None:
        super().__init__(scenario, seat)
        self._scenario = scenario

    def answer(self, observation: Observation, chance: Random) -> str:
        state = poker_state(self._scenario, self.seat, observation)
        private, public = state.private_card(self.seat), state.public_card()
        choices = observation.actions[0].args[0].choices
        choice, why = _decide(private, public, raised="FOLD" in choices, bluff=chance.random() < 0.1)
        if choice not in choices:  # the raises of a round are used up
            choice, why = "CALL", f"{why} No further raise is allowed, so I call."
        return write(observation.actions[0], {"choice": choice}, why)


def _decide(private: int, public: int, *, raised: bool, bluff: bool) -> tuple[str, str]:
    """Return the choice and why; `raised`: the other's raise must be answered."""
    name = CARDS[private]
    fold, call, more = LeducPoker.marks
    if private == public:
        return more, f"My {name} pairs the public card, which nothing beats."
    if public < 0 and private == 2:
        return more, "The King is the best card before the public one."
    if bluff and not raised:
        return more, f"A {name} alone is not much, but the other does not know that: I bluff."
    if not raised:
        return call, f"With the {name} I stay in without paying more."
    if (public < 0 and private == 1) or private == 2:
        return call, f"The {name} may still be best, so I pay to see."
    return fold, f"With the {name} against a raise I am most likely behind, so I give up."
