"""The shared view of tic-tac-toe and Connect Four: two marks on a public grid."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import ClassVar, Literal

import pyspiel

from training.analysis import Mark, Review, ReviewedMove, tallies
from training.games.openspiel.decisions import Decision, Evaluation, JudgedMove, decisions
from training.games.openspiel.view import View
from training.games.prose import count, listed
from training.records import Seat, Viewer
from training.views import Board, Brief, Square

MARKS = ("X", "O")
PIECES = {"marks": ("cross", "nought"), "discs": ("full disc", "ring")}
"""The pieces of both seats in words."""
Place = tuple[int, int]
"""A square as (row, column) from the top left."""
Squares = tuple[Place, ...]
_SYMBOLS = {"x": "X", "o": "O", ".": "_"}


def grid(state: pyspiel.State) -> list[str]:
    """Return the rows from the top, one character per cell: X, O, or _ for an empty one."""
    return ["".join(_SYMBOLS[cell] for cell in row) for row in str(state).split()]


class BoardView(View):
    """A grid game of X against O.

    `length` pieces in a line win, `count` in words; `pieces` says how they are drawn. `title` and `method` are those of
    the review of an ended game.
    """

    title: ClassVar[str]
    method: ClassVar[str]
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

    # --- for people ---

    @abstractmethod
    def place(self, row: int, column: int) -> str:
        """Return a square in words, for screen readers."""

    @abstractmethod
    def where(self, action: int) -> str:
        """Return where a move puts its piece, in words to be read after the piece."""

    @abstractmethod
    def line(self, line: Squares) -> str:
        """Return a line that won in words: `three in the top row`."""

    @abstractmethod
    def last(self, state: pyspiel.State) -> Place | None:
        """Return the square of the newest piece; None on an empty board."""

    def zones(self, state: pyspiel.State, viewer: Viewer, choices: Mapping[int, str]) -> tuple[Board, ...]:
        """Return the board; squares have no buttons unless a game gives them some."""
        marks, last = grid(state), self.last(state)
        lines = won(marks, self.length)
        in_line = {square for line in lines for square in line}
        rows = tuple(
            tuple(
                self._square(mark, (down, at), (down, at) == last, (down, at) in in_line) for at, mark in enumerate(row)
            )
            for down, row in enumerate(marks)
        )
        ends = tuple((line[0], line[-1]) for line in lines)
        return (Board(title="Board", rows=rows, pieces=self.pieces, lines=ends),)

    def _square(self, mark: str, place: Place, last: bool, in_line: bool) -> Square:
        seat = MARKS.index(mark) if mark in MARKS else None
        content = "empty" if seat is None else f"{PIECES[self.pieces][seat]} of {self.names[seat]}"
        label = (
            f"{self.place(*place)}: {content}{', the newest' if last else ''}{', part of the line' if in_line else ''}"
        )
        return Square(seat=seat, label=label, last=last, won=in_line)

    def private(self, state: pyspiel.State, seat: Seat) -> Brief:
        mine, theirs = PIECES[self.pieces][seat], PIECES[self.pieces][1 - seat]
        text = [f"{self.names[1 - seat]} plays {plural(theirs)}."]
        if opening := self.settings.opening:
            pieces = (f"a {PIECES[self.pieces][at % 2]} {self.where(action)}" for at, action in enumerate(opening))
            text.append(f"The board begins with {listed(pieces)}.")
        return Brief(title=f"You play {plural(mine)}", text=tuple(text))

    def headline(self, state: pyspiel.State, result: Sequence[float], viewer: Viewer) -> str:
        marks = grid(state)
        lines = won(marks, self.length)
        if not lines:
            return super().headline(state, result, viewer)
        row, column = lines[0][0]
        winner = MARKS.index(marks[row][column])
        made = self.line(lines[0]) if len(lines) == 1 else f"{self.count} in two lines at once"
        name = self.names[winner]
        if viewer in (0, 1):
            return f"You win: {made}." if viewer == winner else f"You lose: {name} has {made}."
        return f"{name} wins: {made}."

    def moment(self, state: pyspiel.State) -> str:
        if not won(grid(state), self.length):
            return "The board is full, and nobody has a line."
        moves = state.history()
        seat = (len(moves) - 1) % 2
        piece = PIECES[self.pieces][seat]
        made = len(moves) - len(self.settings.opening)
        return f"{self.names[seat]}'s {piece} {self.where(moves[-1])} completed the line in move {made}."

    # --- afterwards ---

    @abstractmethod
    def judge(self, moves: Iterable[Decision]) -> Iterator[JudgedMove]:
        """Yield each move with its evaluation."""

    def analysis(self, state: pyspiel.State) -> tuple[Review, ...]:
        """Return every move after the opening, judged, with the course of the game's value."""
        judged = list(self.judge(decisions(state, len(self.settings.opening))))
        if not judged:
            return ()
        moves = tuple(self._reviewed(move) for move in judged)
        proven = sum(move.proven for move in judged)
        return (
            Review(
                title=self.title,
                method=f"{self.method} {proven} of {count(len(moves), 'move')} are judged with certainty.",
                moves=moves,
                tallies=tallies(moves, 2),
                curve=f"Who is ahead after each move: {self.names[0]} above, {self.names[1]} below",
            ),
        )

    def _reviewed(self, judged: JudgedMove) -> ReviewedMove:
        move, before, after = judged.decision, _in_words(judged.before), _in_words(judged.after)
        mark = _mark(judged)
        facts = [after if before == after else f"{after}, before it {before}"]
        if mark:
            facts.append(f"better: {listed([self.where(action) for action in judged.best], 'or')}")
        return ReviewedMove(
            step=move.step,
            seat=move.seat,
            text=self.deed(move.before, move.seat, move.action),
            mark=mark,
            detail=tuple(facts),
            value=(judged.after if move.seat == 0 else judged.after.of_other()).result,
        )


