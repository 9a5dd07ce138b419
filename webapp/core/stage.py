"""What the templates of a table's zones read besides the zones: names, the viewer, and what pressing does."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from training.records import SPECTATOR, Action, Seat, Viewer


@dataclass(frozen=True)
class Stage:
    """The surroundings of the zones of one view; by default nothing can be pressed.

    `presses` maps a choice to the value of its button and `forms` the name of an offered action to the action, for
    zones that edit its arguments. `thinking` are the other seats that must move, as far as the viewer may know.
    `replay` is the address of the game's replay, for zones that name its steps; empty without one.
    """

    names: Sequence[str]
    viewer: Viewer = SPECTATOR
    presses: Mapping[str, str] = field(default_factory=dict)
    forms: Mapping[str, Action] = field(default_factory=dict)
    thinking: Collection[Seat] = ()
    replay: str = ""

    @property
    def other(self) -> Seat:
        """The other seat at a table for two."""
        return 1 - self.viewer

    def press(self, choice: str) -> str:
        """The value of the button of a choice; empty if it cannot be pressed."""
        return self.presses.get(choice, "")

    def name(self, seat: Seat) -> str:
        """The name of a seat; "the table" for a tool seat."""
        return self.names[seat] if seat < len(self.names) else "the table"
