"""A seat played by a remote ChatModel: messages in, text out; its replies are never trained on.

Raises `RemoteModelError` when the server does not answer usably, or rejects even the newest messages as too long.
"""

from __future__ import annotations

from collections.abc import Sequence

from training.engines.base import ChatMessage, ChatModel, Sampling
from training.errors import WindowFull
from training.players.base import Reply
from training.records import Observation, Seat, Trace
from training.text.messages import chat

KEPT_SHARE = 0.75
"""Share of the characters that is sent again after the server rejected the messages as too long."""


class RemotePlayer:
    """One seat of one episode; `names` are the display names of all seats. It keeps no state between turns."""

    def __init__(self, model: ChatModel, sampling: Sampling, names: Sequence[str]) -> None:
        self._model, self._sampling, self._names = model, sampling, names

    async def act(self, seat: Seat, observation: Observation, seed: int) -> Reply:
        """Send the observation as a chat and return the answer; drop the oldest messages if they do not fit."""
        messages = [ChatMessage(**message) for message in chat(observation, seat, self._names)]
        while True:
            try:
                answer = await self._model.reply(messages, self._sampling, seed % 2**31)
            except WindowFull:
                messages = _forget(messages)
                if not messages:
                    raise
            else:
                return Reply(answer.text)

    def traces(self) -> tuple[Trace, ...]:
        """Return no traces: the tokens are unknown."""
        return ()


def _forget(messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    """Drop the oldest messages after the first (rules and private brief); return [] if only the newest are left.

    Only the server knows the length in tokens, so about `KEPT_SHARE` of the characters stay and are sent again. The
    remaining messages begin, like any chat, with a user message.
    """
    first, *talk = messages
    starts = [at for at, message in enumerate(talk) if at and message.role == "user"]
    room = KEPT_SHARE * sum(len(message.content) for message in talk)
    short = (at for at in starts if sum(len(message.content) for message in talk[at:]) <= room)
    start = next(short, starts[-1] if starts else 0)
    return [first, *talk[start:]] if start else []
