"""Leduc poker in words. Suits never matter, so cards are ranks: OpenSpiel's game with `suit_isomorphism`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import pyspiel

from training.games.openspiel.view import POKER, View, line_zone, number, params
from training.records import Cell, Seat, Viewer, Zone

ALL_MARKS = ("FOLD", "CALL", "RAISE")
CHIPS = 100
"""What OpenSpiel gives each player before the ante."""
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


class LeducPoker(View):
    """Six cards, two rounds, one public card."""

    game = "leduc_poker"

    def parameters(self) -> tuple[tuple[str, int | bool], ...]:
        return params(suit_isomorphism=True)

    def deck(self) -> Counter[int]:
        return Counter({0: 2, 1: 2, 2: 2})

    def draws(self) -> int:
        return 3

    def rules(self) -> str:
        return RULES.format(first=self.names[0], second=self.names[1])

    def brief(self, seat: Seat) -> str:
        turn = "acts first" if seat == 0 else "acts second"
        return f"You are {self.names[seat]}, who {turn} in each round; you play against {self.names[1 - seat]}."

    def choice(self, state: pyspiel.State, seat: Seat, action: int) -> str:
        return ALL_MARKS[action]

    def state(self, state: pyspiel.State, viewer: Viewer) -> str:
        if viewer in (0, 1):
            dealt = f"your card is {POKER.name(state.private_card(viewer))}"
        else:
            seen = [f"{name} has {self._shown(state, seat, viewer)}" for seat, name in enumerate(self.names)]
            dealt = ", ".join(seen)
        public = state.public_card()
        turned = f"the public card is {POKER.name(public)}" if public >= 0 else "no public card yet"
        paid = [CHIPS - round(money) for money in state.money()]
        chips = ", ".join(f"{name} {number(n, 'chip')}" for name, n in zip(self.names, paid, strict=True))
        lines = [f"Deal: {dealt}; {turned}.", f"First round: {self._moves(state.round1())}."]
        if public >= 0:
            lines.append(f"Second round: {self._moves(state.round2())}.")
        lines.append(f"Paid into the pot: {chips}.")
        return "\n".join(f"{at}. {line}" for at, line in enumerate(lines, 1))

    def _moves(self, actions: Sequence[int]) -> str:
        return ", ".join(f"{self.names[at % 2]} {ALL_MARKS[action]}" for at, action in enumerate(actions)) or "no moves"

    def _shown(self, state: pyspiel.State, seat: Seat, viewer: Viewer) -> str:
        return POKER.name(state.private_card(seat)) if self.sees(seat, viewer, state) else "a hidden card"

    def board(self, state: pyspiel.State, viewer: Viewer, choices: Mapping[int, str]) -> tuple[Zone, ...]:
        hands = [
            line_zone(f"{name}'s card", [POKER.cell(state.private_card(s) if self.sees(s, viewer, state) else None)])
            for s, name in enumerate(self.names)
        ]
        public = state.public_card()
        turned = [POKER.cell(public if public >= 0 else None)]
        paid = [Cell(text=str(_paid(state, s)), label=f"paid by {self.names[s]}") for s in (0, 1)]
        return (*hands, line_zone("Public card", turned), line_zone("Chips in the pot", paid))

    def showdown(self, state: pyspiel.State) -> str:
        if not state.is_terminal() or 0 in (*state.round1(), *state.round2()):
            return ""
        return " ".join(f"{name} shows {POKER.name(state.private_card(seat))}." for seat, name in enumerate(self.names))

    def forfeit(self, state: pyspiel.State, loser: Seat) -> Sequence[float]:
        paid = float(_paid(state, loser))
        return [-paid if seat == loser else paid for seat in (0, 1)]


def _paid(state: pyspiel.State, seat: Seat) -> int:
    money: float = state.money()[seat]
    return CHIPS - round(money)
