"""The forms of MARS's credit that measurements compare: settings of the method by name, as raw numbers have them."""

from __future__ import annotations

from typing import Any

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
