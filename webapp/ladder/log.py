"""The log that a ladder is fitted to: which matches count, and what each seat of them did.

A match counts once it is over, with a result, if nobody there refused its use and nobody else moved for a seat. It is
void if our side failed: an aborted match has no result, and one in which a model's server never answered has none that
says anything. Rules that a host has chosen may make a game easy for a seat: that is another game. Guests are not rated,
for a link to a guest's seat makes a new opponent whenever somebody wants one; so a match counts for nobody unless two
others sit there.

A row that moves tells who sat there. So a match counts once every person there has rated it, or a day after its end:
nobody can keep it out for longer.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Sequence
from datetime import timedelta

from django.db.models import Count, Exists, OuterRef, Q, QuerySet
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Now

from training.evaluate.ratings import METHOD, RatedGame, RatedSeat
from training.games import lookup
from webapp.accounts.models import Role
from webapp.arena.models import Match, MatchMove, MatchSeat

HELD_BACK = timedelta(days=1)
"""A match that somebody there has yet to rate counts so long after its end."""


def counted(game: str) -> QuerySet[Match]:
    """The matches of a game that count, as far as the database can tell."""
    seats = MatchSeat.objects.filter(match=OuterRef("pk"), kind=MatchSeat.Kind.PERSON, guesses__isnull=True)
    fresh = Q(Exists(seats), ended_at__gt=Now() - HELD_BACK)
    return Match.objects.exportable().filter(game=game, rules={}).exclude(fresh)


def numbers(game: str) -> list[int]:
    """The numbers of those matches, in order."""
    return list(counted(game).order_by("pk").values_list("pk", flat=True))


def seen(matches: Sequence[int]) -> str:
    """What `Fit.seen` holds after a fit to these matches."""
    return hashlib.sha256(f"{METHOD} {','.join(map(str, matches))}".encode()).hexdigest()


def key(seat: MatchSeat) -> str:
    """Who sits there, as the log names them: one name for each person, model and script; empty for a guest."""
    if seat.kind == MatchSeat.Kind.PERSON and seat.user is not None:
        return "" if seat.user.role == Role.GUEST else f"person:{seat.user_id}"
    if seat.kind == MatchSeat.Kind.MODEL:
        return f"model:{seat.deployment_id}"
    return f"scripted:{seat.scripted}" if seat.kind == MatchSeat.Kind.SCRIPTED else ""


def read(matches: Sequence[int]) -> list[RatedGame]:
    """The log of these matches, in their order, without those that are void."""
    seats: dict[int, list[MatchSeat]] = defaultdict(list)
    for seat in MatchSeat.objects.filter(match__in=matches).select_related("user").order_by("seat"):
        seats[seat.match_id].append(seat)
    moves = _moves(matches)
    void = _void(matches)
    log = []
    for match in (
        Match.objects.filter(pk__in=matches)
        .order_by("pk")
        .only("pk", "game", "roles", "returns", "seat_metrics")
        .iterator()
    ):
        if match.pk in void:
            continue
        log.append(
            RatedGame(
                id=match.pk,
                seats=tuple(_rated_seat(match, seat, moves[match.pk, seat.seat]) for seat in seats[match.pk]),
            )
        )
    return log


def _role(match: Match, seat: int) -> str:
    """A seat's role, where the game leaves open how many sit there with their number, which changes what it is worth.

    Empty in a game without roles.
    """
    if not match.roles:
        return ""
    low, high = lookup(match.game).players
    return str(match.roles[seat]) if low == high else f"{match.roles[seat]} of {len(match.roles)}"


def _result(match: Match, seat: int) -> float | None:
    """What a seat is compared by: whether its side has won, in a game of sides, and its return in any other.

    Within a side returns differ too, by tasks done or by who lived to the end, which is not to come out above.
    """
    value: float | None = match.returns.get(str(seat))
    return None if value is None else match.seat_metrics.get(str(seat), {}).get("won", value)


def _rated_seat(match: Match, seat: MatchSeat, moves: Counter[str]) -> RatedSeat:
    return RatedSeat(
        who=key(seat),
        role=_role(match, seat.seat),
        value=_result(match, seat.seat),
        moves=moves.total(),
        default=moves["default"],
        timeout=moves["timeout"],
        forfeit=moves["forfeit"],
    )


def _moves(matches: Sequence[int]) -> dict[tuple[int, int], Counter[str]]:
    """How many moves of each origin each seat made."""
    counters: dict[tuple[int, int], Counter[str]] = defaultdict(Counter)
    rows = MatchMove.objects.filter(match__in=matches).annotate(origin=KeyTextTransform("origin", "move"))
    counts = rows.values_list("match_id", "seat", "origin").annotate(count=Count("pk")).order_by()
    for match_id, seat, origin, count in counts:
        counters[match_id, seat][origin] = count
    return counters


def _void(matches: Sequence[int]) -> set[int]:
    """Matches in which a default was played although the model had written nothing wrong: every try failed before."""
    forced = MatchMove.objects.filter(match__in=matches, move__origin="default").exclude(attempts=[])
    return {
        match_id
        for match_id, attempts in forced.values_list("match_id", "attempts")
        if not any(attempt["reply"] for attempt in attempts)
    }
