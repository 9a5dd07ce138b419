"""The log of Werewolf: spectators read public messages some phases later, so that players cannot profit from them.

The rules, which come before the first phase, are not delayed; `release` shows the remaining messages at the end.
"""

from __future__ import annotations

from training.games.log import Log
from training.records import SPECTATOR, Message, Viewer


class DelayedLog(Log):
    """A log that shows messages to spectators `delay` phases later."""

    def __init__(self, seats: int, delay: int) -> None:
        super().__init__(seats)
        self._delay = delay
        self._phase = 0
        self._delayed: list[tuple[int, Message]] = []

    def add(self, viewer: Viewer, message: Message) -> None:
        """Show a message to one viewer; delay it for spectators."""
        if viewer == SPECTATOR and self._delay and self._phase:
            self._delayed.append((self._phase, message))
        else:
            super().add(viewer, message)

    def next_phase(self) -> None:
        """Begin a phase, and show the messages whose delay is over."""
        self._phase += 1
        self._show(self._phase - self._delay)

    def release(self) -> None:
        """Show all delayed messages."""
        self._show(self._phase)

    def _show(self, last: int) -> None:
        for phase, message in self._delayed:
            if phase <= last:
                super().add(SPECTATOR, message)
        self._delayed = [(phase, message) for phase, message in self._delayed if phase > last]
