"""Finished matches of a negotiation, written down as the table writes them, and models to sit at them."""

from django.utils import timezone

from tests.webapp.arena.conftest import negotiation
from webapp.arena.models import Match, MatchSeat
from webapp.runs.models import Checkpoint
from webapp.serving.models import Deployment

DEAL = {"action": "accept", "args": {}, "text": "<accept/>", "origin": "seat"}


def model(name, *, opened=True):
    """A model that could sit at a table."""
    checkpoint = Checkpoint.objects.create(name=name, kind="full", base="tiny", path=name, open_to_players=opened)
    return Deployment.objects.create(checkpoint=checkpoint)


def seat_of(player):
    """The fields of a seat for a person, a model, or a scripted player's name."""
    if isinstance(player, str):
        return {"kind": MatchSeat.Kind.SCRIPTED, "scripted": player}
    if isinstance(player, Deployment):
        return {"kind": MatchSeat.Kind.MODEL, "deployment": player}
    return {"kind": MatchSeat.Kind.PERSON, "user": player, "consent": True}


def played(*players, returns, host, moves=(), told=True, **fields):
    """A match that is over. `moves`: (seat, origin, attempts) of each; `told`: every person has rated it."""
    values = {str(n): value for n, value in enumerate(returns)}
    chosen = {"state": Match.State.FINISHED, "ended_at": timezone.now(), "returns": values, "deadline_s": 60, **fields}
    match = Match.objects.create(host=host, game="negotiation", scenario=negotiation(seed=1).to_dict(), **chosen)
    seats = [
        MatchSeat.objects.create(match=match, seat=n, name=name, **seat_of(player))
        for n, (name, player) in enumerate(zip(("Ann", "Ben"), players, strict=True))
    ]
    if told:
        for seat, other in (seats, seats[::-1]):
            if seat.kind == MatchSeat.Kind.PERSON:
                seat.guesses.create(about=other, person=False)
    for number, (seat, origin, attempts) in enumerate(moves):
        match.moves.create(number=number, step=number, seat=seat, move={**DEAL, "origin": origin}, attempts=attempts)
    return match
