"""The log that a ladder is fitted to: the matches that count, and the results of their seats.

A match counts once it has ended with a result, if no player refused consent and no stand-in moved. It is void if the
site failed: aborted matches have no result, and a match in which a model's server never answered has no meaningful one.
Matches with rules chosen by the host do not count, because such rules may favour a seat. Nor do tables with one seat:
ratings come from results against others in the same game, and a task can be tried again. Matches of experiments do not
count: the ladder names people, and would tell participants whom an arm seats. Guests are not rated, because guest links
create new opponents at will; a match counts only if at least two other players took part. A person who made an account
later counts as a guest in the matches that began before.

A change in the ladder reveals the players of a match. So a match counts once every person in it has rated it or has
asked to see the others, or one day after its end.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Sequence
from datetime import datetime, timedelta

from django.db.models import Count, Exists, OuterRef, Q, QuerySet
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Now

from training.evaluate.ratings import METHOD, RatedGame, RatedSeat
from training.games import lookup
from webapp.arena.models import Advice, Match, MatchMove, MatchSeat

HELD_BACK = timedelta(days=1)
"""A match that a player has yet to rate counts this long after its end."""


def counted(game: str) -> QuerySet[Match]:
    """The matches of a game that count, except for those found void later."""
    people = MatchSeat.objects.filter(match=OuterRef("pk"), kind=MatchSeat.Kind.PERSON)
    waiting = people.filter(guesses__isnull=True, game_rating__isnull=True)
    fresh = Q(Exists(waiting), ended_at__gt=Now() - HELD_BACK)
    advised = Exists(Advice.objects.filter(match=OuterRef("pk")).exclude(text=""))
    matches = Match.objects.exportable().filter(game=game, rules={}, task="", shown_as="")
    return matches.exclude(fresh).exclude(advised)


def numbers(game: str) -> list[int]:
    """The primary keys of those matches, in order."""
    return list(counted(game).order_by("pk").values_list("pk", flat=True))


def seen(matches: Sequence[int]) -> str:
    """The value of `Fit.seen` after a fit to these matches."""
    return hashlib.sha256(f"{METHOD} {','.join(map(str, matches))}".encode()).hexdigest()


def key(seat: MatchSeat, began: datetime) -> str:
    """The player's key in the log: unique for each person, model and script; empty for whoever was a guest at `began`.

    A model that writes strategies is another player with each speaker, and without one.
    """
    if seat.kind == MatchSeat.Kind.PERSON and seat.user is not None:
        since = seat.user.member_since
        is_guest = seat.user.is_guest or (since is not None and began < since)
        return "" if is_guest else f"person:{seat.user_id}"
    if seat.kind == MatchSeat.Kind.MODEL:
        voice = f"+{seat.speaker_id or seat.form['source']}" if seat.form else ""
        return f"model:{seat.deployment_id}{voice}"
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
        .only("pk", "game", "roles", "returns", "seat_metrics", "created_at", "started_at")
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
    """A seat's role; in games of variable size with the number of seats, which affects the role's value.

    Empty in a game without roles.
    """
    if not match.roles:
        return ""
    low, high = lookup(match.game).players
    return str(match.roles[seat]) if low == high else f"{match.roles[seat]} of {len(match.roles)}"


def _result(match: Match, seat: int) -> float | None:
    """The value by which a seat is compared: whether its side won in a game with sides, else its return.

    Returns also differ within a side, by tasks done or survival; these differences must not count as a win.
    """
    value: float | None = match.returns.get(str(seat))
    return None if value is None else match.seat_metrics.get(str(seat), {}).get("won", value)


def _rated_seat(match: Match, seat: MatchSeat, moves: Counter[str]) -> RatedSeat:
    return RatedSeat(
        who=key(seat, match.started_at or match.created_at),
        role=_role(match, seat.seat),
        value=_result(match, seat.seat),
        moves=moves.total(),
        default=moves["default"],
        timeout=moves["timeout"],
        forfeit=moves["forfeit"],
    )


def _moves(matches: Sequence[int]) -> dict[tuple[int, int], Counter[str]]:
    """The number of moves of each seat by origin."""
    counters: dict[tuple[int, int], Counter[str]] = defaultdict(Counter)
    rows = MatchMove.objects.filter(match__in=matches).annotate(origin=KeyTextTransform("origin", "move"))
    counts = rows.values_list("match_id", "seat", "origin").annotate(count=Count("pk")).order_by()
    for match_id, seat, origin, count in counts:
        counters[match_id, seat][origin] = count
    return counters


def _void(matches: Sequence[int]) -> set[int]:
    """Matches in which a default was played although the model sent no reply: every attempt failed."""
    forced = MatchMove.objects.filter(match__in=matches, move__origin="default").exclude(attempts=[])
    return {
        match_id
        for match_id, attempts in forced.values_list("match_id", "attempts")
        if not any(attempt["reply"] for attempt in attempts)
    }
