"""Every form of MARS on two games of up to three turns, worked by hand, and where forms must agree."""

import numpy as np
import pytest

from tests.methods.episodes import scored, trace
from training.errors import BadInput
from training.methods.advantages import by_player
from training.methods.mars import MarsConfig

# Game A: the first player's turns earn 1, 0, 2, the second's 0, −1, 1 and 1 at the end; to go: 3 2 2 and 1 1 2.
# Game B: the first player's two turns earn 0, 1 and −1 at the end, the second's 2, 0, 0; to go: 0 0 and 2 0 0.
FORMS = {
    "player": ({}, [[1.6, 0.6, 0.6], [0, 0, 1], [-1.4, -1.4], [1, -1, -1]]),  # means 7/5 and 6/6
    "player_turn": ({"baseline": "player_turn"}, [[1.5, 1, 0], [-0.5, 0.5, 1], [-1.5, -1], [0.5, -0.5, -1]]),
    "none": ({"baseline": "none"}, [[3, 2, 2], [1, 1, 2], [0, 0], [2, 0, 0]]),
    "whole game": ({"turn_level": False}, [[1.5] * 3, [-0.5] * 3, [-1.5] * 2, [0.5] * 3]),  # totals 3, 0 and 1, 2
    "all players": (
        {"per_player": False},  # mean 13/11
        [[20 / 11, 9 / 11, 9 / 11], [-2 / 11, -2 / 11, 9 / 11], [-13 / 11] * 2, [9 / 11, -13 / 11, -13 / 11]],
    ),
    "both ablations": ({"turn_level": False, "per_player": False}, [[1.5] * 3, [-0.5] * 3, [-1.5] * 2, [0.5] * 3]),
    "normalised first": (
        {"normalise": "before"},  # rewards less 3/5 and 3/6: .4 −.6 1.4, −.5 −1.5 1.5, −.6 −.6, 1.5 −.5 −.5
        [[1.2, 0.8, 1.4], [-0.5, 0, 1.5], [-1.2, -0.6], [0.5, -1, -0.5]],
    ),
    "normalised first, by turn": (
        # means of the turns' rewards: .5 0 2 and 1 −.5 1
        {"normalise": "before", "baseline": "player_turn"},
        [[0.5, 0, 0], [-0.5, 0.5, 1], [-0.5, 0], [0.5, -0.5, -1]],
    ),
    "running mean": ({"baseline": "role_ema"}, [[1.5, 0.5, 0.5], [-0.5, -0.5, 0.5], [-1.5, -1.5], [0.5, -1.5, -1.5]]),
}


def games():
    a = scored([trace(".00.2.4"), trace(".1..3.5", seat=1)], {0: 0.0, 1: 1.0}, rewards=[1.0, 0.0, 0.0, -1.0, 2.0, 1.0])
    b = scored([trace(".0..2"), trace("..1.3.4", seat=1)], {0: -1.0, 1: 0.0}, rewards=[0.0, 2.0, 1.0, 0.0, 0.0])
    return [a, b]


def advantages(group, method):
    """Each learning seat's advantages by turn, in the order of episodes and seats."""
    credit = method.credit(group)
    return [list(dict(sorted(row.turn_advantages.items())).values()) for each in credit for row in each.traces]


@pytest.mark.parametrize("form", FORMS)
def test_every_form_by_hand(form):
    settings, expected = FORMS[form]
    credited = advantages(games(), MarsConfig(**settings).build())
    assert [pytest.approx(row) for row in expected] == credited


def test_all_tokens_of_a_turn_share_its_advantage_and_nothing_else_has_credit():
    credit = MarsConfig().build().credit(games())[0].traces[0]
    assert credit.ppo == pytest.approx([0, 1.6, 1.6, 0, 0.6, 0, 0.6])
    assert (credit.reinforce, credit.nll, credit.value_targets) == (None, None, {})


def test_the_running_mean_goes_on_game_by_game_and_survives_a_restart():
    config = MarsConfig(baseline="role_ema", ema_decay=0.5)
    method = config.build()
    method.credit(games())
    # from the first group's means 1.5 and 1.5: (1.5 + 3)/2 = 2.25, (2.25 + 0)/2; (1.5 + 1)/2 = 1.25, (1.25 + 2)/2
    assert method.state_dict() == {"means": {"negotiation/0": 1.125, "negotiation/1": 1.625}}
    restarted = config.build()
    restarted.load_state_dict(method.state_dict())
    again = advantages(games(), restarted)
    assert again == [
        pytest.approx(row)
        for row in ([1.875, 0.875, 0.875], [-0.625, -0.625, 0.375], [-1.125] * 2, [0.375, -1.625, -1.625])
    ]
    assert again == [pytest.approx(row) for row in advantages(games(), method)]


