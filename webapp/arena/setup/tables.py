"""Tables before and between games: made, joined, agreed to, closed, set up again. Links to them:
`webapp.arena.setup.links`.

Each function is one transaction. `BadInput` says what is wrong and changes nothing.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db import transaction
from django.db.models.functions import Now

from training.errors import BadInput
from training.games import lookup, make, redrawn
from training.records import Scenario
from training.seeding import rng
from webapp.accounts.models import User
from webapp.arena import hints, opponents
from webapp.arena.models import GuestLink, Match, MatchSeat
from webapp.arena.play import pace, services
from webapp.arena.setup.rules import changed
from webapp.core import quotas
from webapp.scenarios.models import StoredScenario
from webapp.serving import services as serving
from webapp.serving.models import Deployment

DEADLINES = (10, 3600)
"""Fewest and most seconds for a move."""
ALIVE = (Match.State.OPEN, Match.State.RUNNING)


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


@dataclass(frozen=True)
class Start:
    """What a match begins with: a scenario, the stored one it was drawn from, if any, and rules instead of its own."""

    scenario: Scenario
    source: StoredScenario | None = None
    rules: Mapping[str, Any] = field(default_factory=dict)


def with_drawn_names(scenario: Scenario) -> Scenario:
    """The same scenario with its names at other seats, drawn from its seed."""
    names = rng(scenario.seed, "names").sample(scenario.seats, len(scenario.seats))
    return scenario.model_copy(update={"seats": tuple(names)})


def at_drawn_seats(places: Sequence[Place], seed: int) -> list[Place]:
    """The same people, models and scripts at other seats, drawn from a scenario's seed."""
    return rng(seed, "places").sample(places, len(places))


@transaction.atomic
def create(
    *,
    host: User,
    start: Start,
    places: Sequence[Place],
    visibility: str = Match.Visibility.PRIVATE,
    deadline_s: int | None = None,
    consent: bool | None = None,
    shuffled: bool = False,
) -> Match:
    """Set up a table; it begins at once if everybody is there and has agreed. `consent` is the host's own answer.

    `shuffled`: the names at the seats are drawn anew from the scenario's seed, so that no name always hides the same.
    """
    quotas.check(user=host, quota="open_tables", used=Match.objects.filter(host=host, state__in=ALIVE))
    scenario = with_drawn_names(start.scenario) if shuffled else start.scenario
    make(scenario)
    if start.rules:
        scenario = changed(scenario, start.rules)
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
        source=start.source,
        visibility=visibility,
        deadline_s=seconds,
        shuffled=shuffled,
        rules={name: scenario.settings[name] for name in start.rules},
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
    serving.request_all(deployments=models)  # so that they start while people read
    _begin_if_ready(match)
    return match


def still_open(match: Match) -> Match:
    """The match under its row lock; raises `BadInput` once its seats can no longer change. For use in a transaction."""
    locked = Match.objects.select_for_update().get(pk=match.pk)
    if locked.state != Match.State.OPEN:
        raise BadInput("the game has already begun, or the table is closed")
    return locked


def needs_ready(seats: Collection[MatchSeat]) -> bool:
    """Whether people say that they are ready, besides what may be stored: where more than two sit, the first to come
    wait long for the last. At a table for two, or with the host alone, the answer about consent says enough. Anybody
    else is asked even if no other person is there, or they would know it.
    """
    people = [seat for seat in seats if seat.kind == MatchSeat.Kind.PERSON]
    return len(seats) > 2 and any(seat.user_id != seat.match.host_id for seat in people)


def _complete(seats: Sequence[MatchSeat]) -> bool:
    """Whether every seat is taken and every person has answered and, where that is asked, is ready."""
    people = [seat for seat in seats if seat.kind == MatchSeat.Kind.PERSON]
    if any(seat.kind == MatchSeat.Kind.OPEN for seat in seats) or any(seat.consent is None for seat in people):
        return False
    return not needs_ready(seats) or all(seat.ready for seat in people)


def _begin_if_ready(match: Match) -> None:
    """Begin once nobody is missing. Where somebody must not know of models, these are waited for like people."""
    seats = list(match.seats.select_related("deployment").order_by("seat"))
    if not _complete(seats):
        return
    models = [seat.deployment for seat in seats if seat.deployment is not None]
    ready = serving.request_all(deployments=models) if models and pace.blind(match, seats) else None
    if ready is None or all(model.pk in ready for model in models):
        services.begin(match)


def waiting_for_models(*, limit: int) -> list[int]:
    """Tables before their game at which a model sits, oldest first."""
    found = Match.objects.filter(state=Match.State.OPEN, seats__deployment__isnull=False).distinct()
    return list(found.order_by("pk").values_list("pk", flat=True)[:limit])


@transaction.atomic
def begin_with_models(*, match_id: int) -> Match | None:
    """Begin a table that waited for its models alone, end it if one could not be started; None if neither."""
    match = Match.objects.select_for_update().get(pk=match_id)
    if match.state != Match.State.OPEN or not _complete(list(match.seats.all())):
        return None
    if match.seats.filter(deployment__state=Deployment.State.FAILED).exists():
        services.abort(match_id=match.pk, why="a model could not be started")
        return match
    _begin_if_ready(match)
    return match if match.state == Match.State.RUNNING else None


