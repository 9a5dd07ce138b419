"""The scenarios that a run plays: read and checked once, then sampled in an order that depends on seed and step alone.

Raises `BadInput` for an invalid file or one without a scenario of the requested game; other games are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from training import dataset, games, phases
from training.config import RunConfig
from training.errors import BadInput
from training.opponent_sections import TEACHER
from training.records import LEARNER, Scenario
from training.rollout import Job
from training.rollout.pool import Pool
from training.run_sections import MixtureEntry
from training.seeding import rng, seeded


class ScenarioSampler:
    """An endless sequence of scenarios: passes over the data, each shuffled by its own seed."""

    def __init__(self, scenarios: Sequence[Scenario], seed: int, *, shuffle: bool) -> None:
        self.scenarios, self.seed, self.shuffle = list(scenarios), seed, shuffle

    def take(self, first: int, count: int) -> list[Scenario]:
        """Return `count` scenarios of the endless sequence, starting at position `first`."""
        return [self._at(place) for place in range(first, first + count)]

    def start(self, place: int) -> Scenario:
        """Return the scenario at a position, with a seed that depends on the pass over the data."""
        return seeded(self._at(place), self.seed, place // len(self.scenarios))

    def _at(self, place: int) -> Scenario:
        epoch, index = divmod(place, len(self.scenarios))
        order = list(range(len(self.scenarios)))
        if self.shuffle:
            rng(self.seed, "order", epoch).shuffle(order)
        return self.scenarios[order[index]]


class MixtureSampler:
    """One endless sequence of the scenarios of several games; every prefix of it follows the weights."""

    def __init__(self, parts: Sequence[ScenarioSampler], weights: Sequence[float]) -> None:
        self.parts, self.weights = list(parts), [weight / sum(weights) for weight in weights]
        self._places: list[tuple[int, int]] = []
        self._counts = [0] * len(self.parts)

    @property
    def scenarios(self) -> list[Scenario]:
        """The scenarios of all parts."""
        return [scenario for part in self.parts for scenario in part.scenarios]

    def start(self, place: int) -> Scenario:
        """Return the scenario at a position: the next one of the game that is furthest below its share."""
        while len(self._places) <= place:
            behind = [w * (len(self._places) + 1) - n for w, n in zip(self.weights, self._counts, strict=True)]
            part = behind.index(max(behind))
            self._places.append((part, self._counts[part]))
            self._counts[part] += 1
        part, position = self._places[place]
        return self.parts[part].start(position)


def read_scenarios(
    config: RunConfig, path: Path, part: MixtureEntry | None = None, *, alone: bool = False
) -> ScenarioSampler:
    """Return a dataset file's scenarios of one game with the configured settings, each checked by the game.

    The game is that of the mixture entry `part`, or the run's. `alone`: each seat of a scenario as a start of its own.
    """
    part = part or MixtureEntry(game=config.game.name, settings=config.game.settings)
    spec = games.lookup(part.game)
    scenarios: list[Scenario] = []
    for count, line in enumerate(dataset.read_game(path, part.game), 1):
        scenario = line.scenario
        scenario = scenario.model_copy(update={"settings": {**scenario.settings, **part.settings}})
        try:
            games.make(scenario)
        except BadInput as error:
            raise BadInput(error.why, f"{path.name}, {scenario.id}, {error.where}") from error
        scenarios += spec.alone(scenario) if alone and spec.alone else [scenario]
        if count == config.data.limit:
            break
    return ScenarioSampler(scenarios, config.seed, shuffle=config.data.shuffle)


def jobs(config: RunConfig, starts: ScenarioSampler | MixtureSampler, pool: Pool, step: int) -> list[Job]:
    """Return the games of one training step, with the seats assigned from the pool; a teacher takes the learner's.

    Each scenario is played `rollout.games` times with the same id and seed; these games form a same-start set.
    """
    active = config.of_phase(phases.place_at(config.phases, step))
    first = phases.starts_before(config, step)
    step_jobs: list[Job] = []
    for place in range(first, first + active.rollout.scenarios):
        start = starts.start(place)
        for _ in range(active.rollout.games):
            seats = pool.seats(start, step, len(step_jobs))
            if active.teacher.source:
                seats = tuple(TEACHER if policy == LEARNER else policy for policy in seats)
            step_jobs.append(Job(len(step_jobs), start, seats))
    return step_jobs
