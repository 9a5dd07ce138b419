"""The enumeration behind MARS's table: the true gradient by differences, and what theory says of the forms."""

import itertools

import numpy as np
import pytest

from bench.estimators import World, compare, gradients
from bench.forms import FORMS
from training.methods.mars import MarsConfig

ENDED, FIXED = World(0, ends=True), World(0, ends=False)


@pytest.mark.parametrize("world", [ENDED, FIXED], ids=["policy ends", "fixed length"])
def test_ways_to_play_have_probability_one(world):
    assert sum(map(world.probability, world.paths)) == pytest.approx(1)
    assert len(world.paths) == (1 + 2 + 4 + 8 * 2 if world is ENDED else 16)


def test_the_true_gradient_agrees_with_differences():
    """Each player's expected return, with one of its own logits moved a little either way."""
    truth, step = ENDED.true_gradient(), 1e-6
    for prefix, place in ENDED.places.items():
        for action in range(len(ENDED.policy[prefix])):
            returns = []
            for sign in (1, -1):
                moved = World(0, ends=True)
                logits = np.log(moved.policy[prefix])
                logits[action] += sign * step
                moved.policy[prefix] = np.exp(logits) / np.exp(logits).sum()
                returns.append(moved.mean_returns()[len(prefix) % 2])
            assert truth[place][action] == pytest.approx((returns[0] - returns[1]) / (2 * step), abs=1e-6)


@pytest.mark.parametrize("form", ["none", "role_ema", "whole_game_none"])
def test_baselines_that_do_not_depend_on_the_game_are_unbiased_with_summed_turns(form):
    numbers = compare(ENDED, form, 2)["sum"]
    assert numbers["ratio"] == pytest.approx(1)
    assert numbers["bias"] == pytest.approx(0, abs=1e-9)


def test_in_games_of_fixed_length_a_mean_over_equal_turns_only_shortens_the_gradient():
    """Of two games each baseline holds half of the game itself, which takes half of the gradient away."""
    for form in ("player_turn", "whole_game"):
        for numbers in compare(FIXED, form, 2).values():
            assert numbers["bias"] == pytest.approx(0, abs=1e-9)
            assert numbers["cosine"] == pytest.approx(1)
    assert compare(FIXED, "player_turn", 2)["sum"]["ratio"] == pytest.approx(0.5)


@pytest.mark.parametrize(
    "form, ratios",
    [
        ("none", [1, 1, 1, 1]),
        ("player_turn", [1 / 2] * 4),  # of two games, half of the mean is the game's own
        ("whole_game", [1 / 2] * 4),
        # The mean of four rewards has a fourth of each of the game's own two. The last turn subtracts it once, which
        # leaves 3/4 of what its action earns; the first subtracts it twice, which leaves 1/2 of both rewards.
        ("normalised_first", [1 / 2, 1 / 2, 3 / 4, 3 / 4]),
    ],
)
def test_in_games_of_fixed_length_each_turns_gradient_is_scaled_by_a_number(form, ratios):
    """Two players with two turns each, in turns; groups of two games."""
    scored = {way: FIXED.scored(way) for way in FIXED.paths}
    expected = np.zeros(FIXED.size)
    for group in itertools.product(FIXED.paths, repeat=2):
        chance = FIXED.probability(group[0]) * FIXED.probability(group[1])
        method = MarsConfig(**FORMS[form]).build()
        expected += chance * gradients(FIXED, group, [scored[way] for way in group], method)["sum"]
    truth = FIXED.true_gradient()
    for prefix, place in FIXED.places.items():
        assert expected[place] == pytest.approx(ratios[len(prefix)] * truth[place], abs=1e-12)


def test_a_mean_over_all_turns_contains_the_games_own_later_ones():
    assert compare(FIXED, "player", 2)["sum"]["bias"] > 0.05
    assert compare(ENDED, "player", 2)["sum"]["bias"] > 0.05


def test_with_one_reward_at_the_end_the_forms_differ_by_the_weight_of_long_games_alone():
    """Returns-to-go are equal then: without a mean the forms are the same, and with one, so long as games are."""
    short = World(0, ends=True, last=True)
    assert compare(short, "none", 2) == compare(short, "whole_game_none", 2)
    by_turns, by_games = compare(short, "player", 2)["sum"], compare(short, "whole_game", 2)["sum"]
    assert by_turns["bias"] != pytest.approx(by_games["bias"], abs=0.01)
    fixed = World(0, ends=False, last=True)
    for how, numbers in compare(fixed, "player", 2).items():
        assert numbers == pytest.approx(compare(fixed, "whole_game", 2)[how])
    assert numbers["bias"] == pytest.approx(0, abs=1e-9)


def test_weighing_by_the_number_of_turns_is_biased_where_the_policy_ends_the_game():
    ended, fixed = compare(ENDED, "none", 2), compare(FIXED, "none", 2)
    for how in ("token_mean", "turn_mean", "player_mean"):
        assert ended[how]["bias"] > 0.05
        assert fixed[how]["bias"] == pytest.approx(0, abs=1e-9)
