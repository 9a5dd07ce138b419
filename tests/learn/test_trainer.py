"""The loop end to end with a random model: what a run leaves behind, how it fails, how it stops."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from tests.learn.small_runs import make_run
from training.attempts.progress import Progress
from training.config import RunConfig, parse
from training.errors import BadInput, JudgeError
from training.learn import context, trainer
from training.learn.learner import InProcess
from training.learn.score import give_credit
from training.learn.watchdog import Watchdog
from training.methods.omar import Omar
from training.records import Episode
from training.rewards.rules import Ruled
from training.rundir import AttemptDir
from training.store import read_lines, read_member, verify_directory

ROOT = Path(__file__).resolve().parents[2]


def lines(path):
    return [line for line, _ in read_lines(path)]


def events(run_dir, kind, attempt=1):
    return [event for event in lines(run_dir.attempt(attempt).events) if event["kind"] == kind]


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    config, run_dir = make_run(
        tmp_path_factory.mktemp("finished"), steps=2, sampling={"max_tokens": 12, "temperature": 0.6}
    )
    return config, run_dir, trainer.run(config, run_dir)


def test_a_run_leaves_what_the_run_directory_promises(finished):
    _, run_dir, result = finished
    assert result == {"result": "succeeded", "why": "", "step": 2, "attempt": 1, "exit": 0}
    files = run_dir.attempt(1)
    status = json.loads(files.status.read_text())
    assert (status["phase"], status["result"], status["step"], status["steps"]) == ("finished", "succeeded", 2, 2)
    assert abs(status["at"] - time.time()) < 600
    assert status["pid"] == os.getpid()
    assert [line["step"] for line in lines(files.metrics)] == [1, 2]
    assert [event["kind"] for event in lines(files.events)] == ["started", "checkpoint", "checkpoint", "finished"]
    assert "step 2 of 2" in files.log.read_text()
    assert [step for step, _ in files.checkpoints()] == [1, 2]
    model_card = (files.checkpoint(2) / "README.md").read_text()
    assert "Training step: 2" in model_card


def test_sampler_and_trainer_agree_at_the_sampling_temperature(finished):
    metrics = lines(finished[1].attempt(1).metrics)
    assert all(0 <= line["gap_mean"] <= line["gap_max"] < 1e-3 for line in metrics)
    assert all(line["importance"] == pytest.approx(1.0, abs=1e-3) for line in metrics)


def test_the_engine_samples_from_every_new_policy(tmp_path):
    learn = {"steps": 3, "lr": 1e-2, "critic_warmup": 0}
    config, run_dir = make_run(tmp_path, learn=learn)
    assert trainer.run(config, run_dir)["result"] == "succeeded"
    metrics = lines(run_dir.attempt(1).metrics)
    assert metrics[-1]["kl"] > 1e-4  # the policy has moved, and the sampler with it
    assert max(line["gap_max"] for line in metrics) < 1e-3


def test_episodes_can_be_read_one_by_one_with_their_credit(finished):
    files = finished[1].attempt(1)
    index = lines(files.index)
    assert [(line["step"], line["episode"]) for line in index] == [(s, e) for s in (1, 2) for e in range(4)]
    for line in index:
        record = read_member(files.root / "episodes" / line["file"], line["offset"], line["length"])
        episode = Episode.from_dict(record["episode"])
        assert {int(s): r for s, r in record["returns"].items()} == pytest.approx(dict(episode.returns))
        assert len(record["passed"]) == len(record["turn_rewards"]) == len(episode.turns)
        for trace, credit in zip(episode.traces, record["credit"], strict=True):
            streams = [credit["advantages"], credit["reference"], *credit["values"].values()]
            assert {len(stream) for stream in streams} == {len(trace.tokens)}
            assert {int(turn) for turn in credit["turn_advantages"]} == {t for t in trace.turn if t >= 0}
            assert all(a == 0 for a, m in zip(credit["advantages"], trace.mask, strict=True) if not m)


def test_the_checkpoint_holds_what_the_engine_should_sample_from(finished):
    from training.engines.local.loading import load_merged

    config, run_dir, _ = finished
    folder = run_dir.attempt(1).checkpoint(2)
    model, base = load_merged(str(folder), "float32"), load_merged(config.model.base, "float32")
    ids = torch.arange(20)[None] + 5
    with torch.no_grad():
        assert (model(ids).logits - base(ids).logits).abs().max() > 1e-4


def untouched(run_dir, config):
    """Whether the newest checkpoint's adapters still add nothing."""
    state = load_file(run_dir.latest_checkpoint()[1] / "trainer" / "state.safetensors")
    added = [tensor for name, tensor in state.items() if name.startswith("adapter.") and "lora_B" in name]
    assert added
    return not any(tensor.any() for tensor in added)


