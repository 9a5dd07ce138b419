"""Leduc poker in words. Suits never matter, so cards are ranks: OpenSpiel's game with `suit_isomorphism`."""

from __future__ import annotations

from collections import Counter

import pyspiel

from training.games.openspiel.poker import Poker, cell, written
from training.games.openspiel.view import line_zone, params
from training.games.prose import count
from training.records import Seat, Viewer
from training.views import Cells

CHIPS = 100
"""Number of chips that OpenSpiel gives each player before the ante."""
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
        money: float = state.money()[seat]
        return CHIPS - round(money)

    def folded(self, state: pyspiel.State) -> bool:
        return 0 in (*state.round1(), *state.round2())

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

    def common(self, state: pyspiel.State) -> tuple[Cells, ...]:
        public = state.public_card()
        return (line_zone("Public card", [cell(public if public >= 0 else None)]),)
