"""The head-to-heads of a training run: every so many steps with the weights as they are then, and after the last."""

import asyncio
import json
from pathlib import Path

import pytest

from tests.learn.small_runs import make_run
from tests.toy_models import write_random_llama
from training.attempts.progress import Progress
from training.errors import BadInput, EngineError
from training.evaluate import during
from training.evaluate import run as evaluation
from training.learn import context
from training.players import contestants
from training.players.model import ModelPlayer
from training.records import LEARNER, Episode, Scenario
from training.store import dumps, read_lines, read_member

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

    monkeypatch.setattr(contestants, "ModelPlayer", Noted)
    config, run_dir = make_run(tmp_path, steps=2, evaluate={**EVALUATE, "temperature": 0.25})
    during.run(config, run_dir)
    assert set(made) == {1.0, 0.25}
    assert made[-2:] == [0.25, 0.25]


@pytest.mark.parametrize("wrong", [{"opponent": "nobody"}, {"path": "inputs/none.jsonl"}])
@pytest.mark.parametrize("when", [{"every": 2}, {"every": 0, "at_end": True}])
def test_a_head_to_head_that_cannot_be_played_is_refused_before_the_run(tmp_path, when, wrong):
    config, run_dir = make_run(tmp_path)
    config = config.model_copy(update={"evaluate": config.evaluate.model_copy(update={**EVALUATE, **when, **wrong})})
    with pytest.raises(BadInput, match="no such"):
        during.run(config, run_dir)
    assert run_dir.attempts() == []


@pytest.mark.parametrize(
    "sampling, window",
    [({"max_tokens": 128}, 128), ({"max_tokens": 16, "constrain": True}, 4096)],
    ids=["window", "legal moves"],
)
def test_an_opponent_whose_replies_cannot_be_sampled_is_refused_before_the_run(tmp_path, sampling, window):
    """Else the run would end at its first head-to-head. The learner's own tokens for a legal move are fewer."""
    rival = write_random_llama(tmp_path / "rival", window=window)
    kuhn = Scenario(id="k", game="kuhn_poker", seats=("A", "B"))
    write_random_llama(tmp_path / "model", window=4096, known="<answer><BET></answer> <answer><PASS></answer> " * 50)
    (tmp_path / "data.jsonl").write_text(dumps(kuhn.to_dict()) + "\n")
    evaluate = {**EVALUATE, "opponent": str(rival)}
    game = {"name": "kuhn_poker", "settings": {}}
    config, run_dir = make_run(tmp_path, evaluate=evaluate, sampling=sampling, game=game)
    asyncio.run(context.build(config, run_dir, None).close())  # the learner's own replies can be
    with pytest.raises(BadInput) as caught:
        during.run(config, run_dir)
    assert caught.value.where == "sampling.max_tokens"
    assert run_dir.attempts() == []


# --- after the last step ---

AT_END = {"at_end": True, "conversations": 6}


def report(run_dir, attempt=1):
    return json.loads((run_dir.attempt(attempt).root / "evaluation.json").read_text())


def test_a_run_ends_with_the_report_that_a_head_to_head_of_its_last_checkpoint_has(tmp_path, monkeypatch):
    phases = []
    beat = Progress._write
    monkeypatch.setattr(Progress, "_write", lambda self: (phases.append((self._phase, dict(self._facts))), beat(self)))
    config, run_dir = make_run(tmp_path, steps=2, evaluate=AT_END)
    result = during.run(config, run_dir)
    written = report(run_dir)
    assert result["result"] == "succeeded"
    assert {name: result[name] for name in written} == written
    assert ("evaluating", {"done": 0, "of": 6}) in phases
    a, b = written["conditions"]["a"], written["conditions"]["b"]
    assert (a["source"], a["step"]) == ("attempts/0001/checkpoints/step_000002", 2)
    assert b["source"] == Path(config.model.base).name
    assert f"{a['title']} and" in written["verdict"]
    # by itself: the checkpoint, read from its folder, against the same opponent in the same conversations
    alone = config.model_copy(
        update={"kind": "eval", "evaluate": config.evaluate.model_copy(update={"model": str(run_dir.checkpoint_of(2))})}
    )
    again = evaluation.run(alone, run_dir, 2)
    assert again["summary"] == written["summary"]
    assert again["verdict"] == written["verdict"]
    for name, pairs in written["by_scenario"].items():
        leads = [a - b for a, b in pairs.values()]
        assert written["summary"]["difference"][name]["mean"] == pytest.approx(sum(leads) / len(leads))
    assert {"points", "parse_rate"} <= set(written["by_scenario"])
    for name, means in written["shared_by_scenario"].items():
        assert written["summary"]["shared"][name]["mean"] == pytest.approx(sum(means.values()) / len(means))
    assert len(written["shared_by_scenario"]["agreement"]) == 3
    assert again["summary"]["conversations"] == again["summary"]["used"] == 6


def test_a_head_to_head_that_failed_is_played_again_by_a_resume(tmp_path, monkeypatch):
    config, run_dir = make_run(tmp_path, steps=2, evaluate=AT_END)
    conversations = evaluation.HeadToHead.conversations

    async def fail(self, progress):
        raise EngineError("out of memory")

    monkeypatch.setattr(evaluation.HeadToHead, "conversations", fail)
    failed = during.run(config, run_dir)
    assert failed["result"] == "failed"
    assert "summary" not in failed
    assert "head-to-head after the last step failed: out of memory; checkpoint 2 is saved" in failed["why"]
    monkeypatch.setattr(evaluation.HeadToHead, "conversations", conversations)
    resumed = during.run(config, run_dir)
    assert (resumed["result"], resumed["attempt"], resumed["step"]) == ("succeeded", 2, 2)
    assert not run_dir.attempt(2).metrics.exists()  # no step was repeated
    plain, whole = make_run(tmp_path / "whole", steps=2, evaluate=AT_END)
    assert report(run_dir, 2)["summary"] == during.run(plain, whole)["summary"]


def test_a_stop_during_the_last_head_to_head_keeps_the_run(tmp_path, monkeypatch):
    config, run_dir = make_run(tmp_path, steps=2, evaluate=AT_END)
    phase = Progress.phase

    def stop_when_evaluating(self, name, **facts):
        phase(self, name, **facts)
        if name == "evaluating":
            self.stop("asked by a test")

    monkeypatch.setattr(Progress, "phase", stop_when_evaluating)
    stopped = during.run(config, run_dir)
    assert (stopped["result"], stopped["why"]) == ("stopped", "asked by a test")
    assert run_dir.latest_checkpoint()[0] == 2
    assert not (run_dir.attempt(1).root / "evaluation.json").exists()
