"""Tables before and between games: creating, joining, consent, closing, rematches. See also
`webapp.arena.setup.links`.

Each function is one transaction; it raises `BadInput` without changing anything.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from django.db import transaction
from django.db.models import Exists, OuterRef, Q
from django.db.models.functions import Now

from training.errors import BadInput
from training.games import anonymised, lookup, make, redrawn
from training.records import Scenario, Seat
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
COUNTDOWNS = (10, 3600)
"""Fewest and most seconds of a countdown."""
LAST_SEATS = timedelta(seconds=10)
"""In this time before the end of a countdown, nobody can sit down who has yet to answer about consent."""
ALIVE = (Match.State.OPEN, Match.State.RUNNING)
STARTING = (Deployment.State.COLD, Deployment.State.STARTING, Deployment.State.STOPPING)
"""The states of a model that has neither started nor failed to."""


def new_seed() -> int:
    """An unpredictable seed for one match."""
    return secrets.randbits(62)


@dataclass(frozen=True)
class Place:
    """The player of one seat: a person, a deployment or a scripted player's name; an open seat if all are empty.

    `form` and `speaker` are those of a deployment that writes strategies, as in a `MatchSeat`. `consent` is the answer
    of a person who was asked beforehand, and is then ready; None if they are asked at the table.
    """

    user: User | None = None
    deployment: Deployment | None = None
    scripted: str = ""
    form: Mapping[str, Any] = field(default_factory=dict)
    speaker: Deployment | None = None
    consent: bool | None = None

    @property
    def alias(self) -> str:
        """The alias by which its model was chosen, if it was."""
        checkpoint = None if self.deployment is None else self.deployment.checkpoint
        return "" if checkpoint is None else checkpoint.chosen_as

    @property
    def deployments(self) -> list[Deployment]:
        """The models that play here."""
        return [model for model in (self.deployment, self.speaker) if model is not None]

    @property
    def kind(self) -> MatchSeat.Kind:
        """The seat's kind."""
        if self.user is not None:
            return MatchSeat.Kind.PERSON
        if self.deployment is not None:
            return MatchSeat.Kind.MODEL
        return MatchSeat.Kind.SCRIPTED if self.scripted else MatchSeat.Kind.OPEN

    @property
    def player(self) -> dict[str, Any]:
        """The fields of a `MatchSeat` that say who plays at it."""
        return {
            "kind": self.kind,
            "user": self.user,
            "deployment": self.deployment,
            "alias": self.alias,
            "speaker": self.speaker,
            "form": dict(self.form),
            "scripted": self.scripted,
        }


@dataclass(frozen=True)
class Countdown:
    """After `seconds`, empty seats are filled with this model, or with a player without a model."""

    seconds: int
    model: Deployment | None = None


@dataclass(frozen=True)
class Start:
    """The start of a match: a scenario, the stored scenario it came from, if any, and the host's rules.

    `beside` is the play of the same task with which this one is compared. `shown_as` and `next_path` are those of a
    match of an experiment. A `countdown` counts only at a table with an empty seat.
    """

    scenario: Scenario
    source: StoredScenario | None = None
    rules: Mapping[str, Any] = field(default_factory=dict)
    beside: Match | None = None
    shown_as: str = ""
    next_path: str = ""
    countdown: Countdown | None = None


def with_drawn_names(scenario: Scenario) -> Scenario:
    """The same scenario with its names shuffled by its seed."""
    names = rng(scenario.seed, "names").sample(scenario.seats, len(scenario.seats))
    return scenario.model_copy(update={"seats": tuple(names)})


def at_drawn_seats(places: Sequence[Place], seed: int) -> list[Place]:
    """The same places, shuffled by a scenario's seed."""
    return rng(seed, "places").sample(places, len(places))


