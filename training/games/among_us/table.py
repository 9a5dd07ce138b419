"""What people read of a ship besides its map: the rules, the card of a role, what to do now, what happened."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from training.games import prose
from training.games.among_us.meeting import Ballot
from training.games.among_us.rooms import ROOMS, room_name
from training.games.among_us.settings import AmongUsSettings, Room
from training.games.among_us.world import START, Event, World, beyond
from training.games.prose import count, listed
from training.records import Action, Move, Seat
from training.views import Brief

Names = Sequence[str]
_POSITION = re.compile(r"((?:the )?room )?\((\d), ?(\d)\)", re.IGNORECASE)
_NAME = re.compile(
    rf"(?<![\w-])(?:(the )|((?:in|at|to|from|into|near|via|through) ))?({'|'.join(ROOMS)})(?![\w-])", re.IGNORECASE
)

# --- the rules -------------------------------------------------------------------------------------------------------


def story(settings: AmongUsSettings, names: Names) -> str:
    """Return the situation that everybody knows."""
    return (
        f"{len(names)} people are aboard a ship of {count(settings.width * settings.height, 'room')}. All begin in the "
        f"{room_name(START)}. One of them is an imposter, who kills; the others are the crew and do not know who it is."
    )


def rules(settings: AmongUsSettings) -> tuple[str, ...]:
    """Return the rules for a person at a screen."""
    time, pause = count(settings.task_time, "round"), count(settings.cooldown, "round")
    talk = (
        f"everybody speaks {count(settings.discussion, 'time')}, then all vote" if settings.discussion else "all vote"
    )
    vote = (
        "A vote may name nobody, and silence is such a vote. Who has more votes than any other, and than nobody has, "
        "is ejected."
        if settings.skip
        else "Who has more votes than any other is ejected; on a tie, nobody."
    )
    winner = "imposter" if settings.limit_winner == "imposter" else "crew"
    return (
        (
            f"Time passes in rounds. Going to the next room takes {time}, and so does a task; meanwhile one sees "
            "nothing. The imposter can pretend to work, and sees everything."
        ),
        (
            f"Who waits is asked again as soon as it sees something happen, at the latest after "
            f"{count(settings.wait, 'round')}."
        ),
        (
            f"The imposter can kill somebody in its room from round {settings.cooldown} on, and again {pause} after "
            "each kill and each meeting. All who are in the room and not at work see it."
        ),
        (
            f"A crewmate who finds a body can report it. All meet in the {room_name(START)}: {talk}. Then bodies are "
            "gone, and work that was not done must be begun again."
        ),
        vote,
        (
            "The crew wins when the imposter is ejected, or when all tasks of the living are done. The imposter wins "
            f"when one crewmate is left. After round {settings.rounds} the {winner} wins."
        ),
    )


# --- the card of a role ----------------------------------------------------------------------------------------------


def brief(world: World, names: Names, seat: Seat, dealt: int) -> Brief:
    """Return what `seat` alone knows; `dealt` is its number of tasks at the start."""
    person = world.people[seat]
    out = [] if person.alive else ["You are out of the game and go on to read what is public."]
    if seat == world.imposter:
        crew = listed(name for other, name in enumerate(names) if other != seat)
        hunt = (
            "Kill the crew where nobody sees it, and pretend to work. In meetings you pass for one of them.",
            "You win when one crewmate is left"
            + (" or the last round is over." if world.settings.limit_winner == "imposter" else "."),
            f"The crew: {crew}.",
            f"You can kill from round {world.ready} on.",
        )
        return Brief(title="You are the imposter", text=(*hunt, *out), emblem="imposter")
    done = f"Your tasks: {dealt - len(person.tasks)} of {dealt} done."
    text = (
        "Do your tasks, and report a body when you find one. In meetings find out who the imposter is.",
        "You win with the crew when the imposter is ejected or all tasks are done.",
        f"{done} Still to do: {_places(person.tasks)}." if person.tasks else done,
    )
    return Brief(title="You are a crewmate", text=(*text, *out), emblem="crew")


def _places(rooms: Sequence[Room]) -> str:
    """Return rooms by name, with how often each is meant: `Canteen (2) and Bridge`."""
    return listed(room_name(room) + (f" ({times})" if times > 1 else "") for room, times in Counter(rooms).items())


# --- what to do now --------------------------------------------------------------------------------------------------


def ask(world: World, seat: Seat, offered: Sequence[Action]) -> str:
    """Return what a seat with these actions is to do now; nothing without any."""
    names = [action.name for action in offered]
    if not names:
        return ""
    if names[0] == "talk":
        return "Say what you know and whom you suspect."
    if names[0] == "vote":
        return f"Vote for whom you suspect{', or skip' if world.settings.skip else ''}."
    parts = {
        "report": "report the body",
        "kill": "kill somebody here",
        "task": "pretend to work" if seat == world.imposter else "work on your task here",
    }
    sentence = listed([*(words for name, words in parts.items() if name in names), "go to another room", "wait"], "or")
    return f"{sentence[0].upper()}{sentence[1:]}."


def doing(world: World, seat: Seat) -> str:
    """Return what a living seat is doing in the rooms; nothing while it decides."""
    person = world.people[seat]
    if person.doing == "walking":
        return f"You are on the way to the {room_name(beyond(person.room, person.toward))}, and see nothing."
    if person.doing == "working":
        return "You pretend to work." if seat == world.imposter else "You work on a task, and see nothing."
    return "You wait for something to happen." if person.doing == "waiting" else ""


# --- what happened ---------------------------------------------------------------------------------------------------


def deed(world: World, seat: Seat, move: Move) -> str:
    """Return what a seat does in the rooms, read after its name; nothing for what the game's next sentence tells."""
    room = world.people[seat].room
    if move.action == "go":
        return f"goes to the {room_name(beyond(room, str(move.args['direction'])))}"
    if move.action == "task":
        return f"{'pretends to work' if seat == world.imposter else 'works on a task'} in the {room_name(room)}"
    return {"wait": "waits", "kill": f"kills {move.args.get('player')}"}.get(move.action, "")


