"""The questions of a run's calibration: read and checked once, then put to a single agent with each tool.

Raises `BadInput` that names the question set in the configuration, for a file without questions or a corpus without an
index.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from training import dataset, games, samples
from training.config import RunConfig
from training.errors import BadInput
from training.games.qa_society import alone
from training.records import Scenario
from training.run_sections import CalibrationSet
from training.rundir import RunDir
from training.seeding import seeded

GAME = "qa_society"


@dataclass(frozen=True, slots=True)
class EvaluationSet:
    """The questions of one set for an agent with one tool, "" for none."""

    label: str
    tool: str
    in_distribution: bool
    starts: tuple[Scenario, ...]


def read(config: RunConfig, run_dir: RunDir) -> list[EvaluationSet]:
    """Return the questions of every set with every tool, in the order of the configuration."""
    evaluation_sets: list[EvaluationSet] = []
    for place, section in enumerate(config.calibration.sets):
        where = f"calibration.sets.{place}"
        scenarios = _scenarios(config, section, run_dir, where)
        evaluation_sets += [
            EvaluationSet(section.label, tool, section.in_distribution, tuple(alone(each, tool) for each in scenarios))
            for tool in section.tools
        ]
    names = [(each.label, each.tool) for each in evaluation_sets]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise BadInput(
            f"{twice[0]!r} is asked twice with the same tool: give each set its own label", "calibration.sets"
        )
    return evaluation_sets


def _scenarios(config: RunConfig, section: CalibrationSet, run_dir: RunDir, where: str) -> list[Scenario]:
    """Return the scenarios of a set with the run's game settings, each checked by the game for one agent."""
    settings = config.game.settings if config.game.name == GAME else {}
    starts: list[Scenario] = []
    for scenario in _read(section, run_dir, where):
        changed = scenario.model_copy(update={"settings": {**scenario.settings, **settings}})
        start = seeded(changed, config.seed, 0)
        try:
            for tool in section.tools:
                games.make(alone(start, tool))
        except BadInput as error:
            raise BadInput(f"{scenario.id}, {error.where}: {error.why}", f"{where}.path") from error
        starts.append(start)
        if len(starts) == section.limit:
            break
    return starts


def _read(section: CalibrationSet, run_dir: RunDir, where: str) -> Sequence[Scenario]:
    if not section.path:
        return samples.for_game(GAME)
    path = run_dir.root / section.path
    if not path.is_file():
        raise BadInput(f"no such file: {path}", f"{where}.path")
    try:
        return [line.scenario for line in dataset.read_game(path, GAME)]
    except BadInput as error:
        raise BadInput(error.why, f"{where}.path: {error.where}") from error
