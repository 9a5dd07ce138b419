"""What people read of a household besides the room: the rules, what to do now, what was done and what came of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from training.games.household import words
from training.games.household.kinds import is_open, kind
from training.games.household.world import Room
from training.games.prose import count
from training.records import Action, ArgValue

YOU = "You"
"""The name of the viewer's own seat."""


def rules(turn_limit: int) -> tuple[str, ...]:
    """Return the rules for a person at a screen."""
    return (
        f"Do the task in at most {count(turn_limit, 'turn')}: each button takes one.",
        "The reward is 1 as soon as the task is done, otherwise 0. Any thing of the kind that the task names will do.",
        "You can reach what is at the place where you are, and carry one thing at a time.",
        "What is in a closed place can be neither seen nor taken.",
        "Clean what you carry at a sinkbasin, heat it at a microwave, and cool it at a fridge.",
        "Turn a lamp on where it stands.",
    )


def ask(at: str) -> str:
    """Return what to do now."""
    return f"Choose what to do at {at}, or where to go." if at else "Choose where to go."


# --- what was done ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Deed:
    """What a seat does by a command: a verb in its basic form, and what follows it."""

    verb: str
    rest: str

    def by(self, name: str = "") -> str:
        """Return it in the third person, after a name if there is one; for `You` in the second."""
        if name == YOU:
            return f"{name} {self.verb} {self.rest}"
        verb = {"go": "goes", "switch": "switches", "try": "tries"}.get(self.verb, f"{self.verb}s")
        return f"{name} {verb} {self.rest}".strip()


def deed(actions: Sequence[Action], name: str, args: Mapping[str, ArgValue], lit: set[str]) -> Deed:
    """Return what a seat does by a command; `actions` are those offered, `lit` the lamps that are on."""
    command = words.order(name, args)
    offered = next(action for action in actions if action.name == name)
    if any(args[arg.name] not in arg.choices for arg in offered.args):
        return Deed("try", f"“{command}”")
    thing, place = str(args.get("object", "")), str(args.get("receptacle", ""))
    match name:
        case "look":
            return Deed("look", "around")
        case "inventory":
            return Deed("look", "at what is in the hand")
        case "toggle":
            return Deed("switch", thing) if thing in lit else Deed("turn", f"on {thing}")
        case "examine":
            return Deed("look", f"at {thing}")
        case "put":
            return Deed("put", f"{thing} {words.where(place)}")
    verb, _, rest = command.partition(" ")
    return Deed(verb, rest)


def outcome(room: Room, name: str, args: Mapping[str, ArgValue], seen: str) -> str:
    """Return what has come of a command in one sentence; nothing where the deed says it."""
    place = str(args.get("receptacle", args.get("object", "")))
    if seen == words.NOTHING:
        return seen
    if name in ("go_to", "open") or (name == "examine" and place == room.state.at):
        return _contents(room, room.state.at) or seen
    if name == "examine":
        made = _made(room, place)
        return f"It is {made}." if made else "There is nothing special about it."
    if name == "inventory":
        return f"In the hand: {room.state.carried}." if room.state.carried else "The hand is empty."
    return ""


def _contents(room: Room, place: str) -> str:
    """Return what can be seen at a place; nothing where the room alone says it."""
    if not is_open(place, room.state.opened):
        return "It is closed."
    things = room.known(place)
    if things is None:
        return ""
    where = "Inside" if kind(place) in words.CONTAINERS else "On it"
    return f"{where}: {', '.join(things)}." if things else "It is empty."


def _made(room: Room, thing: str) -> str:
    return " and ".join(sorted(room.state.made.get(thing, ()), reverse=True))


# --- the end ---------------------------------------------------------------------------------------------------------


def headline(turns: int, *, won: bool) -> str:
    """Return how a household has ended."""
    return f"Done in {count(turns, 'step')}." if won else "Not done: reward 0 of 1."


def moment(action: str, args: Mapping[str, ArgValue], turn: int) -> str:
    """Return the command that completed the task, read after the name of who gave it."""
    thing, place = str(args.get("object", "")), str(args.get("receptacle", ""))
    match action:
        case "put":
            done = f"put {thing} {words.where(place)}"
        case "toggle":
            done = f"turned on {thing}"
        case "take":
            done = f"took {thing} from {place}"
        case _:
            done = f"went to {place}"
    return f"{done} in step {turn}."


def used_up(turn_limit: int) -> str:
    """Return why the task was not done, read after the name of who tried."""
    return f"used up all {turn_limit} turns."
