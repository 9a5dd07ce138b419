"""Tic-tac-toe in words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import pyspiel

from training.games.openspiel.boards import MARKS, PIECES, BoardView, Place, Squares, direction
from training.games.openspiel.decisions import Decision, JudgedMove
from training.games.openspiel.minimax import judged
from training.records import Seat, Viewer
from training.views import Board

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
    ("in the top left corner", "at the top", "in the top right corner"),
    ("on the left", "in the middle", "on the right"),
    ("in the bottom left corner", "at the bottom", "in the bottom right corner"),
)
ROWS = ("top row", "middle row", "bottom row")
COLUMNS = ("left column", "middle column", "right column")


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

    def where(self, action: int) -> str:
        return PLACES[action // 3][action % 3]

    def line(self, line: Squares) -> str:
        row, column = line[0]
        names = {"across": f"in the {ROWS[row]}", "down": f"in the {COLUMNS[column]}", "diagonal": "on a diagonal"}
        return f"three {names[direction(line)]}"

    def last(self, state: pyspiel.State) -> Place | None:
        moves = state.history()
        return divmod(moves[-1], 3) if moves else None

    def zones(self, state: pyspiel.State, viewer: Viewer, choices: Mapping[int, str]) -> tuple[Board, ...]:
        """Return the board; a legal square is a button."""
        (board,) = super().zones(state, viewer, choices)
        rows = tuple(
            tuple(
                square.model_copy(update={"choice": choices.get(3 * row + column, "")})
                for column, square in enumerate(squares)
            )
            for row, squares in enumerate(board.rows)
        )
        return (board.model_copy(update={"rows": rows}),)

    def ask(self, state: pyspiel.State, seat: Seat) -> str:
        return f"Choose an empty square for your {PIECES['marks'][seat]}."

    def deed(self, state: pyspiel.State, seat: Seat, action: int) -> str:
        return f"puts a {PIECES['marks'][seat]} {self.where(action)}"

    title = "The moves against perfect play"
    method = "Every position is solved, so each judgment is certain."

    def judge(self, moves: Iterable[Decision]) -> Iterator[JudgedMove]:
        """Yield each move against perfect play."""
        return map(judged, moves)


ALL_MARKS = tuple(f"{mark}({row},{column})" for mark in MARKS for row in range(3) for column in range(3))
