"""The board of Among Us: the grid of rooms, the viewer's room with the players in it, and its open tasks."""

from __future__ import annotations

from training.games.among_us.settings import Room
from training.games.among_us.words import place
from training.games.among_us.world import World
from training.games.prose import listed
from training.records import Viewer
from training.views import Cell, Cells


def rooms(world: World, names: tuple[str, ...], viewer: Viewer | None) -> tuple[Cells, ...]:
    """Return the grid for a living seat, nothing for the dead and spectators; None: the viewer may see everything."""
    if viewer is not None and not (viewer >= 0 and world.people[viewer].alive):
        return ()
    rows = tuple(
        tuple(_cell(world, names, viewer, (column, row)) for column in range(world.settings.width))
        for row in range(world.settings.height)
    )
    return (Cells(title="Rooms", rows=rows),)


def _cell(world: World, names: tuple[str, ...], viewer: Viewer | None, room: Room) -> Cell:
    people, bodies, tasks = _inside(world, viewer, room)
    parts = [names[seat] for seat in people] + [f"body of {names[seat]}" for seat in bodies]
    if tasks:
        parts.append("task" if tasks == 1 else f"{tasks} tasks")
    return Cell(text=", ".join(parts), label=f"{place(room)}: {listed(parts) if parts else 'nothing known'}")


def _inside(world: World, viewer: Viewer | None, room: Room) -> tuple[list[int], list[int], int]:
    """Return the players and bodies in a room and its number of open tasks, as far as `viewer` may know."""
    if viewer is None:
        return world.present(room), world.bodies_in(room), 0
    person = world.people[viewer]
    tasks = person.tasks.count(room)
    if person.room != room or person.doing == "walking":
        return [], [], tasks
    return (world.present(room), world.bodies_in(room), tasks) if world.awake(viewer) else ([viewer], [], tasks)
