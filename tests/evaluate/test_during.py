"""The head-to-head during a training run: played every so many steps, with the current weights."""

import pytest

from tests.learn.small_runs import make_run
from training.errors import BadInput
from training.evaluate import during
from training.learn import context
from training.players.model import ModelPlayer
from training.records import LEARNER, Episode
from training.store import read_lines, read_member

EVALUATE = {"every": 2, "conversations": 2, "opponent": "scripted"}


def evaluations(run_dir):
    return [event for event, _ in read_lines(run_dir.attempt(1).events) if event["kind"] == "evaluation"]


def test_the_learner_meets_the_named_opponent_every_other_step(tmp_path):
    config, run_dir = make_run(tmp_path, steps=3, evaluate=EVALUATE)
    assert during.run(config, run_dir)["result"] == "succeeded"
    [event] = evaluations(run_dir)
    assert event["step"] == 2
    assert event["conversations"] == event["used"] == 2
    assert event["a.parse_rate"] < event["b.parse_rate"] == 1  # noise against the script
    assert event["difference.return"] == pytest.approx(event["a.return"] - event["b.return"])


def test_a_head_to_head_does_not_change_the_training(tmp_path):
    config, run_dir = make_run(tmp_path / "with", steps=2, evaluate={**EVALUATE, "every": 1})
    plain, alone = make_run(tmp_path / "without", steps=2)
    during.run(config, run_dir)
    during.run(plain, alone)
    assert len(evaluations(run_dir)) == 2
    assert evaluations(alone) == []
    played = [
        [
            read_member(files.root / "episodes" / line["file"], line["offset"], line["length"])
            for line, _ in read_lines(files.index)
        ]
        for files in (run_dir.attempt(1), alone.attempt(1))
    ]
    assert len(played[0]) == 8
    assert played[0] == played[1]
    traces = [trace for record in played[0] for trace in Episode.from_dict(record["episode"]).traces]
    assert {trace.policy for trace in traces} == {LEARNER}


def test_both_sides_sample_at_the_temperature_of_the_head_to_head(tmp_path, monkeypatch):
    made = []

    class Noted(ModelPlayer):
        def __init__(self, engine, tokenizer, sampling, **kwargs):
            super().__init__(engine, tokenizer, sampling, **kwargs)
            made.append(sampling.temperature)

    monkeypatch.setattr(context, "ModelPlayer", Noted)
    config, run_dir = make_run(tmp_path, steps=2, evaluate={**EVALUATE, "temperature": 0.25})
    during.run(config, run_dir)
    assert set(made) == {1.0, 0.25}
    assert made[-2:] == [0.25, 0.25]


@pytest.mark.parametrize("wrong", [{"opponent": "nobody"}, {"path": "inputs/none.jsonl"}])
def test_a_head_to_head_that_cannot_be_played_is_refused_before_the_run(tmp_path, wrong):
    config, run_dir = make_run(tmp_path)
    config = config.model_copy(update={"evaluate": config.evaluate.model_copy(update={**EVALUATE, **wrong})})
    with pytest.raises(BadInput, match="no such"):
        during.run(config, run_dir)
    assert run_dir.attempts() == []
