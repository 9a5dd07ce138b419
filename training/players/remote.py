"""A seat played by a ChatModel at an address: messages in, text out; nothing of it is ever trained.

Raises `RemoteModelError` when the address does not answer usably, or not even to the newest messages.
"""

from __future__ import annotations

from collections.abc import Sequence

from training.engines.base import ChatMessage, ChatModel, Sampling
from training.errors import WindowFull
from training.players.base import Reply
from training.records import Observation, Seat, Trace
from training.text.messages import chat

KEPT_SHARE = 0.75
"""How much of the talk is sent again after a server said that it does not fit."""


class RemotePlayer:
    """One seat of one episode; `names` are the display names of all seats. It keeps nothing between its turns."""

    def __init__(self, model: ChatModel, sampling: Sampling, names: Sequence[str]) -> None:
        self._model, self._sampling, self._names = model, sampling, names

    async def act(self, seat: Seat, observation: Observation, seed: int) -> Reply:
        """Send the observation as a chat, without its oldest messages where they do not fit; return the answer."""
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
        """Return nothing: no tokens are known."""
        return ()


def _forget(messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    """Drop the oldest messages after the first (rules and private brief); return nothing if only the newest are left.

    How long they are in tokens is the server's knowledge: about `KEPT_SHARE` of the characters stay, and the server is
    asked again. What stays begins, as any chat, with what the seat heard.
    """
    first, *talk = messages
    starts = [at for at, message in enumerate(talk) if at and message.role == "user"]
    room = KEPT_SHARE * sum(len(message.content) for message in talk)
    short = (at for at in starts if sum(len(message.content) for message in talk[at:]) <= room)
    start = next(short, starts[-1] if starts else 0)
    return [first, *talk[start:]] if start else []
