"""A whole run in which a method teaches what probes ask: from the rollout's branches to the loss and the record."""

import numpy as np
import pytest

from tests.learn.small_runs import make_run
from tests.learn.test_trainer import lines
from training.games import make
from training.learn import trainer
from training.methods.credit_builder import CreditBuilder
from training.methods.omar import Omar
from training.methods.trajectories import probe_answers
from training.records import Episode, Probe, Scenario
from training.store import read_member

PROBE = Probe(question="Which is scarce?", choices=("food", "water"), truth=("water",))


def listening(self, group):
    """The right answer's tokens, each with weight 1, and nothing else."""
    credits_ = []
    for scored in group:
        builder = CreditBuilder(scored)
        for probe in probe_answers(scored.episode):
            builder.nll(probe.trace, probe.where, 1.0)
        credits_.append(builder.credit())
    return credits_


def records(run_dir):
    files = run_dir.attempt(1)
    for line in lines(files.index):
        yield line["step"], read_member(files.root / "episodes" / line["file"], line["offset"], line["length"])


@pytest.mark.parametrize(
    "learn", [{}, {"epochs": 2, "tokens_per_update": 600, "lr": 3e-3}], ids=["one update", "several"]
)
def test_a_run_learns_to_answer_what_probes_ask(tmp_path, monkeypatch, learn):
    shared = {"steps": 4, "lr": 1e-2, "critic_warmup": 0, "kl": "none", "kl_measured": False}
    config, run_dir = make_run(tmp_path, learn=shared | learn, rollout={"probes": True})
    game = type(make(Scenario.from_dict(lines(tmp_path / "data.jsonl")[0])))
    monkeypatch.setattr(game, "probes", lambda self: dict.fromkeys(range(2), PROBE))
    monkeypatch.setattr(Omar, "credit", listening)
    result = trainer.run(config, run_dir)
    assert result["result"] == "succeeded", result["why"]
    metrics = lines(run_dir.attempt(1).metrics)
    assert all(line["nll_loss"] > 0 == line["ppo_loss"] for line in metrics)
    right = {}
    for step, record in records(run_dir):
        episode = Episode.from_dict(record["episode"])
        assert episode.beliefs
        for belief in episode.beliefs:
            right.setdefault(step, []).append(belief.probabilities["water"])
            credit = record["credit"][belief.trace]
            start, stop = belief.span
            places = np.arange(len(episode.traces[belief.trace].tokens))
            assert credit["nll"] == ((places >= start) & (places < stop)).astype(float).tolist()
            assert credit["values"] == {}
    assert np.mean(right[4]) > np.mean(right[1]) + 0.1