def test_a_single_reward_at_the_end_makes_all_turns_equal_and_the_mean_weighs_long_games_more():
    """Without rewards on the way, returns-to-go are the game's reward; the forms differ by one number a player."""
    long = scored([trace(".0.1.2")], {0: 1.0, 1: 0.0})
    short = scored([trace(".0")], {0: -1.0, 1: 0.0})
    by_turns = advantages([long, short], MarsConfig().build())
    whole = advantages([long, short], MarsConfig(turn_level=False).build())
    assert by_turns == [pytest.approx([0.5] * 3), pytest.approx([-1.5])]  # the mean over turns is (1 + 1 + 1 − 1)/4
    assert whole == [pytest.approx([1.0] * 3), pytest.approx([-1.0])]  # over games it is 0


def test_by_player_with_hand_worked_numbers():
    rewards, players = [[0, 1, 2], [1, 0], [3]], ["x", "x", "y"]
    # to go: 3 3 2, 1 0, 3; means of x: 9/5; by turn 2, 1.5, 2
    assert by_player(rewards, players) == [pytest.approx([1.2, 1.2, 0.2]), pytest.approx([-0.8, -1.8]), [0.0]]
    by_turn = by_player(rewards, players, baseline="player_turn")
    assert by_turn == [pytest.approx([1, 1.5, 0]), pytest.approx([-1, -1.5]), [0.0]]
    assert by_player(rewards, players, baseline="none") == [[3, 3, 2], [1, 0], [3]]
    assert by_player([], []) == []
    with pytest.raises(ValueError, match="2 trajectories need 2 players, not 1"):
        by_player([[1], [2]], ["x"])


@pytest.mark.parametrize("seed", range(5))
def test_the_advantages_are_those_of_the_equation_on_random_groups(seed):
    """A second implementation: R by a triangle of ones, and the mean over all turns of a player by masks."""
    rng = np.random.default_rng(seed)
    players = rng.integers(2, size=8)
    rewards = [rng.normal(size=rng.integers(1, 5)) for _ in players]
    to_go = [np.triu(np.ones((len(row), len(row)))) @ row for row in rewards]
    means = {p: np.concatenate([row for row, q in zip(to_go, players, strict=True) if q == p]).mean() for p in players}
    advantages = by_player(rewards, players.tolist())
    for row, wanted, player in zip(advantages, to_go, players, strict=True):
        assert row == pytest.approx(wanted - means[player])


def test_seats_of_other_policies_neither_learn_nor_enter_the_mean():
    group = [
        scored([trace(".0"), trace(".1", seat=1, policy="frozen")], {0: 1.0, 1: 5.0}),
        scored([trace(".0", policy="frozen"), trace(".1", seat=1)], {0: 7.0, 1: 2.0}),
    ]
    credit = MarsConfig(baseline="none").build().credit(group)
    assert [[row and row.turn_advantages for row in each.traces] for each in credit] == [
        [{0: 1.0}, None],
        [None, {1: 2.0}],
    ]


def test_rewards_of_tokens_belong_to_their_turn():
    game = scored([trace(".00.1")], {0: 1.0, 1: 0.0}, token_rewards=[np.array([9, 0.25, 0.5, 9, -0.5])])
    assert advantages([game], MarsConfig(baseline="none").build()) == [pytest.approx([1.25, 0.5])]


@pytest.mark.parametrize(
    "settings, where",
    [
        ({"turn_level": False, "baseline": "player_turn"}, "baseline"),
        ({"per_player": False, "baseline": "role_ema"}, "baseline"),
        ({"normalise": "before", "baseline": "none"}, "normalise"),
        ({"normalise": "before", "turn_level": False}, "normalise"),
    ],
)
def test_forms_that_contradict_themselves_are_refused(settings, where):
    with pytest.raises(BadInput) as refused:
        MarsConfig.from_dict(settings)
    assert refused.value.where == where


def test_a_start_that_is_played_once_has_no_peers():
    with pytest.raises(BadInput, match="at least 2"):
        MarsConfig(group="start").check(0.0, 1)
    MarsConfig(group="start").check(0.0, 2)
    MarsConfig(group="start", baseline="role_ema").check(0.0, 1)
