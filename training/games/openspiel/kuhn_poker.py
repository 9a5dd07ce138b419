"""Kuhn poker in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import pyspiel

from training.games.openspiel.view import POKER, View, line_zone, number
from training.records import Cell, Seat, Viewer, Zone

ALL_MARKS = ("PASS", "BET")
RULES = """\
Kuhn poker is played by two with three cards: King (K) beats Queen (Q) beats Jack (J).
1. {first} and {second} each pay 1 chip into the pot and are dealt one card, which only they see; the third card lies \
aside.
2. {first} begins; they take turns. <BET> pays 1 more chip into the pot, <PASS> pays nothing.
3. Who passes after the other's bet gives the pot to the other, and no card is shown.
4. When both have passed, or both have bet, the cards are shown and the higher one takes the pot.
A player's result is the chips won or lost."""


class KuhnPoker(View):
    """Three cards, one bet."""

    game = "kuhn_poker"

    def deck(self) -> Counter[int]:
        return Counter({0: 1, 1: 1, 2: 1})

    def draws(self) -> int:
        return 2

    def rules(self) -> str:
        return RULES.format(first=self.names[0], second=self.names[1])

    def brief(self, seat: Seat) -> str:
        turn = "acts first" if seat == 0 else "acts second"
        return f"You are {self.names[seat]}, who {turn}; you play against {self.names[1 - seat]}."

    def choice(self, state: pyspiel.State, seat: Seat, action: int) -> str:
        return ALL_MARKS[action]

    def state(self, state: pyspiel.State, viewer: Viewer) -> str:
        cards, actions = _split(state)
        if viewer in (0, 1):
            dealt = f"your card is {POKER.name(cards[viewer])}"
        else:
            seen = [f"{name} has {self._shown(state, seat, viewer)}" for seat, name in enumerate(self.names)]
            dealt = ", ".join(seen)
        said = [f"{self.names[at % 2]} {ALL_MARKS[action]}" for at, action in enumerate(actions)]
        pot = sum(_paid(state, seat) for seat in (0, 1))
        return f"1. Deal: {dealt}.\n2. Moves so far: {', '.join(said) or 'none'}.\n3. Pot: {number(pot, 'chip')}."

    def _shown(self, state: pyspiel.State, seat: Seat, viewer: Viewer) -> str:
        return POKER.name(_split(state)[0][seat]) if self.sees(seat, viewer, state) else "a hidden card"

    def board(self, state: pyspiel.State, viewer: Viewer, choices: Mapping[int, str]) -> tuple[Zone, ...]:
        cards, _ = _split(state)
        hands = [
            line_zone(f"{name}'s card", [POKER.cell(cards[seat] if self.sees(seat, viewer, state) else None)])
            for seat, name in enumerate(self.names)
        ]
        paid = [Cell(text=str(_paid(state, s)), label=f"paid by {self.names[s]}") for s in (0, 1)]
        return (*hands, line_zone("Chips in the pot", paid))

    def showdown(self, state: pyspiel.State) -> str:
        cards, actions = _split(state)
        if not state.is_terminal() or (1 in actions and actions[-1] == 0):
            return ""
        return " ".join(f"{name} shows {POKER.name(cards[seat])}." for seat, name in enumerate(self.names))

    def forfeit(self, state: pyspiel.State, loser: Seat) -> Sequence[float]:
        paid = float(_paid(state, loser))
        return [-paid if seat == loser else paid for seat in (0, 1)]


def _split(state: pyspiel.State) -> tuple[list[int], list[int]]:
    """Return the two cards and the moves."""
    history = state.history()
    return history[:2], history[2:]


def _paid(state: pyspiel.State, seat: Seat) -> int:
    return 1 + sum(_split(state)[1][seat::2])
