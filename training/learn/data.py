"""The starts that a run plays: read and checked once, then handed out in an order that only seed and step decide.

Raises `BadInput` for a file that is wrong or holds no scenario of the run's game; those of other games are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from training import dataset, games
from training.config import RunConfig
from training.errors import BadInput
from training.records import LEARNER, Scenario
from training.rollout import Job
from training.seeding import rng, seeded


class Starts:
    """Scenarios in endless passes, each pass in an order of its own."""

    def __init__(self, scenarios: Sequence[Scenario], seed: int, *, shuffle: bool) -> None:
        self.scenarios, self.seed, self.shuffle = list(scenarios), seed, shuffle

    def take(self, first: int, count: int) -> list[Scenario]:
        """Return `count` scenarios from place `first` of the endless sequence."""
        return [self._at(place) for place in range(first, first + count)]

    def _at(self, place: int) -> Scenario:
        epoch, index = divmod(place, len(self.scenarios))
        order = list(range(len(self.scenarios)))
        if self.shuffle:
            rng(self.seed, "order", epoch).shuffle(order)
        return self.scenarios[order[index]]


def read_starts(config: RunConfig, path: Path) -> Starts:
    """Return the run's game's scenarios of a dataset file with the run's settings put in, each checked by the game."""
    scenarios = []
    for line in dataset.read_game(path, config.game.name):
        scenario = line.scenario
        scenario = scenario.model_copy(update={"settings": {**scenario.settings, **config.game.settings}})
        try:
            games.make(scenario)
        except BadInput as error:
            raise BadInput(error.why, f"{path.name}, {scenario.id}, {error.where}") from error
        scenarios.append(scenario)
        if len(scenarios) == config.data.limit:
            break
    return Starts(scenarios, config.seed, shuffle=config.data.shuffle)


def jobs(config: RunConfig, starts: Starts, step: int) -> list[Job]:
    """Return the games of one training step, the learner at every seat.

    A scenario's repetition is the pass over the data that it comes up in. Replays within a step share id and seed and
    form a same-start set.
    """
    rollout = config.rollout
    first = (step - 1) * rollout.scenarios
    found: list[Job] = []
    for place, scenario in enumerate(starts.take(first, rollout.scenarios), first):
        start = seeded(scenario, config.seed, place // len(starts.scenarios))
        for _ in range(rollout.games):
            found.append(Job(len(found), start, (LEARNER,) * len(start.seats)))
    return found
