"""The comparison of the hierarchy with flat credit: its tasks, its critics, its interval."""

from dataclasses import replace

import numpy as np
import pytest

from bench import hierarchy
from bench.hierarchy import TASKS, Learner, Task, _features, difference, learned
from training.errors import BadInput
from training.methods.omar import OmarConfig

SMALL = Task("", (2, 3), deciding=1, noise=0.0, actions=2, episodes=16, steps=60, critic_warmup=5)


def test_a_task_lays_out_replies_and_turns():
    assert SMALL.pattern == (-1, 0, 0, -1, 1, 1, 1)
    learner = Learner(SMALL, OmarConfig(), 1.0)
    assert learner.places.tolist() == [1, 2, 4, 5, 6]
    assert [places.tolist() for places in learner.deciding] == [[0], [2]]  # counted in sampled tokens
    two = Learner(replace(SMALL, lengths=(4, 6), deciding=2), OmarConfig(), 1.0)
    assert [places.tolist() for places in two.deciding] == [[0, 2], [4, 7]]


def test_success_is_exact():
    learner = Learner(replace(SMALL, lengths=(4, 6), deciding=2), OmarConfig(), 1.0)
    assert learner.success() == pytest.approx(0.25)  # two tokens, each right with 1/2
    learner.logits[0, 0] = np.log(3)  # right with 3/4
    assert learner.success() == pytest.approx((0.75 * 0.5 + 0.25) / 2)


def test_only_a_visible_turn_is_seen_before_its_reply():
    same, other = np.array([[0, 0, 0, 0, 0]]), np.array([[1, 0, 0, 0, 0]])
    failed, worked = np.array([[0, 0]]), np.array([[1, 0]])
    for visible in (True, False):
        task = replace(SMALL, visible=visible)
        differ = (_features(task, same, worked) != _features(task, other, failed)).any(axis=2)[0]
        # the turn's own prefixes at 1 and 2 differ if they are visible; what follows the reply differs always
        assert differ.tolist() == [False, visible, visible, True, True, True, True]


@pytest.mark.parametrize("settings", [{"advantage": "flat", "lam": 0.9}, {"lam_turn": 0.3}])
def test_both_forms_learn_a_small_task_and_the_seed_decides(settings):
    first, again = (learned(SMALL, settings, 4.5, 1) for _ in range(2))
    assert first == again > 0.75  # half of the turns succeed at the start
    assert learned(replace(SMALL, noise=0.5), settings, 4.5, 2) != first


def test_differences_are_paired_and_students():
    # gaps 1, 2, 3: mean 2, deviation 1, t(.975, 2) = 4.302653: 2 ± 4.302653/√3
    gap = difference([2.0, 4.0, 6.0], [1.0, 2.0, 3.0])
    assert gap["mean"] == pytest.approx(2.0)
    assert gap["interval"] == pytest.approx([2 - 2.484138, 2 + 2.484138], abs=1e-5)
    with pytest.raises(BadInput, match="at least two"):
        difference([1.0], [0.0])


def test_both_forms_are_tuned_on_as_many_settings():
    assert len(hierarchy.FORMS["flat"]) == len(hierarchy.FORMS["hierarchical"])
    assert {len(task.lengths) for task in TASKS.values()} == {4, 6, 8}


def test_an_unknown_task_is_refused():
    from bench.__main__ import parser

    with pytest.raises(BadInput, match="known: seen, unseen") as caught:
        hierarchy.main(parser().parse_args(["hierarchy", "--tasks", "chess"]))
    assert caught.value.where == "--tasks"
