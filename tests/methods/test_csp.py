"""CSP's choice of the episode that is imitated, worked by hand."""

from dataclasses import replace

import numpy as np
import pytest

from tests.methods.episodes import scored, trace
from training.errors import BadInput
from training.methods.csp import CspConfig, action_sequence, best_sequence
from training.records import Move, SeatMove

A, B, C = ((0, "answer"),), ((0, "ask"), (1, "answer"), (0, "answer")), ((0, "hedge"),)


@pytest.mark.parametrize(
    "played, support, best",
    [
        ([(A, 1.0), (A, 0.0), (B, 0.6), (B, 0.8)], 2, (B, 0.7)),  # 0.5 against 0.7
        ([(A, 1.0), (B, 0.6), (B, 0.8)], 2, (B, 0.7)),  # a single lucky episode does not count
        ([(A, 1.0), (B, 0.6), (B, 0.8)], 1, (A, 1.0)),
        ([(A, 1.0), (B, 0.6)], 2, None),
        ([(B, 0.5), (B, 0.5), (A, 0.25), (A, 0.5), (A, 0.75)], 2, (A, 0.5)),  # as good, and more often
        ([(B, 0.5), (B, 0.5), (A, 0.25), (A, 0.75)], 2, (A, 0.5)),  # as good and as often, but shorter
        ([(C, 0.5), (C, 0.5), (A, 0.25), (A, 0.75)], 2, (A, 0.5)),  # the same in all of that: by name
    ],
)
def test_the_best_sequence_has_the_highest_mean_of_enough_episodes(played, support, best):
    chosen = best_sequence([sequence for sequence, _ in played], [reward for _, reward in played], support)
    assert chosen == (best if best is None else (best[0], pytest.approx(best[1])))


def played(sequence, reward, passed=None):
    """A game of these moves, whose first two turns are the learner's, of one seat each."""
    game = scored([trace(".00"), trace("..1", seat=1)], {0: reward, 1: reward}, passed=passed)
    moves = tuple(SeatMove(seat=seat, move=Move(action=action)) for seat, action in sequence)
    turns = game.episode.turns
    if passed is not None:
        turns = tuple(
            turn if ok else turn.model_copy(update={"passed": False, "move": None, "error": "?"})
            for turn, ok in zip(turns, passed, strict=True)
        )
    return replace(game, episode=game.episode.model_copy(update={"moves": moves, "turns": turns}))


def imitated(group, **settings):
    """For each game the weights of its tokens, trace by trace; None where nothing of it is imitated."""
    return [
        None if not any(credit.traces) else [list(row.nll) if row else None for row in credit.traces]
        for credit in CspConfig(**settings).build().credit(group)
    ]


def test_all_seats_of_the_best_episode_of_the_best_sequence_are_imitated():
    group = [played(A, 1.0), played(A, 0.0), played(B, 0.6), played(B, 0.8), played(C, 0.9)]
    assert imitated(group) == [None, None, None, [[0, 1, 1], [0, 0, 1]], None]


def test_of_equally_good_episodes_the_first_is_imitated():
    assert imitated([played(A, 0.5), played(A, 0.5)]) == [[[0, 1, 1], [0, 0, 1]], None]


@pytest.mark.parametrize("threshold, chosen", [(0.69, True), (0.7, False), (0.9, False)])
def test_below_the_threshold_nothing_is_imitated(threshold, chosen):
    group = [played(B, 0.6), played(B, 0.8)]
    assert any(imitated(group, threshold=threshold)) == chosen


def test_a_refused_reply_is_not_imitated():
    group = [played(A, 1.0, passed=[False, True]), played(A, 0.5)]
    assert imitated(group) == [[None, [0, 0, 1]], None]


def test_moves_of_the_tool_are_no_actions_of_an_agent():
    game = played(((0, "ask"), (1, "search"), (2, "result"), (1, "answer")), 1.0)
    assert action_sequence(game.episode) == ((0, "ask"), (1, "search"), (1, "answer"))


def test_a_move_that_nobody_chose_is_another_action():
    game = played(((0, "hedge"),), 1.0).episode
    silent = game.moves[0].move.model_copy(update={"origin": "default"})
    assert action_sequence(game) == ((0, "hedge"),)
    assert action_sequence(game.model_copy(update={"moves": (SeatMove(seat=0, move=silent),)})) == ((0, "default"),)


