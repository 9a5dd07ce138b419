"""Refused replies, put where they happened: what a seat sees is the game's observation with its own refusals merged in.

A refusal is private to its seat and never enters the game. The merged observation only grows, like the game's own.
Pure functions over plain data; nothing here fails.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from training.records import Message, Observation, Seat
from training.text.parsing import split_private


@dataclass(frozen=True, slots=True)
class Refusal:
    """One refused reply: whose, after how many messages of the *game's* observation, what was written, and why not."""

    seat: Seat
    after: int
    reply: str
    why: str

    def messages(self) -> tuple[Message, Message]:
        """Return the seat's own words without their private part, and the game's refusal."""
        return (
            Message(author=self.seat, text=split_private(self.reply)[0].strip(), channel="private"),
            Message(author=None, text=self.why, channel="private"),
        )


def with_refusals(observation: Observation, refusals: Sequence[Refusal]) -> Observation:
    """Return the game's observation `seen` with every refused reply, and its refusal, at its place.

    `refusals` are one seat's, in the order in which they happened.
    """
    if not refusals:
        return observation
    merged: list[Message] = []
    done = 0
    for refusal in refusals:
        merged += observation.messages[done : refusal.after]
        merged += refusal.messages()
        done = refusal.after
    return observation.model_copy(update={"messages": (*merged, *observation.messages[done:])})
