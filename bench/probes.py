"""Probes: a training step of Among Us without them and with them, with play, measured states and update.

Both sides play the same starts on a ship of 2 by 2 rooms with the same weights; the model has all five seats. Every
game must have a meeting, whatever the model can do. So only starts in which scripted players meet are used, and the
model's replies are replaced by those of the game's script: the engine samples as many tokens as the script's reply
has, and the reply takes their place. With probes, every right answer has `nll` credit; on both sides all sampled
tokens have advantages and a KL divergence from the starting model, and turns have values. `share` is the part of a
step with probes that they add. Without a GPU the seconds are CPU time, which other programs on the machine hardly
change.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from bench.alternate import Reading, alternate, where
from bench.clock import now
from bench.recorded_conversations import ForwardingEngine, conditions, device, use_threads
from training import bases, engines, players
from training.attempts.progress import Progress
from training.engines.base import Sample, SampleRequest, Sampling
from training.engines.local.loading import load_tokenizer
from training.games import lookup
from training.learn.learner import InProcess, Learner
from training.learn.policy import load
from training.learn.score import Rollout, give_credit, measured, rows
from training.methods.credit_builder import CreditBuilder
from training.methods.trajectories import probe_answers, turn_tokens
from training.players.base import Player, Reply
from training.players.model import ModelPlayer
from training.records import LEARNER, Episode, EpisodeCredit, Needs, Observation, Scenario, ScoredEpisode, Seat
from training.rewards import Score
from training.rollout import Job, RolloutPolicy, collect, play
from training.run_sections import LearnSection
from training.rundir import AttemptDir
from training.text.template import ChatTokenizer

SEATS = 5
LEARN = {"lora": None, "lr": 1e-9, "kl": "k2", "critic_warmup": 0}
"""At this rate the float32 weights stay as they are, so that every round is the same step."""


class Listening:
    """Credits sampled tokens with the seat's return, and the right answers of probes with weight 1."""

    needs = Needs(critic=("turn",))

    def credit(self, group: Sequence[ScoredEpisode]) -> list[EpisodeCredit]:
        """Return the credit of each episode."""
        return [self._credit(scored) for scored in group]

    def _credit(self, scored: ScoredEpisode) -> EpisodeCredit:
        builder = CreditBuilder(scored)
        for seat, turns in turn_tokens(scored.episode).items():
            for turn in turns:
                builder.ppo(turn.trace, turn.sampled, scored.returns[seat])
                builder.value("turn", turn.trace, slice(turn.first - 1, turn.first), scored.returns[seat])
        for probe in probe_answers(scored.episode):
            builder.nll(probe.trace, probe.where, 1.0)
        return builder.credit()

    def state_dict(self) -> dict[str, Any]:
        """Return nothing."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Do nothing."""


@dataclass
class Led(ForwardingEngine):
    """An engine of one seat that samples as many tokens as `reply` has, and says those of `reply`."""

    reply: tuple[int, ...] = ()

    async def sample(self, request: SampleRequest) -> Sample:
        """Sample, and replace what was sampled."""
        sampling = request.sampling.model_copy(update={"max_tokens": len(self.reply)})
        sample = await self.inner.sample(replace(request, sampling=sampling, stop_token_ids=()))
        return Sample(self.reply, sample.logprobs, "stop")


class LedPlayer(ModelPlayer):
    """A model's seat whose replies are those of a script."""

    def __init__(self, script: Player, engine: Led, chat: ChatTokenizer, scenario: Scenario, seat: Seat) -> None:
        super().__init__(engine, chat, Sampling(max_tokens=256), seat=seat, names=scenario.seats)
        self._script, self._led, self._chat = script, engine, chat

    async def act(self, seat: Seat, observation: Observation, seed: int) -> Reply:
        """Sample as long a reply as the script's, and say the script's."""
        reply = await self._script.act(seat, observation, seed)
        self._led.reply = (*self._chat.encode(self._chat.neutral(reply.text)), self._chat.end_id)
        return await super().act(seat, observation, seed)


