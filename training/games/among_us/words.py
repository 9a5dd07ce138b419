"""Every sentence of Among Us, generated from the settings and the state of the game."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from training.games.actions import how_to
from training.games.among_us.meeting import Ballot
from training.games.among_us.settings import AmongUsSettings, Room
from training.games.among_us.world import START, Event, World
from training.games.prose import count, listed
from training.records import Action, Seat

Names = Sequence[str]


def place(room: Room) -> str:
    """Return the name of a room."""
    return f"room ({room[0]},{room[1]})"


def _rooms(rooms: Sequence[Room]) -> str:
    return ", ".join(f"({column},{row})" for column, row in rooms)


# --- the first message -----------------------------------------------------------------------------------------------


def opening(settings: AmongUsSettings, names: Names, brief: str, actions: Sequence[Action]) -> str:
    """Return the rules with one reader's private `brief` and its actions."""
    parts = [_story(settings, names), brief, _rules(settings), f"How to act:\n{how_to(actions)}" if actions else ""]
    return "\n\n".join(part for part in parts if part)


def _story(settings: AmongUsSettings, names: Names) -> str:
    last = place((settings.width - 1, settings.height - 1))
    return (
        f"{listed(names)} are aboard a ship of {settings.width} by {settings.height} rooms, {place(START)} to {last}: "
        f"the first number counts from the west, the second from the north. All begin in {place(START)}. One of them "
        "is the imposter, who knows the others; the others are the crew, and do not know who it is."
    )


def crewmate(name: str, tasks: Sequence[Room]) -> str:
    """Return a crewmate's private brief."""
    return f"You are {name}, a crewmate. Your tasks are in these rooms: {_rooms(tasks)}."


def imposter(name: str, crew: Names) -> str:
    """Return the imposter's private brief."""
    return f"You are {name}, the imposter. The crew: {listed(crew)}."


def everything(names: Names, world: World) -> str:
    """Return the brief for viewers who may see everything."""
    crew = (f"{names[seat]} {_rooms(world.people[seat].tasks)}" for seat in world.crew())
    return f"The imposter is {names[world.imposter]}. Tasks: {'; '.join(crew)}."


def _rules(settings: AmongUsSettings) -> str:
    time, pause = count(settings.task_time, "round"), count(settings.cooldown, "round")
    talk = (
        f"everybody speaks {count(settings.discussion, 'time')}, in an order drawn by chance, at most "
        f"{count(settings.words, 'word')} a message, then all vote at once"
        if settings.discussion
        else "all vote at once"
    )
    vote = (
        "A vote may also name nobody (skip), and whoever does not vote skips. The player with more votes than any "
        "other, and more than there are skips, is ejected; on a tie, nobody."
        if settings.skip
        else "The player with more votes than any other is ejected; on a tie, nobody."
    )
    winner = "the imposter wins" if settings.limit_winner == "imposter" else "the crew wins"
    lines = (
        "Time passes in rounds. All who are free decide at the same time.",
        (
            f"- Going to the next room takes {time}, and so does a task. Whoever is on the way or works on a task sees "
            "nothing of what happens. The imposter can pretend to work, as long as a task takes, and sees everything."
        ),
        (
            "- Who waits is free again as soon as it sees something happen, at the latest after "
            f"{count(settings.wait, 'round')}."
        ),
        (
            f"- The imposter can kill a crewmate in its room, for the first time in round {settings.cooldown}, then "
            f"again {pause} later. Everybody else in the room who is not working sees it."
        ),
        (
            f"- A crewmate who finds a body can report it. Then all meet in {place(START)}: {talk}. {vote} Then "
            "everything goes on from there: bodies are gone, work that was not done must be begun again, and the next "
            f"kill is possible {pause} later."
        ),
        (
            "- The crew wins when the imposter is ejected, or when all tasks of its living members are done. The "
            f"imposter wins when only one crewmate is left. After round {settings.rounds} {winner}."
        ),
    )
    return "\n".join(lines)


# --- in the rooms ----------------------------------------------------------------------------------------------------


