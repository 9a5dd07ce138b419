"""English that the sentences of several games need."""

from __future__ import annotations

from collections.abc import Iterable

NAMES = ("Ada", "Ben", "Cleo", "Dan", "Eva", "Finn", "Gus", "Hana", "Ivo", "Jule", "Kim", "Lou")
"""Display names for the most seats that a game of ours has."""


def listed(words: Iterable[str], last: str = "and") -> str:
    """Return at least one word as a list in a sentence: `Ada, Ben and Cleo`, or with another word before the last."""
    *most, end = words
    return f"{', '.join(most)} {last} {end}" if most else end


def count(number: int, noun: str) -> str:
    """Return `1 chip` or `2 chips`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"
