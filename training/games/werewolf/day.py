"""The day: the dead are announced, the living talk and vote; the dying may shoot (hunters) and speak last words."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence

from training.games.prose import listed
from training.games.werewolf import table, words
from training.games.werewolf.actions import BID, SPEAK, aimed
from training.games.werewolf.village import Cause, Moves, Plan, Step, Village, leaders
from training.records import Move, Seat
from training.views import news


def morning(v: Village, dead: Mapping[Seat, Cause]) -> Plan:
    """Announce the dead of the night, then play shots and last words."""
    v.enter(f"Day {v.day}: dawn")
    v.bury(dead, "night")
    to = {seat: table.own_dawn(v, dead, seat) for seat in dead}
    v.tell(words.dawn(v.names, v.roles, tuple(dead), reveal=v.settings.reveal), to=to)
    yield from _departure(v, dead, heard=v.settings.last_words == "all")


def day(v: Village) -> Plan:
    """Play discussion and vote; the elected player leaves the game."""
    v.discussions.begin(f"Day {v.day}")
    v.enter(f"Day {v.day}: discussion")
    yield from _discussion(v)
    v.enter(f"Day {v.day}: vote")
    eliminated = yield from _vote(v)
    role_line = words.was(v.names, v.roles, (eliminated,)) if eliminated is not None and v.settings.reveal else ""
    if eliminated is not None:
        v.bury((eliminated,), "vote")
    to = {} if eliminated is None else {eliminated: "You are voted out."}
    v.tell(words.verdict(v.names, eliminated) + role_line, to=to)
    if eliminated is not None:
        yield from _departure(v, {eliminated: "vote"}, heard=v.settings.last_words != "nobody")


# --- talking ---------------------------------------------------------------------------------------------------------


def _speech(seats: Sequence[Seat], *, last: bool = False) -> Step:
    """Return a step in which seats speak to everybody; `last` words are not followed by a vote."""
    offers = dict.fromkeys(seats, (SPEAK,))
    return Step(offers, public=True, hearers=None, channel="public", speech=True, probed=not last)


def _tell_silent(v: Village, moves: Moves) -> None:
    for seat, move in moves.items():
        if move.origin != "seat":
            v.tell(f"{v.names[seat]} says nothing.")


def _discussion(v: Village) -> Plan:
    if v.settings.order == "bid":
        yield from _bidding(v)
    elif v.settings.order == "simultaneous":
        for at in range(v.settings.rounds):
            v.tell(f"All speak now, round {at + 1} of {v.settings.rounds}.", "All speak at once.")
            _tell_silent(v, (yield _speech(v.alive)))
    else:
        yield from _in_turn(v, _speakers(v))


def _speakers(v: Village) -> list[Seat]:
    """Return today's speakers in order: as stated, or everybody in seat order from a random start."""
    if speakers := v.stated("speakers"):
        return speakers
    start = v.chance("order").randrange(len(v.names))
    turned = [*range(start, len(v.names)), *range(start)]
    return [seat for seat in turned if seat in v.alive] * v.settings.rounds


def _in_turn(v: Village, speakers: Sequence[Seat]) -> Plan:
    last: Seat | None = None
    for seat in speakers:
        v.tell(f"{v.names[seat]} has the floor{' again' if seat == last else ''}.", "")
        _tell_silent(v, (yield _speech((seat,))))
        last = seat


def _bidding(v: Village) -> Plan:
    """Give the floor to the highest bid, up to `rounds` times the number of the living, or until nobody bids."""
    chance = v.chance("floor")
    for speeches_left in range(v.settings.rounds * len(v.alive), 0, -1):
        v.tell(f"Bid for the floor now: <bid>0</bid> to <bid>4</bid>. Speeches left: {speeches_left}.", "")
        moves = yield Step(dict.fromkeys(v.alive, (BID,)), public=True)
        bids = {seat: int(move.args["level"]) for seat, move in moves.items()}
        wanting = [seat for seat, bid in bids.items() if bid == max(bids.values())]
        drawn = chance.choice(wanting)
        if not max(bids.values()):
            v.tell("Nobody wants the floor: the discussion is over.")
            return
        yield from _in_turn(v, (drawn,))


