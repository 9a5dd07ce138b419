"""The table of Among Us: the map as far as the viewer sees it, and the circle of the meeting."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from training.games.among_us import table
from training.games.among_us.meeting import Ballot
from training.games.among_us.offers import SKIP
from training.games.among_us.rooms import room_name
from training.games.among_us.settings import Room
from training.games.among_us.world import World, beyond
from training.records import Action, Seat
from training.views import Circle, Map, Option, Place, Target
from training.views import Room as RoomView

# --- the map ---------------------------------------------------------------------------------------------------------


def ship(world: World, names: Sequence[str], viewer: Seat | None, offered: tuple[Action, ...], dealt: int) -> Map:
    """Return the map for a living seat with `dealt` tasks at the start; None: the viewer may see everything."""
    choices, targets = _neighbours(world, viewer, offered), _targets(names, offered)
    rooms = tuple(
        _room(world, viewer, (column, row), choices.get((column, row), ""), targets)
        for row in range(world.settings.height)
        for column in range(world.settings.width)
    )
    if viewer is None:
        return Map(title="The ship", rooms=rooms)
    left = len(world.people[viewer].tasks)
    return Map(title="The ship", rooms=rooms, note=table.doing(world, viewer), done=dealt - left, tasks=dealt)


def _neighbours(world: World, viewer: Seat | None, offered: tuple[Action, ...]) -> dict[Room, str]:
    """Return the directions in which the viewer may go, by the room that they lead to."""
    if viewer is None:
        return {}
    named = Counter(choice for action in offered for arg in action.args for choice in arg.choices)
    ways = [way for action in offered if action.name == "go" for way in action.args[0].choices]
    return {beyond(world.people[viewer].room, way): way for way in ways if named[way] == 1}  # people may be called so


def _targets(names: Sequence[str], offered: tuple[Action, ...]) -> tuple[Target, ...]:
    """Return whom the viewer may kill."""
    victims = [name for action in offered if action.name == "kill" for name in action.args[0].choices]
    return tuple(Target(seat=names.index(name), label=f"Kill {name}", choice=name) for name in victims)


def _room(world: World, viewer: Seat | None, room: Room, choice: str, targets: tuple[Target, ...]) -> RoomView:
    column, row = room
    name = room_name(room)
    if viewer is None:
        people, bodies = tuple(world.present(room)), tuple(world.bodies_in(room))
        return RoomView(name=name, row=row, column=column, seats=people, bodies=bodies)
    person = world.people[viewer]
    here = person.room == room and person.doing != "walking"
    seen = here and world.awake(viewer)
    return RoomView(
        name=name,
        row=row,
        column=column,
        seats=tuple(world.present(room)) if seen else (),
        bodies=tuple(world.bodies_in(room)) if seen else (),
        targets=targets if here else (),
        tasks=person.tasks.count(room),
        here=here,
        seen=seen,
        choice=choice,
    )


# --- the circle ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Known:
    """What a viewer may know of everybody: who has left and how, roles by seat, who speaks, and the last ballots."""

    left: Mapping[Seat, str]
    roles: Mapping[Seat, str]
    speaks: Collection[Seat]
    ballots: Mapping[Seat, Ballot]
    silent: Collection[Seat]


def circle(names: tuple[str, ...], known: Known, offered: tuple[Action, ...]) -> Circle:
    """Return everybody around a table; seats that the viewer may vote for have their choice."""
    votes = next((action.args[0].choices for action in offered if action.name == "vote"), ())
    places = tuple(
        Place(
            seat=seat,
            out=seat in known.left,
            left=known.left.get(seat, ""),
            role=known.roles.get(seat, ""),
            emblem={"imposter": "imposter", "crewmate": "crew"}.get(known.roles.get(seat, ""), ""),
            note=_note(known, seat),
            speaks=seat in known.speaks,
            voted=known.ballots.get(seat),
            choice=name if name in votes else "",
        )
        for seat, name in enumerate(names)
    )
    skip = (Option(label="Skip the vote", choice=SKIP),) if SKIP in votes else ()
    alive = f"{len(names) - len(known.left)} of {len(names)} aboard"
    ballot = "The last vote" if known.ballots or known.silent else ""
    return Circle(title="The crew", places=places, centre=alive, options=skip, ballot=ballot)


def _note(known: Known, seat: Seat) -> str:
    if seat in known.silent:
        return "did not vote"
    return "skipped" if seat in known.ballots and known.ballots[seat] is None else ""
