"""Tasks for one seat, and plays of them: by a person alone, and by models and scripted players beside them.

Plays of one task have the same scenario and the same seed. What others do with a task is hidden from a person who has
begun it and not ended (`MatchQuerySet.without_solutions`). Raises `BadInput` without changing anything.
"""

from __future__ import annotations

from dataclasses import replace

from django.db import transaction
from django.template.defaultfilters import capfirst, truncatechars

from training.errors import BadInput
from training.games import REGISTRY, GameSpec, lookup, make
from training.records import Scenario
from training.seeding import derive, rng
from webapp.accounts.models import User
from webapp.arena.models import Match
from webapp.arena.play import services
from webapp.arena.setup import scenarios, tables
from webapp.arena.setup.tables import Place, Start
from webapp.scenarios.models import DatasetVersion, StoredScenario

ANY, NEW = "any", "new"
LONGEST_LABEL = 90
SEATS = 1


def games() -> list[GameSpec]:
    """The games that one seat can play, for which there is a task."""
    return [spec for spec in REGISTRY.values() if samples(spec.name) or scenarios.plain(spec.name, SEATS)]


def samples(game: str) -> tuple[Scenario, ...]:
    """The project's own tasks of a game."""
    return scenarios.sampled(game, SEATS) if lookup(game).players[0] == SEATS else ()


def with_seed(scenario: Scenario) -> Scenario:
    """The scenario with a seed of its own, so that everybody who chooses it gets the same task."""
    return scenario if scenario.seed else scenario.with_seed(derive(0, "alone", scenario.id) or 1)


def choices(user: User, game: str, stored: StoredScenario | None = None) -> list[tuple[str, str]]:
    """(value, label) of each task or source of tasks, those of the form's beginning first."""
    listed = [(f"stored:{stored.pk}", f"{stored.title} ({stored.key})")] if stored is not None else []
    project = samples(game)
    if project:
        listed.append((ANY, f"Any of the {len(project)} sample tasks"))
    if scenarios.plain(game, SEATS):
        listed.append((NEW, "A new task, drawn at random"))
    versions = DatasetVersion.objects.visible_to(user).playable(game)
    fitting = scenarios.of_size(StoredScenario.objects.filter(version__in=versions, game=game), SEATS)
    listed += [
        (f"version:{version.pk}", f"Any of {version}") for version in versions.filter(scenarios__in=fitting).distinct()
    ]
    return [*listed, *((f"sample:{task.id}", truncatechars(_title(task), LONGEST_LABEL)) for task in project)]


def _title(scenario: Scenario) -> str:
    """What is to be done in a task of the samples, else the label of its scenario."""
    return capfirst(make(with_seed(scenario)).task()) or lookup(scenario.game).label(scenario)


def find(choice: str, user: User, game: str) -> Start:
    """The start for one of these choices; raises `BadInput` if there is no such task."""
    kind, _, rest = choice.partition(":")
    chance = rng(tables.new_seed(), "task")
    if kind == NEW and (drawn := scenarios.plain(game, SEATS)):
        return Start(drawn[0].with_seed(tables.new_seed()))
    if kind in {ANY, "sample"}:
        tasks = [task for task in samples(game) if kind == ANY or task.id == rest]
        if tasks:
            return Start(with_seed(chance.choice(tasks)))
    if kind in {"stored", "version"}:
        stored = StoredScenario.objects.filter(
            version__in=DatasetVersion.objects.visible_to(user).readable(), game=game
        )
        rows = scenarios.of_size(stored.filter(**{"pk" if kind == "stored" else "version": int(rest)}), SEATS)
        if count := rows.count():
            row = rows.order_by("pk")[chance.randrange(count)]
            return Start(with_seed(Scenario.from_dict(row.data)), row)
    raise BadInput("there is no such task", "task")


@transaction.atomic
def play(*, user: User, start: Start, player: Place | None, consent: bool) -> Match:
    """Begin a person's play of a task; `player` plays it as well, at once and unseen."""
    match = tables.create(host=user, start=start, places=[Place(user=user)], consent=consent)
    if player is not None:
        tables.create(host=user, start=replace(start, beside=match), places=[player])
    return match


def watch(*, user: User, start: Start, player: Place) -> Match:
    """Let a model or scripted player play a task, at a pace at which one can read along."""
    return tables.create(host=user, start=start, places=[player])


def again(*, match: Match, user: User) -> Match:
    """Let a person play the task of a match, for the first time or again; they are asked for consent next.

    A play of it that they have not ended is returned instead.
    """
    begun = Match.objects.filter(task=match.task, state__in=tables.ALIVE, seats__user=user).first()
    return begun or tables.create(host=user, start=_start_of(match), places=[Place(user=user)])


def accompany(*, match: Match, user: User, player: Place) -> Match:
    """Let a model or scripted player play the task of a person's play that has ended."""
    if not match.over:
        raise BadInput("end your own play first")
    return tables.create(host=user, start=replace(_start_of(match), beside=match), places=[player])


def _start_of(match: Match) -> Start:
    return Start(services.scenario_of(match), match.source)