# --- voting ----------------------------------------------------------------------------------------------------------


def _vote(v: Village) -> Generator[Step, Moves, Seat | None]:
    """Play the vote with the tie rule; return who leaves."""
    tied = yield from _ballot(v, v.alive, v.alive, everybody=True)
    if len(tied) < 2:
        return tied[0] if tied else None
    if v.settings.tie == "nobody":
        return None
    if v.settings.tie == "random":
        return v.draw("vote", tied)
    v.enter(f"Day {v.day}: run-off")
    v.tell(f"Tied: {listed(v.named(tied))}. They speak again.")
    order = v.stated("runoff")
    yield from _in_turn(v, sorted(tied, key=lambda seat: order.index(seat) if seat in order else len(order)))
    again = yield from _ballot(v, v.others(tied) or v.alive, tied, everybody=not v.others(tied))
    return again[0] if len(again) == 1 else None


def _ballot(
    v: Village, voters: Sequence[Seat], candidates: Sequence[Seat], *, everybody: bool
) -> Generator[Step, Moves, list[Seat]]:
    """Let `voters` vote simultaneously for `candidates`, not for themselves; announce the votes, return the leaders."""
    v.votes = {}
    v.tell(words.call(v.names, candidates, voters, everybody=everybody), table.call(v, candidates, everybody=everybody))
    offers = {seat: (aimed("vote", v.named(c for c in candidates if c != seat)),) for seat in voters}
    moves = yield Step(offers, public=True)
    v.votes = {seat: v.target(move) for seat, move in moves.items()}
    v.discussions.vote(v.steps, v.votes)
    for seat, vote in v.votes.items():
        v.did(seat, "vote", vote)
        if vote is not None:
            v.counts["votes"][seat] += 1
            v.counts["votes_on_wolves"][seat] += v.roles[vote] == "werewolf"
    tied = leaders(v.votes.values())
    drawn = len(tied) > 1 and v.settings.tie == "random"
    by_chance = f" Tied: {listed(v.named(tied))}. Chance decides." if drawn else ""
    v.tell(f"The votes: {words.ballots(v.names, v.votes)}.{by_chance}", table.ballots(v.names, v.votes) + by_chance)
    return tied


# --- leaving ---------------------------------------------------------------------------------------------------------


def _departure(v: Village, dead: Mapping[Seat, Cause], *, heard: bool) -> Plan:
    """Play the shots of hunters who were not poisoned, then, if the game continues, last words where `heard`."""
    causes = dict(dead)
    armed = [seat for seat, cause in causes.items() if v.roles[seat] == "hunter" and cause != "poison"]
    while armed:
        hunter = armed.pop(0)
        moves = yield v.ask({hunter: (aimed("shoot", v.named(v.alive)),)})
        shot = _shoot(v, hunter, moves[hunter])
        if shot is not None:
            causes[shot] = "shot"
            armed += [shot] if v.roles[shot] == "hunter" else []
    if heard and dead and not v.winner():
        phase = v.phase
        v.enter(f"{phase.split(':', maxsplit=1)[0]}: last words")
        for seat in dead:
            v.tell(f"{v.names[seat]} may speak last words.")
            _tell_silent(v, (yield _speech((seat,), last=True)))
    if v.settings.dead_see == "all":
        v.ghosts |= set(causes)
        now = dict.fromkeys(causes, news("From now on you see the nights and everybody's role."))
        v.log.tell_each(dict.fromkeys(causes, words.cast(v.names, v.roles)), channel="private", lines=now)


def _shoot(v: Village, hunter: Seat, move: Move) -> Seat | None:
    target = v.target(move)
    if target is None:
        v.tell_one(hunter, "You shoot nobody.", f"{v.names[hunter]} shoots nobody.")
        return None
    v.did(hunter, "shoot", target)
    v.bury((target,), "shot", by=hunter)
    role_line = words.was(v.names, v.roles, (target,)) if v.settings.reveal else ""
    to = {hunter: f"Dying, you shoot {v.names[target]}.{role_line}", target: f"{v.names[hunter]}, dying, shoots you."}
    v.tell(f"{v.names[hunter]}, dying, shoots {v.names[target]}.{role_line}", to=to)
    return target
