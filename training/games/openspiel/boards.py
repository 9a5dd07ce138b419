"""The shared view of tic-tac-toe and Connect Four: two marks on a public grid."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal

import pyspiel

from training.games.openspiel.view import View
from training.records import Seat, Viewer
from training.views import Board, Brief, Square

MARKS = ("X", "O")
PIECES = {"marks": ("cross", "nought"), "discs": ("full disc", "ring")}
"""The pieces of both seats in words."""
_SYMBOLS = {"x": "X", "o": "O", ".": "_"}


def grid(state: pyspiel.State) -> list[str]:
    """Return the rows from the top, one character per cell: X, O, or _ for an empty one."""
    return ["".join(_SYMBOLS[cell] for cell in row) for row in str(state).split()]


class BoardView(View):
    """A grid game of X against O.

    `length` pieces in a line win, `count` in words; `pieces` says how they are drawn.
    """

    length: ClassVar[int]
    count: ClassVar[str]
    pieces: ClassVar[Literal["marks", "discs"]]

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

    @abstractmethod
    def place(self, row: int, column: int) -> str:
        """Return a square in words, for screen readers."""

    def zones(self, state: pyspiel.State, viewer: Viewer, choices: Mapping[int, str]) -> tuple[Board, ...]:
        legal = self.cells(state, choices)
        marks = grid(state)
        last, line = self.last(state), won(marks, self.length)
        rows = []
        for down, row in enumerate(marks):
            places = [(down, at) for at in range(len(row))]
            rows.append(
                tuple(
                    self._square(marks, place, place == last, place in line, legal.get(place, "")) for place in places
                )
            )
        return (Board(title="Board", rows=tuple(rows), pieces=self.pieces),)

    def _square(self, marks: Sequence[str], place: tuple[int, int], last: bool, won: bool, choice: str) -> Square:
        mark = marks[place[0]][place[1]]
        seat = MARKS.index(mark) if mark in MARKS else None
        content = "empty" if seat is None else f"{PIECES[self.pieces][seat]} of {self.names[seat]}"
        label = f"{self.place(*place)}: {content}{', the newest' if last else ''}{', part of the line' if won else ''}"
        return Square(seat=seat, label=label, last=last, won=won, choice=choice)

    @abstractmethod
    def last(self, state: pyspiel.State) -> tuple[int, int] | None:
        """Return the square of the newest piece as (row, column); None on an empty board."""

    def private(self, state: pyspiel.State, seat: Seat) -> Brief:
        return Brief(title=f"You play {plural(PIECES[self.pieces][seat])}")

    def moment(self, state: pyspiel.State) -> str:
        marks = grid(state)
        line = won(marks, self.length)
        if not line:
            return "The board is full, and nobody has a line."
        row, column = line[0]
        seat = MARKS.index(marks[row][column])
        return f"{self.names[seat]} has {self.count} {plural(PIECES[self.pieces][seat])} in a line, {_direction(line)}."


def won(marks: Sequence[str], length: int) -> tuple[tuple[int, int], ...]:
    """Return the squares of all complete lines of `length` or more equal marks, in order; empty without any."""
    squares: set[tuple[int, int]] = set()
    for row, cells in enumerate(marks):
        for column, mark in enumerate(cells):
            for down, right in ((0, 1), (1, 0), (1, 1), (1, -1)):
                line = [(row + down * at, column + right * at) for at in range(length)]
                if mark != "_" and all(_at(marks, *square) == mark for square in line):
                    squares |= set(line)
    return tuple(sorted(squares))


def plural(piece: str) -> str:
    """Return several of a piece: crosses, noughts, full discs, rings."""
    return f"{piece}es" if piece.endswith("s") else f"{piece}s"


def _at(marks: Sequence[str], row: int, column: int) -> str:
    return marks[row][column] if 0 <= row < len(marks) and 0 <= column < len(marks[row]) else ""


def _direction(line: Sequence[tuple[int, int]]) -> str:
    """Return the direction of a line in words; of several lines, that there are several."""
    rows, columns = {row for row, _ in line}, {column for _, column in line}
    if len(rows) == 1:
        return "across"
    if len(columns) == 1:
        return "from top to bottom"
    return "diagonally" if len(rows) == len(columns) == len(line) else "in two directions"
