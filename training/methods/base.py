"""The protocol every method follows: scored episodes in, credit on tokens out; and what its configuration offers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Protocol

from training.reading import Record
from training.records import EpisodeCredit, Needs, ScoredEpisode


class Method(Protocol):
    """How an episode's outcome becomes credit. A method knows no model, no trainer and no game.

    `needs` never changes, and `credit` leaves the episodes as they are.
    """

    needs: Needs

    def credit(self, group: Sequence[ScoredEpisode]) -> list[EpisodeCredit]:
        """Return credit for each episode of the group that `needs.group` asks for, in order."""

    def state_dict(self) -> dict[str, Any]:
        """Return what must survive a restart, as JSON data."""

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the state that `state_dict` returned."""


class MethodConfig(Record):
    """Base of a method's configuration. The class stands beside the method; `name` is its name in the registry.

    `summary` is one sentence about the method for lists.
    """

    summary: ClassVar[str] = ""

    name: str

    def build(self) -> Method:
        """Return the method at its start."""
        raise TypeError(f"{type(self).__name__} does not say how its method is built")

    def check(self, reward_low: float, replays: int) -> None:
        """Raise `BadInput` naming the field if the method cannot work with such a run.

        `reward_low` is the least a seat's reward may be; `replays` is how often each start is played in a step.
        """
