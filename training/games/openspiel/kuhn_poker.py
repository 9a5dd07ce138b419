"""Kuhn poker in words."""

from __future__ import annotations

from collections import Counter

import pyspiel

from training.games.openspiel.equilibria import Solution, kuhn
from training.games.openspiel.poker import Poker
from training.games.prose import count
from training.records import Seat, Viewer

RULES = """\
Kuhn poker is played by two with three cards: King (K) beats Queen (Q) beats Jack (J).
1. {first} and {second} each pay 1 chip into the pot and are dealt one card, which only they see; the third card lies \
aside.
2. {first} begins; they take turns. <BET> pays 1 more chip into the pot, <PASS> pays nothing.
3. Who passes after the other's bet gives the pot to the other, and no card is shown.
4. When both have passed, or both have bet, the cards are shown and the higher one takes the pot.
A player's result is the chips won or lost."""


class KuhnPoker(Poker):
    """Three cards, one bet."""

    game = "kuhn_poker"
    equilibrium = "The equilibrium is exact: of Kuhn's, the one whose first player bets a Jack with probability 1/6."
    marks = ("PASS", "BET")
    template = RULES

    def deck(self) -> Counter[int]:
        return Counter({0: 1, 1: 1, 2: 1})

    def draws(self) -> int:
        return 2

    def brief(self, seat: Seat) -> str:
        turn = "acts first" if seat == 0 else "acts second"
        return f"You are {self.names[seat]}, who {turn}; you play against {self.names[1 - seat]}."

    def card(self, state: pyspiel.State, seat: Seat) -> int:
        return int(state.history()[seat])

    def paid(self, state: pyspiel.State, seat: Seat) -> int:
        return 1 + sum(_moves(state)[seat::2])

    def folded(self, state: pyspiel.State) -> bool:
        moves = _moves(state)
        return 1 in moves and moves[-1] == 0

    def guide(self) -> tuple[str, ...]:
        return (
            "There are three cards: the King beats the Queen, and the Queen beats the Jack.",
            f"{self.names[0]} and {self.names[1]} pay 1 chip each and get one card, which only they see.",
            f"{self.names[0]} begins. In your turn you bet 1 more chip, or pay nothing.",
            "Who pays nothing after the other's bet folds: the other takes the pot, and no card is shown.",
            "When both have bet, or neither has, the higher card takes the pot.",
        )

    def ask(self, state: pyspiel.State, seat: Seat) -> str:
        if self._faces_bet(state):
            return f"Call {self.names[1 - seat]}'s bet for 1 more chip, or fold."
        return "Bet 1 more chip, or check."

    def button(self, state: pyspiel.State, seat: Seat, action: int) -> str:
        bet, nothing = ("Call: pay 1 more chip", "Fold") if self._faces_bet(state) else ("Bet 1 more chip", "Check")
        return bet if action else nothing

    def deed(self, state: pyspiel.State, seat: Seat, action: int) -> str:
        bet, nothing = ("calls", "folds") if self._faces_bet(state) else ("bets 1 more chip", "checks")
        return bet if action else nothing

    def _faces_bet(self, state: pyspiel.State) -> bool:
        """Return whether the other has bet."""
        return 1 in _moves(state)

    def state(self, state: pyspiel.State, viewer: Viewer) -> str:
        moves = self.moves(_moves(state)) or "none"
        pot = count(sum(self.paid(state, seat) for seat in (0, 1)), "chip")
        return f"1. Deal: {self.dealt(state, viewer)}.\n2. Moves so far: {moves}.\n3. Pot: {pot}."

    def solution(self) -> Solution:
        return kuhn()


def _moves(state: pyspiel.State) -> list[int]:
    """Return the moves after the deal: 1 for a bet, 0 for a pass."""
    moves: list[int] = state.history()[2:]
    return moves
