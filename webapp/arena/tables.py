"""Tables before and between games: made, joined, invited to, agreed to, closed, set up again.

Each function is one transaction. `BadInput` says what is wrong and changes nothing.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass

from django.db import IntegrityError, transaction
from django.db.models.functions import Now

from training.errors import BadInput
from training.games import lookup, make
from training.records import Scenario
from webapp.accounts.models import User, digest, new_token
from webapp.accounts.services import create_guest
from webapp.arena import hints, services
from webapp.arena.models import GuestLink, Match, MatchSeat
from webapp.scenarios.models import StoredScenario
from webapp.serving import services as serving
from webapp.serving.models import Deployment

DEADLINES = (10, 3600)
"""Fewest and most seconds for a move."""


def new_seed() -> int:
    """A seed that nobody can guess, for the chance of one match."""
    return secrets.randbits(62)


@dataclass(frozen=True)
class Place:
    """Who is to sit at one seat: a person, a deployment, a scripted player's name, or (all empty) whoever comes."""

    user: User | None = None
    deployment: Deployment | None = None
    scripted: str = ""

    @property
    def kind(self) -> MatchSeat.Kind:
        """The seat's kind."""
        if self.user is not None:
            return MatchSeat.Kind.PERSON
        if self.deployment is not None:
            return MatchSeat.Kind.MODEL
        return MatchSeat.Kind.SCRIPTED if self.scripted else MatchSeat.Kind.OPEN


@transaction.atomic
def create(
    *,
    host: User,
    scenario: Scenario,
    places: Sequence[Place],
    visibility: str = Match.Visibility.PRIVATE,
    deadline_s: int | None = None,
    source: StoredScenario | None = None,
    consent: bool | None = None,
    swapped_from: Match | None = None,
) -> Match:
    """Set up a table; it begins at once if everybody is there and has agreed. `consent` is the host's own answer."""
    make(scenario)
    spec = lookup(scenario.game)
    seconds = spec.deadline_s if deadline_s is None else deadline_s
    if not DEADLINES[0] <= seconds <= DEADLINES[1]:
        raise BadInput(f"must be between {DEADLINES[0]} and {DEADLINES[1]} seconds", "deadline_s")
    if len(places) != len(scenario.seats):
        raise BadInput(f"this scenario has {len(scenario.seats)} seats, not {len(places)}", "seats")
    people = [place.user.pk for place in places if place.user is not None]
    if len(set(people)) < len(people):
        raise BadInput("the same person cannot sit at two seats of one table", "seats")
    match = Match.objects.create(
        host=host,
        game=scenario.game,
        scenario=scenario.to_dict(),
        source=source,
        visibility=visibility,
        deadline_s=seconds,
        swapped_from=swapped_from,
    )
    for number, (name, place) in enumerate(zip(scenario.seats, places, strict=True)):
        answer = consent if place.user == host else None
        MatchSeat.objects.create(
            match=match,
            seat=number,
            name=name,
            kind=place.kind,
            user=place.user,
            deployment=place.deployment,
            scripted=place.scripted,
            consent=answer,
            consented_at=None if answer is None else Now(),
        )
    models = [place.deployment for place in places if place.deployment is not None]
    serving.want_all(deployments=models)  # so that they wake up while people read
    _begin_if_ready(match)
    return match


def _locked(match: Match) -> Match:
    """The match under its row lock; raises `BadInput` once its seats can no longer change."""
    locked = Match.objects.select_for_update().get(pk=match.pk)
    if locked.state != Match.State.OPEN:
        raise BadInput("the game has already begun, or the table is closed")
    return locked


def _begin_if_ready(match: Match) -> None:
    seats = list(match.seats.all())
    if any(seat.kind == MatchSeat.Kind.OPEN for seat in seats):
        return
    if all(seat.consent is not None for seat in seats if seat.kind == MatchSeat.Kind.PERSON):
        services.begin(match)


def _changed(match: Match) -> None:
    hints.send(match.pk, services.viewers_of(match.pk))


@transaction.atomic
def take_seat(*, match: Match, user: User) -> MatchSeat:
    """Sit down at the first free seat; somebody who sits there already keeps their seat."""
    locked = _locked(match)
    if mine := locked.seats.filter(user=user).first():
        return mine
    seat = locked.seats.free().order_by("seat").first()
    if seat is None:
        raise BadInput("somebody else was faster: no seat is free")
    return _sit(locked, seat, user)


def _sit(match: Match, seat: MatchSeat, user: User) -> MatchSeat:
    seat.kind, seat.user, seat.consent, seat.consented_at = MatchSeat.Kind.PERSON, user, None, None
    seat.save(update_fields=["kind", "user", "consent", "consented_at"])
    _changed(match)
    return seat


