"""The moves of an ended game one by one, and what a solver or an engine says of each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyspiel

from training.records import Seat


@dataclass(frozen=True, slots=True)
class Decision:
    """One move of a game: the position before it, who made it, and which; `step` moves have been made after it."""

    step: int
    before: pyspiel.State
    seat: Seat
    action: int


@dataclass(frozen=True, slots=True)
class Evaluation:
    """A result that a seat can expect, from -1 to 1: certain if `proven`, otherwise an estimate."""

    result: float
    proven: bool = True

    def of_other(self) -> Evaluation:
        """Return the same for the other seat."""
        return Evaluation(-self.result, self.proven)


@dataclass(frozen=True, slots=True)
class JudgedMove:
    """One move with its player's expected results: `before` it with a best move, `after` it; and the best moves."""

    decision: Decision
    before: Evaluation
    after: Evaluation
    best: tuple[int, ...]

    @property
    def lost(self) -> float:
        """How much of the result the move gave away, from 0 to 2."""
        return self.before.result - self.after.result

    @property
    def proven(self) -> bool:
        """Whether the judgment is certain."""
        return self.before.proven and self.after.proven


def decisions(state: pyspiel.State, opening: int = 0) -> Iterator[Decision]:
    """Yield the moves of the seats that led to `state`, without the first `opening` ones."""
    position = state.get_game().new_initial_state()
    step = -opening
    for action in state.history():
        if not position.is_chance_node():
            step += 1
            if step > 0:
                yield Decision(step, position.clone(), position.current_player(), action)
        position.apply_action(action)
