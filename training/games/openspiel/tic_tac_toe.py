"""Tic-tac-toe in words."""

from __future__ import annotations

from collections.abc import Mapping

import pyspiel

from training.games.openspiel.boards import MARKS, PIECES, BoardView
from training.records import Seat

RULES = """\
Tic-tac-toe is played by two on a grid of 3 by 3 cells, counted from 0: (0,0) is the top left, (2,2) the bottom right.
1. {first} has the mark X, {second} the mark O. They take turns; each puts one mark on an empty cell.
2. Three marks of one's own in a row, column or diagonal win the game.
3. A full grid without such a line is a draw.
A choice is written <X(row,column)> or <O(row,column)>. In the grid, _ is an empty cell."""


GUIDE = (
    "{first} has crosses, {second} noughts. You take turns, and each puts one on an empty square.",
    "Three of your own in a row, a column or a diagonal win.",
    "A full board without such a line is a draw.",
)
PLACES = (
    ("top left", "top middle", "top right"),
    ("left", "centre", "right"),
    ("bottom left", "bottom middle", "bottom right"),
)


class TicTacToe(BoardView):
    """3 by 3 cells."""

    game = "tic_tac_toe"
    length = 3
    count = "three"
    pieces = "marks"

    def rules(self) -> str:
        return RULES.format(first=self.names[0], second=self.names[1])

    def choice(self, state: pyspiel.State, seat: Seat, action: int) -> str:
        return f"{MARKS[seat]}({action // 3},{action % 3})"

    def guide(self) -> tuple[str, ...]:
        return tuple(line.format(first=self.names[0], second=self.names[1]) for line in GUIDE)

    def place(self, row: int, column: int) -> str:
        return PLACES[row][column]

    def last(self, state: pyspiel.State) -> tuple[int, int] | None:
        history = state.history()
        return divmod(history[-1], 3) if history else None

    def ask(self, state: pyspiel.State, seat: Seat) -> str:
        return f"Choose an empty square for your {PIECES['marks'][seat]}."

    def deed(self, state: pyspiel.State, seat: Seat, action: int) -> str:
        place = PLACES[action // 3][action % 3]
        return f"puts a {PIECES['marks'][seat]} {'in' if place == 'centre' else 'at'} the {place}"

    def cells(self, state: pyspiel.State, actions: Mapping[int, str]) -> Mapping[tuple[int, int], str]:
        return {divmod(action, 3): choice for action, choice in actions.items()}


ALL_MARKS = tuple(f"{mark}({row},{column})" for mark in MARKS for row in range(3) for column in range(3))
