"""A seat does a task in a room: it finds, carries, cleans, heats, cools and puts (ALFWorld's task in text)."""

from __future__ import annotations

from training.games.base import GameSpec, sample_files
from training.games.household import words
from training.games.household.commands import ACTIONS
from training.games.household.game import Household
from training.games.household.settings import Home, HouseholdSettings, Task
from training.games.prose import NAMES
from training.records import Scenario

__all__ = ["SPEC", "Home", "Household", "HouseholdSettings", "Task"]


def label(scenario: Scenario) -> str:
    """Return the task where it is stated, else from which it is drawn."""
    settings = HouseholdSettings.model_validate(scenario.settings)
    if settings.home:
        return words.label(settings.home.task)
    if settings.alfworld:
        return f"A game of ALFWorld: {settings.alfworld.partition('/')[0]}"
    family = "" if settings.family == "any" else f" of the family {settings.family.replace('_', ' ')}"
    return f"A task{family}" + ("" if settings.room == "any" else f" in a {settings.room.replace('_', ' ')}")


def private(scenario: Scenario) -> tuple[str, ...]:
    """Return where the objects of a stated task are."""
    home = HouseholdSettings.model_validate(scenario.settings).home
    return (words.hiding(home) if home else "",)


def start(seats: int) -> Scenario:
    """Return a household with a drawn task."""
    return Scenario(id="household", game="household", seats=NAMES[:seats])


SPEC = GameSpec(
    name="household",
    title="Household",
    summary="Find, carry, clean, heat or cool things in a room, and put them where a task wants them.",
    make=Household,
    settings=HouseholdSettings,
    players=(1, 1),
    low=0.0,
    high=1.0,
    reach=True,
    label=label,
    private=private,
    start=start,
    actions=tuple(action.name for action in ACTIONS),
    scenario_only=("home", "alfworld", "sha256"),
    script="training.games.household.script:HouseholdScript",
    samples=sample_files("household"),
)
