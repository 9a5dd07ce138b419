"""Many episodes at once: the same in any number of lanes; failures stay in their episode; nothing is left over."""

import asyncio
from functools import partial

import pytest

from tests.table_talk import dialogue, models, negotiation, reply_tokens, say_anything
from training import players, samples
from training.engines.scripted import ScriptedEngine
from training.errors import BadInput, EngineError
from training.games import replay
from training.records import LEARNER, Scenario
from training.rollout import Job, RolloutPolicy, collect, rollout
from training.text.messages import chat

RULES = RolloutPolicy(seed=9, step=4)


def jobs(count, *scenarios, policies=(LEARNER, LEARNER)):
    scenarios = scenarios or (negotiation(turn_limit=8), dialogue(order="simultaneous", turn_limit=8))
    return [Job(at, scenarios[at % len(scenarios)], policies) for at in range(count)]


class Slow(ScriptedEngine):
    """Takes a time that depends on the request, and counts concurrent requests."""

    def __init__(self, script=say_anything, fail=frozenset()):
        super().__init__(script)
        self.fail, self.flying, self.most = fail, 0, 0

    async def sample(self, request):
        self.flying += 1
        self.most = max(self.most, self.flying)
        try:
            await asyncio.sleep((request.seed % 7) / 20_000)
            if request.seed in self.fail:
                raise EngineError("injected")
            return await super().sample(request)
        finally:
            self.flying -= 1


def test_hundreds_of_episodes_are_the_same_in_any_number_of_lanes():
    work = jobs(300)
    wide = Slow()
    serial = asyncio.run(collect(work, {LEARNER: models(ScriptedEngine(say_anything))}, lanes=1, rules=RULES))
    many = asyncio.run(collect(work, {LEARNER: models(wide)}, lanes=300, rules=RULES))
    assert serial == many
    assert [episode.scenario.id for episode in many] == [job.scenario.id for job in work]
    assert all(episode.error is None for episode in many)
    assert wide.most > 300  # both seats of a joint step are sampled at once
    assert wide.flying == 0


def test_no_more_episodes_fly_than_there_are_lanes():
    engine = Slow()
    work = jobs(40, negotiation(turn_limit=8))
    asyncio.run(collect(work, {LEARNER: models(engine)}, lanes=5, rules=RULES))
    assert engine.most == 5


def test_an_engine_that_fails_at_a_request_loses_that_episode_only():
    seen = []
    work = jobs(60, negotiation(turn_limit=8))
    clean = asyncio.run(
        collect(work, {LEARNER: models(Slow(lambda r: seen.append(r.seed) or say_anything(r)))}, lanes=60, rules=RULES)
    )
    engine = Slow(fail={seen[100], seen[333]})
    episodes = asyncio.run(collect(work, {LEARNER: models(engine)}, lanes=16, rules=RULES))
    broken = [at for at, episode in enumerate(episodes) if episode.error]
    assert 1 <= len(broken) <= 2
    assert all(episodes[at].error.message == "injected" for at in broken)
    for at in set(range(60)) - set(broken):
        assert episodes[at] == clean[at]
    for at in broken:
        kept = episodes[at].moves
        assert kept == clean[at].moves[: len(kept)]


def test_leaving_early_cancels_what_is_in_flight():
    engine = Slow()

    async def scene():
        episodes = rollout(jobs(50), {LEARNER: models(engine)}, lanes=10, rules=RULES)
        await anext(episodes)
        await episodes.aclose()
        return engine.flying, [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]

    assert asyncio.run(scene()) == (0, [])


def test_policies_sit_where_the_job_says():
    mine, theirs = ScriptedEngine(say_anything), ScriptedEngine(lambda request: reply_tokens("Hm."))
    policies = {LEARNER: models(mine), "step 10": models(theirs, policy="step 10")}
    (episode,) = asyncio.run(
        collect(jobs(1, negotiation(), policies=(LEARNER, "step 10")), policies, lanes=1, rules=RULES)
    )
    assert {trace.seat: trace.policy for trace in episode.traces} == {0: LEARNER, 1: "step 10"}
    assert {turn.reply for turn in episode.turns if turn.seat == 1} == {"Hm."}
    assert mine.requests == sum(turn.seat == 0 for turn in episode.turns)


def test_strangers_of_the_samples_do_not_read_each_others_names():
    strangers = [start for start in samples.load("dialogues") if start.settings["relationship"] == 0]
    assert len(strangers) == 4
    policies = {"scripted": partial(players.make, "scripted")}
    episodes = asyncio.run(collect(jobs(4, *strangers, policies=("scripted",) * 2), policies, lanes=4, rules=RULES))
    for start, episode in zip(strangers, episodes, strict=True):
        game = replay(episode.scenario, episode.moves)
        for seat, name in enumerate(start.seats):
            assert name in str(chat(game.observe(seat), seat, episode.scenario.seats))
            read_by_other = str(chat(game.observe(1 - seat), 1 - seat, episode.scenario.seats))
            assert not [part for part in name.split() if part in read_by_other]


def test_wrong_input_is_refused_before_or_instead_of_playing():
    broken = Scenario(id="x", game="negotiation", settings={}, seats=("Ann", "Bob"))
    engine = ScriptedEngine(say_anything)
    for work, lanes, why in (
        (jobs(3, policies=(LEARNER, "nobody")), 2, "no policy is called nobody"),
        (jobs(3), 0, "at least one"),
        ([*jobs(3), Job(3, broken, (LEARNER, LEARNER))], 2, "settings"),
    ):
        with pytest.raises(BadInput, match=why):
            asyncio.run(collect(work, {LEARNER: models(engine)}, lanes=lanes, rules=RULES))
    assert asyncio.run(collect([], {LEARNER: models(engine)}, lanes=2, rules=RULES)) == []
