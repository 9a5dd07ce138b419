"""The household as a board, for people: what was seen last, what is carried, and the commands that work."""

from __future__ import annotations

from itertools import product

from training.games.household import words
from training.games.household.commands import BY_NAME, Choices
from training.games.household.world import Room
from training.views import Cell, Cells

HERE = ("take", "put", "open", "close", "clean", "heat", "cool", "toggle")
"""Commands that change something at the receptacle in front."""


def zones(room: Room, seen: str) -> tuple[Cells, ...]:
    """Return what was seen, where one is with what, what can be done there, and the receptacles to go to.

    A look from the middle of the room shows these receptacles, and is not repeated.
    """
    at, carried, choices = room.state.at, room.state.carried, room.choices()
    place = Cell(text=f"At {at}" if at else "In the middle of the room")
    load = Cell(text=f"Carrying {carried}" if carried else "Carrying nothing")
    here = tuple(Cell(text=command, choice=command) for action in HERE for command, _ in _commands(choices, action))
    others = tuple(Cell(text=name, label=command, choice=command) for command, name in _commands(choices, "go_to"))
    view = (Cell(text=seen),) if seen != room.around() else ()
    listed = {"What you see": view, "You": (place, load), "Here you can": here, "Go to": others}
    return tuple(Cells(title=title, rows=(cells,)) for title, cells in listed.items() if cells)


def _commands(choices: Choices, action: str) -> list[tuple[str, str]]:
    """Return the commands of an action that work, each with the first thing that it names."""
    names = [arg.name for arg in BY_NAME[action].args]
    return [
        (words.order(action, dict(zip(names, values, strict=True))), values[0])
        for values in product(*choices.get(action, ((),)))
    ]
