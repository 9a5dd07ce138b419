"""Parsing of a person's move from a form post or a socket message, against the legal actions.

Raises `BadInput`, whose `where` names the field, or `IllegalMove`; both messages are for the person.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from training.errors import BadInput
from training.games.actions import check_move, plain, read_args, read_value, write
from training.records import Action, ArgValue, Move, Observation

LONGEST = 20_000
"""Characters of any one field; games set smaller bounds for speech."""


def field(action: Action, argument: str) -> str:
    """The name of the form field of one argument."""
    return f"{action.name}.{argument}"


def label(action: Action) -> str:
    """The words of the form's control for an action."""
    return action.label or action.name.replace("_", " ").capitalize()


def press(action: Action, choice: str) -> str:
    """The value of a button named `choice` that performs an action with the arguments that a choice says."""
    return f"{action.name}:{choice}"


def _text(data: Mapping[str, Any], name: str) -> str:
    value = data.get(name, "")
    if not isinstance(value, str) or len(value) > LONGEST or "\x00" in value:
        raise BadInput("must be a text of at most 20,000 characters", name)
    if not value.isascii() and any("\ud800" <= character <= "\udfff" for character in value):
        raise BadInput("contains an unpaired surrogate, which is not a character", name)
    return value.strip()


def turn_of(data: Mapping[str, Any]) -> int:
    """The index of the seat's turn, from 0, that the form was rendered for."""
    text = _text(data, "turn")
    if not text.isascii() or not text.isdigit() or len(text) > 9:
        raise BadInput("must be the number of the turn that the form was made for: reload the page", "turn")
    return int(text)


def _pressed(data: Mapping[str, Any], offered: Sequence[Action]) -> Mapping[str, Any]:
    """The form's fields, with a pressed choice expanded to its action and arguments."""
    name, _, choice = _text(data, "choice").partition(":")
    if not name:
        return data
    action = next((action for action in offered if action.name == name and action.args), None)
    if action is None:
        return {**data, "action": name}
    single = len(action.args) == 1
    values = {action.args[0].name: choice} if single else read_args(action, choice)
    return {**data, "action": name, **{field(action, argument): str(value) for argument, value in values.items()}}


def _action(data: Mapping[str, Any], offered: Sequence[Action]) -> Action:
    name = _text(data, "action")
    for action in offered:
        if action.name == name or (not name and action.bare):
            return action
    if not offered:
        raise BadInput("it is not your turn", "action")
    raise BadInput(f"choose one of: {'; '.join(label(action) for action in offered)}")


def read_move(data: Mapping[str, Any], observation: Observation) -> Move:
    """The move in a person's form: `action`, `text`, and one field `<action>.<argument>` per argument;
    or `choice`, a pressed button, instead of the action and its arguments.

    The move's text is the speech (tags in it are escaped) followed by the action's own tag.
    """
    data = _pressed(data, observation.actions)
    action = _action(data, observation.actions)
    speech = "" if action.text in {"none", "private"} else plain(_text(data, "text"))
    if observation.max_chars and len(speech) > observation.max_chars:
        raise BadInput(f"is {len(speech)} characters long; {observation.max_chars} are allowed", "text")
    if action.text == "required" and not speech:
        raise BadInput("write something first", "text")
    args: dict[str, ArgValue] = {}
    for argument in action.args:
        value = _text(data, field(action, argument.name))
        args[argument.name] = read_value(argument, plain(value) if argument.kind == "text" else value)
    try:
        move = Move(action=action.name, args=args, text=write(action, args, speech))
    except ValueError as error:
        raise BadInput(str(error), action.name) from error
    check_move(move, observation.actions, observation.max_chars, observation.max_words)
    return move
