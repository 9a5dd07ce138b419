"""The commands of the household as actions, and those that work at some point of a game."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from training.records import Action, Argument

Choices = Mapping[str, tuple[tuple[str, ...], ...]]
"""Of every action the values of each argument that work together, in the order of its arguments."""


def _open(name: str, example: str, *prepositions: str) -> Argument:
    return Argument(name=name, kind="choice", choices=(example,), open=True, prepositions=prepositions)


def _command(name: str, label: str, *args: Argument, verbs: tuple[str, ...] = ()) -> Action:
    return Action(name=name, label=label, args=args, text="private", verbs=(name.replace("_", " "), *verbs))


ACTIONS = (
    _command("go_to", "Go to a receptacle", _open("receptacle", "cabinet 1")),
    _command("open", "Open a receptacle", _open("receptacle", "cabinet 1")),
    _command("close", "Close a receptacle", _open("receptacle", "cabinet 1")),
    _command(
        "take", "Take an object", _open("object", "mug 2"), _open("receptacle", "cabinet 1", "from"), verbs=("pick up",)
    ),
    _command(
        "put",
        "Put down what is carried",
        _open("object", "mug 2"),
        _open("receptacle", "countertop 1", "in/on", "into", "onto", "in", "on", "to"),
        verbs=("move", "place"),
    ),
    _command(
        "clean",
        "Clean what is carried",
        _open("object", "mug 2"),
        _open("receptacle", "sinkbasin 1", "with", "using", "in"),
    ),
    _command(
        "heat",
        "Heat what is carried",
        _open("object", "mug 2"),
        _open("receptacle", "microwave 1", "with", "using", "in"),
    ),
    _command(
        "cool", "Cool what is carried", _open("object", "mug 2"), _open("receptacle", "fridge 1", "with", "using", "in")
    ),
    _command("toggle", "Turn a lamp on or off", _open("object", "desklamp 1"), verbs=("use",)),
    _command("examine", "Look at something closely", _open("object", "mug 2"), verbs=("look at",)),
    _command("look", "Look around"),
    _command("inventory", "See what is carried"),
)
"""All commands, each with an example."""
BY_NAME = {action.name: action for action in ACTIONS}


def offered(choices: Choices) -> tuple[Action, ...]:
    """Return all commands, with the arguments that work as their choices."""
    return tuple(_with(action.name, choices.get(action.name, ())) for action in ACTIONS)


@lru_cache(maxsize=4096)
def _with(name: str, values: tuple[tuple[str, ...], ...]) -> Action:
    """Return an action with these choices of its arguments, and with none where there are no values."""
    action = BY_NAME[name]
    each = values or ((),) * len(action.args)
    args = (arg.model_copy(update={"choices": listed}) for arg, listed in zip(action.args, each, strict=True))
    return action.model_copy(update={"args": tuple(args)})
