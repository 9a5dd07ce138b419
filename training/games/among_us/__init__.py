"""Among Us: a crew works on tasks in a grid of rooms, one imposter kills unseen, and meetings talk and vote."""

from __future__ import annotations

from training.games.among_us.game import LOSS, WIN, AmongUs
from training.games.among_us.settings import AmongUsSettings, Deal
from training.games.base import GameSpec, sample_files, without
from training.games.prose import NAMES, count
from training.records import Scenario

__all__ = ["SPEC", "AmongUs", "AmongUsSettings", "Deal"]


def label(scenario: Scenario) -> str:
    """Return the size of the game."""
    settings = AmongUsSettings.model_validate(scenario.settings)
    size = f"{settings.width} by {settings.height} rooms"
    return f"{size}, {count(settings.tasks, 'task')} each, {count(len(scenario.seats), 'player')}"


def private(scenario: Scenario) -> tuple[str, ...]:
    """Return each seat's role and tasks where they are stated; nothing where they are drawn."""
    deal = AmongUsSettings.model_validate(scenario.settings).deal
    if deal is None:
        return ("",) * len(scenario.seats)
    return tuple(
        "imposter" if seat == deal.imposter else "tasks in " + ", ".join(f"({room[0]},{room[1]})" for room in rooms)
        for seat, rooms in enumerate(deal.tasks)
    )


def start(seats: int) -> Scenario:
    """Return a ship with about as many rooms as people."""
    size = {"width": 2 if seats < 6 else 3, "height": 2 if seats < 9 else 3}
    return Scenario(id=f"ship-of-{seats}", game="among_us", seats=NAMES[:seats], settings=size)


SPEC = GameSpec(
    name="among_us",
    focus="talk",
    title="Among Us",
    summary="A crew works on tasks in a grid of rooms, one imposter kills unseen, and meetings talk and vote about it.",
    make=AmongUs,
    settings=AmongUsSettings,
    players=(3, 12),
    low=LOSS,
    high=WIN + 1,
    probed=lambda settings: AmongUsSettings.model_validate(settings).probes,
    deadline_s=60,
    label=label,
    private=private,
    start=start,
    actions=("talk", "go", "wait", "task", "kill", "report", "vote"),
    undealt=without("deal"),
    scenario_only=("deal",),
    script="training.games.among_us.script:AmongUsScript",
    samples=sample_files("among_us"),
)
