"""Tic-tac-toe in words."""

from __future__ import annotations

from collections.abc import Mapping

import pyspiel

from training.games.openspiel.boards import MARKS, BoardView
from training.records import Seat

RULES = """\
Tic-tac-toe is played by two on a grid of 3 by 3 cells, counted from 0: (0,0) is the top left, (2,2) the bottom right.
1. {first} has the mark X, {second} the mark O. They take turns; each puts one mark on an empty cell.
2. Three marks of one's own in a row, column or diagonal win the game.
3. A full grid without such a line is a draw.
A choice is written <X(row,column)> or <O(row,column)>. In the grid, _ is an empty cell."""


class TicTacToe(BoardView):
    """3 by 3 cells."""

    game = "tic_tac_toe"

    def rules(self) -> str:
        return RULES.format(first=self.names[0], second=self.names[1])

    def choice(self, state: pyspiel.State, seat: Seat, action: int) -> str:
        return f"{MARKS[seat]}({action // 3},{action % 3})"

    def cells(self, state: pyspiel.State, actions: Mapping[int, str]) -> Mapping[tuple[int, int], str]:
        return {divmod(action, 3): choice for action, choice in actions.items()}


ALL_MARKS = tuple(f"{mark}({row},{column})" for mark in MARKS for row in range(3) for column in range(3))