def happened(round_: int, names: Names, event: Event) -> str:
    """Return an event as the players in the room see it."""
    if event.victim is not None:
        deed = f"kills {names[event.victim]}"
    else:
        deed = {
            "leaves": f"leaves to the {event.what}",
            "comes": f"comes from the {event.what}",
            "begins": "begins a task",
            "done": "is done with a task",
        }[event.kind]
    return f"Round {round_}, {place(event.room)}: {names[event.who]} {deed}."


def status(world: World, names: Names, seat: Seat, actions: Sequence[Action]) -> str:
    """Return the location of a seat that must decide, what it sees there, and its actions."""
    person = world.people[seat]
    others = [
        names[other] + (" (at work)" if world.people[other].doing == "working" else "")
        for other in world.present(person.room)
        if other != seat
    ]
    bodies = [names[body] for body in world.bodies_in(person.room)]
    company = f"with {listed(others)}" if others else "alone"
    parts = [f"Round {world.round}: you are in {place(person.room)}, {company}."]
    if bodies:
        parts.append(f"Here lies the body of {listed(bodies)}.")
    if seat != world.imposter:
        parts.append(f"Your open tasks: {_rooms(person.tasks) or 'none'}.")
    elif world.round < world.ready:
        parts.append(f"You may kill from round {world.ready} on.")
    parts.append(f"You may {listed([_may(action) for action in actions], 'or')}.")
    return " ".join(parts)


def _may(action: Action) -> str:
    return f"{action.name} {' / '.join(action.args[0].choices)}" if action.args else action.name


def killed(name: str, killer: str | None) -> str:
    """Return the message to the victim; `killer` is None if the victim did not see the kill."""
    how = f"{killer} kills you" if killer else f"You are killed, {name}, and did not see by whom"
    return f"{how}. From now on you only read what is public."


# --- in the meeting --------------------------------------------------------------------------------------------------


def called(names: Names, round_: int, reports: Mapping[Seat, Seat], bodies: Mapping[Seat, Room]) -> str:
    """Return the reporters, the bodies, and the other missing players."""
    lines = [
        f"Round {round_}: {names[seat]} reports the body of {names[body]} in {place(bodies[body])}."
        for seat, body in reports.items()
    ]
    missing = [names[body] for body in sorted(bodies) if body not in reports.values()]
    return " ".join([*lines, *([f"Also dead: {listed(missing)}."] if missing else [])])


def order(names: Names, speakers: Sequence[Seat], times: int) -> str:
    """Return the order in which the living speak."""
    if not times:
        return f"All meet: {listed([names[seat] for seat in sorted(speakers)])}."
    return f"All meet and speak {count(times, 'time')} in this order: {', '.join(names[seat] for seat in speakers)}."


def vote(names: Names, voters: Sequence[Seat], *, skip: bool) -> str:
    """Return the call to vote."""
    choices = [names[seat] for seat in voters] + (["skip"] if skip else [])
    return f"Everybody votes now, for somebody else: {listed(choices, 'or')}."


def result(names: Names, votes: Mapping[Seat, Ballot], silent: Sequence[Seat], ejected: Seat | None) -> str:
    """Return the votes and their result. The players in `silent` did not vote themselves."""
    ballots = []
    for seat in sorted({*votes, *silent}):
        ballot = votes.get(seat)
        if seat in silent:
            ballots.append(f"{names[seat]} does not vote")
        else:
            ballots.append(f"{names[seat]} skips" if ballot is None else f"{names[seat]} for {names[ballot]}")
    outcome = "Nobody is ejected." if ejected is None else f"{names[ejected]} is ejected."
    return f"Votes: {', '.join(ballots)}. {outcome}"


# --- the end ---------------------------------------------------------------------------------------------------------

ENDS: Mapping[str, str] = {
    "ejected": "the imposter is ejected",
    "tasks": "all tasks of the living crew are done",
    "kills": "only one crewmate is left",
    "limit": "all rounds are over",
}


def over(name: str, end: str, *, crew_won: bool) -> str:
    """Return the last line; `name` is the imposter's."""
    return f"The {'crew' if crew_won else 'imposter'} wins: {ENDS[end]}. The imposter was {name}."
