"""NashConv of a training run's learner joins the metrics of the steps at which it is due."""

import asyncio

import pytest

from tests.learn.small_runs import make_run
from training import config as configs
from training.errors import BadInput
from training.evaluate import during, nashconv
from training.learn.trainer import Trainer
from training.players.strategic import POKERS
from training.records import Episode
from training.store import read_lines, read_member

KUHN = {"nashconv": ["kuhn_poker"], "nashconv_every": 2}
NUMBERS = {"nashconv/kuhn_poker", "exploitability/kuhn_poker"}


def lines(run_dir, attempt=1):
    return [line for line, _ in read_lines(run_dir.attempt(attempt).metrics)]


def played(run_dir):
    files = run_dir.attempt(1)
    return [
        Episode.from_dict(
            read_member(files.root / "episodes" / line["file"], line["offset"], line["length"])["episode"]
        )
        for line, _ in read_lines(files.index)
    ]


def test_the_curve_has_every_second_step_and_the_last_and_nothing_else_changes(tmp_path):
    config, run_dir = make_run(tmp_path / "with", steps=3, evaluate=KUHN)
    plain, alone = make_run(tmp_path / "without", steps=3)
    assert during.run(config, run_dir)["result"] == "succeeded"
    during.run(plain, alone)
    assert [set(line) >= NUMBERS for line in lines(run_dir)] == [False, True, True]
    assert not any(NUMBERS & set(line) for line in lines(alone))
    for line in lines(run_dir)[1:]:
        assert 0 <= line["nashconv/kuhn_poker"] == pytest.approx(2 * line["exploitability/kuhn_poker"])
    assert played(run_dir) == played(alone)


def test_the_numbers_are_those_of_the_saved_weights(tmp_path):
    config, run_dir = make_run(tmp_path, steps=1, evaluate=KUHN, learn={"critic_warmup": 0})
    during.run(config, run_dir)
    folder = run_dir.checkpoint_of(1)
    measured = nashconv.run(
        "kuhn_poker", str(folder), engine="transformers", device="cpu", dtype="float32", on_progress=lambda *_: None
    )
    [line] = lines(run_dir)
    assert line["nashconv/kuhn_poker"] == pytest.approx(measured["nash_conv"], abs=1e-4)
    assert line["exploitability/kuhn_poker"] == pytest.approx(measured["exploitability"], abs=1e-4)


def test_a_stop_leaves_the_measurement_out_and_keeps_the_step(tmp_path, monkeypatch):
    async def stopped(trainer, states):
        trainer.progress.stop("enough")
        await asyncio.Event().wait()

    monkeypatch.setattr(during, "equilibrium", stopped)
    config, run_dir = make_run(tmp_path, steps=3, evaluate={**KUHN, "nashconv_every": 1})
    result = during.run(config, run_dir)
    assert (result["result"], result["step"]) == ("stopped", 1)
    assert [(line["step"], NUMBERS & set(line)) for line in lines(run_dir)] == [(1, set())]
    assert run_dir.checkpoint_of(1).is_dir()


def test_a_failure_is_a_warning_and_the_run_goes_on(tmp_path, monkeypatch):
    async def failing(trainer, states):
        raise ValueError("no such answer")

    monkeypatch.setattr(during, "equilibrium", failing)
    config, run_dir = make_run(tmp_path, steps=2, evaluate=KUHN)
    assert during.run(config, run_dir)["result"] == "succeeded"
    assert [NUMBERS & set(line) for line in lines(run_dir)] == [set(), set()]
    warnings = [event for event, _ in read_lines(run_dir.attempt(1).events) if event["kind"] == "warning"]
    assert [(event["step"], event["why"]) for event in warnings] == [
        (2, "nothing was measured: ValueError: no such answer")
    ]


def test_only_a_run_that_asks_for_it_is_measured(tmp_path, monkeypatch):
    seen = []
    make = Trainer.__init__
    monkeypatch.setattr(Trainer, "__init__", lambda self, *args: seen.append(args[4:]) or make(self, *args))
    config, run_dir = make_run(tmp_path, steps=1, learn={"critic_warmup": 0})
    during.run(config, run_dir)
    assert seen == [(None, None)], "neither NashConv nor a single agent"


def test_only_the_games_with_a_best_response_can_be_named():
    with pytest.raises(BadInput, match="'kuhn_poker' or 'leduc_poker'") as caught:
        configs.parse({"evaluate": {"nashconv": ["kuhn_poker", "hanabi"]}})
    assert caught.value.where == "evaluate.nashconv.1"
    assert configs.parse({"evaluate": {"nashconv": list(POKERS)}}).evaluate.nashconv == tuple(POKERS)