def task_of(scenario: Scenario) -> str:
    """The hash of what a scenario gives its players: those that differ by id or order of settings have the same one."""
    played = scenario.model_dump(mode="json", include={"game", "settings", "seats", "seed"})
    return hashlib.sha256(json.dumps(played, sort_keys=True).encode()).hexdigest()


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
    coaching: bool = True,
) -> Match:
    """Create a table; it begins at once if all seats are taken and all people have answered. `consent` is the host's.

    `shuffled`: shuffle the names by the scenario's seed, so that no name always has the same role.
    """
    _check_quotas(host, start)
    scenario = as_played(start, shuffled=shuffled)
    seconds = lookup(scenario.game).deadline_s if deadline_s is None else deadline_s
    if not DEADLINES[0] <= seconds <= DEADLINES[1]:
        raise BadInput(f"must be between {DEADLINES[0]} and {DEADLINES[1]} seconds", "deadline_s")
    _check_places(scenario, places)
    countdown = _countdown(start, places)
    match = Match.objects.create(
        host=host,
        game=scenario.game,
        scenario=scenario.to_dict(),
        source=start.source,
        visibility=visibility,
        deadline_s=seconds,
        shuffled=shuffled,
        coaching=coaching,
        rules={name: scenario.settings[name] for name in start.rules},
        task=task_of(scenario) if len(scenario.seats) == 1 else "",
        beside=start.beside,
        shown_as=start.shown_as,
        next_path=start.next_path,
        countdown_s=None if countdown is None else countdown.seconds,
        countdown_model=None if countdown is None else countdown.model,
        countdown_alias="" if countdown is None else Place(deployment=countdown.model).alias,
    )
    for number, (name, place) in enumerate(zip(scenario.seats, places, strict=True)):
        _create_seat(match, number, name, place, consent if place.user == host else place.consent)
    models = [model for place in places for model in place.deployments]
    models += [countdown.model] if countdown is not None and countdown.model is not None else []
    serving.request_all(deployments=models)  # they start while people read the rules
    _start_countdown(match)
    begin_if_ready(match)
    return match


def _countdown(start: Start, places: Sequence[Place]) -> Countdown | None:
    """The countdown of a table with these places; raises `BadInput` if it is too short or too long."""
    countdown = start.countdown
    if countdown is not None and not COUNTDOWNS[0] <= countdown.seconds <= COUNTDOWNS[1]:
        raise BadInput(f"must be between {COUNTDOWNS[0]} and {COUNTDOWNS[1]} seconds", "countdown_s")
    return countdown if any(place.kind == MatchSeat.Kind.OPEN for place in places) else None


def _start_countdown(match: Match) -> None:
    """Start the countdown of a table with an empty seat once a person has answered about consent."""
    if match.countdown_s is None or match.countdown_ends_at is not None:
        return
    answered = match.seats.filter(kind=MatchSeat.Kind.PERSON, consent__isnull=False)
    if answered.exists() and match.seats.filter(kind=MatchSeat.Kind.OPEN).exists():
        match.countdown_ends_at = services.database_now() + timedelta(seconds=match.countdown_s)
        match.save(update_fields=["countdown_ends_at"])


def _check_quotas(host: User, start: Start) -> None:
    """Raise `BadInput` if the host has too many tables; those of experiments are counted by themselves."""
    if start.shown_as:
        used = Match.objects.filter(host=host, state__in=ALIVE).exclude(shown_as="")
        quotas.check(user=host, quota="experiment_tables", used=used)
        return
    hosted = Match.objects.filter(host=host, shown_as="")
    quotas.check(user=host, quota="open_tables", used=hosted.filter(state__in=ALIVE))
    quotas.check(user=host, quota="tables_per_hour", used=quotas.within_hour(hosted))


def as_played(start: Start, *, shuffled: bool) -> Scenario:
    """The scenario of a start as it is played: by the host's rules, with its names shuffled if `shuffled`."""
    scenario = with_drawn_names(start.scenario) if shuffled else start.scenario
    make(scenario)  # of the scenario's own settings, so that an error in them is not taken for one of the rules
    return anonymised(changed(scenario, start.rules) if start.rules else scenario)


def _check_places(scenario: Scenario, places: Sequence[Place]) -> None:
    if len(places) != len(scenario.seats):
        raise BadInput(f"this scenario has {len(scenario.seats)} seats, not {len(places)}", "seats")
    people = [place.user.pk for place in places if place.user is not None]
    if len(set(people)) < len(people):
        raise BadInput("the same person cannot sit at two seats of one table", "seats")


def _create_seat(match: Match, number: Seat, name: str, place: Place, consent: bool | None) -> None:
    MatchSeat.objects.create(
        match=match,
        seat=number,
        name=name,
        **place.player,
        consent=consent,
        consented_at=None if consent is None else Now(),
        ready=place.consent is not None,
    )


def still_open(match: Match) -> Match:
    """The match under its row lock; raises `BadInput` once its seats can no longer change. For use in a transaction."""
    locked = Match.objects.select_for_update().get(pk=match.pk)
    if locked.state != Match.State.OPEN:
        raise BadInput("the game has already begun, or the table is closed")
    return locked


def needs_ready(seats: Collection[MatchSeat]) -> bool:
    """Whether players must press Ready besides answering about consent.

    This is so at tables of more than two seats, where the first players wait long for the last, unless the host is the
    only person. Every other person is asked even if no one else is there, because skipping it would reveal that. With a
    countdown nobody is.
    """
    if any(seat.match.countdown_ends_at is not None for seat in seats):
        return False
    people = [seat for seat in seats if seat.kind == MatchSeat.Kind.PERSON]
    return len(seats) > 2 and any(seat.user_id != seat.match.host_id for seat in people)


