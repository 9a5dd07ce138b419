"""Scenarios that can be played: a stored scenario, one drawn from a dataset version, one of the project's samples, or
the game's plain start if no sample has that many seats.

Datasets are visible to researchers only; everybody may play the others.
"""

from __future__ import annotations

from functools import cache

from django.db.models import Count, QuerySet
from django.template.defaultfilters import pluralize

from training.errors import BadInput
from training.games import lookup, redrawn
from training.records import Scenario
from training.samples import for_game
from training.seeding import rng
from webapp.accounts.models import User
from webapp.arena.setup.tables import Start
from webapp.scenarios.models import DatasetVersion, StoredScenario

SAMPLE = "sample"


@cache
def samples(game: str) -> tuple[Scenario, ...]:
    """The project's own scenarios of a game."""
    return for_game(game) if lookup(game).samples else ()


def sampled(game: str, seats: int) -> tuple[Scenario, ...]:
    """The samples with this number of seats."""
    return tuple(scenario for scenario in samples(game) if len(scenario.seats) == seats)


def plain(game: str, seats: int) -> tuple[Scenario, ...]:
    """The game's plain start for this number of seats, if it has one."""
    spec = lookup(game)
    low, high = spec.players
    return (spec.start(seats),) if spec.start and low <= seats <= high else ()


def usual_size(game: str) -> int:
    """The default number of seats at a table of `game`: the smallest of any sample."""
    return min((len(scenario.seats) for scenario in samples(game)), default=0)


def of_size(stored: QuerySet[StoredScenario], seats: int) -> QuerySet[StoredScenario]:
    """The stored scenarios with this number of seats."""
    return stored.filter(**{f"data__seats__{seats - 1}__isnull": False, f"data__seats__{seats}__isnull": True})


def sizes(user: User, game: str) -> list[int]:
    """The numbers of seats for which `game` has a scenario."""
    low, high = lookup(game).players
    if low == high or lookup(game).start:
        return list(range(low, high + 1))
    sample_sizes = {len(scenario.seats) for scenario in samples(game)}
    versions = DatasetVersion.objects.visible_to(user).playable(game)
    stored = StoredScenario.objects.filter(version__in=versions, game=game)
    return [size for size in range(low, high + 1) if size in sample_sizes or of_size(stored, size).exists()]


def choices(user: User, game: str, seats: int) -> list[tuple[str, str]]:
    """(value, label) of every source of scenarios of `game` with this number of seats, the samples first."""
    low, high = lookup(game).players
    sample_choices = []
    if fitting := sampled(game, seats):
        sample_choices = [(SAMPLE, f"A sample scenario ({len(fitting)})")]
    elif plain(game, seats):
        sample_choices = [(SAMPLE, "A plain start")]
    versions = DatasetVersion.objects.visible_to(user).playable(game)
    stored: QuerySet[StoredScenario] = StoredScenario.objects.filter(version__in=versions, game=game)
    if low < high:
        stored = of_size(stored, seats)
    counts = dict(stored.order_by().values_list("version").annotate(Count("pk")))
    versions = versions.filter(pk__in=counts)
    version_choices = [(f"version:{v.pk}", f"{v} ({counts[v.pk]} scenario{pluralize(counts[v.pk])})") for v in versions]
    return [*sample_choices, *version_choices]


def stored_for(user: User, pk: int) -> StoredScenario | None:
    """A stored scenario that this user may play, or None."""
    return StoredScenario.objects.filter(pk=pk, version__in=DatasetVersion.objects.visible_to(user).readable()).first()


def draw(choice: str, user: User, game: str, seed: int, seats: int) -> Start:
    """The start for a choice, reseeded by `seed`; a scenario drawn from several has this number of seats.

    A deal stated in the scenario is removed: its readers would know hidden information. Raises `BadInput` if there is
    no such scenario.
    """
    kind, _, rest = choice.partition(":")
    if kind == SAMPLE:
        fitting = sampled(game, seats) or plain(game, seats)
        if not fitting:
            raise BadInput(f"no sample scenario of this game has {seats} seats", "seats")
        return Start(redrawn(rng(seed, "sample").choice(fitting), seed))
    if kind == "stored":
        row = stored_for(user, int(rest))
    else:
        version = DatasetVersion.objects.visible_to(user).playable(game).filter(pk=int(rest)).first()
        in_version = version.scenarios.filter(game=game) if version is not None else None
        candidates = of_size(in_version, seats).order_by("position") if in_version is not None else None
        count = candidates.count() if candidates is not None else 0
        row = candidates[rng(seed, "stored").randrange(count)] if candidates is not None and count else None
    if row is None or row.game != game:
        raise BadInput(f"there is no such scenario of {game}", "scenario")
    return Start(redrawn(Scenario.from_dict(row.data), seed), row)
