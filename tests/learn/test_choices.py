"""Allowed tokens as tensors, by hand."""

import numpy as np

from tests.methods.episodes import trace
from training.learn.choices import choices_at


def test_rows_count_through_all_traces_and_short_lists_are_filled_up():
    chosen = trace(".00.1", choices={1: (1, 9), 4: (4, 5, 6)})
    free = trace(".0")
    other = trace("..0", choices={2: (2, 8)})
    limits = choices_at([chosen, free, other], [np.array([1, 2, 4]), np.array([1]), np.array([1, 2])])
    assert limits.rows.tolist() == [0, 2, 5]
    assert limits.ids.tolist() == [[1, 9, 1], [4, 5, 6], [2, 8, 2]]
    assert choices_at([chosen, free], [np.array([2]), np.array([1])]) is None


def test_pieces_count_their_rows_from_their_start():
    chosen = trace(".000000", choices={1: (1, 9), 2: (2, 9), 5: (5, 9)})
    limits = choices_at([chosen], [np.arange(1, 7)])  # rows 0, 1 and 4 of 6
    pieces = [piece and (piece.rows.tolist(), piece.ids.tolist()) for piece in limits.pieces(6, 2)]
    assert pieces == [([0, 1], [[1, 9], [2, 9]]), None, ([0], [[5, 9]])]
    [whole] = limits.pieces(6, 100)
    assert whole.rows.tolist() == [0, 1, 4]
