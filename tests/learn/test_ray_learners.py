"""A run on several processes: two engines and two learner ranks do what one process does, and say who failed."""

import asyncio
import contextlib
import logging
import signal
import threading
import time

import psutil
import pytest

from tests.learn.small_runs import make_run
from tests.learn.spread_runs import config_of, metrics, same, same_line, spread
from tests.learn.test_label_reward_run import PAID, trained
from tests.toy_models import write_random_llama
from training.bases import ModelInfo
from training.cluster import processes
from training.cluster.supervisor import ProcessOptions
from training.errors import OutsideError, ProcessLost
from training.learn import checkpoint, playing, ray_learners
from training.learn.checkpoint import TrainerState
from training.learn.learner import Learner
from training.learn.rank_actor import RankActor
from training.learn.ray_learners import RayLearners
from training.learn.trainer import run
from training.run_sections import LearnSection
from training.store import loads, write_json

pytestmark = pytest.mark.process
TWO = {"engines": 2, "learners": 2}


@pytest.mark.slow
def test_two_engines_and_two_ranks_do_what_one_process_does(tmp_path):
    """A label is part of the reward, so that engines also run the model of its classifier."""
    alone = make_run(tmp_path / "a", steps=2)[1]
    paid = {**PAID, "classifier": str(trained(tmp_path / "a" / "model", tmp_path / "classifier"))}
    write_json(alone.config, loads(alone.config.read_text()) | {"reward": {"labels": [paid]}})
    several = spread(alone, tmp_path / "b", **TWO)
    assert run(config_of(alone), alone)["result"] == "succeeded"
    outcome = run(config_of(several), several)
    assert outcome["result"] == "succeeded", outcome
    for one, other in zip(metrics(alone), metrics(several), strict=True):
        same_line(other, one)
        assert "reward_label_names_food" in one
    same(alone.checkpoint_of(2), several.checkpoint_of(2))


@pytest.mark.slow
def test_engines_in_bfloat16_get_weights_in_bfloat16_and_sample_the_same(tmp_path, monkeypatch):
    """Half the bytes are sent, rounded as an engine rounds those of a learner in its own process."""
    config, alone = make_run(tmp_path / "a", steps=2, engine={"dtype": "bfloat16"})
    several = spread(alone, tmp_path / "b", address="local")
    sent = set()
    monkeypatch.setattr(RayLearners, "_begin_stream", lambda self, method, begin=RayLearners._begin_stream: (
        sent.add(method.__name__), begin(self, method))[1])  # fmt: skip
    assert run(config, alone)["result"] == "succeeded"
    assert run(config_of(several), several)["result"] == "succeeded"
    assert "bfloat16_weights" in sent
    for one, other in zip(metrics(alone), metrics(several), strict=True):
        same_line(other, one)


@pytest.mark.slow
def test_a_run_whose_rank_was_killed_says_so_and_goes_on_in_one_process(tmp_path, caplog):
    """The checkpoint of two ranks is loaded by one."""
    caplog.set_level(logging.INFO, "training")
    config, alone = make_run(tmp_path / "a", steps=4)
    assert run(config, alone)["result"] == "succeeded"
    several = spread(alone, tmp_path / "b", engines=1, learners=2)
    killed = []
    threading.Thread(target=kill_a_rank, args=(several, killed, seen := []), daemon=True).start()
    outcome = run(config_of(several), several)
    assert outcome["result"] == "interrupted"
    assert f"(process {killed[0]} on " in outcome["why"]
    assert outcome["why"].startswith("learner rank ")
    assert " died" in outcome["why"]
    assert "starting 2 learner ranks and 1 engine" in caplog.text
    assert "2 learner ranks and 1 engine are ready" in several.attempt(1).log.read_text()
    assert "; the others cannot continue without it" in caplog.text
    assert "SIGABRT" in caplog.text, "what the rank wrote last is in the log"
    names = [process["name"] for process in seen]
    assert names == ["learner 0", "learner 1", "engine 0"], "the heartbeat tells of every process"
    assert killed[0] in [process["pid"] for process in seen]
    assert all(process["rss_bytes"] > 0 for process in seen)
    assert sum(process["cores"] for process in seen) > 0
    assert not actors(), "nothing that the run started is left"
    assert 1 <= several.latest_checkpoint()[0] < 4
    write_json(several.config, loads(several.config.read_text()) | {"cluster": {}})
    assert run(config_of(several), several)["result"] == "succeeded"
    same(alone.checkpoint_of(4), several.checkpoint_of(4))