def bad_credit(monkeypatch, steps):
    """Make the advantages of some training steps NaN; the critic's targets too, so that nothing may move."""
    calls = []
    real = trainer.give_credit

    def poisoned(played, method):
        calls.append(1)
        if len(calls) not in steps:
            return real(played, method)
        credit = method.credit

        class Poison:
            needs = method.needs

            def credit(self, group):
                rollouts = credit(group)
                rollouts[0].traces[0].ppo[-1] = np.nan
                return rollouts

        return give_credit(played, Poison())

    monkeypatch.setattr(trainer, "give_credit", poisoned)


def test_three_bad_steps_in_a_row_fail_the_run_and_change_nothing(tmp_path, monkeypatch):
    bad_credit(monkeypatch, {1, 2, 3})
    config, run_dir = make_run(tmp_path, steps=6, learn={"steps": 6, "critic_warmup": 0})
    result = trainer.run(config, run_dir)
    assert (result["result"], result["exit"], result["step"]) == ("failed", 1, 3)
    assert "3 steps in a row" in result["why"]
    assert [line["bad_steps"] for line in lines(run_dir.attempt(1).metrics)] == [1.0, 1.0, 1.0]
    assert len(events(run_dir, "warning")) == 3
    assert events(run_dir, "finished")[0]["result"] == "failed"
    assert untouched(run_dir, config)
    assert load_file(run_dir.latest_checkpoint()[1] / "trainer/state.safetensors")["critic.heads.turn.count"] == 0


def test_a_bad_step_between_good_ones_is_skipped_and_counted(tmp_path, monkeypatch):
    bad_credit(monkeypatch, {2, 3})
    config, run_dir = make_run(tmp_path, steps=4)
    assert trainer.run(config, run_dir)["result"] == "succeeded"
    assert [line.get("bad_steps", 0.0) for line in lines(run_dir.attempt(1).metrics)] == [0.0, 1.0, 1.0, 0.0]


def test_a_checkpoint_is_written_beside_the_loop_that_plays(tmp_path, monkeypatch):
    save, threads = InProcess.save, []

    def saved(*arguments, **options):
        threads.append(threading.current_thread())
        save(*arguments, **options)

    monkeypatch.setattr(InProcess, "save", saved)
    config, run_dir = make_run(tmp_path, steps=2)
    assert trainer.run(config, run_dir)["result"] == "succeeded"
    assert threads != []
    assert threading.main_thread() not in threads


def test_a_run_that_learned_nothing_has_failed(tmp_path):
    # a seat never reaches a deal in two turns, so every replay of a start pays it the same
    method = {"name": "omar", "advantage": "group_relative", "baseline": "role"}
    config, run_dir = make_run(tmp_path, steps=2, method=method)
    result = trainer.run(config, run_dir)
    assert (result["result"], result["exit"]) == ("failed", 1)
    assert "nothing to learn from" in result["why"]


def test_an_unscored_episode_is_an_error_and_never_a_zero(tmp_path, monkeypatch):
    real = Ruled.score

    async def sometimes(self, episode, seed):
        if seed % 2:
            raise JudgeError("the judge is away")
        return await real(self, episode, seed)

    monkeypatch.setattr(Ruled, "score", sometimes)
    config, run_dir = make_run(tmp_path, steps=2)
    trainer.run(config, run_dir)
    files = run_dir.attempt(1)
    wrong = [line for line in lines(files.index) if line["summary"]["error"]]
    metrics = lines(files.metrics)
    assert 0 < len(wrong) < 8
    assert sum(line["errors"] for line in metrics) == len(wrong)
    for line in wrong:
        record = read_member(files.root / "episodes" / line["file"], line["offset"], line["length"])
        assert record["episode"]["error"] == {"kind": "judge", "message": "the judge is away"}
        assert (record["returns"], record["credit"]) == ({}, [])
    assert all(line["reward"] > 0.1 for line in metrics if line["episodes"])