class Step:
    """A training step of `games` games, as often as it is called; `counts` are those of the last one."""

    def __init__(self, engine: str, model: str, dtype: str, games: int, seed: int) -> None:
        folder = bases.resolve(model)
        self.chat = ChatTokenizer(load_tokenizer(folder))
        self.engine = engines.make(engine, folder, dtype=dtype, device=device(), max_running=64)
        learn = LearnSection.from_dict(LEARN)
        self.method = Listening()
        heads = self.method.needs.critic
        policy = load(str(folder), heads, learn, seed=seed, temperature=1.0, device=device())
        self.learn, self.learners = learn, InProcess(Learner(policy, seed))
        self.scenarios = starts(games, seed)
        self.folder, self.seed, self.loop = folder, seed, asyncio.new_event_loop()
        self._scratch = tempfile.TemporaryDirectory(prefix="bench-", ignore_cleanup_errors=True)
        self.progress = Progress(AttemptDir(Path(self._scratch.name)), 0)
        self.counts: dict[str, float] = {}

    def __call__(self, *, probes: bool) -> Reading:
        """Do one step; the rate is steps per hour."""
        clock = now if device() == "cuda" else time.process_time
        times = [clock()]
        episodes = self._play(probes=probes)
        times.append(clock())
        rollouts = [_scored(number, episode) for number, episode in enumerate(episodes)]
        needs, wait = self.method.needs, self.loop.run_until_complete
        wait(measured(rollouts, self.learners, needs, self.learn, old=False, progress=self.progress))
        times.append(clock())
        give_credit(rollouts, self.method)
        wait(self.learners.update(rows(rollouts), 1, self.progress))
        times.append(clock())
        self.counts = {
            "games": len(episodes),
            "meetings": sum(episode.metrics["meetings"] for episode in episodes),
            "messages": sum(entry.move.action == "talk" for episode in episodes for entry in episode.moves),
            "probes": sum(episode.metrics["probes"] for episode in episodes),
            "sampled_tokens": sum(episode.metrics["sampled_tokens"] for episode in episodes),
            "trace_tokens": sum(episode.metrics["tokens"] for episode in episodes),
            "probe_tokens": sum(episode.metrics["probe_tokens"] for episode in episodes),
            "record_bytes": sum(len(str(episode.to_dict())) for episode in episodes),
        }
        seconds = dict(zip(("sampling", "measuring", "learning"), np.diff(times).tolist(), strict=True))
        return Reading(3600 / sum(seconds.values()), seconds, seconds)

    def _play(self, *, probes: bool) -> list[Episode]:
        self.loop.run_until_complete(self.engine.load_weights(self.folder))  # clears the prefix cache

        def player(scenario: Scenario, seat: Seat) -> LedPlayer:
            script = players.make("scripted", scenario, seat)
            return LedPlayer(script, Led(self.engine), self.chat, scenario, seat)

        jobs = [Job(number, scenario, (LEARNER,) * SEATS) for number, scenario in enumerate(self.scenarios)]
        rules = RolloutPolicy(seed=self.seed, probes=probes)
        episodes = self.loop.run_until_complete(collect(jobs, {LEARNER: player}, lanes=len(jobs), rules=rules))
        if failed := [episode.error.message for episode in episodes if episode.error]:
            raise RuntimeError(f"a game failed: {failed[0]}")
        return episodes

    def close(self) -> None:
        """Close the engine."""
        self.loop.run_until_complete(self.engine.close())
        self.loop.close()


def starts(games: int, seed: int) -> list[Scenario]:
    """Return the first starts after `seed` in which scripted players meet."""
    start = lookup("among_us").start
    assert start is not None, "Among Us has a start for any table"
    scenarios: list[Scenario] = []
    for number in count(seed + 1):
        if len(scenarios) == games:
            break
        scenario = start(SEATS).with_seed(number)
        seats = [players.make("scripted", scenario, seat) for seat in range(SEATS)]
        rules = RolloutPolicy(seed=seed)  # what the script draws depends on it, and on the game's number
        if asyncio.run(play(scenario, seats, rules=rules, number=len(scenarios))).metrics["meetings"]:
            scenarios.append(scenario)
    return scenarios


def _scored(number: int, episode: Episode) -> Rollout:
    returns = {seat: float(value or 0) for seat, value in episode.returns.items()}
    return Rollout(number, episode, Score(returns, (True,) * len(episode.turns)))


def main(arguments: Namespace) -> dict[str, Any]:
    """Return the steps of both sides and the share of a step that probes take."""
    threads = use_threads(arguments.threads)
    step = Step(arguments.engine, arguments.model, arguments.dtype, arguments.games, arguments.seed)
    counts: dict[str, dict[str, float]] = {}

    def side(name: str, *, probes: bool) -> Reading:
        reading = step(probes=probes)
        counts[name] = step.counts
        return reading

    compared = alternate(lambda: side("a", probes=False), lambda: side("b", probes=True), arguments.rounds)
    step.close()
    return {
        "measurement": "probes",
        "unit": "steps per hour",
        "sides": {"a": "a step without probes", "b": "the same step with probes"},
        **compared,
        **shares(compared),
        "work": counts,
        "seed": arguments.seed,
        "conditions": {**conditions(arguments, threads), "engine": arguments.engine},
    }


def shares(compared: dict[str, Any]) -> dict[str, Any]:
    """Return what probes add as a share of a step with them: of the median, and of each round."""
    rounds = [1 - ours / theirs for ours, theirs in zip(compared["b"]["rates"], compared["a"]["rates"], strict=True)]
    return {"share": median(rounds), "shares": [round(share, 4) for share in rounds]}


def show(result: dict[str, Any]) -> str:
    """Return one line with the share, and two with the seconds of each part."""
    work = result["work"]["b"]
    games = f"{work['probes']:.0f} probes around {work['messages']:.0f} messages in {work['games']:.0f} games"
    return f"probes take {100 * result['share']:.1f} % of a step ({games})\n{where(result)}"
