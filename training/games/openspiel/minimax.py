"""Tic-tac-toe solved by exhaustive search: what each move of a game gave away against perfect play."""

from __future__ import annotations

import pyspiel

from training.games.openspiel.decisions import Decision, Evaluation, JudgedMove

_VALUES: dict[str, float] = {}
"""The first player's result of tic-tac-toe with perfect play from a position, by the position."""


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


def judged(move: Decision) -> JudgedMove:
    """Return a move of tic-tac-toe with its value to the player who made it."""
    sign = 1 if move.seat == 0 else -1
    results = {legal: sign * value(move.before.child(legal)) for legal in move.before.legal_actions()}
    best = tuple(legal for legal, result in results.items() if result == max(results.values()))
    return JudgedMove(move, Evaluation(max(results.values())), Evaluation(results[move.action]), best)
