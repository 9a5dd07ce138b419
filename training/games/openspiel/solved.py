"""Small games of perfect information, solved: the value of each position, and where a game's moves gave some away."""

from __future__ import annotations

from dataclasses import dataclass

import pyspiel

from training.records import Seat

_VALUES: dict[str, float] = {}
"""The first player's result of tic-tac-toe with perfect play from a position, by the position."""


@dataclass(frozen=True, slots=True)
class JudgedMove:
    """One move: the mover's result with perfect play before and after it, and the legal moves that are best."""

    seat: Seat
    action: int
    before: float
    after: float
    best: tuple[int, ...]


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


def judged(state: pyspiel.State, since: int = 0) -> list[JudgedMove]:
    """Return the moves that led to `state` from number `since` on, each with what it was worth to who made it."""
    moves = []
    position = state.get_game().new_initial_state()
    for number, action in enumerate(state.history()):
        seat = position.current_player()
        sign = 1 if seat == 0 else -1
        results = {legal: sign * value(position.child(legal)) for legal in position.legal_actions()}
        best = tuple(legal for legal, result in results.items() if result == max(results.values()))
        if number >= since:
            moves.append(JudgedMove(seat, action, sign * value(position), results[action], best))
        position = position.child(action)
    return moves
