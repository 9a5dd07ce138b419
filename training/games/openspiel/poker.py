"""The shared view of Kuhn and Leduc poker: two seats with one hidden card each take turns to pay into a pot."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar

import pyspiel

from training.games.openspiel.view import View, line_zone
from training.records import ALL, Seat, Viewer
from training.views import Cell, Cells

CARDS = ("Jack", "Queen", "King")
"""Names of the ranks, the lowest first."""


def written(rank: int) -> str:
    """Return a card in words: `Jack (J)`."""
    return f"{CARDS[rank]} ({CARDS[rank][0]})"


def rank(text: str) -> int:
    """Return the rank of a card in words."""
    return [written(each) for each in range(len(CARDS))].index(text)


def cell(card: int | None) -> Cell:
    """Return a card on the table; None is face down."""
    return Cell(text="?", label="face down") if card is None else Cell(text=CARDS[card][0], label=CARDS[card])


class Poker(View):
    """A game of two with one card per seat. `marks` are the texts of OpenSpiel's actions, in order."""

    marks: ClassVar[tuple[str, ...]]
    template: ClassVar[str]

    @abstractmethod
    def card(self, state: pyspiel.State, seat: Seat) -> int:
        """Return the rank of a seat's card."""

    @abstractmethod
    def paid(self, state: pyspiel.State, seat: Seat) -> int:
        """Return the chips that a seat has paid into the pot."""

    @abstractmethod
    def folded(self, state: pyspiel.State) -> bool:
        """Return whether a player has folded."""

    def rules(self) -> str:
        return self.template.format(first=self.names[0], second=self.names[1])

    def choice(self, state: pyspiel.State, seat: Seat, action: int) -> str:
        return self.marks[action]

    def sees(self, seat: Seat, viewer: Viewer, state: pyspiel.State) -> bool:
        """Return whether `viewer` may see the card of `seat`: its own, any after a showdown, or any with full view."""
        return viewer in (seat, ALL, len(self.names)) or bool(self.showdown(state))

    def dealt(self, state: pyspiel.State, viewer: Viewer) -> str:
        """Return the deal as far as `viewer` knows it, as part of a sentence."""
        if viewer in (0, 1):
            return f"your card is {written(self.card(state, viewer))}"
        hands = [
            written(self.card(state, seat)) if self.sees(seat, viewer, state) else "a hidden card" for seat in (0, 1)
        ]
        return ", ".join(f"{name} has {card}" for name, card in zip(self.names, hands, strict=True))

    def moves(self, actions: Sequence[int]) -> str:
        """Return the moves of one round, which the first seat begins; empty if there are none."""
        return ", ".join(f"{self.names[at % 2]} {self.marks[action]}" for at, action in enumerate(actions))

    def board(self, state: pyspiel.State, viewer: Viewer, choices: Mapping[int, str]) -> tuple[Cells, ...]:
        hands = [
            line_zone(f"{name}'s card", [cell(self.card(state, s) if self.sees(s, viewer, state) else None)])
            for s, name in enumerate(self.names)
        ]
        paid = [Cell(text=str(self.paid(state, s)), label=f"paid by {self.names[s]}") for s in (0, 1)]
        return (*hands, *self.common(state), line_zone("Chips in the pot", paid))

    def common(self, state: pyspiel.State) -> tuple[Cells, ...]:
        """Return the public cards."""
        return ()

    def showdown(self, state: pyspiel.State) -> str:
        if not state.is_terminal() or self.folded(state):
            return ""
        return " ".join(f"{name} shows {written(self.card(state, seat))}." for seat, name in enumerate(self.names))

    def forfeit(self, state: pyspiel.State, loser: Seat) -> Sequence[float]:
        paid = float(self.paid(state, loser))
        return [-paid if seat == loser else paid for seat in (0, 1)]
