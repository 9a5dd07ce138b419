"""Finished matches of a negotiation as the table writes them, models to sit at them, a ladder to look at."""

from django.utils import timezone

from tests.webapp.arena.conftest import negotiation
from webapp.arena.models import Match, MatchSeat
from webapp.ladder import log
from webapp.ladder.models import Fit, Standing
from webapp.runs.models import Checkpoint
from webapp.serving.models import Deployment

DEAL = {"action": "accept", "args": {}, "text": "<accept/>", "origin": "seat"}


def model(name, *, opened=True):
    """A model that could sit at a table."""
    checkpoint = Checkpoint.objects.create(name=name, kind="full", base="tiny", path=name, open_to_players=opened)
    return Deployment.objects.create(checkpoint=checkpoint)


def seat_of(player):
    """The fields of a seat for a person, a model, a scripted player's name, or a model with its speaker."""
    if isinstance(player, str):
        return {"kind": MatchSeat.Kind.SCRIPTED, "scripted": player}
    if isinstance(player, Deployment):
        return {"kind": MatchSeat.Kind.MODEL, "deployment": player}
    if isinstance(player, dict):
        return {"kind": MatchSeat.Kind.MODEL, **player}
    return {"kind": MatchSeat.Kind.PERSON, "user": player, "consent": True}


def played(*players, returns, host, moves=(), rated=True, **fields):
    """A match that is over. `moves`: (seat, origin, attempts) of each; `rated`: every person has rated it."""
    values = {str(n): value for n, value in enumerate(returns)}
    chosen = {"state": Match.State.FINISHED, "ended_at": timezone.now(), "returns": values, "deadline_s": 60, **fields}
    match = Match.objects.create(host=host, game="negotiation", scenario=negotiation(seed=1).to_dict(), **chosen)
    seats = [
        MatchSeat.objects.create(match=match, seat=n, name=name, **seat_of(player))
        for n, (name, player) in enumerate(zip(("Ann", "Ben"), players, strict=True))
    ]
    if rated:
        for seat, other in (seats, seats[::-1]):
            if seat.kind == MatchSeat.Kind.PERSON:
                seat.guesses.create(about=other, person=False)
    for number, (seat, origin, attempts) in enumerate(moves):
        match.moves.create(number=number, step=number, seat=seat, move={**DEAL, "origin": origin}, attempts=attempts)
    return match


def shown(owner):
    """A stored ladder with everything that its page can show; of a game at which `owner` never sat."""
    Fit.objects.filter(game="dialogue").delete()  # the site may have rated games that were played before
    fit = Fit.objects.create(
        game="dialogue",
        matches=1000,
        seen=log.seen(log.numbers("dialogue")),  # or the site would fit this ladder anew
        fitted_at=timezone.now(),
        seats={seat: {"mean": mean, "low": mean - 8, "high": mean + 8} for seat, mean in (("0", 12.0), ("1", -12.0))},
        roles={
            role: {"mean": mean, "low": mean - 20, "high": mean + 20} for role, mean in (("guest", 5), ("host", -5))
        },
    )
    rows = [(f"person:{owner.pk}", 1100.0, ""), ("scripted:scripted", 900.0, ""), ("scripted:random", None, "few")]
    for rank, (who, rating, why) in enumerate(rows, 1):
        Standing.objects.create(
            fit=fit,
            who=who,
            kind=who.partition(":")[0],
            user=owner if who.startswith("person") else None,
            rank=rank if rating else None,
            rating=rating,
            low=rating and rating - 40,
            high=rating and rating + 40,
            why=why,
            games=20 if rating else 2,
            won=10.0 if rating else 0.5,
            roles={"host": [10, 4.0], "guest": [10, 6.0]} if rating else {},
            against={other: [10, 5.0] for other, _, _ in rows if other != who and rating},
            played=20,
            moves=110,
            default_moves=3,
            default_games=2,
        )
