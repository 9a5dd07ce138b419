"""Refused replies, put where they happened: what a seat sees is the game's observation with its own refusals merged in.

A refusal is private to its seat and never enters the game. The merged observation only grows, like the game's own.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from training.records import Message, Observation, Seat
from training.text.parsing import split_private


@dataclass
class Refusals:
    """The refused replies of one seat in one episode."""

    seat: Seat
    _at: list[tuple[int, Message, Message]] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self._at)

    def add(self, seen: Observation, reply: str, why: str) -> None:
        """Remember that `reply`, given to the *game's* observation `seen`, was refused, and why.

        The private part of the reply is not kept.
        """
        own = Message(author=self.seat, text=split_private(reply)[0].strip(), channel="private")
        refusal = Message(author=None, text=why, channel="private")
        self._at.append((len(seen.messages), own, refusal))

    def merge(self, seen: Observation) -> Observation:
        """Return the game's observation with every refused reply, and its refusal, at its place."""
        if not self._at:
            return seen
        messages: list[Message] = []
        done = 0
        for place, own, refusal in self._at:
            messages += [*seen.messages[done:place], own, refusal]
            done = place
        return seen.model_copy(update={"messages": (*messages, *seen.messages[done:])})
