"""Connect Four in words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import pyspiel

from training.games.openspiel.boards import MARKS, PIECES, BoardView, Place, Squares, direction, grid
from training.games.openspiel.decisions import Decision, JudgedMove
from training.games.openspiel.mcts import SIMULATIONS, judged
from training.records import Seat, Viewer
from training.views import Board, Option

ROWS, COLUMNS = 6, 7
NUMBERS = {4: "four", 5: "five", 6: "six", 7: "seven"}
RULES = """\
Connect Four is played by two on an upright grid of 6 rows and 7 columns, 0 being the leftmost column.
1. {first} has the mark X, {second} the mark O. They take turns; each drops one mark into a column that is not full.
2. A mark falls to the lowest empty cell of its column.
3. Four marks of one's own in a line, along a row, a column or a diagonal, win the game.
4. A full grid without such a line is a draw.
A choice is written <X(column)> or <O(column)>. In the grid, _ is an empty cell, and the last line is the bottom."""


GUIDE = (
    "{first} has full discs, {second} rings. You take turns, and each drops one into a column that is not full.",
    "A disc falls to the lowest free place of its column.",
    "Four of your own in a line, across, from top to bottom or diagonally, win.",
    "A full board without such a line is a draw.",
)


class ConnectFour(BoardView):
    """6 rows of 7 columns."""

    game = "connect_four"
    length = 4
    count = "four"
    pieces = "discs"

    def rules(self) -> str:
        return RULES.format(first=self.names[0], second=self.names[1])

    def choice(self, state: pyspiel.State, seat: Seat, action: int) -> str:
        return f"{MARKS[seat]}({action})"

    def guide(self) -> tuple[str, ...]:
        return tuple(line.format(first=self.names[0], second=self.names[1]) for line in GUIDE)

    def place(self, row: int, column: int) -> str:
        return f"column {column + 1}, place {ROWS - row} from below"

    def where(self, action: int) -> str:
        return f"in column {action + 1}"

    def line(self, line: Squares) -> str:
        names = {"across": "side by side", "down": "on top of each other", "diagonal": "on a diagonal"}
        return f"{NUMBERS[len(line)]} {names[direction(line)]}"

    def last(self, state: pyspiel.State) -> Place | None:
        moves = state.history()
        if not moves:
            return None
        return min(row for row, marks in enumerate(grid(state)) if marks[moves[-1]] != "_"), moves[-1]

    def zones(self, state: pyspiel.State, viewer: Viewer, choices: Mapping[int, str]) -> tuple[Board, ...]:
        """Return the board with a button above each column that is not full."""
        (board,) = super().zones(state, viewer, choices)
        columns = tuple(Option(label=f"Column {at + 1}", choice=choices.get(at, "")) for at in range(COLUMNS))
        return (board.model_copy(update={"columns": columns}),)

    def ask(self, state: pyspiel.State, seat: Seat) -> str:
        return "Choose a column for your disc."

    def deed(self, state: pyspiel.State, seat: Seat, action: int) -> str:
        return f"drops a {PIECES['discs'][seat]} into column {action + 1}"

    title = "The moves against an engine"
    method = (
        f"The engine is OpenSpiel's Monte Carlo tree search with {SIMULATIONS:,} simulations for each position. Where "
        "it could prove the result, a judgment is certain; a percentage is an estimate from random games."
    )

    def judge(self, moves: Iterable[Decision]) -> Iterator[JudgedMove]:
        """Yield each move against the engine's best."""
        return judged(moves)


ALL_MARKS = tuple(f"{mark}({column})" for mark in MARKS for column in range(COLUMNS))