def _complete(seats: Sequence[MatchSeat]) -> bool:
    """Whether every seat is taken and every person has answered and, if required, is ready."""
    people = [seat for seat in seats if seat.kind == MatchSeat.Kind.PERSON]
    if any(seat.kind == MatchSeat.Kind.OPEN for seat in seats) or any(seat.consent is None for seat in people):
        return False
    if len(seats) > 2 and any(seat.match.countdown_ends_at is not None for seat in seats):
        return False  # it begins at the end of its countdown, whoever sits there: see `countdowns`
    return not needs_ready(seats) or all(seat.ready for seat in people)


def begin_if_ready(match: Match) -> None:
    """Begin once the table is complete. If players must stay hidden, wait for models as well."""
    seats = list(match.seats.select_related(*MatchSeat.MODELS).order_by("seat"))
    if not _complete(seats):
        return
    models = [model for seat in seats for model in seat.deployments]
    ready = serving.request_all(deployments=models) if models and pace.blind(match, seats) else None
    if ready is None or all(model.pk in ready for model in models):
        services.begin(match)


def waiting_for_models(*, limit: int) -> list[int]:
    """Open tables with a model at which no player and no answer is missing, as `_complete` says, oldest first.

    Those whose models still have to start come last: however many they are, they do not hold up the others.
    """
    missing = Q(kind=MatchSeat.Kind.OPEN) | Q(kind=MatchSeat.Kind.PERSON, consent=None)
    seats = MatchSeat.objects.filter(match=OuterRef("pk"))
    people = seats.filter(kind=MatchSeat.Kind.PERSON)
    must_be_ready = Exists(seats.filter(seat__gt=1)) & Exists(people.exclude(user=OuterRef("host")))  # `needs_ready`
    starting = Exists(seats.filter(Q(deployment__state__in=STARTING) | Q(speaker__state__in=STARTING)))
    with_models = Match.objects.filter(Exists(seats.filter(deployment__isnull=False)), state=Match.State.OPEN)
    counts_down = Q(countdown_ends_at__isnull=False) & Exists(seats.filter(seat__gt=1))  # `_complete`
    with_models = with_models.exclude(counts_down)
    complete = with_models.exclude(Exists(seats.filter(missing))).exclude(
        must_be_ready & Exists(people.filter(ready=False))
    )
    return list(complete.order_by(starting, "pk").values_list("pk", flat=True)[:limit])


@transaction.atomic
def begin_with_models(*, match_id: int) -> Match | None:
    """Begin a table that waited only for its models; abort it if one failed to start; None if neither."""
    match = Match.objects.select_for_update().get(pk=match_id)
    if match.state != Match.State.OPEN or not _complete(list(match.seats.all())):
        return None
    failed = Deployment.State.FAILED
    if match.seats.filter(Q(deployment__state=failed) | Q(speaker__state=failed)).exists():
        services.abort(match_id=match.pk, why="a model could not be started")
        return match
    begin_if_ready(match)
    return match if match.state == Match.State.RUNNING else None


@transaction.atomic
def say_ready(*, match: Match, user: User) -> None:
    """Mark the user as ready, once every seat is taken; the game begins when all are."""
    locked = still_open(match)
    seat = locked.seats.filter(user=user).first()
    if seat is None:
        raise BadInput("you do not sit at this table")
    if seat.consent is None:
        raise BadInput("answer the question about consent first")
    if locked.countdown_ends_at is not None:  # another answer would say whether a bot takes a seat
        raise BadInput("the game begins when its countdown ends")
    if locked.seats.filter(kind=MatchSeat.Kind.OPEN).exists():
        raise BadInput("there are empty seats: wait until somebody sits there")
    seat.ready = True
    seat.save(update_fields=["ready"])
    begin_if_ready(locked)
    tell_everybody(locked)


def check_answers(match: Match) -> None:
    """Raise `BadInput` if somebody who sits at the table has not answered about consent."""
    if match.seats.filter(kind=MatchSeat.Kind.PERSON, consent=None).exists():
        raise BadInput("a player has not answered the question about consent yet")


@transaction.atomic
def fill(*, match: Match) -> None:
    """Fill every empty seat with a scripted player and begin, even if not everybody has pressed Ready."""
    locked = still_open(match)
    check_answers(locked)
    empty = locked.seats.filter(kind=MatchSeat.Kind.OPEN)
    GuestLink.objects.filter(seat__in=empty).delete()
    empty.update(kind=MatchSeat.Kind.SCRIPTED, scripted=opponents.substitute(locked.game))
    services.begin(locked)


def tell_everybody(match: Match) -> None:
    """After commit, hint to every viewer that the table has changed."""
    hints.send(match.pk, services.viewers_of(match.pk))


