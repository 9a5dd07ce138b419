"""Making a table: its scenario, players, rules and countdown; rematches. See also `webapp.arena.setup.waiting_room`.

Each function is one transaction; it raises `BadInput` without changing anything.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db import transaction
from django.db.models.functions import Now

from training.errors import BadInput
from training.games import anonymised, lookup, make, redrawn
from training.records import Scenario, Seat
from training.seeding import rng
from webapp.accounts.models import User
from webapp.arena.models import Match, MatchSeat
from webapp.arena.play import pace, services
from webapp.arena.setup import waiting_room
from webapp.arena.setup.rules import changed
from webapp.core import quotas
from webapp.scenarios.models import StoredScenario
from webapp.serving import services as serving
from webapp.serving.models import Deployment

DEADLINES = (10, 3600)
"""Fewest and most seconds for a move."""
COUNTDOWNS = (10, 3600)
"""Fewest and most seconds of a countdown."""
ALIVE = (Match.State.OPEN, Match.State.RUNNING)


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
    models = [model for place in places for model in place.deployments]
    models += [countdown.model] if countdown is not None and countdown.model is not None else []
    known = visibility == Match.Visibility.PRIVATE and not shuffled
    if not known or any(place.kind == MatchSeat.Kind.OPEN or place.user not in (None, host) for place in places):
        _check_slots(models)
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
    serving.request_all(deployments=models)  # they start while people read the rules
    waiting_room.start_countdown(match)
    waiting_room.begin_if_ready(match)
    return match


def _countdown(start: Start, places: Sequence[Place]) -> Countdown | None:
    """The countdown of a table with these places; raises `BadInput` if it is too short or too long."""
    countdown = start.countdown
    if countdown is not None and not COUNTDOWNS[0] <= countdown.seconds <= COUNTDOWNS[1]:
        raise BadInput(f"must be between {COUNTDOWNS[0]} and {COUNTDOWNS[1]} seconds", "countdown_s")
    return countdown if any(place.kind == MatchSeat.Kind.OPEN for place in places) else None


def _check_slots(models: Sequence[Deployment]) -> None:
    """Raise `BadInput` if a table whose players stay hidden, which waits for all its models, would wait for ever.

    It would also keep the models that have started, and with them the slots of everybody else.
    """
    local = {model.pk for model in models if model.checkpoint_id is not None}
    if len(local) > 1 and len(local) > (slots := serving.slots()):
        raise BadInput(
            f"this site serves {slots} at once of the {len(local)} models of this table, and a game whose players stay "
            "hidden waits for all: choose the same model, a remote one, or a private table for yourself alone",
            "seats",
        )


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