def test_a_judge_that_never_answers_fails_the_run(tmp_path, monkeypatch):
    async def never(self, episode, seed):
        raise JudgeError("the judge is away")

    monkeypatch.setattr(Ruled, "score", never)
    config, run_dir = make_run(tmp_path, steps=6)
    result = trainer.run(config, run_dir)
    assert (result["result"], result["step"]) == ("failed", 3)
    assert "no game of the step ended with a score" in result["why"]


def test_a_failure_nobody_foresaw_is_a_failed_run(tmp_path, monkeypatch):
    def broken(self, group):
        raise RuntimeError("boom")

    monkeypatch.setattr(Omar, "credit", broken)
    config, run_dir = make_run(tmp_path)
    result = trainer.run(config, run_dir)
    assert (result["result"], result["why"]) == ("failed", "RuntimeError: boom")
    assert events(run_dir, "error")[0]["why"] == "RuntimeError: boom"
    assert json.loads(run_dir.attempt(1).status.read_text())["result"] == "failed"


def test_the_watchdog_ends_a_run_early(tmp_path, monkeypatch):
    async def refuse(self, episode, seed):
        score = await real(self, episode, seed)
        return type(score)(score.returns, (False,) * len(score.passed), score.parts)

    real = Ruled.score
    monkeypatch.setattr(Ruled, "score", refuse)
    config, run_dir = make_run(tmp_path, steps=6, stop={"failing": 0.5, "patience": 2})
    result = trainer.run(config, run_dir)
    assert (result["result"], result["exit"], result["step"]) == ("stopped", 0, 2)
    assert "failed the filter" in result["why"]
    assert run_dir.latest_checkpoint()[0] == 2


def test_learning_counts_denormal_numbers_as_zero(tmp_path):
    small = torch.full((1000,), 2e-38)
    assert bool((small / 8).all()), "denormal, and not zero before"
    trainer.run(*make_run(tmp_path, steps=2))
    assert not bool((small / 8).any())


@pytest.mark.parametrize("kl, measured", [("none", False), ("none", True), ("k1", False), ("k2", False), ("k3", True)])
def test_every_kind_of_divergence_term_runs(tmp_path, kl, measured):
    learn = {"steps": 2, "kl": kl, "kl_measured": measured, "kl_coef": 0.1, "critic_warmup": 0}
    config, run_dir = make_run(tmp_path, steps=2, learn=learn)
    assert trainer.run(config, run_dir)["result"] == "succeeded"
    last = lines(run_dir.attempt(1).metrics)[-1]
    assert ("kl" in last) == (kl != "none" or measured)
    assert (f"kl_loss_{kl}" in last) == (kl in ("k2", "k3"))
    warned = [line["why"] for line in lines(run_dir.attempt(1).events) if line["kind"] == "warning"]
    assert [why for why in warned if "stop.kl_ceiling" in why] == warned
    assert len(warned) == (kl == "none" and not measured)


def test_every_tokens_entropy_and_reference_are_written_beside_it(tmp_path):
    config, run_dir = make_run(tmp_path, steps=1, learn={"steps": 1, "critic_warmup": 0})
    trainer.run(config, run_dir)
    files = run_dir.attempt(1)
    entropies = []
    for line in lines(files.index):
        record = read_member(files.root / "episodes" / line["file"], line["offset"], line["length"])
        for trace, credit in zip(record["episode"]["traces"], record["credit"], strict=True):
            assert len(credit["entropy"]) == len(credit["reference"]) == len(trace["tokens"])
            assert all(e == 0 for e, sampled in zip(credit["entropy"], trace["mask"], strict=True) if not sampled)
            entropies += [e for e, sampled in zip(credit["entropy"], trace["mask"], strict=True) if sampled]
            # nothing was learned before the first step: the policy is its own start
            sampler = np.array(trace["logprobs"]) * np.array(trace["mask"])
            assert np.array(credit["reference"]) == pytest.approx(sampler, abs=1e-3)
    # every token weighs the same, so the step's metric is the mean over the tokens
    assert np.mean(entropies) == pytest.approx(lines(files.metrics)[-1]["entropy"], abs=1e-4)