def test_a_rank_that_dies_while_games_are_played_interrupts_them(tmp_path, monkeypatch):
    """Its run would hear of it when it learns: after these games, if ever they end."""
    _, alone = make_run(tmp_path / "a", steps=2)
    several = spread(alone, tmp_path / "b", address="local")

    async def endless(*_):
        [rank] = [process for process in actors() if "Rank" in " ".join(process.cmdline())]
        rank.kill()
        await asyncio.sleep(120.0)

    monkeypatch.setattr(playing, "sample", endless)
    began = time.monotonic()
    outcome = run(config_of(several), several)
    assert outcome["result"] == "interrupted", outcome
    assert outcome["why"].startswith("learner rank 0 ")
    assert time.monotonic() - began < 110.0
    assert not actors()


def test_a_rank_that_dies_during_the_last_head_to_head_is_not_needed(tmp_path):
    _, alone = make_run(tmp_path / "a", steps=2)
    several = spread(alone, tmp_path / "b", address="local")

    async def head_to_head(_):
        [rank] = [process for process in actors() if "Rank" in " ".join(process.cmdline())]
        rank.kill()
        await asyncio.sleep(4.0)

    outcome = run(config_of(several), several, at_end=head_to_head)
    assert (outcome["result"], outcome["attempt"]) == ("succeeded", 1), outcome


def actors():
    """The processes of ranks and engines that this one has started."""
    processes_of_run = []
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):
            if "ray::RankActor" in (title := " ".join(process.cmdline())) or "ray::EngineActor" in title:
                processes_of_run.append(process)
    return processes_of_run


def kill_a_rank(run_dir, killed, seen):
    """Kill one of the ranks once the first checkpoint is there; keep what the heartbeat says of all processes."""
    while run_dir.latest_checkpoint() is None:
        time.sleep(0.01)
    rank = next(process for process in actors() if "Rank" in " ".join(process.cmdline()))
    seen += loads(run_dir.attempt(1).status.read_text())["processes"]
    killed.append(rank.pid)
    rank.send_signal(signal.SIGABRT)


def arguments_of(folder):
    return {
        "base": str(write_random_llama(folder / "model")),
        "heads": [],
        "learn": LearnSection(lora={"rank": 2}),
        "seed": 0,
        "temperature": 1.0,
        "device": "cpu",
        "weights": None,
    }


def test_a_rank_that_is_stopped_is_named_and_both_are_ended(tmp_path):
    with processes.start() as cluster:
        options = ProcessOptions(count=2, threads=1, silence_s=5.0)
        learners = RayLearners(arguments_of(tmp_path), options, cluster.folder / "ranks")
        try:
            ranks = [psutil.Process(each.pid) for each in learners.status()]
            assert learners.call(Learner.optimizer_data)
            ranks[1].send_signal(signal.SIGSTOP)
            named = rf"learner rank 1 \(process {ranks[1].pid} on .*\) has not answered for [5-9] s"
            with pytest.raises(ProcessLost, match=named):
                learners.call(Learner.optimizer_data)
            _, alive = psutil.wait_procs(ranks, timeout=15)
            assert not alive
        finally:
            learners.close()


class FullRank(RankActor):
    """A rank of which all but the first have no memory left when weights are gathered."""

    async def stream(self, method):
        """See `RankActor.stream`."""
        if method == "weights" and not self._learner.policy.ranks.first:
            self._learner.weights = full
        return await super().stream(method)


def full():
    raise MemoryError("there is no memory left")


def test_what_another_rank_raises_while_tensors_are_gathered_is_raised(tmp_path, monkeypatch):
    """The first rank, whose tensors are read, would wait for it in vain."""
    monkeypatch.setattr(ray_learners, "RankActor", FullRank)
    with processes.start() as cluster:
        learners = RayLearners(arguments_of(tmp_path), ProcessOptions(count=2, threads=1), cluster.folder / "ranks")
        try:
            info, state = ModelInfo(name="saved", base="tiny"), TrainerState(step=1)
            beats = []
            learners.save(tmp_path / "adapters", info, state, adapter_only=True, beat=lambda: beats.append(1))
            assert beats, "each chunk of the state is progress"
            assert checkpoint.read(tmp_path / "adapters").step == 1
            with pytest.raises(OutsideError, match=r"learner rank 1 .*failed: MemoryError: there is no memory left"):
                learners.save(tmp_path / "saved", info, state, adapter_only=False, beat=lambda: None)
            assert not (tmp_path / "saved").exists()
        finally:
            learners.close()
