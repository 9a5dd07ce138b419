"""Which of several engines gets a request: the one that holds most of its prompt, unless that one is busy.

A pure rule about tokens and numbers. An engine may have at most 1.25 times its equal share of the requests in flight,
this one included: the bound of consistent hashing with bounded loads (Mirrokni, Thorup and Zadimoghaddam 2018).
Of the engines below that bound, the request goes to the one that has read the longest prefix of its prompt, in whole
blocks; of equals, to the one with fewest requests in flight; of equals, to the first.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence

BLOCK = 16
"""Tokens of a block."""
BOUND = 1.25
"""An engine's load may be this much of its equal share."""
REMEMBERED = 2**16
"""Blocks that are remembered of one engine, the latest used: a million tokens."""


class Affinity:
    """What each of `engines` engines has read since the weights were last replaced."""

    def __init__(self, engines: int) -> None:
        self._known: list[OrderedDict[int, None]] = [OrderedDict() for _ in range(engines)]

    def choose(self, prompt: Sequence[int], loads: Mapping[int, int], adapter: str = "") -> int:
        """Return the engine for a prompt. `loads`: the requests in flight of each engine that may be chosen.

        What was read under an `adapter` is of use to requests under the same one.
        """
        bound = math.ceil(BOUND * (sum(loads.values()) + 1) / len(loads))
        starts = list(_starts(prompt, adapter))
        below = [engine for engine, load in loads.items() if load < bound]
        return min(below, key=lambda engine: (-self._held(engine, starts), loads[engine], engine))

    def read(self, engine: int, tokens: Sequence[int], adapter: str = "") -> None:
        """Remember that an engine has read `tokens`."""
        known = self._known[engine]
        for start in _starts(tokens, adapter):
            known[start] = None
            known.move_to_end(start)
        while len(known) > REMEMBERED:
            known.popitem(last=False)

    def forget(self, engine: int) -> None:
        """Forget what an engine has read: it was started again, or has new weights."""
        self._known[engine].clear()

    def _held(self, engine: int, starts: Sequence[int]) -> int:
        """Return how many blocks, from the first on, an engine has read."""
        known = self._known[engine]
        return next((at for at, start in enumerate(starts) if start not in known), len(starts))


def _starts(tokens: Sequence[int], adapter: str) -> Iterator[int]:
    """Yield the hash of every prefix of whole blocks, the shortest first."""
    digest = hash(adapter)
    for end in range(BLOCK, len(tokens) + 1, BLOCK):
        digest = hash((digest, *tokens[end - BLOCK : end]))
        yield digest
