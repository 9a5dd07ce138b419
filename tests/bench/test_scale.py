"""The parts of `bench scale` that start processes, on the tiny model: what they report adds up."""

from argparse import Namespace
from functools import partial

import pytest

from bench import checkpoints, overlap, scale, several_engines, several_ranks, step_time, sync, transfer, whole_steps
from bench.__main__ import parser
from bench.scale import sized
from bench.whole_steps import PHASES, seconds, weight_bytes
from tests.toy_models import write_random_llama
from training.config import parse

pytestmark = [pytest.mark.process, pytest.mark.slow]


def test_what_the_phases_leave_of_a_step_is_the_rest():
    lines = [{"at": at, "sampling_s": 4, "learning_s": 3, "sync_s": 1} for at in (100.0, 110.0, 117.0)]
    rows = seconds(lines, 1)
    assert [row["rest"] for row in rows] == [2, 0]  # 10 - 8; phases that overlap leave nothing
    assert [row["step"] for row in rows] == [10, 7]
    assert set(rows[0]) == {*PHASES, "step"}


@pytest.fixture(scope="module")
def arguments(tmp_path_factory):
    model = write_random_llama(tmp_path_factory.mktemp("base") / "model", window=4096)
    return Namespace(
        part=None, model=str(model), rounds=1, dtype="float32", threads=1, games=1, tokens=4096, seed=0,
        engine="transformers", steps=4, epochs=1, out=None,
    )  # fmt: skip


def test_a_part_has_its_own_sizes_unless_they_are_given():
    parsed = parser().parse_args(["scale", "--games", "7"])
    sizes = [
        (each.model, each.tokens, each.games, each.rounds) for each in map(partial(sized, parsed), ("sync", "overlap"))
    ]
    assert sizes == [("smollm2-135m", 2048, 7, 3), ("tiny", 2048, 7, 5)]


def test_two_engines_sample_what_one_samples(arguments, monkeypatch):
    monkeypatch.setattr(several_engines, "REQUESTS", 8)
    result = several_engines.measure(arguments)
    assert result["ratio"] == pytest.approx(result["a"]["median"] / result["b"]["median"])
    assert several_engines.line(result).startswith("two against one")


def test_two_ranks_learn_what_one_learns(arguments):
    result = several_ranks.measure(arguments)
    assert result["work"]["loss_difference"] < 1e-5
    for compared in (result, result["independent"]):
        assert compared["ratio"] == pytest.approx(compared["a"]["median"] / compared["b"]["median"])


def test_checkpoints_of_both_kinds_are_restored(arguments):
    result = checkpoints.measure(Namespace(**{**vars(arguments), "tokens": 64}))
    weights = weight_bytes(arguments.model)
    numbers = result["bytes"]["state"] // 12  # weights and two moments, beside the optimizer's counts
    assert 4 * numbers == pytest.approx(weights, rel=0.01)
    assert min(result["bytes"][side] for side in "ab") >= 3 * weights
    for name in ("save", "load"):
        assert result[name]["ratio"] == pytest.approx(result[name]["a"]["median"] / result[name]["b"]["median"])


@pytest.mark.vllm
def test_both_ways_bring_an_engine_the_same_weights(arguments):
    result = transfer.measure(Namespace(**{**vars(arguments), "engine": "vllm"}))
    assert result["bytes"] == weight_bytes(arguments.model)
    assert result["ratio"] == pytest.approx(result["a"]["median"] / result["b"]["median"])


def test_a_lag_is_compared_by_the_seconds_of_all_steps_but_the_first_two(arguments, monkeypatch):
    def played(config):
        """Steps of 10 s without a lag and of 4 s with one, after two that take a minute; the reward falls with it."""
        parsed = parse(config)
        lag, seconds = parsed.cluster.lag, {0: 10.0, 1: 4.0}[parsed.cluster.lag]
        assert [each.source for each in parsed.opponents] == ["start"]
        times = [60.0, 120.0, *(120.0 + seconds * step for step in range(1, parsed.learn.steps - 1))]
        phases = {"sampling_s": 4.0, "learning_s": 3.0, "sync_s": 1.0}
        return [{"at": at, "reward": 0.5 - 0.1 * lag, **phases} for at in times]

    monkeypatch.setattr(whole_steps, "steps_of", played)
    result = scale.main(Namespace(**{**vars(arguments), "part": ["overlap"]}))["parts"]["overlap"]
    assert result["work"] == {"steps": 4, "games": 8}
    assert (result["a"]["median"], result["b"]["median"]) == (3600 * 8 / 4, 3600 * 8 / 10)
    assert result["ratio"] == 2.5
    assert result["reward_difference"] == {"mean": pytest.approx(-0.1), "half_width": 0.0, "seeds": 1}
    assert overlap.line(result).endswith("over 1 seeds")


def test_the_phases_of_a_step_add_up_and_the_sync_has_its_share(arguments, monkeypatch):
    monkeypatch.setattr(sync, "STEPS", 3)
    result = scale.main(Namespace(**{**vars(arguments), "part": ["sync"], "games": 4}))["parts"]["sync"]
    for side in "ab":
        assert sum(result[side]["shares"].values()) == pytest.approx(1, abs=0.02)
        assert len(result[side]["steps"]) == 2
    assert result["share"] == result["a"]["shares"]["sync"]
    # by hand: embeddings 259 · 64; of 2 layers queries and output 64 · 64, keys and values 64 · 32, three of 64 · 128,
    # two norms; the last norm
    assert result["bytes"] == 4 * (259 * 64 + 2 * (2 * 64 * 64 + 2 * 64 * 32 + 3 * 64 * 128 + 2 * 64) + 64)
    assert weight_bytes(arguments.model, 2) == result["bytes"] / 2
    assert "% of a step" in sync.line(result)


def test_the_model_of_a_step_is_fitted_and_checked(arguments, monkeypatch):
    def played(arguments, games, cluster):
        """Steps whose phases grow with the games in a straight line, of which a lag saves the shorter side."""
        work = {"episodes": games, "turns": 4.0, "sampled_tokens": 40 * games, "trace_tokens": 500 * games}
        sampling, learning, sync, rest = 0.4 + 0.04 * games, 1.0 + 0.5 * games, 0.2, 0.1 * games
        whole = max(sampling, learning + sync) + rest if cluster.get("lag") else sampling + learning + sync + rest
        return [{**work, "sampling": sampling, "learning": learning, "sync": sync, "rest": rest, "step": whole}] * 3

    monkeypatch.setattr(step_time, "_run", played)
    monkeypatch.setattr(step_time.os, "sched_getaffinity", lambda _: {0, 1})
    result = step_time.measure(Namespace(**{**vars(arguments), "tokens": 500}))  # a conversation is a micro-batch
    assert all(value >= 0 for value in result["fit"]["costs"].values())
    one, ahead, two = result["checks"]
    assert one["measured_s"] == pytest.approx(0.72 + 5.0 + 0.2 + 0.8)
    for check in (one, ahead):
        assert check["error"] == pytest.approx(check["modelled_s"] / check["measured_s"] - 1)
    assert one["error"] == pytest.approx(0, abs=0.01)
    assert two["skipped"] == "3 processes need a core each"
    assert "limited by" in step_time.line(result)
