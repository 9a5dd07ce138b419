"""From episodes to credit: groups, and the KL divergence as a reward."""

import numpy as np
import pytest

from tests.methods.episodes import scored, trace
from training.learn.batch import Item
from training.learn.score import Rollout, _penalty, give_credit, learnable, rows
from training.learn.update import BadStep
from training.records import EpisodeCredit, Needs, TraceCredit
from training.rewards import Score


class Noting:
    """A method that writes down its groups and credits nothing but ones."""

    def __init__(self, group):
        self.needs, self.groups = Needs(group=group), []

    def credit(self, group):
        self.groups.append([g.returns[0] for g in group])
        return [EpisodeCredit([TraceCredit(ppo=np.ones(2) * g.returns[0]) for _ in g.episode.traces]) for g in group]


def played(number, start):
    game = scored([trace(".0")], {0: float(number)}, start=start)
    return Rollout(number, game.episode, items={0: Item(game.episode.traces[0], (number, 0))}, scored=game)


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
    assert [game.items[0].credit.ppo[0] for game in step] == [0, 1, 2, 3]
    assert failed.credit is None


def test_a_bad_number_in_credit_is_a_bad_step():
    with pytest.raises(BadStep, match="advantage or value target"):
        give_credit([played(float("nan"), ("a", 1))], Noting("conversation"))


def test_leaving_the_reference_is_paid_for_token_by_token():
    item = Item(trace("..0"), (0, 0))
    item.old, item.reference = np.array([0, 0, -1.0]), np.array([0, 0, -1.5])
    assert _penalty(item, 0.2) == pytest.approx([0, 0, -0.1])


# --- what updates read -----------------------------------------------------------------------------------------------


def seen(tokens, prefix=None, policy="learner"):
    return trace("." * len(tokens), policy=policy, prefix=prefix).model_copy(update={"tokens": tuple(tokens)})


def rollout_of(*traces):
    episode = scored(traces, {0: 1.0}).episode
    return Rollout(0, episode, score=Score(returns={0: 1.0}, passed=()))


def with_nll(rollout, **places):
    """Give nll credit to the traces named t0, t1, … at these places."""
    for name, at in places.items():
        item = rollout.items[int(name[1:])]
        item.credit = TraceCredit(nll=np.isin(np.arange(len(item)), at).astype(float))


def test_a_probe_is_read_once_a_method_gives_its_tokens_credit():
    played = rollout_of(trace("..0"), seen([5, 6], (0, 2)), seen([7, 8], (0, 3)))
    measured_items = learnable([played])
    assert measured_items == [played.items[0]]  # nothing is measured where nothing was sampled
    assert (rows([played]), played.items[0].branches) == (measured_items, [])
    with_nll(played, t2=[0, 1])
    assert (rows([played]), played.items[0].branches) == ([played.items[0]], [played.items[2]])
    with_nll(played, t1=[1], t2=[])
    assert (rows([played]), played.items[0].branches) == ([played.items[0]], [played.items[1]])


def test_a_seat_that_never_moved_is_read_for_its_probes_alone():
    played = rollout_of(seen([1, 2, 3, 4]), seen([5, 4], (0, 2)), trace("..0"))
    assert learnable([played]) == [played.items[2]]
    assert rows([played]) == [played.items[2]]
    with_nll(played, t1=[1])  # the first probe has no credit, and is read for the sake of the second
    assert rows([played]) == [played.items[0], played.items[2]]
    assert played.items[0].branches == [played.items[1]]
    with_nll(played, t0=[0], t1=[])  # nothing stands before the first token of a conversation
    assert rows([played]) == [played.items[2]]


def test_probes_of_other_policies_are_not_learned_from():
    played = rollout_of(trace("..0", policy="past 3"), seen([5, 6], (0, 2), "past 3"), trace("..0"))
    learnable([played])
    assert list(played.items) == [2]
