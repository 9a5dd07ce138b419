"""The section `suite` of a run's configuration: games and opponents against which one model is measured.

A suite is a configuration of kind `suite` that names no model; `NAMES` lists those of this folder. `check` raises
`BadInput` with the task's field, such as `suite.tasks.2.opponent`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from training import players, samples
from training.engines.remote.config import remote_config
from training.errors import BadInput
from training.games import lookup, make
from training.games.prose import NAMES as SEATS
from training.opponent_sections import MIRROR, with_roles
from training.players.strategic import POKERS
from training.reading import Record
from training.records import Scenario, Seat
from training.sections import Names, Text

FOLDER = Path(__file__).parent
NAMES = tuple(sorted(path.stem for path in FOLDER.glob("*.toml")))
"""The suites that Parley includes; the file of each is `FOLDER / f"{name}.toml"`."""
BEST_RESPONSE = "best_response"
"""The opponent of a task that plays no games: NashConv is computed from the model's policy."""
UNTRAINED = "untrained"
"""The opponent that is the model from which the measured one was trained."""
MOST_GAMES = 100_000
Return = Annotated[float, Field(ge=-1e6, le=1e6)]
Returns = Annotated[tuple[Return, ...], Field(min_length=1, max_length=100)]


class Scale(Record):
    """How a return becomes a normalised value: linearly, from 0 at `low` to 100 at `high`."""

    low: Returns = Field(description="The return that counts as 0: one number for all seats, or one for each seat.")
    high: Returns = Field(description="The return that counts as 100: one number for all seats, or one for each seat.")

    def ends(self, seat: Seat) -> tuple[float, float]:
        """Return the returns of a seat that count as 0 and as 100."""
        low, high = (each[seat] if len(each) > 1 else each[0] for each in (self.low, self.high))
        return low, high

    @property
    def per_seat(self) -> int:
        """For how many seats the scale has numbers of their own; 0 = the same for all."""
        return max((len(each) for each in (self.low, self.high) if len(each) > 1), default=0)


class SuiteTask(Record):
    """One game against one opponent: the model plays every seat in turn, or all seats of a side at once."""

    title: str = Field(default="", max_length=100, description="What the report calls the task; empty = the game.")
    game: str = Field(min_length=1, max_length=200, description="The game.")
    settings: dict[str, Any] = Field(default_factory=dict, description="Settings that replace those of every scenario.")
    seats: int = Field(
        default=0, ge=0, le=100, description="Number of players where path is empty; 0 = as few as the game allows."
    )
    path: str = Field(
        default="",
        max_length=4096,
        description="A dataset file (JSONL) with the scenarios. Empty = the game's standard scenario with these "
        "settings and a new deal for every game; the sample dataset, where a game has no such scenario.",
    )
    opponent: str = Field(
        min_length=1,
        max_length=4096,
        description="Who plays all other seats, as in a head-to-head: a player such as mcts:100, a model's name or "
        "folder, or ADDRESS MODEL [SECRET]. mirror = the model itself. untrained = the model from which it was "
        "trained. speaker = the speaker without a strategist. best_response = no games: NashConv and exploitability "
        "of the model's policy.",
    )
    measured: str = Field(
        default="",
        max_length=4096,
        description="Who is measured in this task in place of the suite's model: named as opponent is. Empty = the "
        "model.",
    )
    side: Names = Field(
        default=(),
        description="Roles whose seats the model plays, all at once; the opponent plays all others. Empty = the model "
        "plays one seat, each in turn.",
    )
    partner: str = Field(
        default="",
        max_length=4096,
        description="Who plays one of the side's seats, drawn for every game: named as opponent is, other than "
        "mirror. Empty = the model plays them all.",
    )
    games: int = Field(
        default=0,
        ge=0,
        le=MOST_GAMES,
        description="Games with the model at each seat or side; 0 = suite.games.",
    )
    charts: tuple[tuple[Text, Text], ...] = Field(
        default=(),
        max_length=10,
        description="Charts of the report in which the task is a point: the title of each, and the point's label.",
    )
    held_out: bool = Field(default=False, description="Marks a game that the models of the suite do not train on.")
    scale: Scale | None = Field(
        default=None, description="The returns that count as 0 and as 100; empty = no normalised value."
    )


