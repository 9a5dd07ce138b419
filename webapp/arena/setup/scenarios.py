"""What can be played: a stored scenario, one drawn from a dataset version, one of the project's samples, or a plain
start where no sample has so many seats.

Datasets are a researcher's to see; everybody may play the others.
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
    """The samples with so many seats."""
    return tuple(scenario for scenario in samples(game) if len(scenario.seats) == seats)


def plain(game: str, seats: int) -> tuple[Scenario, ...]:
    """The game's plain start for so many, if it has one; none otherwise."""
    spec = lookup(game)
    low, high = spec.players
    return (spec.start(seats),) if spec.start and low <= seats <= high else ()


def usual_size(game: str) -> int:
    """How many sit at a table of `game` unless somebody says otherwise: the fewest of any sample."""
    return min((len(scenario.seats) for scenario in samples(game)), default=0)


def of_size(stored: QuerySet[StoredScenario], seats: int) -> QuerySet[StoredScenario]:
    """Those of the stored scenarios that have so many seats."""
    return stored.filter(**{f"data__seats__{seats - 1}__isnull": False, f"data__seats__{seats}__isnull": True})


def sizes(user: User, game: str) -> list[int]:
    """How many may sit at a table of `game`: the numbers of seats for which there is a scenario."""
    low, high = lookup(game).players
    if low == high or lookup(game).start:
        return list(range(low, high + 1))
    known = {len(scenario.seats) for scenario in samples(game)}
    versions = DatasetVersion.objects.visible_to(user).playable(game)
    stored = StoredScenario.objects.filter(version__in=versions, game=game)
    return [size for size in range(low, high + 1) if size in known or of_size(stored, size).exists()]


def choices(user: User, game: str, seats: int) -> list[tuple[str, str]]:
    """(value, label) of everything a scenario of `game` for so many can be drawn from, the samples first."""
    low, high = lookup(game).players
    found = []
    if own := sampled(game, seats):
        found = [(SAMPLE, f"A sample scenario ({len(own)})")]
    elif plain(game, seats):
        found = [(SAMPLE, "A plain start")]
    versions = DatasetVersion.objects.visible_to(user).playable(game)
    stored: QuerySet[StoredScenario] = StoredScenario.objects.filter(version__in=versions, game=game)
    if low < high:
        stored = of_size(stored, seats)
    counts = dict(stored.order_by().values_list("version").annotate(Count("pk")))
    versions = versions.filter(pk__in=counts)
    stored_ones = [(f"version:{v.pk}", f"{v} ({counts[v.pk]} scenario{pluralize(counts[v.pk])})") for v in versions]
    return [*found, *stored_ones]


def stored_for(user: User, pk: int) -> StoredScenario | None:
    """A stored scenario that this person may play, or None."""
    return StoredScenario.objects.filter(pk=pk, version__in=DatasetVersion.objects.visible_to(user)).first()


def draw(choice: str, user: User, game: str, seed: int, seats: int) -> Start:
    """The start behind a choice, with `seed` for all its chance, of those for so many seats if it is one of several.

    A deal that the scenario states is left out: whoever can read the scenario would know what is hidden. Raises
    `BadInput` if there is none.
    """
    kind, _, rest = choice.partition(":")
    if kind == SAMPLE:
        own = sampled(game, seats) or plain(game, seats)
        if not own:
            raise BadInput(f"no sample scenario of this game has {seats} seats", "seats")
        return Start(redrawn(rng(seed, "sample").choice(own), seed))
    if kind == "stored":
        found = stored_for(user, int(rest))
    else:
        version = DatasetVersion.objects.visible_to(user).playable(game).filter(pk=int(rest)).first()
        found_there = version.scenarios.filter(game=game) if version is not None else None
        stored = of_size(found_there, seats).order_by("position") if found_there is not None else None
        count = stored.count() if stored is not None else 0
        found = stored[rng(seed, "stored").randrange(count)] if stored is not None and count else None
    if found is None or found.game != game:
        raise BadInput(f"there is no such scenario of {game}", "scenario")
    return Start(redrawn(Scenario.from_dict(found.data), seed), found)
