"""The offered actions as data: in a room, when speaking, and when voting.

Words beside a choice are the seat's own reasoning, which nobody else reads.
"""

from __future__ import annotations

from functools import lru_cache

from training.games.among_us.world import STEPS, World, exits
from training.records import Action, Argument, Seat

SKIP = "skip"
"""The vote for nobody; no player may have this name."""

WAIT = Action(name="wait", text="private", label="Wait until something happens")
TASK = Action(name="task", text="private", label="Work on a task here")
PRETEND = Action(name="task", text="private", label="Pretend to work on a task")
TALK = Action(name="talk", text="required", bare=True, label="Speak in a meeting")


@lru_cache(maxsize=64)
def go(directions: tuple[str, ...]) -> Action:
    """Return the action of going to a neighbouring room."""
    where = Argument(name="direction", kind="choice", choices=directions)
    return Action(name="go", args=(where,), text="private", label="Go to the next room")


@lru_cache(maxsize=4096)
def choose(name: str, choices: tuple[str, ...], label: str) -> Action:
    """Return the action of choosing one name."""
    return Action(
        name=name, args=(Argument(name="player", kind="choice", choices=choices),), text="private", label=label
    )


def kill(names: tuple[str, ...]) -> Action:
    """Return the action of killing one of `names`."""
    return choose("kill", names, "Kill a crewmate in your room")


def report(names: tuple[str, ...]) -> Action:
    """Return the action of reporting the body of one of `names`."""
    return choose("report", names, "Report a body in your room")


def vote(names: tuple[str, ...]) -> Action:
    """Return the action of voting."""
    return choose("vote", names, "Vote in a meeting")


def in_rooms(world: World, names: tuple[str, ...], seat: Seat) -> tuple[Action, ...]:
    """Return the actions of `seat` in its current room."""
    room = world.people[seat].room
    offered = [go(exits(world.settings.width, world.settings.height, room)), WAIT]
    if seat == world.imposter:
        offered.append(PRETEND)
        if victims := world.victims():
            offered.append(kill(tuple(names[victim] for victim in victims)))
        return tuple(offered)
    if room in world.people[seat].tasks:
        offered.append(TASK)
    if bodies := world.bodies_in(room):
        offered.append(report(tuple(names[body] for body in bodies)))
    return tuple(offered)


def ever(names: tuple[str, ...], seat: Seat, imposter: Seat, *, skip: bool) -> tuple[Action, ...]:
    """Return all actions that `seat` may have in a game, for the rules."""
    others = tuple(name for other, name in enumerate(names) if other != seat)
    by_role = (PRETEND, kill(others)) if seat == imposter else (TASK, report(others))
    return (go(tuple(STEPS)), WAIT, *by_role, TALK, vote((*others, SKIP) if skip else others))
