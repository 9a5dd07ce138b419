"""Connect Four in words."""

from __future__ import annotations

from collections.abc import Mapping

import pyspiel

from training.games.openspiel.boards import MARKS, BoardView, grid
from training.records import Seat

COLUMNS = 7
RULES = """\
Connect Four is played by two on an upright grid of 6 rows and 7 columns, 0 being the leftmost column.
1. {first} has the mark X, {second} the mark O. They take turns; each drops one mark into a column that is not full.
2. A mark falls to the lowest empty cell of its column.
3. Four marks of one's own in a line, along a row, a column or a diagonal, win the game.
4. A full grid without such a line is a draw.
A choice is written <X(column)> or <O(column)>. In the grid, _ is an empty cell, and the last line is the bottom."""


class ConnectFour(BoardView):
    """6 rows of 7 columns."""

    game = "connect_four"

    def rules(self) -> str:
        return RULES.format(first=self.names[0], second=self.names[1])

    def choice(self, state: pyspiel.State, seat: Seat, action: int) -> str:
        return f"{MARKS[seat]}({action})"

    def cells(self, state: pyspiel.State, actions: Mapping[int, str]) -> Mapping[tuple[int, int], str]:
        rows = grid(state)
        return {(max(r for r, row in enumerate(rows) if row[a] == "_"), a): choice for a, choice in actions.items()}


ALL_MARKS = tuple(f"{mark}({column})" for mark in MARKS for column in range(COLUMNS))
