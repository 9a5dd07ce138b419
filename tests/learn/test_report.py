"""What a step writes down: numbers counted by hand, a value beside the token that it was read before."""

import numpy as np
import pytest

from tests.methods.episodes import scored, trace
from training.learn.batch import Item
from training.learn.report import credit_metrics, outcome_metrics, write_episodes
from training.learn.score import Rollout
from training.records import TraceCredit
from training.rewards import Score


def played(number=0, reward=1.0, passed=(True,)):
    conversation = scored([trace("..00")], {0: reward}, {"turn": [[0.5, 0.25, 0.75, 9]]})
    target, mask = np.array([0, 1.0, 0, 0]), np.array([False, True, False, False])
    credit = TraceCredit(ppo=np.array([0, 0, 1.0, 3.0]), value_targets={"turn": target}, value_mask={"turn": mask})
    item = Item(conversation.episode.traces[0], (number, 0), credit, old=np.array([0, 0, -1.5, -0.5]))
    return Rollout(number, conversation.episode, Score({0: reward}, passed), {0: item}, conversation)


class Written:
    """A progress that stores every event that it receives."""

    def __init__(self):
        self.records = []

    def episode(self, step, number, record, summary):
        self.records.append((step, number, record, summary))


def test_a_value_stands_beside_the_token_that_it_was_read_before():
    written = Written()
    write_episodes(written, 3, [played()])
    [(step, number, record, _)] = written.records
    assert (step, number) == (3, 0)
    assert record["credit"][0]["values"]["turn"] == [0.0, 0.5, 0.25, 0.75]
    assert record["credit"][0]["advantages"] == [0, 0, 1, 3]
    assert record["credit"][0]["logprobs"] == [0, 0, -1.5, -0.5]


def test_a_step_in_numbers():
    lost = Rollout(2, played().episode)
    metrics = outcome_metrics([played(0, 1.0), played(1, 0.5, passed=(False,)), lost])
    expected = {
        "episodes": 2,
        "errors": 1,
        "reward": 0.75,
        "reward_0": 0.75,
        "failing": 0.5,
        "parse_rate": 1.0,
        "legal_rate": 1.0,
    }
    expected |= {"turns": 1, "branches": 0, "reply_tokens": 2, "sampled_tokens": 4, "trace_tokens": 8}
    assert metrics == pytest.approx(expected)
    assert outcome_metrics([lost]) == {"episodes": 0, "errors": 1}


def test_credit_in_numbers():
    # advantages 1 and 3: mean 2, spread 1; targets 1 and 3 with values .25 and .25: the critic explains nothing
    other = played(1)
    other.items[0].credit.value_targets["turn"][1] = 3.0
    metrics = credit_metrics([played(), other])
    # their mean squared error is (0.75² + 2.75²) / 2 = 4.0625 over a variance of 1
    expected = {"advantage_mean": 2, "advantage_std": 1, "explained_variance_turn": 0, "value_r2_turn": -3.0625}
    assert metrics == pytest.approx(expected)


def test_a_constant_error_is_seen_by_value_r2_alone():
    # targets 1 and 3, values 2 and 4: the error is -1 both times, so its variance is 0 and its mean square 1 = Var(y)
    first, other = played(), played(1)
    other.items[0].credit.value_targets["turn"][1] = 3.0
    first.scored.values["turn"][0][1], other.scored.values["turn"][0][1] = 2.0, 4.0
    metrics = credit_metrics([first, other])
    assert (metrics["explained_variance_turn"], metrics["value_r2_turn"]) == (1, 0)


def test_advantages_of_both_objectives_count():
    # sampled tokens: 1 and 3 by the clipped objective; 1 + 2 and 3 - 2 by both; 2 and -2 by the other one
    clipped, both, other = played(0).items[0], played(1).items[0], played(2).items[0]
    second = np.array([9.0, 9.0, 2.0, -2.0])
    both = Item(both.trace, (1, 0), TraceCredit(ppo=both.credit.ppo, reinforce=second), old=both.old)
    other = Item(other.trace, (2, 0), TraceCredit(reinforce=second), old=other.old)

    def mean_and_spread(*items):
        rollouts = [Rollout(n, played().episode, items={0: item}) for n, item in enumerate(items)]
        metrics = credit_metrics(rollouts)
        return metrics["advantage_mean"], metrics["advantage_std"]

    assert mean_and_spread(clipped) == (2, 1)
    assert mean_and_spread(both) == (2, 1)
    assert mean_and_spread(other) == (0, 2)
    assert mean_and_spread(both, other) == (1, pytest.approx(3.5**0.5))  # 3, 1, 2, -2


def test_advantages_by_role():
    conversation = scored([trace("..00"), trace("..1", seat=1)], {0: 1.0, 1: 0.25})
    episode = conversation.episode.model_copy(update={"roles": ("wolf", "villager")})
    credit = {0: np.array([0, 0, 1.0, 3.0]), 1: np.array([0, 0, -4.0])}
    items = {n: Item(episode.traces[n], (0, n), TraceCredit(ppo=credit[n])) for n in (0, 1)}
    metrics = credit_metrics([Rollout(0, episode, Score({0: 1.0, 1: 0.25}, (True, True)), items, conversation)])
    assert (metrics["advantage_mean/wolf"], metrics["advantage_mean/villager"], metrics["advantage_mean"]) == (2, -4, 0)


def test_with_others_at_the_table_only_the_learners_seats_count():
    conversation = scored([trace("..00"), trace("..1", seat=1, policy="past 3")], {0: 1.0, 1: 0.25})
    episode = conversation.episode.model_copy(
        update={"roles": ("wolf", "villager"), "seat_metrics": {0: {"won": 1.0}, 1: {"won": 0.0}}}
    )
    first = Rollout(0, episode, Score({0: 1.0, 1: 0.25}, (True, False)), policies=("learner", "past 3"))
    mirror = Rollout(1, episode, Score({0: 0.5, 1: 0.0}, (True, False)))
    metrics = outcome_metrics([first])
    assert (metrics["reward"], metrics["failing"], metrics["reply_tokens"]) == (1, 0, 2)
    assert (metrics["reward_against past"], metrics["games_against past"]) == (1, 1)
    assert (metrics["reward/wolf"], metrics["won/wolf"], metrics["failing/wolf"]) == (1, 1, 0)
    assert not any(name.endswith("/villager") for name in metrics)
    both = outcome_metrics([first, mirror])
    assert both["reward"] == pytest.approx(0.5)  # 1, 0.5 and 0: three seats were the learner's
    assert both["failing"] == pytest.approx(1 / 3)
    assert (both["reward_against past"], both["games_against past"]) == (1, 1)
    assert (both["reward/wolf"], both["reward/villager"]) == (0.75, 0)