@transaction.atomic
def take_seat(*, match: Match, user: User, consent: bool | None = None) -> MatchSeat:
    """Take the first free seat, with an answer about consent if there is one already.

    A user who has a seat already keeps it.
    """
    seat = _take_seat(match, user, answered=consent is not None)
    if consent is not None:
        answer_consent(match=match, user=user, agreed=consent)
    return seat


def _take_seat(match: Match, user: User, *, answered: bool) -> MatchSeat:
    locked = still_open(match)
    if seat_of_user := locked.seats.filter(user=user).first():
        return seat_of_user
    if (
        not answered
        and locked.countdown_ends_at is not None
        and locked.countdown_ends_at - services.database_now() < LAST_SEATS
    ):
        raise BadInput("the game begins in a moment: there is no time left to read about consent")
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
    """Leave the table before the game begins; the seat becomes open. A guest's own table is closed.

    Nobody leaves a table of an experiment.
    """
    locked = still_open(match)
    if locked.shown_as:
        raise BadInput("the game begins in a moment")
    seat = locked.seats.filter(user=user).first()
    if user.is_guest and locked.host_id == user.pk:
        close(match=locked)
    elif seat is not None:
        free(locked, seat)


def free(match: Match, seat: MatchSeat) -> None:
    """Empty a seat of a locked match before its game; all players must press Ready again."""
    seat.kind, seat.user, seat.scripted = MatchSeat.Kind.OPEN, None, ""
    seat.consent = seat.consented_at = None
    changed_fields = ["kind", "user", "scripted", "consent", "consented_at", *seat.dismiss_models()]
    seat.save(update_fields=changed_fields)
    GuestLink.objects.filter(seat=seat).delete()
    match.seats.update(ready=False)
    tell_everybody(match)


@transaction.atomic
def answer_consent(*, match: Match, user: User, agreed: bool) -> None:
    """Store a person's consent to the use of this match; the game begins with the last answer.

    Once the game runs, consent can only be withdrawn.
    """
    locked = Match.objects.select_for_update().get(pk=match.pk)
    seat = locked.seats.filter(user=user).first()
    if seat is None:
        raise BadInput("you do not sit at this table")
    if locked.state != Match.State.OPEN and agreed and seat.consent is False:
        raise BadInput("the game has begun: a refusal cannot be changed any more")
    seat.consent, seat.consented_at = agreed, services.database_now()
    seat.save(update_fields=["consent", "consented_at"])
    if locked.state == Match.State.OPEN:
        _start_countdown(locked)
        begin_if_ready(locked)
        tell_everybody(locked)


def close(*, match: Match) -> None:
    """Close a table as its host, before or during the game, without a result."""
    services.abort(match_id=match.pk, why="closed by the host")


def _place_of(seat: MatchSeat) -> Place:
    """The original player of a seat, without stand-ins."""
    if seat.user is not None:
        return Place(user=seat.user)
    return Place(deployment=seat.deployment, scripted=seat.scripted, form=seat.form, speaker=seat.speaker)


@transaction.atomic
def again(*, match: Match, host: User, swapped: bool = True) -> Match:
    """A rematch of the same scenario, with all players moved by one seat if `swapped`.

    People are asked for consent again. It gets a new seed, because the reveal has shown the hidden information. If this
    host has a rematch that is not over yet, that one is returned. Every model must be open to the host, and the host
    must have rated the game unless they chose its players: whether the new table begins at once or waits would reveal
    the players.
    """
    before = Match.objects.select_for_update().get(pk=match.pk)
    if not before.over:
        raise BadInput("the game is not over yet")
    if before.shown_as:
        raise BadInput("this was a game of an experiment, which has no rematch")
    if not pace.knows_seats(before, host.pk) and Match.objects.filter(pk=before.pk).unrevealed_to(host).exists():
        raise BadInput("rate this game first: the new table would show who sat at this one")
    ongoing = before.rematches.filter(host=host, state__in=ALIVE)
    if rematch := ongoing.order_by("pk").first():
        return rematch
    seats = list(before.seats.select_related("user", *MatchSeat.MODELS).order_by("seat"))
    models = {model.pk for seat in seats for model in seat.deployments}
    if Deployment.objects.visible_to(host).filter(pk__in=models).count() < len(models):
        # does not say which seat, or that it is a model: the players may still be hidden
        raise BadInput("not everything at this table is open to you: ask its host, or set up one of your own")
    places = [_place_of(seat) for seat in seats]
    following = create(
        host=host,
        start=Start(redrawn(services.scenario_of(before), new_seed()), before.source, before.rules),
        places=[places[-1], *places[:-1]] if swapped else places,
        visibility=before.visibility,
        deadline_s=before.deadline_s,
        shuffled=before.shuffled,
        coaching=before.coaching,
    )
    following.swapped_from = before
    following.save(update_fields=["swapped_from"])
    return following
