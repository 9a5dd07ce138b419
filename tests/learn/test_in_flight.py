"""In-flight weight updates: games whose turns different weights sampled, each by the weights that its trace names."""

import asyncio
import gzip

import pytest
import torch

from tests.learn.small_runs import make_run
from tests.learn.spread_runs import config_of, metrics, spread
from training.engines.pool import EnginePool
from training.learn import models, playing
from training.learn.in_flight import spread as spread_of_versions
from training.learn.score import Rollout
from training.learn.trainer import Trainer, run
from training.records import LEARNER, Episode, Scenario, Trace
from training.store import loads, read_lines

GAMES = 4
"""Of a step."""


def games_of(run_dir, attempt, step):
    with gzip.open(run_dir.attempt(attempt).episodes(step), "rt") as lines:
        return [Episode.from_dict(loads(line)["episode"]) for line in lines]


def wait_for_weights(monkeypatch):
    """Let each game's first reply come, and all others of a step wait for the newest weights that step may have."""
    play, sample, step, begun = playing.play, EnginePool.sample, [0], [0]

    async def playing_step(context, progress, number, *rest):
        step[0], begun[0] = number, 0
        return await play(context, progress, number, *rest)

    async def waiting(pool, request):
        begun[0] += 1
        if begun[0] > GAMES:
            while pool.version < step[0] - 1:  # noqa: ASYNC110 (the pool has no event for it)
                await asyncio.sleep(0.02)
        return await sample(pool, request)

    monkeypatch.setattr(playing, "play", playing_step)
    monkeypatch.setattr(EnginePool, "sample", waiting)


class Policies:
    """A second implementation of each version: Transformers' forward pass with the weights that were saved of it."""

    def __init__(self, base, run_dir):
        self._base, self._run_dir, self._models = base, run_dir, {}

    @torch.no_grad()
    def logprobs(self, trace, version):
        """The log-probability of each token after those before it, [n] with 0 for the first."""
        if version not in self._models:
            folder = self._run_dir.checkpoint_of(version) if version else self._base
            self._models[version] = models.load(folder)[0]
        logits = self._models[version](torch.tensor([trace.tokens])).logits[0]
        table = logits.log_softmax(-1)[:-1]
        return [0.0, *table.gather(1, torch.tensor(trace.tokens[1:]).unsqueeze(1)).squeeze(1).tolist()]


def check_named_weights(run_dir, attempts, policies):
    """Each sampled token has the log-probability of the weights that its trace names, and not that of the others."""
    gaps, others, mixed = [], [], 0
    for step, attempt in attempts.items():
        for trace in (trace for game in games_of(run_dir, attempt, step) for trace in game.traces):
            steps = trace.sampled_by()
            mixed += len({*steps} - {None}) > 1
            for version in {*steps} - {None}:
                expected = policies.logprobs(trace, version)
                for at, by in enumerate(steps):
                    if by is not None:
                        (gaps if by == version else others).append(abs(expected[at] - trace.logprobs[at]))
    assert mixed, "no trace has two versions"
    assert max(gaps) < 1e-4
    assert max(others) > 100 * max(gaps), "another version would not have been noticed"


@pytest.mark.process
@pytest.mark.slow
def test_turns_of_one_game_have_the_weights_that_their_trace_names_also_after_a_stop(tmp_path, monkeypatch):
    learn = {"lr": 1e-2, "critic_warmup": 0, "keep": 9}
    game = {"name": "negotiation", "settings": {"turn_limit": 4}}  # two replies of each seat
    config, first = make_run(tmp_path / "a", steps=5, learn=learn, game=game)
    run_dir = spread(first, tmp_path / "b", lag=1, in_flight_updates=True)
    wait_for_weights(monkeypatch)
    asked, learned = [], Trainer._learned

    async def stopping(trainer, rollouts, number):
        if number == 3 and not asked:
            asked.append(trainer.progress.attempt.ask("stop"))
        return await learned(trainer, rollouts, number)

    with monkeypatch.context() as patched:
        patched.setattr(Trainer, "_learned", stopping)
        outcome = run(config_of(run_dir), run_dir)
    assert (outcome["result"], outcome["step"]) == ("stopped", 2)
    assert run(config_of(run_dir), run_dir)["result"] == "succeeded"

    attempts = {1: 1, 2: 1, 3: 2, 4: 2, 5: 2}
    for step, attempt in attempts.items():
        for game in games_of(run_dir, attempt, step):
            steps = [by for trace in game.traces for by in trace.sampled_by() if by is not None]
            assert max(0, step - 2) <= min(steps) <= max(steps) <= step - 1
            if step in (2, 4, 5):  # step 3 may be played again by the weights of the checkpoint alone
                assert {*steps} == {step - 2, step - 1}
    check_named_weights(run_dir, attempts, Policies(config.model.base, run_dir))

    lines = {line["step"]: line for attempt in (1, 2) for line in metrics(run_dir, attempt)}
    assert (lines[1]["lag"], lines[1]["lag_max"], lines[1]["versions"]) == (0, 0, 1)
    for step in (2, 4, 5):
        assert 0 < lines[step]["lag"] < 1
        assert (lines[step]["lag_max"], lines[step]["versions"]) == (1, 2)
    assert all(line["importance"] > 0 for line in lines.values())
    events = [event for event, _ in read_lines(run_dir.attempt(1).events) if event["kind"] == "lag"]
    assert "in-flight updates" in events[0]["why"]
    assert "at most 2" in events[0]["why"], "the correction in use"


def trace_of(versions, mask, policy=LEARNER):
    empty = (0.0,) * len(mask)
    return Trace(
        seat=0, policy=policy, tokens=(5,) * len(mask), mask=mask, turn=(0,) * len(mask), logprobs=empty,
        versions=versions,
    )  # fmt: skip


def test_the_spread_of_versions_by_hand():
    """Of step 5: a game of one version, and one with a token of step 2 and three of step 4; opponents do not count."""
    scenario = Scenario(id="x", game="negotiation", seats=("Ann", "Bob"))
    first = Episode(scenario=scenario, traces=(trace_of(((1, 4),), (0, 1, 1)),))
    second = (trace_of(((0, 2), (2, 4)), (1, 0, 1, 1)), trace_of(((0, 4),), (1,)), trace_of(((0, 0),), (1,), "past 0"))
    rollouts = [Rollout(0, first), Rollout(1, Episode(scenario=scenario, traces=second))]
    assert spread_of_versions(rollouts, 5) == {"lag": 2 / 6, "lag_max": 2.0, "versions": 1.5}
    assert spread_of_versions(rollouts, 5, start=4) == {"lag": 0.0, "lag_max": 0.0, "versions": 1.0}
    assert spread_of_versions([Rollout(0, Episode(scenario=scenario))], 5) == {}
