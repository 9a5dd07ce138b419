"""Merges refused replies into observations: a seat sees the game's observation with its own refusals in place.

A refusal is private to its seat and never enters the game. The merged observation only grows, like the game's. Pure
functions over plain data that raise nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from training.records import Message, Observation, Seat
from training.text.parsing import split_private


@dataclass(frozen=True, slots=True)
class Refusal:
    """One refused reply: its seat, the number of messages before it in the *game's* observation, its text, and why."""

    seat: Seat
    after: int
    reply: str
    why: str

    def messages(self) -> tuple[Message, Message]:
        """Return the public part of the seat's reply, and the game's refusal."""
        return (
            Message(author=self.seat, text=split_private(self.reply)[0].strip(), channel="private"),
            Message(author=None, text=self.why, channel="private"),
        )


def with_refusals(observation: Observation, refusals: Sequence[Refusal]) -> Observation:
    """Return the game's `observation` with every refused reply and its refusal at their place.

    `refusals` are those of one seat in chronological order.
    """
    return with_lines(observation, [(refusal.after, refusal.messages()) for refusal in refusals])


def with_lines(observation: Observation, lines: Sequence[tuple[int, Sequence[Message]]]) -> Observation:
    """Return `observation` with messages of the seat's own: each after so many of the observation's, in that order."""
    if not lines:
        return observation
    merged: list[Message] = []
    done = 0
    for after, messages in lines:
        merged += observation.messages[done:after]
        merged += messages
        done = after
    return observation.model_copy(update={"messages": (*merged, *observation.messages[done:])})