@pytest.mark.parametrize("lora", [None, {"rank": 4, "alpha": 8.0}], ids=["full", "adapters"])
def test_the_ceiling_holds_for_a_distance_that_is_only_measured(tmp_path, lora):
    learn = {"steps": 4, "kl_coef": 0.0, "critic_warmup": 0, "lr": 1e-2, "lora": lora or False}
    config, run_dir = make_run(tmp_path, learn=learn, stop={"kl_ceiling": 1e-9, "patience": 2})
    result = trainer.run(config, run_dir)
    assert result["result"] == "stopped"
    assert "further than 1e-09 nats from its reference" in result["why"]
    assert "kl_loss_k2" not in lines(run_dir.attempt(1).metrics)[-1]


def test_an_alarm_names_the_last_good_checkpoint_and_keeps_it(tmp_path, monkeypatch):
    answers = iter(["", "", "", "", "entropy collapse"])
    monkeypatch.setattr(Watchdog, "see", lambda self, metrics: next(answers))
    config, run_dir = make_run(tmp_path, learn={"steps": 9, "keep": 2}, stop={"patience": 2})
    outcome = trainer.run(config, run_dir)
    # the alarm of step 5 looks back over two steps: the checkpoint of step 3 is the last good one
    assert outcome["why"] == "entropy collapse; the last good checkpoint is that of step 3"
    [event] = events(run_dir, "watchdog")
    assert (event["step"], event["last_good_step"], event["checkpoint"]) == (5, 3, 3)
    assert [step for step, _ in run_dir.attempt(1).checkpoints()] == [3, 4, 5]


def test_an_alarm_finds_the_last_good_checkpoint_of_an_earlier_attempt(tmp_path, monkeypatch):
    answers = iter(["", "", "entropy collapse", "entropy collapse"])
    monkeypatch.setattr(Watchdog, "see", lambda self, metrics: next(answers))
    config, run_dir = make_run(tmp_path, learn={"steps": 9}, stop={"patience": 2})
    assert trainer.run(config, run_dir)["step"] == 3
    outcome = trainer.run(config, run_dir)
    # attempt 2 has made step 4 alone; two steps before it is the checkpoint of attempt 1
    assert outcome["why"] == "entropy collapse; the last good checkpoint is that of step 2"
    assert events(run_dir, "watchdog", attempt=2)[0]["checkpoint"] == 2


WITH_GAPS = {
    "game": {"name": "tic_tac_toe", "settings": {}},
    "data": {"path": ""},
    "opponents": [{"source": "past"}],
    "rollout": {"past_saved": 1},
    "evaluate": {"every": 2},
    "stop": {"patience": 2, "kl_ceiling": 1e6, "entropy_rise": 1e6, "entropy_fall": 0, "advantage_drift": 0},
}
"""Runs whose head-to-heads the watchdog compares with their rewards, and that nothing else ends."""


async def gains_until_step_2(running, step):
    return {"difference.return_high": 9.0 if step == 2 else -9.0}


def test_the_last_head_to_head_without_a_gap_keeps_its_checkpoint(tmp_path):
    learn = {"steps": 9, "keep": 1, "save_every": 1}
    config, run_dir = make_run(tmp_path, learn=learn, reward={"malformed": -0.5}, **WITH_GAPS)
    outcome = trainer.run(config, run_dir, evaluate=gains_until_step_2)
    assert outcome["why"].startswith("held-out gap")
    assert events(run_dir, "watchdog")[0]["checkpoint"] == 2
    assert [step for step, _ in run_dir.attempt(1).checkpoints()] == [2, 4]


def test_a_resumed_run_knows_the_head_to_head_after_its_checkpoint(tmp_path):
    config, run_dir = make_run(tmp_path, steps=2, reward={"malformed": -0.5}, **WITH_GAPS)
    assert trainer.run(config, run_dir, evaluate=gains_until_step_2)["step"] == 2
    longer = config.model_copy(update={"learn": config.learn.model_copy(update={"steps": 9})})
    outcome = trainer.run(longer, run_dir, evaluate=gains_until_step_2)
    assert outcome["why"].startswith("held-out gap")
    assert events(run_dir, "watchdog", attempt=2)[0]["checkpoint"] == 2


@pytest.mark.parametrize(
    "sections",
    [
        {"game": {"name": "negotiation", "settings": {}}},  # both may earn more together
        {"opponents": []},
        {"opponents": [{"source": "past"}, {"source": "scripted"}]},
        {"opponents": [{"source": "past", "learner": ["x"]}]},
        {"evaluate": {"every": 2, "opponent": "scripted"}},
        {"mixture": [{"game": "tic_tac_toe"}, {"game": "connect_four"}]},
    ],
)
def test_a_head_to_head_is_compared_with_the_reward_where_both_mean_the_same(sections):
    assert trainer.gain_worth(parse({"kind": "train", **WITH_GAPS})) == 0.25  # returns from -1 to 1, twice
    assert trainer.gain_worth(parse({"kind": "train", **WITH_GAPS, **sections})) is None


