"""From episodes to credit: groups, and the KL divergence as a reward."""

import numpy as np
import pytest

from tests.methods.episodes import scored, trace
from training.learn.batch import Item
from training.learn.score import Rollout, _penalty, give_credit
from training.learn.update import BadStep
from training.records import EpisodeCredit, Needs, TraceCredit


class Noting:
    """A method that writes down its groups and credits nothing but ones."""

    def __init__(self, group):
        self.needs, self.groups = Needs(group=group), []

    def credit(self, group):
        self.groups.append([g.returns[0] for g in group])
        return [EpisodeCredit([TraceCredit(ppo=np.ones(2) * g.returns[0]) for _ in g.episode.traces]) for g in group]


def played(number, start):
    one = scored([trace(".0")], {0: float(number)}, start=start)
    return Rollout(number, one.episode, items={0: Item(one.episode.traces[0], (number, 0))}, scored=one)


@pytest.mark.parametrize(
    "group, expected",
    [("conversation", [[0], [1], [2], [3]]), ("start", [[0, 2], [1], [3]]), ("game", [[0, 1, 2, 3]])],
)
def test_groups_are_what_the_method_needs(group, expected):
    step = [played(0, ("a", 1)), played(1, ("b", 1)), played(2, ("a", 1)), played(3, ("a", 2))]
    failed = Rollout(4, step[0].episode)
    method = Noting(group)
    give_credit([*step, failed], method)
    assert method.groups == expected
    assert [one.items[0].credit.ppo[0] for one in step] == [0, 1, 2, 3]
    assert failed.credit is None


def test_a_bad_number_in_credit_is_a_bad_step():
    with pytest.raises(BadStep, match="advantage or value target"):
        give_credit([played(float("nan"), ("a", 1))], Noting("conversation"))


def test_leaving_the_reference_is_paid_for_token_by_token():
    item = Item(trace("..0"), (0, 0))
    item.old, item.reference = np.array([0, 0, -1.0]), np.array([0, 0, -1.5])
    assert _penalty(item, 0.2) == pytest.approx([0, 0, -0.1])
