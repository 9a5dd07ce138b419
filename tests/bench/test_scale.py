"""The parts of `bench scale` that start processes, on the tiny model: what they report adds up."""

from argparse import Namespace

import pytest

from bench import overlap, scale, several_engines, several_ranks
from tests.toy_models import write_random_llama

pytestmark = [pytest.mark.process, pytest.mark.slow]


@pytest.fixture(scope="module")
def arguments(tmp_path_factory):
    model = write_random_llama(tmp_path_factory.mktemp("base") / "model", window=4096)
    return Namespace(
        part=None, model=str(model), rounds=1, dtype="float32", threads=1, games=1, tokens=4096, seed=0,
        engine="transformers", steps=4, epochs=1,
    )  # fmt: skip


def test_two_engines_sample_what_one_samples(arguments, monkeypatch):
    monkeypatch.setattr(several_engines, "REQUESTS", 8)
    result = several_engines.measure(arguments)
    assert result["ratio"] == pytest.approx(result["a"]["median"] / result["b"]["median"])
    assert several_engines.line(result).startswith("two against one")


def test_two_ranks_learn_what_one_learns(arguments):
    result = several_ranks.measure(arguments)
    assert result["work"]["loss_difference"] < 1e-5
    assert result["ratio"] == pytest.approx(result["a"]["median"] / result["b"]["median"])


def test_runs_with_and_without_a_lag_play_as_much(arguments):
    result = scale.main(Namespace(**{**vars(arguments), "part": "overlap"}))["parts"]["overlap"]
    assert result["work"] == {"steps": 4, "games": 8}
    for side in "ab":
        (read,) = result[side]["runs"]
        assert read["rate"] == pytest.approx(3600 * 8 / read["step_s"])
    assert overlap.line(result).endswith("over 1 seeds")
