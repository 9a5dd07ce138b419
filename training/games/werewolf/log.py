"""The log of Werewolf: spectators read what everybody heard some phases later, so that nobody at the table gains by it.

The rules, which come before the first phase, are not held back; `release` shows all the rest at the end.
"""

from __future__ import annotations

from training.games.log import Log
from training.records import SPECTATOR, Message, Viewer


class DelayedLog(Log):
    """A log whose spectator is `delay` phases behind."""

    def __init__(self, seats: int, delay: int) -> None:
        super().__init__(seats)
        self._delay = delay
        self._phase = 0
        self._delayed: list[tuple[int, Message]] = []

    def add(self, viewer: Viewer, message: Message) -> None:
        """Show one viewer one line; a spectator's waits."""
        if viewer == SPECTATOR and self._delay and self._phase:
            self._delayed.append((self._phase, message))
        else:
            super().add(viewer, message)

    def next_phase(self) -> None:
        """Begin a phase, and show what is old enough."""
        self._phase += 1
        self._show(self._phase - self._delay)

    def release(self) -> None:
        """Show all that was held back."""
        self._show(self._phase)

    def _show(self, last: int) -> None:
        for phase, message in self._delayed:
            if phase <= last:
                super().add(SPECTATOR, message)
        self._delayed = [(phase, message) for phase, message in self._delayed if phase > last]
