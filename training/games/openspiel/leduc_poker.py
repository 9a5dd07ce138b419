"""Leduc poker in words. Suits never matter, so cards are ranks: OpenSpiel's game with `suit_isomorphism`."""

from __future__ import annotations

from collections import Counter

import pyspiel

from training.games.openspiel.equilibria import REVIEW_ITERATIONS, Solution, leduc
from training.games.openspiel.poker import CARDS, Poker, drawn, written
from training.games.openspiel.view import params
from training.games.prose import count, listed
from training.records import Seat, Viewer
from training.views import Hand

FOLD, CALL, RAISE = range(3)
STAKES = (2, 4)
"""Chips that a raise adds in the first and in the second round."""
RULES = """\
Leduc poker is played by two with six cards: two Kings (K), two Queens (Q), two Jacks (J).
1. {first} and {second} each pay 1 chip into the pot and are dealt one card, which only they see.
2. There are two rounds of betting; {first} begins each. In a turn a player may
   - <CALL>: pay as much as the other has paid, which may be nothing;
   - <RAISE>: do that and pay 2 more chips in the first round, 4 in the second; at most two raises a round;
   - <FOLD>, after the other's raise: give the pot to the other.
3. A round ends when a raise is called or both call. After the first round a public card is turned up.
4. After the second round the cards are shown: a card of the public card's rank wins, otherwise the higher rank; equal \
cards share the pot.
A player's result is the chips won or lost."""


class LeducPoker(Poker):
    """Six cards, two rounds, one public card."""

    game = "leduc_poker"
    equilibrium = (
        f"The equilibrium is the average policy of OpenSpiel's CFR+ after {REVIEW_ITERATIONS} iterations. Against it, "
        "nobody can win more than about 0.0012 chips per game."
    )
    marks = ("FOLD", "CALL", "RAISE")
    template = RULES

    def parameters(self) -> tuple[tuple[str, int | bool], ...]:
        return params(suit_isomorphism=True)

    def deck(self) -> Counter[int]:
        return Counter({0: 2, 1: 2, 2: 2})

    def draws(self) -> int:
        return 3

    def brief(self, seat: Seat) -> str:
        turn = "acts first" if seat == 0 else "acts second"
        return f"You are {self.names[seat]}, who {turn} in each round; you play against {self.names[1 - seat]}."

    def card(self, state: pyspiel.State, seat: Seat) -> int:
        return int(state.private_card(seat))

    def paid(self, state: pyspiel.State, seat: Seat) -> int:
        """Return the chips by the moves: at the end OpenSpiel's purses hold the pot as well."""
        chips = [1, 1]
        for moves, raised in zip((state.round1(), state.round2()), STAKES, strict=True):
            for at, move in enumerate(moves):
                if move != FOLD:
                    chips[at % 2] = max(chips) + (raised if move == RAISE else 0)
        return chips[seat]

    def folded(self, state: pyspiel.State) -> bool:
        return FOLD in (*state.round1(), *state.round2())

    def state(self, state: pyspiel.State, viewer: Viewer) -> str:
        public = state.public_card()
        turned = f"the public card is {written(public)}" if public >= 0 else "no public card yet"
        chips = ", ".join(f"{name} {count(self.paid(state, seat), 'chip')}" for seat, name in enumerate(self.names))
        lines = [
            f"Deal: {self.dealt(state, viewer)}; {turned}.",
            f"First round: {self.moves(state.round1()) or 'no moves'}.",
            *([f"Second round: {self.moves(state.round2()) or 'no moves'}."] if public >= 0 else []),
            f"Paid into the pot: {chips}.",
        ]
        return "\n".join(f"{at}. {line}" for at, line in enumerate(lines, 1))

    def common(self, state: pyspiel.State) -> tuple[Hand, ...]:
        public = state.public_card()
        return (Hand(title="Public card", cards=(drawn(public if public >= 0 else None),)),)

    def guide(self) -> tuple[str, ...]:
        return (
            "There are six cards: two Kings, two Queens, two Jacks.",
            f"{self.names[0]} and {self.names[1]} pay 1 chip each and get one card, which only they see.",
            f"There are two rounds of betting, {self.names[0]} begins each. You call, raise, or fold after a raise.",
            "A raise is 2 chips in the first round and 4 in the second; there are at most two a round.",
            "After the first round a public card is turned up.",
            "At the end a card like the public one wins, otherwise the higher one; equal cards share the pot.",
        )

    def _due(self, state: pyspiel.State, seat: Seat) -> int:
        """Return the chips that a seat must pay to stay in."""
        return self.paid(state, 1 - seat) - self.paid(state, seat)

    def _raise(self, state: pyspiel.State) -> int:
        return STAKES[state.public_card() >= 0]

    def phase(self, state: pyspiel.State) -> str:
        return "First round" if state.public_card() < 0 else "Second round"

    def ask(self, state: pyspiel.State, seat: Seat) -> str:
        due, legal = self._due(state, seat), state.legal_actions()
        words = [f"call for {count(due, 'chip')}" if due else "check", *(["raise"] if RAISE in legal else [])]
        words += ["fold"] if FOLD in legal else []
        return f"{listed(words, 'or').capitalize()}."

    def button(self, state: pyspiel.State, seat: Seat, action: int) -> str:
        due, raised = self._due(state, seat), self._raise(state)
        labels = ("Fold", f"Call: pay {count(due, 'chip')}" if due else "Check", f"Raise: pay {due + raised} chips")
        return labels[action]

    def deed(self, state: pyspiel.State, seat: Seat, action: int) -> str:
        due, raised = self._due(state, seat), self._raise(state)
        pays = self.paid(state, seat) + due + raised
        return ("folds", f"calls for {count(due, 'chip')}" if due else "checks", f"raises to {pays} chips")[action]

    def solution(self) -> Solution:
        return leduc()

    def moment(self, state: pyspiel.State) -> str:
        if self.folded(state):
            return super().moment(state)
        public, cards = state.public_card(), [self.card(state, seat) for seat in (0, 1)]
        if public in cards and cards[0] != cards[1]:
            pair = cards.index(public)
            return (
                f"{self.names[pair]}'s {CARDS[public]} makes a pair with the public card; "
                f"{self.names[1 - pair]} had a {CARDS[cards[1 - pair]]}."
            )
        return f"{super().moment(state)} The public card was a {CARDS[public]}."
