"""Plays ALFWorld's games (Shridhar et al. 2021) through TextWorld, if the package `alfworld` is installed.

The games are in folders below `PARLEY_HOME/alfworld`, each with the files `game.tw-pddl` and `traj_data.json`. A
scenario names a folder of one or many games and states their hash, so that changed files cannot change stored games.
What does not fit raises `BadInput`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import lru_cache
from hashlib import file_digest, sha256
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from training import bases
from training.errors import BadInput, IllegalMove, OutsideError, boundary
from training.games.actions import clean, read_args
from training.games.household import words
from training.games.household.commands import ACTIONS, BY_NAME, Choices
from training.games.household.settings import Family, Task
from training.games.household.state import State
from training.reading import explain
from training.records import ArgValue
from training.seeding import rng

GAME, TRAJECTORY = "game.tw-pddl", "traj_data.json"
FAMILIES: Mapping[str, Family] = {
    "pick_and_place_simple": "pick_and_place",
    "pick_two_obj_and_place": "two_objects",
    "pick_clean_then_place_in_recep": "clean",
    "pick_heat_then_place_in_recep": "heat",
    "pick_cool_then_place_in_recep": "cool",
    "look_at_obj_in_light": "look_under_light",
}
"""ALFWorld's names of the families."""
_UNKNOWN = "UNKNOWN GOAL"
"""What stands in a game's file for a task that was not written into it."""


def start(name: str, stated: str, seed: int) -> AlfworldRoom:
    """Return one of a folder's games, drawn by the seed; raise `BadInput` if the folder or the packages do not fit."""
    folder = bases.home() / "alfworld" / name
    games = sorted(folder.rglob(GAME))
    if not games:
        raise BadInput(f"there is no {GAME} below PARLEY_HOME/alfworld/{name}", "settings.alfworld")
    digest = _digest(folder, tuple(map(_status, (path for game in games for path in (game, game.parent / TRAJECTORY)))))
    if stated != digest:
        why = "another one than the scenario states" if stated else "which the scenario must state"
        raise BadInput(f"the games of {name} have the hash {digest}, {why}", "settings.sha256")
    rng(seed, "household", "alfworld").shuffle(games)
    for path in games:
        game = _json(path)
        if game.get("solvable", True):
            return AlfworldRoom(_environment(path), _task(path.parent), path.parent.relative_to(folder.parent))
    raise BadInput("all its games are marked as not solvable", "settings.alfworld")


@lru_cache(maxsize=8)
def _digest(folder: Path, state: tuple[tuple[Path, int, int], ...]) -> str:
    """Return one hash of all games with their places; a file with another `state` (path, time, bytes) is read again."""
    whole = sha256()
    for path, _, _ in state:
        with path.open("rb") as file:
            whole.update(f"{file_digest(file, 'sha256').hexdigest()}  {path.relative_to(folder)}\n".encode())
    return whole.hexdigest()


def _status(path: Path) -> tuple[Path, int, int]:
    """Return a file with its time and size."""
    if not path.is_file():
        raise BadInput(f"there is no {path.name} beside {GAME}", path.parent.name)
    status = path.stat()
    return path, status.st_mtime_ns, status.st_size


def _json(path: Path) -> dict[str, Any]:
    """Return the object in a file."""
    where = f"{path.parent.name}/{path.name}"
    try:
        data = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise BadInput(f"not JSON in UTF-8: {error}", where) from error
    if not isinstance(data, dict):
        raise BadInput("expected an object", where)
    return data


def _task(folder: Path) -> Task:
    """Return the task of a game."""
    trajectory, where = _json(folder / TRAJECTORY), f"{folder.name}/{TRAJECTORY}"
    family, wanted = FAMILIES.get(str(trajectory.get("task_type"))), trajectory.get("pddl_params")
    if family is None:
        raise BadInput(f"is none of: {', '.join(FAMILIES)}", f"{where}, task_type")
    if not isinstance(wanted, dict):
        raise BadInput("expected an object", f"{where}, pddl_params")
    target = "toggle_target" if family == "look_under_light" else "parent_target"
    names = {field: str(wanted.get(field, "")).lower() for field in ("object_target", target)}
    try:
        return Task(family=family, object=names["object_target"], receptacle=names[target])
    except ValidationError as error:
        raise BadInput(explain(error)[1], f"{where}, pddl_params") from error