def happened(names: Names, event: Event) -> str:
    """Return an event as people in the room see it."""
    who, room = names[event.who], room_name(event.room)
    if event.victim is not None:
        return f"{who} kills {names[event.victim]} in the {room}."
    if event.kind in ("leaves", "comes"):
        other = room_name(beyond(event.room, event.what))
        return (
            f"{who} leaves the {room} for the {other}." if event.kind == "leaves" else f"{who} comes from the {other}."
        )
    return f"{who} {'begins' if event.kind == 'begins' else 'is done with'} a task in the {room}."


def named(settings: AmongUsSettings, speech: str) -> str:
    """Return a speech with the names of the rooms that it names by position: `room (1,0)` is `the Arsenal`."""

    def name(match: re.Match[str]) -> str:
        room = int(match[2]), int(match[3])
        if room[0] >= settings.width or room[1] >= settings.height:
            return match[0]
        return f"{'The' if match[1][0].isupper() else 'the'} {room_name(room)}" if match[1] else room_name(room)

    return _POSITION.sub(name, speech)


def positioned(settings: AmongUsSettings, speech: str) -> str:
    """Return a speech with the positions of the rooms that it names: `the Arsenal` is `room (1,0)`.

    A name counts after `the` or a preposition, and wherever it is capitalised: "hold on" names no room. `named` undoes
    this, but for a name in small letters, and the number of words stays the same.
    """

    def position(match: re.Match[str]) -> str:
        article, preposition, name = match[1] or "", match[2] or "", match[3]
        column, row = ROOMS[name.capitalize()]
        if column >= settings.width or row >= settings.height or not (article or preposition or name[0].isupper()):
            return match[0]
        room = f"({column},{row})"
        return f"{'Room' if article[0].isupper() else 'room'} {room}" if article else f"{preposition}{room}"

    return _NAME.sub(position, speech)


def called(names: Names, reports: Mapping[Seat, Seat], bodies: Mapping[Seat, Room]) -> str:
    """Return the reporters, the bodies, and the other missing players."""
    lines = [
        f"{names[seat]} reports the body of {names[body]} in the {room_name(bodies[body])}."
        for seat, body in reports.items()
    ]
    missing = [names[body] for body in sorted(bodies) if body not in reports.values()]
    return " ".join([*lines, *([f"Also dead: {listed(missing)}."] if missing else [])])


def order(names: Names, speakers: Sequence[Seat], times: int) -> str:
    """Return where all meet and in which order they speak."""
    if not times:
        return f"All meet in the {room_name(START)}."
    return f"All meet in the {room_name(START)} and speak in this order: {', '.join(names[seat] for seat in speakers)}."


def result(names: Names, votes: Mapping[Seat, Ballot], silent: Sequence[Seat], ejected: Seat | None) -> str:
    """Return the votes as they are read out, and their result; the seats in `silent` did not vote themselves."""
    cast = {seat: vote for seat, vote in votes.items() if seat not in silent}
    parts = [prose.ballots(names, cast, ("skips", "skip"))] if cast else []
    if silent:
        parts.append(f"{listed(names[seat] for seat in silent)} {'does' if len(silent) == 1 else 'do'} not vote.")
    parts.append("Nobody is ejected." if ejected is None else f"{names[ejected]} is ejected.")
    return " ".join(parts)


# --- the end ---------------------------------------------------------------------------------------------------------


def headline(names: Names, imposter: Seat, seat: Seat | None, *, crew_won: bool) -> str:
    """Return how the game ended for `seat`; None: a viewer without a seat."""
    was = f"{names[imposter]} was the imposter."
    if seat is None:
        return f"The {'crew' if crew_won else 'imposter'} wins. {was}"
    if (seat != imposter) == crew_won:
        return "You win with the crew." if crew_won else "You win as the imposter."
    return f"You lose. {'The crew wins.' if crew_won else was}"
