"""Games with and without moves that can be listed, as the docs of constrained decoding name them."""

import pytest

from training import samples
from training.rollout.listed import lists_moves


@pytest.mark.parametrize(
    "game, listed", [("among_us", True), ("kuhn_poker", True), ("werewolf", True), ("negotiation", False)]
)
def test_games_with_listed_moves(game, listed):
    assert lists_moves(samples.for_game(game)[0]) is listed
