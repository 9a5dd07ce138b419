"""The games of a suite: for every task, which starts are played with the model at which seat.

All seats of a task, and all tasks of a game with the same file, have the same starts, so that seats and opponents are
compared on the same deals. Where the model plays a side, its seats are those with the side's roles in each start.
Raises `BadInput` naming the field of the task that cannot be played.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from training import bases, players
from training.config import RunConfig
from training.errors import BadInput
from training.games import lookup, make
from training.learn.context import input_file
from training.learn.scenarios import read_scenarios
from training.opponent_sections import MIRROR, with_roles
from training.players import contestants
from training.records import Scenario, Seat
from training.rollout import Job
from training.rollout.pool import title
from training.run_sections import MixtureEntry
from training.rundir import RunDir
from training.seeding import derive, rng, seeded
from training.store import dumps
from training.suites import BEST_RESPONSE, UNTRAINED, SuiteTask, check_side, field

MODEL, OPPONENT, PARTNER = "a", "b", "partner"
"""What the measured model, its opponent and its partner are called in the episodes, as in a head-to-head."""


@dataclass(frozen=True, slots=True)
class Block:
    """The games of one task with the model at one seat; None stands for every seat (`mirror`), or those of a side.

    `number` is the block's step in the attempt's episodes, from 1.
    """

    number: int
    place: int
    task: SuiteTask
    seat: Seat | None
    file: Path
    starts: tuple[Scenario, ...]

    @property
    def title(self) -> str:
        """The block in a few words, by public facts only."""
        game = label(self.task, self.starts[0])
        if self.task.title:
            return game if self.seat is None else f"{game}, seat {self.seat}"
        if self.task.side:
            return f"{game} against {title(self.task.opponent)}, {', '.join(self.task.side)}"
        if self.seat is None:
            return f"{game}, mirror"
        return f"{game} against {title(self.task.opponent)}, seat {self.seat}"

    def seed(self, seed: int) -> int:
        """Return the seed of the block's replies; it does not depend on the other tasks of the suite."""
        seat = ",".join(self.task.side) or ("every" if self.seat is None else self.seat)
        who = (self.task.opponent, *((self.task.measured,) if self.task.measured else ()))
        return derive(seed, "suite", self.task.game, dumps(dict(self.task.settings)), *who, seat)

    def jobs(self) -> list[Job]:
        """Return the games, numbered from 0."""
        return [Job(number, start, self._policies(number, start)) for number, start in enumerate(self.starts)]

    def _policies(self, number: int, start: Scenario) -> tuple[str, ...]:
        """Return who plays each seat of a game; the partner's seat is the same for every model that is measured."""
        if not self.task.side:
            return tuple(MODEL if self.seat in (None, seat) else OPPONENT for seat in range(len(start.seats)))
        members = with_roles(self.task.side, make(start).roles())
        names = [MODEL if seat in members else OPPONENT for seat in range(len(start.seats))]
        if self.task.partner:
            names[rng(start.seed, "partner", number).choice(sorted(members))] = PARTNER
        return tuple(names)


def label(task: SuiteTask, start: Scenario | None = None) -> str:
    """Return a task in words: its title, or its game; of a start, what lists say of it."""
    if task.title:
        return task.title
    spec = lookup(task.game)
    return spec.title if start is None or not task.settings else spec.label(start)


def blocks(config: RunConfig, run_dir: RunDir) -> list[Block]:
    """Return the blocks of all tasks that play games, in the order of the tasks; this checks who plays them."""
    made: list[Block] = []
    for place, task in enumerate(config.suite.tasks):
        if task.opponent == BEST_RESPONSE:
            continue
        file = input_file(task.path, run_dir, field(place, "path"))
        starts = _starts(config, task, file, place)
        if task.side:
            check_side(task, starts, place)
        whole = task.side or task.opponent == MIRROR
        seats: list[Seat | None] = [None] if whole else list(range(len(starts[0].seats)))
        for seat in seats:
            made.append(Block(len(made) + 1, place, task, seat, file, starts))
    for block in made:
        _check_players(block, config.model.base)
    return made


def _starts(config: RunConfig, task: SuiteTask, file: Path, place: int) -> tuple[Scenario, ...]:
    try:
        scenarios = read_scenarios(config, file, MixtureEntry(game=task.game, settings=dict(task.settings))).scenarios
    except BadInput as error:
        raise BadInput(str(error), field(place, "path")) from error
    if len({len(scenario.seats) for scenario in scenarios}) > 1:
        raise BadInput("its scenarios differ in the number of seats: make a task of each", field(place, "path"))
    if task.scale is not None and task.scale.per_seat not in (0, len(scenarios[0].seats)):
        raise BadInput(f"its games have {len(scenarios[0].seats)} seats", field(place, "scale"))
    count = config.suite.count(task)
    return tuple(seeded(scenarios[at % len(scenarios)], config.seed, at // len(scenarios)) for at in range(count))


def opponent_of(task: SuiteTask, model: str, where: str) -> str:
    """Return the source of a task's opponent; raise `BadInput` at `where` if the model has no untrained one."""
    if task.opponent != UNTRAINED:
        return task.opponent
    if players.known(model) or "://" in model:
        raise BadInput("only a model here was trained from another one: name an opponent", where)
    try:
        return bases.start_of(bases.resolve(model))
    except BadInput as error:
        raise BadInput(error.why, where) from error


def _check_players(block: Block, model: str) -> None:
    """Raise `BadInput` for a source that names nobody, or a player that does not play the game; loads no model."""
    for seat, source, where in _sources(block, model):
        try:
            contestants.check(source)
            if players.known(source):
                players.make(source, block.starts[0], seat)
        except BadInput as error:
            raise BadInput(error.why, where) from error


def _sources(block: Block, model: str) -> Iterator[tuple[Seat, str, str]]:
    """Yield who plays each seat of a block, and which field names them."""
    if block.task.partner:
        yield 0, block.task.partner, field(block.place, "partner")
    where = field(block.place, "opponent")
    opponent = opponent_of(block.task, model, where)
    if block.task.side:
        yield 0, opponent, where
    for seat in range(len(block.starts[0].seats)):
        if block.seat in (None, seat):
            yield (
                seat,
                block.task.measured or model,
                field(block.place, "measured") if block.task.measured else "model.base",
            )
        else:
            yield seat, opponent, where