@transaction.atomic
def leave(*, match: Match, user: User) -> None:
    """Get up again before the game begins; the seat is free for others."""
    locked = _locked(match)
    seat = locked.seats.filter(user=user).first()
    if seat is not None:
        seat.kind, seat.user, seat.consent, seat.consented_at = MatchSeat.Kind.OPEN, None, None, None
        seat.save(update_fields=["kind", "user", "consent", "consented_at"])
        GuestLink.objects.filter(seat=seat).delete()
        _changed(locked)


@transaction.atomic
def answer_consent(*, match: Match, user: User, agreed: bool) -> None:
    """Write down a person's yes or no to the use of this match; the game begins with the last answer.

    Once the game runs the answer stands, except that a yes may still become a no.
    """
    locked = Match.objects.select_for_update().get(pk=match.pk)
    seat = locked.seats.filter(user=user).first()
    if seat is None:
        raise BadInput("you do not sit at this table")
    if locked.state != Match.State.OPEN and agreed and seat.consent is False:
        raise BadInput("the game has begun: a no cannot become a yes any more")
    seat.consent, seat.consented_at = agreed, services.database_now()
    seat.save(update_fields=["consent", "consented_at"])
    if locked.state == Match.State.OPEN:
        _begin_if_ready(locked)
        _changed(locked)


@transaction.atomic
def invite(*, match: Match, number: int) -> str:
    """Keep an empty seat for a guest; return the link's token, which is shown this once. An older link dies."""
    locked = _locked(match)
    seat = locked.seats.filter(seat=number, kind=MatchSeat.Kind.OPEN).first()
    if seat is None:
        raise BadInput("this seat is taken", "seat")
    token = new_token()
    GuestLink.objects.filter(seat=seat).delete()
    GuestLink.objects.create(seat=seat, token_hash=digest(token))
    _changed(locked)
    return token


def find_link(token: str) -> GuestLink | None:
    """The link that a token opens, claimed or not, or None."""
    links = GuestLink.objects.select_related("seat__match__host")
    return links.filter(token_hash=digest(token)).first()


@transaction.atomic
def claim(*, token: str, user: User | None, shown_name: str) -> tuple[MatchSeat, User]:
    """Take the seat that a link stands for, once, as `user` or as a new guest; return both."""
    link = find_link(token)
    if link is None:
        raise BadInput("this link does not exist, or was replaced by a newer one")
    locked = _locked(link.seat.match)
    link = GuestLink.objects.select_for_update().select_related("seat").filter(pk=link.pk).first()
    if link is None or link.claimed_at is not None:
        raise BadInput("this link has been used or replaced: ask the host for another one")
    if user is not None and locked.seats.filter(user=user).exists():
        raise BadInput("you sit at this table already: the link is for somebody else")
    link.claimed_at = services.database_now()
    link.save(update_fields=["claimed_at"])
    person = user or create_guest(shown_name=shown_name)
    try:
        return _sit(locked, link.seat, person), person
    except IntegrityError as error:
        raise BadInput("you sit at this table already") from error


def close(*, match: Match) -> None:
    """End a table as its host, before or during the game; there is no result then."""
    services.abort(match_id=match.pk, why="closed by the host")


@transaction.atomic
def again(*, match: Match, host: User) -> Match:
    """The same scenario with everybody one seat further; people are asked for their consent anew.

    Its chance is drawn anew: who has seen the reveal must not know what is hidden this time. A rematch of this host
    that is not over yet is returned instead of another one. Every model must be open to the host.
    """
    before = Match.objects.select_for_update().get(pk=match.pk)
    if not before.over:
        raise BadInput("the game is not over yet")
    going_on = before.rematches.filter(host=host, state__in=[Match.State.OPEN, Match.State.RUNNING])
    if found := going_on.order_by("pk").first():
        return found
    seats = list(before.seats.select_related("user", "deployment").order_by("seat"))
    models = {seat.deployment_id for seat in seats if seat.deployment_id is not None}
    if Deployment.objects.visible_to(host).filter(pk__in=models).count() < len(models):
        # not which seat, nor that it is a model: whoever has not rated the game yet must not be told
        raise BadInput("not everything at this table is open to you: ask its host, or set up one of your own")
    places = [Place(seat.user, seat.deployment, seat.scripted) for seat in seats]
    return create(
        host=host,
        scenario=services.scenario_of(before).with_seed(new_seed()),
        places=[places[-1], *places[:-1]],
        visibility=before.visibility,
        deadline_s=before.deadline_s,
        source=before.source,
        swapped_from=before,
    )