def test_wolves_are_compared_against_a_common_village():
    wolves = {"kind": "train", "game": {"name": "werewolf"}}
    wolves["opponents"] = [{"source": "past", "learner": ["werewolf"]}]
    assert trainer.gain_worth(parse({**wolves, "evaluate": {"side": ["werewolf"]}})) == 1
    wrong = [{}, {"side": ["seer"]}, {"side": ["werewolf"], "opposition": "each_other"}]
    wrong.append({"side": ["werewolf"], "common": "scripted"})  # no gain over the village that the reward is against
    for section in wrong:
        assert trainer.gain_worth(parse({**wolves, "evaluate": section})) is None
    both = {**wolves, "opponents": [{"source": "past", "learner": ["werewolf", "seer"]}]}
    assert trainer.gain_worth(parse({**both, "evaluate": {"side": ["seer", "werewolf"]}})) == 1
    side = {"evaluate": {"side": ["werewolf"]}}
    against_start = {"source": "start", "learner": ["werewolf"]}
    assert trainer.gain_worth(parse({**wolves, **side, "opponents": [against_start]})) == 1
    with_partner = {**against_start, "partner": "past"}  # in a head-to-head the side has no partner
    assert trainer.gain_worth(parse({**wolves, **side, "opponents": [with_partner]})) is None


@pytest.mark.parametrize("lr, result", [(1e-3, "stopped"), (1e-5, "succeeded")])
def test_steps_that_are_too_large_are_seen_by_what_ppo_clips(tmp_path, lr, result):
    """With seeds 0 to 2 the larger rate clips 0.61 to 0.68 in the first two steps, the smaller at most 0.01 in any."""
    silent = {"entropy_rise": 1e6, "entropy_fall": 0, "kl_ceiling": 1e6, "legality_fall": 1, "advantage_drift": 0}
    learn = {"steps": 6, "lora": None, "lr": lr, "epochs": 4, "critic_warmup": 0, "save_every": 6}
    config, run_dir = make_run(tmp_path, layers=2, learn=learn, stop={**silent, "patience": 2})
    outcome = trainer.run(config, run_dir)
    assert outcome["result"] == result
    assert ("was clipped" in outcome["why"]) == (result == "stopped")


@pytest.mark.parametrize(
    "method",
    [
        {"advantage": "flat"},
        {"advantage": "turn_only"},
        {"critic_heads": "one", "turn_value": "last_token"},
        {"whiten": True},
    ],
)
def test_every_form_of_the_method_runs(tmp_path, method):
    config, run_dir = make_run(tmp_path, steps=2, method={"name": "omar", **method})
    assert trainer.run(config, run_dir)["result"] == "succeeded"
    metrics = lines(run_dir.attempt(1).metrics)[-1]
    assert {name.removeprefix("value_loss_") for name in metrics if name.startswith("value_loss_")} == set(
        config.method.build().needs.critic
    )


def test_stop_and_save_by_control_files(tmp_path):
    config, run_dir = make_run(tmp_path, steps=50, learn={"steps": 50, "save_every": 50})

    async def controls(running, step):
        if wish := {1: "save", 3: "stop"}.get(step):
            run_dir.attempt(1).ask(wish)
        return {"step": step}

    watched = config.model_copy(update={"evaluate": config.evaluate.model_copy(update={"every": 1})})
    result = trainer.run(watched, run_dir, evaluate=controls)
    assert (result["result"], result["exit"], result["step"]) == ("stopped", 0, 3)
    assert [step for step, _ in run_dir.attempt(1).checkpoints()] == [2, 3]
    assert not run_dir.attempt(1).asked("save")
    assert [event["step"] for event in events(run_dir, "evaluation")] == [1, 2, 3]


def test_stop_before_the_first_step_leaves_a_checkpoint(tmp_path):
    config, run_dir = make_run(tmp_path)
    run_dir.attempt(1).ask("stop")
    result = trainer.run(config, run_dir, attempt=1)
    assert (result["result"], result["step"]) == ("stopped", 0)
    verify_directory(run_dir.attempt(1).checkpoint(0))
    assert trainer.run(config, run_dir)["result"] == "succeeded"
    assert "continuing after step 0" in run_dir.attempt(2).log.read_text()
    assert "continuing" not in run_dir.attempt(1).log.read_text()