class SuiteSection(Record):
    """The games and opponents of an evaluation suite."""

    games: int = Field(default=1000, ge=1, le=MOST_GAMES, description="Games of each task with the model at each seat.")
    tasks: tuple[SuiteTask, ...] = Field(default=(), max_length=100, description="The tasks, in the report's order.")

    def count(self, task: SuiteTask) -> int:
        """Return the number of games with the model at each seat."""
        return 0 if task.opponent == BEST_RESPONSE else task.games or self.games

    def sources(self) -> Iterator[tuple[str, str]]:
        """Yield who plays beside the model, each with its field; not those that are no other player."""
        for place, task in enumerate(self.tasks):
            named = {"opponent": task.opponent, "partner": task.partner, "measured": task.measured}
            yield from (
                (field(place, name), source)
                for name, source in named.items()
                if source not in ("", MIRROR, BEST_RESPONSE, UNTRAINED)
            )

    @property
    def total(self) -> int:
        """The number of games of all tasks; of a task without a number of seats, the least of its game counts."""
        whole = (task.opponent == MIRROR or task.side for task in self.tasks)
        least = (task.seats or lookup(task.game).players[0] for task in self.tasks)
        seats = (1 if at_once else count for at_once, count in zip(whole, least, strict=True))
        return sum(self.count(task) * each for task, each in zip(self.tasks, seats, strict=True))


def beside_side(section: Mapping[str, Any], opponent: str, partner: str) -> dict[str, Any]:
    """Return a suite's section with who plays beside the model in the tasks with a side; empty = as in the suite.

    Raises `BadInput` at `opponent` or `partner` for one that no task has a seat for.
    """
    changed = {name: source for name, source in (("opponent", opponent), ("partner", partner)) if source}
    if changed and not any(task["side"] for task in section["tasks"]):
        raise BadInput("no task of this suite has a side", next(iter(changed)))
    return {**section, "tasks": [{**task, **changed} if task["side"] else task for task in section["tasks"]]}


def spoken_by(section: Mapping[str, Any], source: str) -> dict[str, Any]:
    """Return the section `speaker` with another source; empty = as in the suite.

    A player without a model plays alone without strategies, because it writes none.
    """
    if not source:
        return dict(section)
    return {**section, "source": source, **({"alone": "plain"} if players.known(source) else {})}


def judged_by(config: Mapping[str, Any], source: str) -> dict[str, Any]:
    """Return the section `judge` of a suite for ADDRESS MODEL [SECRET]; empty = as in the suite.

    Raises `BadInput` at `judge` for another form, or where no task needs a judge.
    """
    if not source:
        return {"judge": config["judge"]}
    if not any(lookup(task["game"]).judged for task in config["suite"]["tasks"]):
        raise BadInput("no game of this suite needs a judge", "judge")
    try:
        return {"judge": remote_config(source).to_dict()}
    except BadInput as error:
        raise BadInput(error.why, "judge") from error


def field(place: int, name: str) -> str:
    """Return the path of a task's field in the configuration."""
    return f"suite.tasks.{place}.{name}"


def check(section: SuiteSection, *, judged: bool = False) -> None:
    """Raise `BadInput` for a suite without tasks, or a task that cannot be played, as far as that is known without
    reading its files. The games and their settings are those of the registry already. `judged`: there is a judge.
    """
    if not section.tasks:
        raise BadInput("a suite needs at least one task", "suite.tasks")
    for place, task in enumerate(section.tasks):
        if lookup(task.game).judged and not judged:
            why = f"{task.game} has no result of its own: a suite needs the section judge, address and model"
            raise BadInput(why, field(place, "game"))
        _check_seats(task, place)
        if task.opponent == BEST_RESPONSE:
            _check_unused(task, place)
            check_solvable(task.game, field(place, "opponent"))
        elif not task.path:
            try:
                begin = starts(task.game, task.seats, task.settings)
            except BadInput as error:
                raise BadInput(str(error), field(place, "settings")) from error
            if task.side:
                check_side(task, begin, place)
            _check_players(task, begin[0], place)
        if task.scale is not None:
            _check_scale(task.scale, lookup(task.game).players[1], field(place, "scale"))


def _check_players(task: SuiteTask, start: Scenario, place: int) -> None:
    for name, source in (("opponent", task.opponent), ("partner", task.partner), ("measured", task.measured)):
        if players.known(source):
            try:
                players.check(source, start)
            except BadInput as error:
                raise BadInput(error.why, field(place, name)) from error


def check_side(task: SuiteTask, begin: Sequence[Scenario], place: int) -> None:
    """Raise `BadInput` unless somebody has a role of the side in every start, somebody has not, and the model plays."""
    for start in begin:
        roles = make(start).roles()
        members = len(with_roles(task.side, roles))
        if not members:
            has = f"it has {', '.join(sorted({*roles}))}" if roles else "it has none"
            raise BadInput(f"nobody in {start.id} has these roles; {has}", field(place, "side"))
        if members == len(roles):
            raise BadInput(f"everybody in {start.id} has one of these roles, so nobody opposes", field(place, "side"))
        if task.partner and members == 1:
            raise BadInput(
                f"{start.id} has one seat of the side, which the partner would take", field(place, "partner")
            )


