"""The cold start: its loss against a plain forward, its order, its end, its resume, its guard."""

from __future__ import annotations

import json
import math

import pytest
import torch

from tests.learn.conversations import write_conversations
from tests.toy_models import write_random_llama
from training import bases
from training.config import RunConfig
from training.errors import BadInput
from training.learn import models
from training.learn.sft import cold_start, fit
from training.learn.sft.data import example, plan, read_traces
from training.records import Trace
from training.rundir import RunDir
from training.sections import SftConfig
from training.store import read_lines
from training.text.template import ChatTokenizer


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    return write_conversations(tmp_path_factory.mktemp("data") / "games.jsonl", 3)


@pytest.fixture(scope="module")
def base(tmp_path_factory, dataset):
    folder = tmp_path_factory.mktemp("base") / "toy"
    return write_random_llama(folder, window=8192, scale=0.05, known=dataset.read_text("utf-8"))


def configure(base, dataset, **changes):
    sections = {
        "epochs": 2,
        "max_length": 1000,
        "tokens_per_batch": 1000,
        "batches_per_step": 2,
        "lr": 1e-2,
        "lora": {"rank": 4, "alpha": 8, "dropout": 0.1},
        **changes,
    }
    data = {"kind": "sft", "model": {"base": str(base), "device": "cpu"}, "data": {"path": str(dataset)}}
    return RunConfig.from_dict({**data, "sft": sections})


def metrics(run_dir, attempt=1):
    return [line for line, _ in read_lines(run_dir.attempt(attempt).metrics)]


def weights(folder):
    return dict(models.merged_weights(models.load(folder)[0]))


def test_labels_are_what_the_seat_said():
    trace = Trace(seat=0, tokens=(5, 6, 7, 8), mask=(0, 0, 1, 1), turn=(-1, -1, 0, 0), logprobs=(0.0,) * 4)
    assert example(trace) == {"input_ids": [5, 6, 7, 8], "labels": [-100, -100, 7, 8]}


def test_every_trace_is_read_once_an_epoch_in_batches_that_fit_and_in_an_order_of_the_seed():
    lengths = [10 + 7 * (i % 13) for i in range(200)] + [900]
    settings = SftConfig(epochs=3, tokens_per_batch=300, batches_per_step=2)
    batches = plan(lengths, settings, seed=4)
    read = [index for batch in batches for index in batch]
    assert sorted(read) == sorted([*range(201)] * 3)
    assert sorted(read[:201]) == list(range(201))
    for batch in batches:
        assert len(batch) == 1 or len(batch) * max(lengths[i] for i in batch) <= 300
    assert batches == plan(lengths, settings, seed=4)
    assert batches != plan(lengths, settings, seed=5)
    assert plan(lengths, settings.model_copy(update={"max_steps": 5}), seed=4) == batches[:10]


def test_the_learning_rate_rises_and_falls_as_configured():
    settings = SftConfig(lr=0.1, warmup=0.2, schedule="linear")
    rates = [settings.rate(step, 10) for step in range(10)]
    assert rates == pytest.approx([0.05, 0.1, 0.1, 0.0875, 0.075, 0.0625, 0.05, 0.0375, 0.025, 0.0125])
    cosine = SftConfig(lr=0.1, warmup=0.0, schedule="cosine")
    assert [cosine.rate(step, 4) for step in (0, 2)] == pytest.approx([0.1, 0.05])
    assert SftConfig(lr=0.1, warmup=0.0, schedule="constant").rate(9, 10) == 0.1


def test_the_loss_is_the_mean_over_the_updates_targets(base, dataset, tmp_path):
    """First update, whatever its batches: minus the mean log-probability of all targets, from a plain forward."""
    config = configure(base, dataset, max_steps=1, lora=None)
    cold_start.run(config, RunDir(tmp_path))
    model, tokenizer = models.load(base)
    traces = read_traces(dataset, "negotiation", ChatTokenizer(tokenizer), limit=0, window=4000)
    total = count = 0
    for batch in plan([len(t.tokens) for t in traces], config.sft, config.seed):
        for trace in (traces[index] for index in batch):
            with torch.no_grad():
                logprobs = model(torch.tensor([trace.tokens])).logits[0].log_softmax(-1)
            for at in range(1, len(trace.tokens)):
                if trace.mask[at]:
                    total -= float(logprobs[at - 1, trace.tokens[at]])
                    count += 1
    assert metrics(RunDir(tmp_path))[0]["loss"] == pytest.approx(total / count, rel=1e-4)


def test_it_learns_and_leaves_a_plain_model_with_its_provenance(base, dataset, tmp_path):
    run_dir = RunDir(tmp_path)
    result = cold_start.run(configure(base, dataset, epochs=6, lora={"rank": 8, "alpha": 32}), run_dir)
    lines = metrics(run_dir)
    assert result == {"result": "succeeded", "why": "", "step": len(lines), "attempt": 1, "exit": 0}
    assert [line["step"] for line in lines] == list(range(1, len(lines) + 1))
    assert lines[-1]["loss"] < 0.9 * lines[0]["loss"]
    step, folder = run_dir.latest_checkpoint()
    assert step == len(lines)
    assert not [p for p in folder.rglob("*") if p.suffix in bases.UNSAFE]
    info = bases.read_info(folder)
    assert (info.base, info.parent, info.step) == ("toy", str(base), step)
    assert len(info.dataset[0]) == 64
    assert "training sft" in (folder / "README.md").read_text()
    assert not (folder / "adapter_config.json").exists()
    models.load(folder)
    status = json.loads(run_dir.attempt(1).status.read_text())
    assert (status["phase"], status["result"], status["step"]) == ("finished", "succeeded", step)