def _environment(path: Path) -> Any:
    """Return TextWorld's environment of a game, with ALFWorld's names of things."""
    try:
        import textworld
        from alfworld.agents.environment.alfred_tw_env import AlfredDemangler
    except ImportError as error:
        why = f"games of ALFWorld need the package alfworld (pip install alfworld): {error}"
        raise BadInput(why, "settings.alfworld") from error
    try:
        with boundary():
            wanted = textworld.EnvInfos(won=True, admissible_commands=True)
            return textworld.start(str(path), wanted, wrappers=[AlfredDemangler])
    except OutsideError as error:
        raise BadInput(f"TextWorld cannot play it: {error}", f"{path.parent.name}/{path.name}") from error


class AlfworldRoom:
    """A game of ALFWorld. `state` holds what its player has done; where all other things are, TextWorld alone knows."""

    def __init__(self, environment: Any, task: Task, name: Path) -> None:
        self.task = task
        self.name = name.as_posix()
        self.state = State()
        self._environment = environment
        self._known: dict[str, tuple[str, ...]] = {}
        with boundary():
            self._read(environment.reset())
        view, _, sentence = self._seen.partition(words.YOUR_TASK)
        self.receptacles = self.choices().get("go_to", ((),))[0]
        self._around = clean(view.partition("=-")[2])
        self.sentence = words.task(task, 0) if not sentence or _UNKNOWN in sentence else clean(sentence)

    @property
    def won(self) -> bool:
        """Whether the task is done."""
        return self._won

    def around(self) -> str:
        """Return what is seen at first."""
        return self._around

    def choices(self) -> Choices:
        """Return the commands that work now."""
        listed: dict[str, tuple[dict[str, None], ...]] = {}
        for action, values in self._works:
            for each, value in zip(listed.setdefault(action, tuple({} for _ in values)), values, strict=True):
                each[value] = None
        return {action: tuple(map(tuple, values)) for action, values in listed.items()}

    def act(self, action: str, args: Mapping[str, ArgValue]) -> str:
        """Perform a command and return what is seen."""
        command = self._works.get((action, tuple(str(args[arg.name]) for arg in BY_NAME[action].args)))
        if command is None:
            return words.NOTHING
        with boundary():
            self._read(self._environment.step(command)[0])
        if action != "toggle" or args["object"] not in self.state.lit:  # there a lamp that is on stays on
            self.state.apply(action, args)
        self._remember()
        return self._seen

    def known(self, receptacle: str) -> tuple[str, ...] | None:
        """Return what could last be taken from or turned on at a receptacle; None if nothing was seen there."""
        return self._known.get(receptacle)

    def _remember(self) -> None:
        """Keep what is at the receptacle in front; with something in the hand, TextWorld does not list it."""
        at, choices = self.state.at, self.choices()
        if not at or "open" in choices:
            return
        if not self.state.carried:
            self._known[at] = (*choices.get("take", ((),))[0], *choices.get("toggle", ((),))[0])
        elif at in self._known:
            self._known[at] = tuple(thing for thing in self._known[at] if thing != self.state.carried)

    def _read(self, state: Any) -> None:
        """Keep what TextWorld says: what is seen, whether the task is done, the commands that work."""
        self._seen = clean(str(state["feedback"]))
        self._won = bool(state["won"])
        self._works = dict(_works(state["admissible_commands"]))


def _works(commands: list[str]) -> Iterator[tuple[tuple[str, tuple[str, ...]], str]]:
    """Yield the commands of the household that are among TextWorld's, as actions with arguments."""
    verbs = sorted(((verb, action) for action in ACTIONS for verb in action.verbs), key=lambda pair: -len(pair[0]))
    for command in commands:
        verb, action = next((pair for pair in verbs if f"{clean(command)} ".startswith(f"{pair[0]} ")), ("", None))
        if action is None:
            continue
        try:
            args = read_args(action, clean(command)[len(verb) :]) if action.args else {}
        except IllegalMove:  # another command that begins alike
            continue
        yield (action.name, tuple(str(args[arg.name]) for arg in action.args)), command
