"""Two players of Nim without a model: one that cannot be beaten from a won position, and a greedy one.

They read the heaps from the choices that they are offered, and nothing of the scenario but the names.
"""

from __future__ import annotations

from functools import reduce
from operator import xor
from random import Random

from parley_nim.words import choice, read_choice
from training.games.actions import write
from training.players.scripted import Script
from training.records import Observation


def heaps(observation: Observation) -> dict[int, int]:
    """Return the size of every heap that has a stick."""
    sizes: dict[int, int] = {}
    for count, heap in map(read_choice, observation.actions[0].args[0].choices):
        sizes[heap] = max(sizes.get(heap, 0), count)
    return sizes


def perfect(sizes: dict[int, int]) -> tuple[int, int] | None:
    """Return (sticks, heap) of a move that wins, or None: by Bouton's theorem the heaps' exclusive or must become 0."""
    total = reduce(xor, sizes.values())
    return next(((size - (size ^ total), heap) for heap, size in sizes.items() if size ^ total < size), None)


class PerfectPlayer(Script):
    """Wins wherever it can; elsewhere it takes one stick and hopes for a mistake."""

    def answer(self, observation: Observation, chance: Random) -> str:
        """Return the reply, with the reason, which nobody else reads, before it."""
        sizes = heaps(observation)
        move, why = perfect(sizes), "The heaps' exclusive or becomes 0, so I win."
        if move is None:
            move, why = (1, max(sizes, key=sizes.__getitem__)), "Every move loses against perfect play, so I play on."
        return write(observation.actions[0], {"sticks": choice(*move)}, why)


class GreedyPlayer(Script):
    """Takes the whole of the largest heap."""

    def answer(self, observation: Observation, chance: Random) -> str:
        """Return the reply."""
        sizes = heaps(observation)
        heap = max(sizes, key=sizes.__getitem__)
        return write(observation.actions[0], {"sticks": choice(sizes[heap], heap)})