def test_wrong_input_writes_no_attempt(tmp_path):
    config, run_dir = make_run(tmp_path)
    lost = config.model_copy(update={"data": config.data.model_copy(update={"path": "inputs/none.jsonl"})})
    with pytest.raises(BadInput, match="no such file"):
        trainer.run(lost, run_dir)
    strange = config.model_copy(update={"game": config.game.model_copy(update={"settings": {"turn_limit": -1}})})
    with pytest.raises(BadInput, match="turn_limit"):
        trainer.run(strange, run_dir)
    assert run_dir.attempts() == []


def begun(tmp_path, stdin):
    """A long run in a process of its own, started by the command line, once it samples its second step."""
    _, run_dir = make_run(tmp_path, steps=500, learn={"steps": 500, "save_every": 500})
    command = [sys.executable, "-m", "training", "resume", str(run_dir.root), "--json"]
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    end = time.monotonic() + 120
    while not lines(run_dir.attempt(1).metrics):
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < end
        time.sleep(0.1)
    return process, run_dir


@pytest.mark.process
@pytest.mark.parametrize("how", ["SIGTERM", "control", "stdin"])  # Ctrl-C: tests.cli.test_run_commands
def test_a_process_saves_and_leaves_within_30_s(tmp_path, how):
    process, run_dir = begun(tmp_path, subprocess.PIPE if how == "stdin" else subprocess.DEVNULL)
    began = time.monotonic()
    if how == "stdin":
        process.stdin.close()
        process.stdin = None
    elif how == "control":
        run_dir.attempt(1).ask("stop")
    else:
        process.send_signal(getattr(signal, how))
    out, err = process.communicate(timeout=60)
    assert time.monotonic() - began < 30
    assert process.returncode == 0, err
    result = json.loads(out)
    assert result["result"] == "stopped"
    step, folder = run_dir.latest_checkpoint()
    assert step == result["step"] == lines(run_dir.attempt(1).metrics)[-1]["step"]
    verify_directory(folder)


def test_going_on_with_a_finished_run_does_nothing(tmp_path):
    config, run_dir = make_run(tmp_path, steps=2)
    assert trainer.run(config, run_dir)["result"] == "succeeded"
    before = run_dir.latest_checkpoint()
    assert trainer.run(config, run_dir) == {"result": "succeeded", "why": "", "step": 2, "attempt": 2, "exit": 0}
    assert run_dir.latest_checkpoint() == before
    assert lines(run_dir.attempt(2).metrics) == []


def test_an_episode_says_which_weights_sampled_it(finished):
    # step n plays with the weights after step n - 1, in every turn
    _, run_dir, _ = finished
    attempt = run_dir.attempt(1)
    assert {line["step"] for line in lines(attempt.index)} == {1, 2}
    for line in lines(attempt.index):
        record = read_member(attempt.root / "episodes" / line["file"], line["offset"], line["length"])
        for trace in record["episode"]["traces"]:
            assert trace["versions"] == [[trace["mask"].index(1), line["step"] - 1]]


def test_what_is_wrong_with_the_nodes_of_a_cluster_is_in_the_heartbeat(tmp_path):
    cluster = SimpleNamespace(warnings=["the clock of n2 is off"])

    async def close():
        pass

    async def loop():
        progress.phase("sampling")
        return "succeeded", progress.attempt.status.read_text()

    config = RunConfig(model={"base": "tiny"})
    parts = {"config": config, "place": 0, "labels": (), "resumed": None, "processes": list}
    learners = SimpleNamespace(check=lambda: None)
    context = SimpleNamespace(**parts, cluster=cluster, close=close, learners=learners)
    progress = Progress(AttemptDir(tmp_path / "0001"), 1)
    learner = SimpleNamespace(config=config, context=context, step=0, loop=loop)
    _, status = trainer._go(learner, progress)
    assert json.loads(status)["warnings"] == cluster.warnings


def test_a_supervisor_sees_progress_while_the_parts_of_a_run_are_loaded(tmp_path):
    """Each may take as long as it may wait for any."""
    config, run_dir = make_run(tmp_path)
    beats = []
    asyncio.run(context.build(config, run_dir, None, lambda: beats.append("beat")).close())
    assert len(beats) == 4
