"""Silence and waiting in Among Us: planted players that do nothing else raise an alarm, ordinary ones do not."""

import asyncio

import pytest

from training import samples
from training.learn.report import outcome_metrics
from training.learn.score import Rollout
from training.learn.watchdog import Watchdog
from training.players import make
from training.players.base import Reply
from training.records import LEARNER
from training.rewards import Score
from training.rollout.episode import play
from training.run_sections import StopSection

STARTS = samples.load("among_us")[:9:4]
"""One sample of each grid."""


class Silent:
    """The script, which has nothing to say."""

    def __init__(self, scenario, seat):
        self.script = make("scripted", scenario, seat)

    async def act(self, seat, observation, seed):
        if any(action.name == "talk" for action in observation.actions):
            return Reply("…")
        return await self.script.act(seat, observation, seed)

    def traces(self):
        return ()


class Waiting(Silent):
    """Waits wherever it may."""

    async def act(self, seat, observation, seed):
        if any(action.name == "wait" for action in observation.actions):
            return Reply("<wait/>")
        return await self.script.act(seat, observation, seed)


def numbers(seed, kind=None, role="", seats=()):
    """What a step of one game on each grid reports; `kind` plays the seats of `role`, else the script does.

    The learner has the seats of `seats`, or all.
    """
    rollouts = []
    for start in STARTS:
        scenario = start.with_seed(seed)
        roles = asyncio.run(play(scenario, [make("scripted", scenario, seat) for seat in range(5)])).roles
        players = [
            kind(scenario, seat) if kind and roles[seat].startswith(role) else make("scripted", scenario, seat)
            for seat in range(5)
        ]
        game = asyncio.run(play(scenario, players))
        policies = tuple(LEARNER if not seats or each in seats else "scripted" for each in roles)
        score = Score(game.returns, (True,) * len(game.turns))
        rollouts.append(Rollout(len(rollouts), game, score, policies=policies))
    return outcome_metrics(rollouts)


def alarm(metrics, steps=8):
    """What the watchdog says if every step is like this one."""
    dog = Watchdog(StopSection())
    return next((why for why in (dog.see(metrics) for _ in range(steps)) if why), "")


@pytest.mark.parametrize("seed", range(1, 11))
def test_ordinary_games_raise_no_alarm(seed):
    for kind in (None, lambda scenario, seat: make("random", scenario, seat)):
        metrics = numbers(seed, kind)
        assert {"silent", "waits", "silent/crewmate", "waits/imposter"} <= metrics.keys()
        assert alarm(metrics) == ""


def test_a_silent_crew_raises_an_alarm_though_the_imposter_talks():
    metrics = numbers(2, Silent, "crewmate")
    assert metrics["silent/crewmate"] == 1
    assert 0 < metrics["silent"] < 1
    assert alarm(metrics).startswith("silence: 5 steps in a row more than 80% of a role's messages")


def test_where_everybody_waits_there_is_an_alarm():
    metrics = numbers(2, Waiting)
    assert metrics["waits"] == 1
    assert alarm(metrics).startswith("waiting: 5 steps in a row more than 80%")


def test_seats_of_other_policies_raise_none():
    # the learner is the imposter, whose script talks; the crew is fixed
    metrics = numbers(2, Silent, "crewmate", seats=("imposter",))
    assert "silent/crewmate" not in metrics
    assert alarm({**metrics, "silent": 0.9}) == ""
