"""The shared view of tic-tac-toe and Connect Four: two marks on a public grid."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence

import pyspiel

from training.games.openspiel.view import View
from training.records import Seat, Viewer
from training.views import Cell, Cells

MARKS = ("X", "O")
_SYMBOLS = {"x": "X", "o": "O", ".": "_"}


def grid(state: pyspiel.State) -> list[str]:
    """Return the rows from the top, one character per cell: X, O, or _ for an empty one."""
    return ["".join(_SYMBOLS[cell] for cell in row) for row in str(state).split()]


class BoardView(View):
    """A grid game of X against O."""

    def brief(self, seat: Seat) -> str:
        return (
            f"You are {self.names[seat]} and your mark is {MARKS[seat]}; {self.names[1 - seat]} has {MARKS[1 - seat]}."
        )

    def state(self, state: pyspiel.State, viewer: Viewer) -> str:
        return "\n".join(" ".join(row) for row in grid(state))

    def forfeit(self, state: pyspiel.State, loser: Seat) -> Sequence[float]:
        return [-1.0 if seat == loser else 1.0 for seat in (0, 1)]

    @abstractmethod
    def cells(self, state: pyspiel.State, actions: Mapping[int, str]) -> Mapping[tuple[int, int], str]:
        """Return the choices by the cell (row, column) that they fill."""

    def board(self, state: pyspiel.State, viewer: Viewer, choices: Mapping[int, str]) -> tuple[Cells, ...]:
        legal = self.cells(state, choices)
        rows = tuple(
            tuple(_cell(mark, at, down, legal.get((down, at), "")) for at, mark in enumerate(row))
            for down, row in enumerate(grid(state))
        )
        return (Cells(title="Board", rows=rows),)


def _cell(mark: str, column: int, row: int, choice: str) -> Cell:
    content = "empty" if mark == "_" else mark
    return Cell(text="" if mark == "_" else mark, label=f"row {row}, column {column}: {content}", choice=choice)
