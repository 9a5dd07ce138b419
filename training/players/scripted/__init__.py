"""Scripted players: one per game, plain code that plays sensibly, deterministic by seed, without any model."""

from __future__ import annotations

from collections.abc import Callable

from training.errors import BadInput
from training.games.negotiation import Items, NegotiationSettings
from training.players.base import Player
from training.players.scripted.among_us import AmongUsScript
from training.players.scripted.boards import BoardScript
from training.players.scripted.dialogue import DialogueScript
from training.players.scripted.hanabi import HanabiScript
from training.players.scripted.items import ItemScript
from training.players.scripted.poker import KuhnScript, LeducScript
from training.players.scripted.price import PriceScript
from training.players.scripted.werewolf import WerewolfScript
from training.records import Scenario, Seat


def _negotiation(scenario: Scenario, seat: Seat) -> Player:
    settings = NegotiationSettings.model_validate(scenario.settings)
    return ItemScript(scenario, seat) if isinstance(settings.deal, Items) else PriceScript(scenario, seat)


SCRIPTS: dict[str, Callable[[Scenario, Seat], Player]] = {
    "negotiation": _negotiation,
    "dialogue": DialogueScript,
    "tic_tac_toe": BoardScript,
    "connect_four": BoardScript,
    "kuhn_poker": KuhnScript,
    "leduc_poker": LeducScript,
    "hanabi": HanabiScript,
    "among_us": AmongUsScript,
    "werewolf": WerewolfScript,
}


def make(scenario: Scenario, seat: Seat) -> Player:
    """Return the script of the scenario's game; raise `BadInput` for a game without one."""
    if scenario.game not in SCRIPTS:
        raise BadInput(f"no script plays {scenario.game!r}; there is one for: {', '.join(sorted(SCRIPTS))}", "players")
    return SCRIPTS[scenario.game](scenario, seat)