@pytest.mark.parametrize("seed", range(20))
def test_the_choice_is_that_of_the_equations_on_random_groups(seed):
    """A second implementation: masks and means in numpy, as docs/methods/csp.md states them."""
    rng = np.random.default_rng(seed)
    names = (A, B, C)
    kinds, rewards = rng.integers(3, size=12), rng.uniform(-0.1, 1.0, size=12)
    support, threshold = int(rng.integers(1, 6)), float(rng.uniform(0.0, 0.6))
    counts = np.array([(kinds == kind).sum() for kind in range(3)])
    means = np.array([rewards[kinds == kind].mean() if counts[kind] else -np.inf for kind in range(3)])
    means[counts < support] = -np.inf
    wanted = None
    if means.max() > threshold:
        wanted = int(np.where(kinds == means.argmax(), rewards, -np.inf).argmax())
    group = [played(names[kind], reward) for kind, reward in zip(kinds, rewards, strict=True)]
    weights = imitated(group, support=support, threshold=threshold)
    assert weights == [[[0, 1, 1], [0, 0, 1]] if number == wanted else None for number in range(12)]


# --- action supervision ----------------------------------------------------------------------------------------------

FORM = {"form": "action_supervision"}


def alone(actions, reward, f1=None, arguments=(), passed=None, layout=".00..111"):
    """A game of an agent alone that made these moves, the last of which is that of turn 1."""
    game = scored([trace(layout)], {0: reward}, passed=passed)
    moves = tuple(
        SeatMove(seat=0, move=Move(action=action, args={"answer": "otter"} if action != "search" else {}))
        for action in actions
    )
    metrics = {} if f1 is None else {"f1": f1}
    turns = tuple(
        turn.model_copy(update={} if ok else {"passed": False, "move": None, "error": "?"})
        for turn, ok in zip(game.episode.turns, passed or [True, True], strict=True)
    )
    episode = game.episode.model_copy(update={"moves": moves, "metrics": metrics, "turns": turns})
    return replace(game, episode=episode, arguments=[np.isin(range(len(layout)), arguments)])


def test_the_best_answer_is_imitated_whole_where_its_f1_is_high_enough():
    # the second answer has a higher F1, but two searches cost more than that is worth
    group = [
        alone(["hedge"], 0.9, 0.9),
        alone(["search", "answer"], 0.75, 0.8, arguments=[6]),
        alone(["search", "answer"], 0.7, 0.9),
        alone(["answer"], 0.2, 0.2),
    ]
    assert imitated(group, **FORM) == [None, [[0, 1, 1, 0, 0, 1, 1, 1]], None, None]


def test_otherwise_the_best_hedge_is_imitated_without_its_text():
    group = [
        alone(["answer"], 0.5, 0.5),
        alone(["search", "hedge"], 0.1, 0.11, arguments=[6]),
        alone(["hedge"], 0.0, 0.0),
    ]
    assert imitated(group, **FORM) == [None, [[0, 1, 1, 0, 0, 1, 0, 1]], None], "0.5 is not above 0.5"
    assert imitated(group, **FORM, sure=0.49)[0] is not None


def test_without_a_good_answer_and_a_hedge_nothing_is_imitated():
    assert imitated([alone(["answer"], 0.4, 0.4), alone(["search"], 0.9, 0.9)], **FORM) == [None, None]


def test_of_equal_rewards_the_first_and_only_accepted_replies_are_imitated():
    group = [alone(["hedge"], 0.1, 0.1, [6], passed=[False, True]), alone(["hedge"], 0.1, 0.1)]
    assert imitated(group, **FORM) == [[[0, 0, 0, 0, 0, 1, 0, 1]], None]


def test_a_game_that_measures_no_f1_is_judged_by_its_reward():
    assert imitated([alone(["answer"], 0.6)], **FORM)[0] is not None
    assert imitated([alone(["answer"], 0.5)], **FORM) == [None]


def test_agents_play_alone_and_need_no_support():
    config = CspConfig(**FORM, support=8)
    config.check(0.0, 1)
    needs = config.build().needs
    assert (needs.alone, needs.arguments, needs.imitates, needs.group) == (True, True, True, "start")
    assert not CspConfig().build().needs.alone


def test_a_support_that_cannot_occur_is_refused():
    with pytest.raises(BadInput, match="played 1 times") as caught:
        CspConfig(support=2).check(0.0, 1)
    assert caught.value.where == "support"
