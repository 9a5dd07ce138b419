"""The moves of an ended game one by one, and tic-tac-toe solved: where a game's moves gave some of its value away."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyspiel

from training.records import Seat

_VALUES: dict[str, float] = {}
"""The first player's result of tic-tac-toe with perfect play from a position, by the position."""


@dataclass(frozen=True, slots=True)
class Decision:
    """One move of a game: the position before it, who made it, and which; `step` moves have been made after it."""

    step: int
    before: pyspiel.State
    seat: Seat
    action: int


@dataclass(frozen=True, slots=True)
class Worth:
    """A result that a seat can expect, from -1 to 1: certain if `proven`, otherwise an estimate."""

    result: float
    proven: bool = True

    def of_other(self) -> Worth:
        """Return the same for the other seat."""
        return Worth(-self.result, self.proven)


@dataclass(frozen=True, slots=True)
class JudgedMove:
    """One move with its player's expected results: `before` it with a best move, `after` it; and the best moves."""

    decision: Decision
    before: Worth
    after: Worth
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


def value(state: pyspiel.State) -> float:
    """Return the first player's result of tic-tac-toe with perfect play from here, by exhaustive search.

    The whole game has 5478 positions; each is searched once per process.
    """
    position = str(state)
    if position not in _VALUES:
        if state.is_terminal():
            _VALUES[position] = float(state.returns()[0])
        else:
            results = [value(state.child(action)) for action in state.legal_actions()]
            _VALUES[position] = max(results) if state.current_player() == 0 else min(results)
    return _VALUES[position]


def solved(move: Decision) -> JudgedMove:
    """Return a move of tic-tac-toe with its value to the player who made it."""
    sign = 1 if move.seat == 0 else -1
    results = {legal: sign * value(move.before.child(legal)) for legal in move.before.legal_actions()}
    best = tuple(legal for legal, result in results.items() if result == max(results.values()))
    return JudgedMove(move, Worth(max(results.values())), Worth(results[move.action]), best)