class StopAt:
    """Requests a stop during update `step` + 1."""

    def __init__(self, monkeypatch, step):
        update = cold_start.ColdStart.on_update

        def asking(cold, number, values):
            update(cold, number, values)
            if number == step:
                cold.progress.attempt.ask("stop")

        monkeypatch.setattr(cold_start.ColdStart, "on_update", asking)


@pytest.mark.parametrize("lora", [{"rank": 4, "alpha": 8, "dropout": 0.1}, None])
def test_a_stopped_run_resumes_to_the_same_bits(base, dataset, tmp_path, monkeypatch, lora):
    config = configure(base, dataset, lora=lora)
    whole, broken = RunDir(tmp_path / "whole"), RunDir(tmp_path / "broken")
    steps = cold_start.run(config, whole)["step"]
    assert steps >= 3
    with monkeypatch.context() as patch:
        StopAt(patch, 2)
        stopped = cold_start.run(config, broken)
    assert (stopped["result"], stopped["step"], stopped["exit"]) == ("stopped", 2, 0)
    assert broken.latest_checkpoint()[0] == 2
    assert cold_start.run(config, broken)["step"] == steps
    assert [line["step"] for line in metrics(broken, 2)] == list(range(3, steps + 1))
    assert [line["loss"] for line in metrics(broken, 2)] == [line["loss"] for line in metrics(whole)[2:]]
    expected, actual = weights(whole.latest_checkpoint()[1]), weights(broken.latest_checkpoint()[1])
    assert all(torch.equal(expected[name], actual[name]) for name in expected)
    assert cold_start.run(config, broken)["result"] == "succeeded"  # nothing left to do


def poison(monkeypatch, updates):
    """Make the loss of some updates (from 1) not a number."""
    compute = fit._Loop.compute_loss

    def poisoned(self, *args, **kwargs):
        loss = compute(self, *args, **kwargs)
        return loss * math.nan if self.state.global_step + 1 in updates else loss

    monkeypatch.setattr(fit._Loop, "compute_loss", poisoned)


def test_an_update_that_is_not_finite_changes_nothing_and_is_counted(base, dataset, tmp_path, monkeypatch):
    poison(monkeypatch, {1})
    run_dir = RunDir(tmp_path)
    result = cold_start.run(configure(base, dataset, max_steps=1), run_dir)
    assert result["result"] == "failed"
    assert "none was finite" in result["why"]
    assert metrics(run_dir)[0]["bad_steps"] == 1
    before, after = weights(base), weights(run_dir.latest_checkpoint()[1])
    assert all(torch.equal(before[name], after[name]) for name in before)


def test_one_bad_update_among_good_ones_is_survived_and_three_in_a_row_are_not(base, dataset, tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        poison(patch, {2})
        assert cold_start.run(configure(base, dataset), RunDir(tmp_path / "one"))["result"] == "succeeded"
    poison(monkeypatch, {2, 3, 4})
    result = cold_start.run(configure(base, dataset, epochs=4), RunDir(tmp_path / "three"))
    assert (result["result"], result["step"], result["exit"]) == ("failed", 4, 1)
    assert "3 updates in a row" in result["why"]


def test_bad_input_is_reported_before_anything_is_written(base, dataset, tmp_path):
    empty = tmp_path / "bare.jsonl"
    first = json.loads(dataset.read_text().splitlines()[0])
    empty.write_text(json.dumps(first["scenario"]) + "\n")
    run_dir = RunDir(tmp_path / "run")
    for config, why in (
        (configure(base, empty), "no conversation to learn from"),
        (configure(base, tmp_path / "missing.jsonl"), "needs a dataset"),
        (configure(base, dataset, max_length=16), "longer than 16 tokens"),
        (configure(tmp_path, dataset), r"config\.json"),
    ):
        with pytest.raises(BadInput, match=why):
            cold_start.run(config, run_dir)
    assert not run_dir.root.exists()


def test_a_conversation_its_game_refuses_is_named(base, dataset, tmp_path):
    line = json.loads(dataset.read_text().splitlines()[0])
    moves = line["conversations"][0]["episode"]["moves"]
    moves[0], moves[1] = moves[1], moves[0]
    broken = tmp_path / "broken.jsonl"
    broken.write_text(json.dumps(line) + "\n")
    with pytest.raises(BadInput, match=r"scenario .*, conversations\.0\.moves\.0"):
        cold_start.run(configure(base, broken), RunDir(tmp_path / "run"))


def test_a_cold_start_reads_its_own_games_conversations(base, dataset, tmp_path):
    chat = ChatTokenizer(models.load(base)[1])
    other = write_conversations(tmp_path / "other.jsonl", 2, "dialogues")
    both = tmp_path / "both.jsonl"
    both.write_text(other.read_text() + dataset.read_text())
    read = read_traces(dataset, "negotiation", chat, limit=0, window=4000)
    assert read_traces(both, "negotiation", chat, limit=0, window=4000) == read
    assert read_traces(both, "negotiation", chat, limit=3, window=4000) == read
    with pytest.raises(BadInput, match="no scenario of dialogue: it has negotiation"):
        read_traces(dataset, "dialogue", chat, limit=0, window=4000)


def test_fitting_needs_no_run_directory(base, dataset):
    model, tokenizer = models.load(base)
    traces = read_traces(dataset, "negotiation", ChatTokenizer(tokenizer), limit=1, window=4000)
    before = {name: p.clone() for name, p in model.named_parameters()}
    fit.fit(model, tokenizer, traces, [[0], [1]], SftConfig(batches_per_step=1, lora=None))
    assert any(not torch.equal(before[name], p) for name, p in model.named_parameters())
