"""The replies that a seat may give, written out where they are finitely many: what decoding can be limited to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from math import prod

from training.games.actions import write
from training.records import Action, Argument, ArgValue

MOST = 256
"""Most replies that are written out; with more of them decoding stays free."""


def count(actions: Sequence[Action]) -> int:
    """Return the number of replies that perform one of `actions`, without words beside the tag.

    It is 0 where an action has free text that others read, or that is an argument: such replies cannot be listed. A
    player's own reasoning beside a tag is no such text.
    """
    if any(_speaks(action) for action in actions):
        return 0
    return sum(prod(_values(argument) for argument in action.args) for action in actions)


def replies(actions: Sequence[Action]) -> Iterator[str]:
    """Yield each of these replies in its canonical form, which parses to its action and arguments."""
    for action in actions:
        names = [argument.name for argument in action.args]
        for values in product(*(_all(argument) for argument in action.args)):
            yield write(action, dict(zip(names, values, strict=True)))


def _speaks(action: Action) -> bool:
    tagged = action.args or not action.bare
    return action.text in ("optional", "required") or not tagged or any(arg.kind == "text" for arg in action.args)


def _values(argument: Argument) -> int:
    return argument.high - argument.low + 1 if argument.kind == "integer" else len(argument.choices)


def _all(argument: Argument) -> Sequence[ArgValue]:
    return range(argument.low, argument.high + 1) if argument.kind == "integer" else argument.choices
