"""The forms that a measurement compares: those of MARS's credit, as raw numbers name them, and a command's choice."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from training.errors import BadInput

FORMS: dict[str, dict[str, Any]] = {
    "none": {"baseline": "none"},
    "player": {},
    "player_turn": {"baseline": "player_turn"},
    "role_ema": {"baseline": "role_ema"},
    "whole_game": {"turn_level": False},
    "whole_game_none": {"turn_level": False, "baseline": "none"},
    "all_players": {"per_player": False},
    "normalised_first": {"normalise": "before"},
}


def chosen_forms(names: str, known: Collection[str], default: Collection[str] = ()) -> list[str]:
    """Return the forms named with commas between them, or else `default` or all; `BadInput` for an unknown one."""
    if not names:
        return list(default or known)
    forms = names.split(",")
    if unknown := [form for form in forms if form not in known]:
        raise BadInput(f"unknown form {unknown[0]!r}; known: {', '.join(known)}", "--forms")
    return forms
