"""Both sides of the measurement of packing do the same update, and its counts are right by hand."""

from __future__ import annotations

from argparse import Namespace

import pytest

from bench import packing, padded_rows
from tests.learn.test_rows import gradients, learning, unpacked
from tests.learn.test_update import make
from tests.methods.episodes import trace
from tests.toy_models import write_random_llama
from training.learn.batch import Item
from training.samples import for_game


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    return str(write_random_llama(tmp_path_factory.mktemp("base") / "model", window=4096))


def test_groups_count_their_padding():
    items = [Item(trace("." * n), (n, 0)) for n in (10, 3, 7, 2, 10, 40)]
    groups = padded_rows.cut(items, 20)
    assert [[len(item) for item in group] for group in groups] == [[40], [10, 10], [7, 3], [2]]
    assert [padded_rows.size(group) for group in groups] == [40, 20, 14, 2]


@pytest.mark.parametrize("branches", [False, True])
def test_padded_rows_teach_what_packed_ones_teach(base, branches, tmp_path):
    policy = make(base)
    items = learning() if branches else list(unpacked(learning()))
    packed, metrics = gradients(policy, items, "token_mean", tmp_path)
    [batch] = padded_rows.batches(items, 10_000, "token_mean")
    count = sum(not item.trace.prefix for item in batch.items)
    assert batch.layout.shape[0] == count
    assert batch.ids.shape[1] == padded_rows.size(items)
    updater = packing.Updater(policy, 0)
    policy.model.zero_grad()
    with padded_rows.instead(policy):
        updater._loss(batch, on=True, single=True, share=1.0).backward()
    assert updater._totals == pytest.approx(metrics, rel=1e-4, abs=1e-6)
    for name, parameter in policy.trained.items():
        assert parameter.grad.allclose(packed[name], rtol=1e-3, atol=1e-5)


def test_the_measurement_compares_the_same_update(base):
    side = packing.Learning(Namespace(model=base, dtype="float32", tokens=64))
    traces = [packing.item(trace("..00.11" * n), n) for n in (1, 2, 4)]
    alone = side.compared(traces, 1)
    assert alone["work"]["padding"] == pytest.approx(14 / 63)  # two rows of 28, and 7 alone
    assert (alone["work"]["tokens"], alone["work"]["lengths"]) == (49, [7, 14, 28])
    assert alone["work"]["passes"] == {"a": 1, "b": 2}
    assert alone["work"]["loss_difference"] < 1e-5
    branched = side.compared([packing.with_branches(item) for item in traces], 1)
    assert branched["work"]["tokens"] == 49 + 3 * packing.QUESTIONS * packing.QUESTION
    assert branched["work"]["loss_difference"] < 1e-5
    assert packing.line({"unit": "tokens per second", "traces": alone, "branches": branched}).count("% padding") == 2


def test_games_start_from_the_samples():
    episodes = packing.games(2, 0)
    assert [episode.scenario.id for episode in episodes] == [start.id for start in for_game("werewolf")[:2]]
    assert not any(episode.error for episode in episodes)
