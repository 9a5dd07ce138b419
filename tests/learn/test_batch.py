"""How traces are cut into updates and passes, and what a pass carries."""

import numpy as np
import pytest

from tests.methods.episodes import trace
from training.learn.batch import Item, batches, cut, updates
from training.records import TraceCredit


def item(layout, number=0, **credit):
    return Item(trace(layout), (number, 0), TraceCredit(**{k: np.array(v, dtype=float) for k, v in credit.items()}))


def test_cut_bounds_the_tokens_of_a_pass():
    items = [item("." * n) for n in (10, 3, 7, 2, 11, 40)]
    groups = cut(items, 20)
    assert [[len(i) for i in group] for group in groups] == [[40], [11, 7, 2], [10, 3]]


@pytest.mark.parametrize(
    "sizes, ranks, groups",
    [
        ((10, 3, 7, 2, 11, 40), 2, [[40], [10, 2], [11], [7, 3]]),  # three full groups become two for each rank
        ((6, 5, 4, 3), 2, [[6, 3], [5, 4]]),  # what fits one pass is cut for both ranks
        ((10, 10, 6, 6, 6), 2, [[6, 6], [10], [10], [6]]),  # in two even groups, one would have 22
        ((6, 5), 3, [[6], [5]]),  # nothing is left for the third
        ((), 2, []),
    ],
)
def test_cut_for_several_ranks_is_even(sizes, ranks, groups):
    items = [item("." * n) for n in sizes]
    assert [[len(i) for i in group] for group in cut(items, 20, ranks)] == groups


def test_updates_hold_every_item_once_and_depend_on_the_seed_only():
    items = [item("." * n, n) for n in range(2, 30)]
    groups = updates(items, 60, seed=3)
    assert sorted(len(i) for group in groups for i in group) == list(range(2, 30))
    assert all(30 <= sum(map(len, group)) <= 120 for group in groups)
    assert [[i.trajectory for i in g] for g in updates(items, 60, seed=3)] == [
        [i.trajectory for i in g] for g in groups
    ]
    assert updates(items, 60, seed=4) != groups
    assert len(updates(items, 0, seed=3)) == 1


def test_no_update_is_a_small_leftover():
    # seven items of three tokens: two fit into eight, and the seventh alone (3 < 8/2) joins the third pair
    assert [len(group) for group in updates([item("...", n) for n in range(7)], 8, seed=0)] == [2, 2, 3]
    # at six tokens the leftover is half an update and stays
    assert [len(group) for group in updates([item("...", n) for n in range(7)], 6, seed=0)] == [2, 2, 2, 1]
    assert [len(group) for group in updates([item("...")], 8, seed=0)] == [1]


def test_updates_may_count_trajectories_which_stay_whole():
    traces = [item("...", game) for game in range(7) for _ in range(1 + game % 2)]  # some games have two traces
    groups = updates(traces, 0, seed=1, trajectories=3)
    seats = [{each.trajectory for each in group} for group in groups]
    assert [len(each) for each in seats] == [3, 4]  # the last one would be less than half of three
    assert not seats[0] & seats[1]
    assert sorted(id(each) for group in groups for each in group) == sorted(map(id, traces))
    assert updates(traces, 5, seed=1, trajectories=3) == groups  # tokens do not matter then


def test_a_pass_picks_scored_tokens_with_their_streams():
    row = item(".0.1", 0, ppo=[9, 2, 9, -1])
    two = item(".00", 1, ppo=[9, 3, 4])
    row.old = np.array([0, -0.5, 0, -0.25])
    [batch] = batches([two, row], 100, "token_mean")
    assert batch.ids.tolist() == [[0, 1, 2, 3, 0, 1, 2]]
    assert batch.layout.positions.tolist() == [[0, 1, 2, 3, 0, 1, 2]]
    assert batch.at.tolist() == [1, 3, 5, 6]
    assert batch.before.tolist() == [0, 2, 4, 5]
    assert batch.targets.tolist() == [1, 3, 1, 2]
    assert batch.streams["ppo"].tolist() == [2, -1, 3, 4]
    assert batch.streams["ppo_weight"].tolist() == [0.25] * 4
    assert batch.streams["reinforce_weight"].tolist() == [0.0] * 4
    assert batch.streams["old"].tolist()[:2] == [-0.5, -0.25]
    assert np.isnan(batch.streams["old"].tolist()[2:]).all()


def test_nll_reads_any_token_and_has_its_own_normaliser():
    row = item("..0", 0, nll=[5, 0.5, 0], ppo=[0, 0, 1])
    [batch] = batches([row], 100, "token_mean")
    assert batch.at.tolist() == [1, 2]  # the first token has nothing before it, whatever its weight
    assert batch.streams["nll"].tolist() == [0.5, 0]
    assert batch.streams["nll_weight"].tolist() == [1, 0]
    assert batch.streams["ppo_weight"].tolist() == [0, 1]


def test_weights_add_up_over_all_passes_of_an_update():
    items = [item(".0.1", n, ppo=[0, 1, 0, 1]) for n in range(7)]
    for how in ("token_mean", "turn_mean"):
        total = sum(float(b.streams["ppo_weight"].sum()) for b in batches(items, 8, how))
        assert total == pytest.approx(1.0)


def test_value_places_share_one_normaliser_per_head():
    row = item("..0")
    row.credit = TraceCredit(
        value_targets={"turn": np.array([0, 3.0, 0]), "token": np.array([1.0, 2.0, 0])},
        value_mask={"turn": np.array([False, True, False]), "token": np.array([True, True, False])},
    )
    [batch] = batches([row, item(".0", 1)], 100, "token_mean")
    at, targets, weights = batch.values["token"]
    assert (at.tolist(), targets.tolist(), weights.tolist()) == ([0, 1], [1, 2], [0.5, 0.5])
    assert [numbers.tolist() for numbers in batch.values["turn"]] == [[1], [3.0], [1.0]]