@transaction.atomic
def say_ready(*, match: Match, user: User) -> None:
    """Press Ready, once every seat is taken; the game begins with the last one who does."""
    locked = still_open(match)
    seat = locked.seats.filter(user=user).first()
    if seat is None:
        raise BadInput("you do not sit at this table")
    if seat.consent is None:
        raise BadInput("say first what may be stored")
    if locked.seats.filter(kind=MatchSeat.Kind.OPEN).exists():
        raise BadInput("there are empty seats: wait until somebody sits there")
    seat.ready = True
    seat.save(update_fields=["ready"])
    _begin_if_ready(locked)
    tell_everybody(locked)


@transaction.atomic
def fill(*, match: Match) -> None:
    """Give every empty seat to a scripted player and begin, whether or not everybody has pressed Ready."""
    locked = still_open(match)
    if locked.seats.filter(kind=MatchSeat.Kind.PERSON, consent=None).exists():
        raise BadInput("somebody at the table has not answered yet what may be stored")
    empty = locked.seats.filter(kind=MatchSeat.Kind.OPEN)
    GuestLink.objects.filter(seat__in=empty).delete()
    empty.update(kind=MatchSeat.Kind.SCRIPTED, scripted=opponents.substitute(locked.game))
    services.begin(locked)


def tell_everybody(match: Match) -> None:
    """After commit, hint to every viewer that the table has changed."""
    hints.send(match.pk, services.viewers_of(match.pk))


@transaction.atomic
def take_seat(*, match: Match, user: User) -> MatchSeat:
    """Sit down at the first free seat; somebody who sits there already keeps their seat."""
    locked = still_open(match)
    if mine := locked.seats.filter(user=user).first():
        return mine
    seat = locked.seats.free().order_by("seat").first()
    if seat is None:
        raise BadInput("somebody else was faster: no seat is free")
    return sit(locked, seat, user)


def sit(match: Match, seat: MatchSeat, user: User) -> MatchSeat:
    """Give a seat of a locked match to a person, who is asked for their consent next."""
    seat.kind, seat.user, seat.consent, seat.consented_at = MatchSeat.Kind.PERSON, user, None, None
    seat.save(update_fields=["kind", "user", "consent", "consented_at"])
    tell_everybody(match)
    return seat


@transaction.atomic
def leave(*, match: Match, user: User) -> None:
    """Get up again before the game begins; the seat is free for others."""
    locked = still_open(match)
    seat = locked.seats.filter(user=user).first()
    if seat is not None:
        free(locked, seat)


def free(match: Match, seat: MatchSeat) -> None:
    """Empty a seat of a locked match before its game; everybody says again that they are ready."""
    seat.kind, seat.user, seat.deployment, seat.scripted = MatchSeat.Kind.OPEN, None, None, ""
    seat.consent = seat.consented_at = None
    seat.save(update_fields=["kind", "user", "deployment", "scripted", "consent", "consented_at"])
    GuestLink.objects.filter(seat=seat).delete()
    match.seats.update(ready=False)
    tell_everybody(match)


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
        tell_everybody(locked)


def close(*, match: Match) -> None:
    """End a table as its host, before or during the game; there is no result then."""
    services.abort(match_id=match.pk, why="closed by the host")


def _sat(seat: MatchSeat) -> Place:
    """Who sat at a seat, whoever stood in for them."""
    if seat.user is not None:
        return Place(user=seat.user)
    return Place(deployment=seat.deployment, scripted=seat.scripted)


@transaction.atomic
def again(*, match: Match, host: User) -> Match:
    """The same scenario with everybody one seat further; people are asked for their consent anew.

    Its chance is drawn anew: who has seen the reveal must not know what is hidden this time. A rematch of this host
    that is not over yet is returned instead of another one. Every model must be open to the host, who has rated the
    game: a table that begins at once, or waits, tells who sits there.
    """
    before = Match.objects.select_for_update().get(pk=match.pk)
    if not before.over:
        raise BadInput("the game is not over yet")
    if Match.objects.filter(pk=before.pk).untold_to(host).exists():
        raise BadInput("say first what you think of this game: the new table would show who sat at this one")
    going_on = before.rematches.filter(host=host, state__in=ALIVE)
    if found := going_on.order_by("pk").first():
        return found
    seats = list(before.seats.select_related("user", "deployment").order_by("seat"))
    models = {seat.deployment_id for seat in seats if seat.deployment_id is not None}
    if Deployment.objects.visible_to(host).filter(pk__in=models).count() < len(models):
        # not which seat, nor that it is a model: whoever has not rated the game yet must not be told
        raise BadInput("not everything at this table is open to you: ask its host, or set up one of your own")
    places = [_sat(seat) for seat in seats]
    following = create(
        host=host,
        start=Start(redrawn(services.scenario_of(before), new_seed()), before.source, before.rules),
        places=[places[-1], *places[:-1]],
        visibility=before.visibility,
        deadline_s=before.deadline_s,
        shuffled=before.shuffled,
    )
    following.swapped_from = before
    following.save(update_fields=["swapped_from"])
    return following
