"""The protocol every method follows: scored episodes in, credit on tokens out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from training.records import EpisodeCredit, Needs, ScoredEpisode


class Method(Protocol):
    """How an episode's outcome becomes credit. A method knows no model, no trainer and no game."""

    needs: Needs

    def credit(self, group: Sequence[ScoredEpisode]) -> list[EpisodeCredit]:
        """Return credit for each episode of the group that `needs.group` asks for, in order."""

    def state_dict(self) -> dict[str, Any]:
        """Return what must survive a restart, as JSON data."""

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take up the state of `state_dict`."""
