"""Werewolf: a village talks and votes by day, and wolves, who know each other, kill by night."""

from __future__ import annotations

from training.games.base import GameSpec, sample_files, without
from training.games.prose import NAMES
from training.games.werewolf.actions import NAMES as ACTIONS
from training.games.werewolf.game import Werewolf
from training.games.werewolf.roles import counted, usual
from training.games.werewolf.settings import NINE, SIX, Role, WerewolfSettings
from training.records import Scenario

__all__ = ["NINE", "SIX", "SPEC", "Role", "Werewolf", "WerewolfSettings"]


def label(scenario: Scenario) -> str:
    """Return the number of players and the roles, but not who has which role."""
    return f"{len(scenario.seats)} players: {counted(WerewolfSettings.model_validate(scenario.settings).roles)}"


def private(scenario: Scenario) -> tuple[str, ...]:
    """Return each seat's role if the settings state it; a drawn role is unknown before the start."""
    deal = WerewolfSettings.model_validate(scenario.settings).deal
    return deal or ("",) * len(scenario.seats)


def start(seats: int) -> Scenario:
    """Return a village with the default roles for this number of players."""
    settings = {"roles": usual(seats)}
    return Scenario(id=f"village-of-{seats}", game="werewolf", seats=NAMES[:seats], settings=settings)


SPEC = GameSpec(
    name="werewolf",
    focus="talk",
    title="Werewolf",
    summary="Three to twelve players with secret roles: the village looks for the werewolves before they are too many.",
    make=Werewolf,
    settings=WerewolfSettings,
    players=(3, 12),
    low=0.0,
    high=1.0,
    probed=lambda settings: WerewolfSettings.model_validate(settings).probes,
    symmetric=False,
    deadline_s=90,
    label=label,
    private=private,
    start=start,
    actions=ACTIONS,
    undealt=without("deal", "fixed"),
    scenario_only=("deal", "fixed"),
    script="training.games.werewolf.script:WerewolfScript",
    samples=sample_files("werewolf"),
    codebooks=("werewolf-behaviours",),
    rated_by="werewolf-behaviours",
)