LIMITS: tuple[tuple[float, Mark], ...] = ((0.6, "blunder"), (0.4, "mistake"), (0.2, "inaccuracy"))
"""Marks by the least that a move gave away of the result, which lies between -1 and 1."""
LOSS = Evaluation(-1.0)
RESULTS = {1.0: "a win", 0.0: "a draw", -1.0: "a loss"}


def _mark(judged: JudgedMove) -> Mark:
    """Return the mark of a move by what it gave away; whoever lets the other win for certain has blundered."""
    if judged.after == LOSS != judged.before:
        return "blunder"
    return next((mark for limit, mark in LIMITS if judged.lost >= limit), "")


def _in_words(evaluation: Evaluation) -> str:
    """Return a certain result by name, and an estimate as the share of points that it stands for."""
    return RESULTS[evaluation.result] if evaluation.proven else f"{(1 + evaluation.result) / 2:.0%} of the points"


def won(marks: Sequence[str], length: int) -> tuple[Squares, ...]:
    """Return all lines of `length` or more equal marks, each whole and from one end to the other; empty without any."""
    starts = [(row, column) for row, cells in enumerate(marks) for column, mark in enumerate(cells) if mark in MARKS]
    lines = [
        tuple(_run(marks, start, step))
        for start in starts
        for step in ((0, 1), (1, 0), (1, 1), (1, -1))
        if _at(marks, start[0] - step[0], start[1] - step[1]) != _at(marks, *start)
    ]
    return tuple(line for line in lines if len(line) >= length)


def _run(marks: Sequence[str], start: Place, step: tuple[int, int]) -> Iterator[Place]:
    """Yield the squares with the mark of `start` from there on, in the direction of `step`, up to the first other."""
    mark, (row, column) = _at(marks, *start), start
    while _at(marks, row, column) == mark:
        yield row, column
        row, column = row + step[0], column + step[1]


def plural(piece: str) -> str:
    """Return several of a piece: crosses, noughts, full discs, rings."""
    return f"{piece}es" if piece.endswith("s") else f"{piece}s"


def _at(marks: Sequence[str], row: int, column: int) -> str:
    return marks[row][column] if 0 <= row < len(marks) and 0 <= column < len(marks[row]) else ""


def direction(line: Squares) -> Literal["across", "down", "diagonal"]:
    """Return the direction of a line."""
    (row, column), (last_row, last_column) = line[0], line[-1]
    return "across" if row == last_row else "down" if column == last_column else "diagonal"
