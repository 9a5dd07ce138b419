"""The replies of a request with choices, as a trie: which tokens may come next, and the check of such requests."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from training.engines.base import SampleRequest
from training.errors import EngineError


class Trie:
    """Token sequences by their common beginnings. No sequence may begin another."""

    def __init__(self, sequences: Iterable[Sequence[int]]) -> None:
        self._root: dict[int, Any] = {}
        for sequence in sequences:
            node = self._root
            for token in sequence:
                node = node.setdefault(token, {})

    def allowed(self, start: Sequence[int]) -> tuple[int, ...]:
        """Return the tokens that may follow `start`, ascending; none after a whole sequence.

        Raises `EngineError` if no sequence begins with `start`.
        """
        node = self._root
        for token in start:
            if token not in node:
                raise EngineError(f"token {token} continues none of the choices")
            node = node[token]
        return tuple(sorted(node))

    def along(self, sequence: Sequence[int]) -> list[tuple[int, ...]]:
        """Return the tokens that were allowed at each place of `sequence`; raise `EngineError` if it is none of them.

        The token of every place is among those that were allowed there.
        """
        if self.allowed(sequence):
            raise EngineError("the reply ends before any of the choices does")
        return [self.allowed(sequence[:place]) for place in range(len(sequence))]


def trie_of(request: SampleRequest) -> Trie | None:
    """Return the trie of a request's choices, None if it has none.

    Raises `EngineError` unless each choice is a whole reply: within `max_tokens`, with a stop token at its end and
    nowhere else.
    """
    stops, longest = set(request.stop_token_ids), request.sampling.max_tokens
    for choice in request.choices:
        if not choice or choice[-1] not in stops or not stops.isdisjoint(choice[:-1]):
            raise EngineError(f"a choice needs a stop token at its end, and there alone: {list(choice)}")
        if len(choice) > longest:
            raise EngineError(f"a choice of {len(choice)} tokens is longer than max_tokens, {longest}")
    return Trie(request.choices) if request.choices else None
