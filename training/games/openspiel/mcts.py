"""Connect Four judged by OpenSpiel's Monte Carlo tree search, as its engine: what each move of a game gave away.

The search proves a result where it can. Elsewhere a result is an estimate: the mean of random games from a position.
A position is searched with the same seed every time, so a game is always judged alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyspiel

from training.games.openspiel.decisions import Decision, Evaluation, JudgedMove

SIMULATIONS = 3000
"""Simulations of each search; a game of 42 moves takes at most 84 searches."""
UCT_C = 2.0
MEMORY_MB = 200
SEED = 1


def search(state: pyspiel.State, simulations: int = SIMULATIONS) -> tuple[Evaluation, int]:
    """Return the expected result of the player to move, and a best move, in a board game that is not over."""
    evaluator = pyspiel.RandomRolloutEvaluator(1, SEED)
    solve, verbose = True, False
    bot = pyspiel.MCTSBot(state.get_game(), evaluator, UCT_C, simulations, MEMORY_MB, solve, SEED, verbose)
    root = bot.mcts_search(state)
    best = root.best_child()
    if len(root.outcome):
        return Evaluation(float(root.outcome[state.current_player()])), best.action
    return Evaluation(best.total_reward / best.explore_count, proven=False), best.action


def judged(moves: Iterable[Decision], simulations: int = SIMULATIONS) -> Iterator[JudgedMove]:
    """Yield each move with its player's expected results before and after it.

    The result after a move comes from a search of the position after it. The result before the move comes from the same
    search after the best move, so that both are estimated alike. The search's own choice gives nothing away.
    """
    for move in moves:
        root, best = search(move.before, simulations)
        after = _after(move.before, move.action, simulations)
        before = root if root.proven else after if best == move.action else _after(move.before, best, simulations)
        if after.result >= before.result:
            yield JudgedMove(move, after, after, (move.action,))
        else:
            yield JudgedMove(move, before, after, (best,))


def _after(state: pyspiel.State, action: int, simulations: int) -> Evaluation:
    """Return the expected result of the player who makes a move, after it."""
    following = state.child(action)
    if following.is_terminal():
        return Evaluation(float(following.returns()[state.current_player()]))
    return search(following, simulations)[0].of_other()
