"""Werewolf of six: sides of a head-to-head, the pool's sides, numbers by role, probes, and the reward of OMAR."""

from collections import Counter

import pytest

from tests.chat_tokenizers import tokenizer
from tests.rollout.test_probes import Scores
from training import players
from training.engines.base import Sampling
from training.evaluate.head_to_head import pairings, play
from training.evaluate.summary import summarise
from training.methods.omar import OmarConfig
from training.opponent_sections import Opponent
from training.players.contestants import Contestant
from training.players.model import ModelPlayer
from training.records import LEARNER, Scenario, ScoredEpisode, Trace
from training.rollout import Job, RolloutPolicy, collect
from training.rollout.pool import Pool
from training.rollout.roles import by_role, seat_numbers
from training.text.template import ChatTokenizer

NAMES = ("Ann", "Bob", "Cleo", "Dan", "Eva", "Finn")
CHAT = ChatTokenizer(tokenizer("chatml"))


def unplayed(count):
    return [Scenario(id=f"v{i}", game="werewolf", seats=NAMES) for i in range(count)]


def chance(scenario, seat):
    return players.make("random", scenario, seat)


async def test_wolves_against_a_village_with_an_interval():
    pairs = pairings(unplayed(20), 40, 3, ("werewolf",), "each_other")
    side = Contestant("random", chance)
    matches = await play(pairs, side, side, lanes=8, rules=RolloutPolicy(seed=3))
    assert all(match.episode.error is None for match in matches)
    for match in matches:
        roles = match.episode.roles
        wolves = {seat for seat, role in enumerate(roles) if role == "werewolf"}
        assert wolves in [set(match.pairing.seats_of(name)) for name in "ab"]
    summary = summarise(matches, {})
    by_hand = [m.episode.metrics["wolves_win"] for m in matches]
    assert summary.shared["wolves_win"].mean == pytest.approx(sum(by_hand) / 40)
    as_wolves = [m.episode.metrics["wolves_win"] for m in matches[::2]]
    won = summary.a["won/werewolf"]
    assert won.mean == pytest.approx(sum(as_wolves) / 20)
    assert won.low < won.mean < won.high
    assert {"won/seer", "survived/villager", "legal_rate/werewolf"} <= summary.difference.keys()


async def test_the_learner_holds_the_wolves_that_this_start_has():
    pool = Pool((Opponent(source="random", learner=("werewolf",)),), 1, save_every=1, saved=1, loaded=1)
    starts = [start.with_seed(seed) for seed, start in enumerate(unplayed(12), 1)]
    jobs = [Job(number, start, pool.seats(start, 1, number)) for number, start in enumerate(starts)]
    episodes = await collect(jobs, {LEARNER: chance, "random": chance}, lanes=4, rules=RolloutPolicy())
    for job, episode in zip(jobs, episodes, strict=True):
        seats = {seat for seat, name in enumerate(job.policies) if name == LEARNER}
        assert seats == {seat for seat, role in enumerate(episode.roles) if role == "werewolf"}
    assert len({job.policies for job in jobs}) > 1  # roles are dealt anew with every seed


async def test_numbers_by_role_are_means_over_the_seats_with_the_role():
    jobs = [Job(number, start.with_seed(number + 1), ("random",) * 6) for number, start in enumerate(unplayed(10))]
    episodes = await collect(jobs, {"random": chance}, lanes=4, rules=RolloutPolicy())
    numbers = by_role((episode, seat_numbers(episode)) for episode in episodes)
    wolves = [e.metrics["wolves_win"] for e in episodes]
    assert numbers["won/werewolf"] == pytest.approx(sum(wolves) / 10)
    assert numbers["won/seer"] == pytest.approx(1 - sum(wolves) / 10)
    survived = Counter()
    for episode in episodes:
        for seat, role in enumerate(episode.roles):
            survived[role] += episode.seat_metrics[seat]["survived"]
    assert numbers["survived/villager"] == pytest.approx(
        survived["villager"] / sum(e.roles.count("villager") for e in episodes)
    )


async def test_everybody_alive_is_asked_after_a_speech_and_the_game_does_not_notice():
    def seated(engine):
        return lambda scenario, seat: ModelPlayer(
            engine, CHAT, Sampling(max_tokens=60), seat=seat, names=scenario.seats
        )

    class Even(Scores):
        async def score(self, prefix, continuations):
            self.scored.append((list(prefix), continuations))
            return [-float(len(continuations))] * len(continuations)

    start = unplayed(1)[0].with_seed(5).model_copy(update={"settings": {"probes": True}})
    asked, plain = Even(), Even()
    job = [Job(0, start, ("me",) * 6)]
    [with_probes] = await collect(job, {"me": seated(asked)}, lanes=1, rules=RolloutPolicy(seed=1, probes=True))
    [without] = await collect(job, {"me": seated(plain)}, lanes=1, rules=RolloutPolicy(seed=1))
    assert with_probes.error is None
    assert [trace for trace in with_probes.traces if trace.prefix is None] == list(without.traces)
    assert with_probes.moves == without.moves
    assert with_probes.beliefs
    assert not without.beliefs
    for belief in with_probes.beliefs:
        count = len(belief.probabilities)
        assert all(p == pytest.approx(1 / count) for p in belief.probabilities.values())
        assert NAMES[belief.seat] not in belief.probabilities
        assert {with_probes.roles[NAMES.index(name)] for name in belief.truth} <= {"werewolf"}


async def test_omar_pays_a_seat_that_was_eliminated_early_three_quarters_of_a_win():
    jobs = [Job(number, start.with_seed(number + 1), ("random",) * 6) for number, start in enumerate(unplayed(12))]
    episodes = await collect(jobs, {"random": chance}, lanes=4, rules=RolloutPolicy())
    assert {value for episode in episodes for value in episode.returns.values()} == {0.0, 1.0}
    method = OmarConfig(advantage="flat", critic_heads="two").build()
    paid = set()
    for episode in episodes:
        scored = _as_learned(episode)
        [credit] = method.credit([scored])
        for trace, trace_credit in zip(scored.episode.traces, credit.traces, strict=True):
            # with values 0 and no discount in the flat form every token carries the reward of its seat
            eliminated = episode.seat_metrics[trace.seat]["eliminated"]
            reward = episode.returns[trace.seat] * (0.75 if eliminated else 1.0)
            assert trace_credit.ppo[1:] == pytest.approx(reward)
            paid.add(reward)
    assert paid == {0.0, 0.75, 1.0}


def _as_learned(episode):
    """The episode as if a model had sampled one token a turn; values are 0, and all turns pass."""
    import numpy as np

    traces = []
    for seat in range(6):
        turns = [at for at, turn in enumerate(episode.turns) if turn.seat == seat]
        if turns:
            length = 1 + len(turns)
            mask = (0, *(1,) * len(turns))
            traces.append(
                Trace(seat=seat, tokens=(3,) * length, mask=mask, turn=(-1, *turns), logprobs=(0.0,) * length)
            )
    return ScoredEpisode(
        episode=episode.model_copy(update={"traces": tuple(traces)}),
        returns=episode.returns,
        turn_rewards=[0.0] * len(episode.turns),
        passed=[True] * len(episode.turns),
        logprobs=[np.zeros(len(trace.tokens)) for trace in traces],
        values={"token": [np.zeros(len(trace.tokens)) for trace in traces]},
    )