def _check_seats(task: SuiteTask, place: int) -> None:
    """Raise `BadInput` for a number of seats that the game does not have, and for fields that exclude each other."""
    fewest, most = lookup(task.game).players
    if task.seats and not fewest <= task.seats <= most:
        raise BadInput(f"{task.game} has {fewest} to {most} players", field(place, "seats"))
    if task.partner and not task.side:
        raise BadInput("a partner takes one of the seats of a side: name its roles in side", field(place, "partner"))
    if task.measured in (MIRROR, BEST_RESPONSE, UNTRAINED):
        raise BadInput(f"{task.measured} is no other player: leave it empty, or name one", field(place, "measured"))
    if task.partner in (MIRROR, BEST_RESPONSE):
        raise BadInput(f"{task.partner} is no other player: leave it empty, or name one", field(place, "partner"))
    if task.side and task.opponent == MIRROR:
        raise BadInput("with opponent mirror the model plays every seat", field(place, "side"))
    if task.side and task.scale is not None and task.scale.per_seat:
        raise BadInput("the seats of a side change from game to game: give one number", field(place, "scale"))


def _check_unused(task: SuiteTask, place: int) -> None:
    """Raise `BadInput` at a field that says how games begin or count, of a task that plays none."""
    for name in ("settings", "seats", "path", "side", "partner", "measured", "games", "scale"):
        if getattr(task, name):
            why = f"{BEST_RESPONSE} plays no games, and NashConv is that of the standard game: leave {name} out"
            raise BadInput(why, field(place, name))


def check_solvable(game: str, where: str) -> None:
    """Raise `BadInput` at `where` for a game in which no best response is computed."""
    if game not in POKERS:
        raise BadInput(f"NashConv is known for {' and '.join(POKERS)}, not for {game!r}", where)


def _check_scale(scale: Scale, seats: int, where: str) -> None:
    for name, values in (("low", scale.low), ("high", scale.high)):
        if len(values) not in (1, seats):
            raise BadInput(
                f"one number for all seats, or one for each of {seats}, not {len(values)}", f"{where}.{name}"
            )
    for seat in range(scale.per_seat or 1):
        low, high = scale.ends(seat)
        if low >= high:
            raise BadInput(f"100 must be a higher return than 0: {high:g} is not above {low:g}", f"{where}.high")


def starts(game: str, seats: int = 0, settings: Mapping[str, Any] | None = None) -> tuple[Scenario, ...]:
    """Return the game's standard scenario for so many seats (0 = as few as it allows), or else all its samples.

    Seed 0 of a standard scenario means a new deal each time. Raises `BadInput` for settings that do not fit, and for a
    game without either.
    """
    spec, changed = lookup(game), settings or {}
    count = seats or spec.players[0]
    start = spec.start(count) if spec.start else Scenario(id=game, game=game, seats=SEATS[:count])
    standard = start.model_copy(update={"settings": {**start.settings, **changed}, "seed": 0})
    try:
        make(standard)
    except BadInput:
        if spec.start is not None:
            raise
    else:
        return (standard,)
    changed_samples = tuple(
        sample.model_copy(update={"settings": {**sample.settings, **changed}}) for sample in samples.for_game(game)
    )
    for sample in changed_samples:
        make(sample)
    return changed_samples


def with_starts(suite: SuiteSection, folder: Path) -> SuiteSection:
    """Return the suite with a file of starts for every task that plays games; in `folder` where it names none."""
    tasks = tuple(
        task
        if task.path or not suite.count(task)
        else task.model_copy(update={"path": str(write_starts(task, folder))})
        for task in suite.tasks
    )
    return suite.model_copy(update={"tasks": tasks})


def for_model(
    config: Mapping[str, Any], base: str, *, games: int | None = None, seed: int | None = None
) -> dict[str, Any]:
    """Return the configuration of a suite with the model that it measures; `games` are those of every task."""
    suite = dict(config["suite"])
    if games is not None:
        suite |= {"games": games, "tasks": [{**task, "games": 0} for task in suite["tasks"]]}
    chosen = {"model": {**config["model"], "base": base}, "suite": suite}
    return {**config, **chosen, **({} if seed is None else {"seed": seed})}


def write_starts(task: SuiteTask, folder: Path) -> Path:
    """Write the starts of a task that names no file into `folder`; return the file, which is named by its hash."""
    return samples.write_scenarios(starts(task.game, task.seats, task.settings), folder)
