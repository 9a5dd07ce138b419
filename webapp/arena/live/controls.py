"""The legal actions as form controls, and the board with its choices as buttons.

A choice or command that appears on the board is a button there; every other one is a form control.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

from training.games.actions import body
from training.records import Action, Zone
from webapp.arena.play import moves

MOST_BUTTONS = 16
"""Up to this many choices are shown as buttons; more become a select list."""
MOST_COMMANDS = 200
"""A command with more combinations of arguments than this has a field for each argument, and no place on the board."""


@dataclass(frozen=True)
class Square:
    """One cell of the board; `press` is the value of its button, empty if it has none."""

    text: str
    label: str
    press: str


@dataclass(frozen=True)
class Area:
    """One zone of the board; a `flat` zone (one row) is shown as a list, others as tables."""

    title: str
    rows: Sequence[Sequence[Square]]
    flat: bool


def _single_choice(action: Action) -> bool:
    return [argument.kind for argument in action.args] == ["choice"]


def _presses(actions: Sequence[Action]) -> dict[str, str]:
    """The button value of each choice and each command; choices that two actions offer are ambiguous and left out."""
    presses: dict[str, list[str]] = {}
    for action in actions:
        for choice in _choices(action):
            presses.setdefault(_label(action, choice), []).append(moves.press(action, choice))
    return {choice: values[0] for choice, values in presses.items() if len(values) == 1}


def areas(board: Sequence[Zone], actions: Sequence[Action] = ()) -> list[Area]:
    """The board with a button wherever one of `actions` can be performed by a cell's choice."""
    presses = _presses(actions)
    return [
        Area(
            title=zone.title,
            rows=[[Square(cell.text, cell.label, presses.get(cell.choice, "")) for cell in row] for row in zone.rows],
            flat=len(zone.rows) == 1,
        )
        for zone in board
    ]


def controls(actions: Sequence[Action], board: Sequence[Area] = ()) -> list[dict[str, object]]:
    """The offered actions with the names of their form fields, and with the buttons of commands and single choices.

    An action is left out where a choice of it has no values.
    """
    laid = {square.press for area in board for row in area.rows for square in row if square.press}
    return [
        _control(action, laid) for action in actions if all(arg.kind != "choice" or arg.choices for arg in action.args)
    ]


def _choices(action: Action) -> Sequence[str]:
    """What the buttons of an action choose: its choices, or all arguments of a command."""
    if _single_choice(action):
        return action.args[0].choices
    if not action.args or not action.verbs or prod(len(arg.choices) for arg in action.args) > MOST_COMMANDS:
        return ()
    names = [arg.name for arg in action.args]
    return [
        body(action, dict(zip(names, values, strict=True))) for values in product(*(arg.choices for arg in action.args))
    ]


def _label(action: Action, choice: str) -> str:
    """The choice itself, or the whole command."""
    return f"{action.verbs[0]} {choice}" if action.verbs else choice


def _control(action: Action, laid: set[str]) -> dict[str, object]:
    choices = _choices(action)
    presses = [(moves.press(action, choice), _label(action, choice)) for choice in choices]
    buttons = [(press, label) for press, label in presses if press not in laid]
    return {
        "action": action,
        "label": moves.label(action),
        "verb": action.name.replace("_", " ").capitalize(),
        "single_text": [argument.kind for argument in action.args] == ["text"],
        "buttons": buttons if len(buttons) <= MOST_BUTTONS else (),
        "on_board": bool(choices) and not buttons,
        "partly_on_board": 0 < len(buttons) < len(choices),
        "fields": [{"argument": argument, "name": moves.field(action, argument.name)} for argument in action.args],
    }
