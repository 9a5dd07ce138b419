"""The legal actions as form controls, and as buttons of the zones.

A choice or command that a zone has is a button there; every other one is a form control.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import product
from math import prod

from training.games.actions import body
from training.records import Action
from webapp.arena.play import moves

MOST_BUTTONS = 16
"""Up to this many choices are shown as buttons; more become a select list."""
MOST_COMMANDS = 200
"""A command with more combinations of arguments than this has a field for each argument, and no place on the board."""


def _single_choice(action: Action) -> bool:
    return [argument.kind for argument in action.args] == ["choice"]


def presses(actions: Sequence[Action]) -> dict[str, str]:
    """The button value of each choice and each command; choices that two actions offer are ambiguous and left out."""
    values: dict[str, list[str]] = {}
    for action in actions:
        for choice in _choices(action):
            values.setdefault(_label(action, choice), []).append(moves.press(action, choice))
    return {choice: pressed[0] for choice, pressed in values.items() if len(pressed) == 1}


def controls(
    actions: Sequence[Action], chosen: Collection[str] = (), edited: Collection[str] = ()
) -> list[dict[str, object]]:
    """The offered actions with the names of their form fields, and with the buttons of commands and single choices.

    An action is left out where a choice of it has no values, and where a zone edits its arguments: those are named in
    `edited`. `chosen` are the choices of the zones, which are buttons there.
    """
    by_choice = presses(actions)
    laid = {by_choice[choice] for choice in chosen if choice in by_choice}
    return [
        _control(action, laid)
        for action in actions
        if action.name not in edited and all(arg.kind != "choice" or arg.choices for arg in action.args)
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
    labelled = [(moves.press(action, choice), _label(action, choice)) for choice in choices]
    buttons = [(press, label) for press, label in labelled if press not in laid]
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
