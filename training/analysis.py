"""Reviews of a finished game's moves, as data for a page: by the game's rules, a solver or an engine.

A game computes its analysis from its full state (`Game.analysis`), so it is for readers who may see everything, or for
everybody if nothing was hidden. Each kind has its template on the site. Nothing here is stored in run directories.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from training.reading import Record

Seat = int
Mark = Literal["", "inaccuracy", "mistake", "blunder"]
"""How much a move gave away; empty for little or nothing."""


class Proposal(Record):
    """A proposal: who made it, and what it is worth to seat 0 and to seat 1."""

    by: Seat
    points: tuple[float, float]


class Frontier(Record):
    """What two seats could have agreed on, by the points of both.

    `outcomes` are the points of every possible deal, empty where they are too many to draw; `efficient` those that no
    other deal improves for one without harm to the other (the Pareto frontier), by rising points of seat 0. `proposals`
    are in the order of the game, and the last one is the deal if `agreed`. `alone` are the points without a deal and
    `most` the highest of each seat.
    """

    kind: Literal["frontier"] = "frontier"
    title: str
    outcomes: tuple[tuple[float, float], ...] = ()
    efficient: tuple[tuple[float, float], ...]
    proposals: tuple[Proposal, ...] = ()
    alone: tuple[float, float]
    most: tuple[float, float]
    agreed: bool = False


class ReviewedMove(Record):
    """One move of a game.

    `step` is the number of complete game steps after it, and `text` what `seat` did, read after its name. `detail` are
    short facts about it. `value` is the result that seat 0 can expect after it, from -1 to 1; None without a curve.
    """

    step: int
    seat: Seat
    text: str
    mark: Mark = ""
    detail: tuple[str, ...] = ()
    value: float | None = None


class Tally(Record):
    """One row of a table: what is counted, and a cell for every seat."""

    label: str
    cells: tuple[str, ...]


class Review(Record):
    """The moves of a game in order, each judged. `method` says what judges them and how reliable it is.

    `curve` is a caption for the curve of the moves' values, empty if they have none.
    """

    kind: Literal["review"] = "review"
    title: str
    method: str
    moves: tuple[ReviewedMove, ...]
    tallies: tuple[Tally, ...] = ()
    curve: str = ""


class OpinionChange(Record):
    """After `speaker` had named `target` in a discussion, `voter` changed to `target`, and voted for them in the end.

    `when` is the discussion in words. `step` is the number of complete game steps after the speech, of which `text` is
    the beginning. `before` is whom the voter had named or voted for in this discussion until then, if anybody.
    """

    when: str
    step: int
    speaker: Seat
    text: str
    voter: Seat
    target: Seat
    before: Seat | None = None


class OpinionChanges(Record):
    """Whose opinion changed after whose speech. `method` says what counts as a change, and what it does not prove."""

    kind: Literal["opinion_changes"] = "opinion_changes"
    title: str
    method: str
    changes: tuple[OpinionChange, ...]


AnalysisZone = Annotated[Frontier | Review | OpinionChanges, Field(discriminator="kind")]
"""An area of the analysis of a game."""
ANALYSIS: TypeAdapter[tuple[AnalysisZone, ...]] = TypeAdapter(tuple[AnalysisZone, ...])
"""Reads and writes an analysis as JSON."""


def tallies(moves: Sequence[ReviewedMove], seats: int) -> tuple[Tally, ...]:
    """Return how many moves of each seat have each mark."""
    marks: tuple[tuple[Mark, str], ...] = (
        ("inaccuracy", "inaccuracies"),
        ("mistake", "mistakes"),
        ("blunder", "blunders"),
    )
    return tuple(
        Tally(
            label=label,
            cells=tuple(str(sum(move.seat == seat and move.mark == mark for move in moves)) for seat in range(seats)),
        )
        for mark, label in marks
    )
