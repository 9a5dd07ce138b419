"""What can be played: a stored scenario, one drawn from a dataset version, or one of the project's samples.

Datasets are a researcher's to see; everybody may play the samples.
"""

from __future__ import annotations

from functools import cache

from training.errors import BadInput
from training.records import Scenario
from training.samples import GAMES, for_game
from training.seeding import rng
from webapp.accounts.models import User
from webapp.scenarios.models import DatasetVersion, StoredScenario

SAMPLE = "sample"


@cache
def samples(game: str) -> tuple[Scenario, ...]:
    """The project's own scenarios of a game."""
    return for_game(game) if game in GAMES else ()


def choices(user: User, game: str) -> list[tuple[str, str]]:
    """(value, label) of everything a scenario of `game` can be drawn from, the samples first."""
    found = [(SAMPLE, f"A sample scenario ({len(samples(game))})")] if samples(game) else []
    versions = DatasetVersion.objects.visible_to(user).playable(game)
    return [*found, *((f"version:{v.pk}", f"{v} ({v.scenario_count} scenarios)") for v in versions)]


def stored_for(user: User, pk: int) -> StoredScenario | None:
    """A stored scenario that this person may play, or None."""
    return StoredScenario.objects.filter(pk=pk, version__in=DatasetVersion.objects.visible_to(user)).first()


def draw(choice: str, user: User, game: str, seed: int) -> tuple[Scenario, StoredScenario | None]:
    """The scenario behind a choice, with `seed` for its chance; raises `BadInput` if there is none."""
    kind, _, rest = choice.partition(":")
    if kind == SAMPLE:
        return rng(seed, "sample").choice(samples(game)).with_seed(seed), None
    if kind == "stored":
        found = stored_for(user, int(rest))
    else:
        version = DatasetVersion.objects.visible_to(user).playable(game).filter(pk=int(rest)).first()
        stored = version.scenarios.filter(game=game).order_by("position") if version is not None else None
        count = stored.count() if stored is not None else 0
        found = stored[rng(seed, "stored").randrange(count)] if stored is not None and count else None
    if found is None:
        raise BadInput("there is no such scenario any more", "scenario")
    return Scenario.from_dict(found.data).with_seed(seed), found
