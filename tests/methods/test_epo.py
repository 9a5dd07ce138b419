"""EPO on two games of up to three turns, worked by hand."""

from dataclasses import replace

import pytest

from tests.methods.episodes import scored, trace
from tests.methods.test_mars import advantages
from training.methods.epo import EpoConfig

# With γ = 1/2. Game A: the first seat's strategies earn 1, 0, 1, so R = 1.25, 0.5, 1; the second's earn 0, 1 and 1 at
# the end: R = 1, 2. Game B: the first seat's earn 0, 0 and −1 at the end: R = −0.5, −1; the second's only one earns 0.
# The mean over all eight strategies is 4.25 / 8 = 0.53125; the first seat's five: 1.25 / 5; the second's three: 3 / 3.
FORMS = {
    "max": ({}, [[1, 0.4, 0.8], [0.5, 1], [-0.5, -1], [0]]),
    "batch": (
        {"baseline": "batch"},
        [[0.71875, -0.03125, 0.46875], [0.46875, 1.46875], [-1.03125, -1.53125], [-0.53125]],
    ),
    "role": ({"baseline": "role"}, [[1, 0.25, 0.75], [0, 1], [-0.75, -1.25], [-1]]),
    "process alone": ({"result": False}, [[1, 0.4, 0.8], [0.5, 1], [0, 0], [0]]),
    "supervised": ({"form": "sft"}, [[1, 1, 1], [1, 1], [1, 1], [1]]),
}


def games():
    a = scored([trace(".00.2.4"), trace(".1.3", seat=1)], {0: 0.0, 1: 1.0}, rewards=[1.0, 0.0, 0.0, 1.0, 1.0])
    b = scored([trace(".0..2"), trace("..1", seat=1)], {0: -1.0, 1: 0.0}, rewards=[0.0, 0.0, 0.0])
    return [a, b]


@pytest.mark.parametrize("form", FORMS)
def test_every_form_by_hand(form):
    settings, expected = FORMS[form]
    assert advantages(games(), EpoConfig(gamma=0.5, **settings).build()) == [pytest.approx(row) for row in expected]


def test_all_tokens_of_a_strategy_share_its_advantage_in_the_reinforce_stream():
    credit = EpoConfig(gamma=0.5).build().credit(games())[0].traces[0]
    assert credit.reinforce == pytest.approx([0, 1, 1, 0, 0.4, 0, 0.8])
    assert (credit.ppo, credit.nll, credit.value_targets) == (None, None, {})


@pytest.mark.parametrize("score", [0.01, 1.0, 7.0])
def test_with_the_final_score_alone_the_largest_return_cancels_it(score):
    """Every positive score gives the same advantages γ^(T−t): so normalised, good and bad games teach the same."""
    game = scored([trace(".0.1.2")], {0: score, 1: 0.0})
    assert advantages([game], EpoConfig(gamma=0.5).build()) == [pytest.approx([0.25, 0.5, 1])]


def test_only_good_results_are_learned_above_a_threshold():
    """The seats' results are 0, 1, -1 and 0; means of the baseline are those of the seats that are left."""
    settings = {"gamma": 0.5, "threshold": 0.5}
    credits_ = EpoConfig(**settings).build().credit(games())
    learned = [[trace is not None for trace in credit.traces] for credit in credits_]
    assert learned == [[False, True], [False, False]]
    batch = EpoConfig(baseline="batch", **settings).build().credit(games())[0].traces[1]
    assert batch.turn_advantages == pytest.approx({1: 1 - 1.5, 3: 2 - 1.5})


def test_the_role_is_the_games_where_it_has_roles():
    def as_wolf(episode, seat):
        roles = tuple("wolf" if place == seat else "villager" for place in (0, 1))
        return episode.episode.model_copy(update={"roles": roles})

    first = scored([trace(".0")], {0: 1.0, 1: 0.0})
    second = scored([trace(".0", seat=1)], {0: 0.0, 1: 3.0})
    group = [replace(first, episode=as_wolf(first, 0)), replace(second, episode=as_wolf(second, 1))]
    assert advantages(group, EpoConfig(baseline="role").build()) == [pytest.approx([-1]), pytest.approx([1])]
    assert advantages([first, second], EpoConfig(baseline="role").build()) == [pytest.approx([0]), pytest.approx([0])]
