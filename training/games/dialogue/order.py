"""The order of turns in a dialogue: alternating, simultaneous, or random, up to the turn limits."""

from __future__ import annotations

from training.games.dialogue.settings import DialogueSettings
from training.records import Seat
from training.seeding import rng

BOTH: frozenset[Seat] = frozenset({0, 1})
NOBODY: frozenset[Seat] = frozenset()


class Order:
    """Determines who acts next. Chance comes from the scenario's seed, one draw per turn, so a replay repeats it."""

    def __init__(self, settings: DialogueSettings, seed: int) -> None:
        self._settings = settings
        self._chance = rng(seed, "dialogue", "order")
        self._drawn = 0
        self.turns = [0, 0]

    def first(self) -> frozenset[Seat]:
        """Return who begins: by the settings, or the one who did not speak last in the earlier rounds."""
        settings = self._settings
        if settings.order == "simultaneous":
            return BOTH
        if settings.order == "random":
            return self._draw(BOTH)
        if settings.given:
            return frozenset({1 - settings.given[-1].seat})
        return self._draw(BOTH) if settings.first_seat is None else frozenset({settings.first_seat})

    def after(self, last: frozenset[Seat]) -> frozenset[Seat]:
        """Return who acts after `last`; nobody when the turns are used up."""
        each = self._settings.turns_per_seat
        free = frozenset(seat for seat in BOTH if each is None or self.turns[seat] < each)
        needed = 2 if self._settings.order == "simultaneous" else 1
        if len(free) < needed or sum(self.turns) + needed > self._settings.turn_limit:
            return NOBODY
        if self._settings.order == "simultaneous":
            return BOTH
        if self._settings.order == "random":
            return self._draw(free)
        return free - last or free

    def _draw(self, free: frozenset[Seat]) -> frozenset[Seat]:
        fixed = self._settings.fixed_order
        seat = fixed[self._drawn] if self._drawn < len(fixed) else self._chance.randrange(2)
        self._drawn += 1
        return frozenset({seat}) & free or free
