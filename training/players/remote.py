"""A seat played by a ChatModel at an address: messages in, text out; nothing of it is ever trained.

Raises `RemoteModelError` when the address does not answer usably.
"""

from __future__ import annotations

from collections.abc import Sequence

from training.engines.base import ChatMessage, ChatModel, Sampling
from training.players.base import Reply
from training.records import Observation, Seat, Trace
from training.text.messages import chat


class RemotePlayer:
    """One seat of one episode; `names` are the display names of all seats. It keeps nothing between its turns."""

    def __init__(self, model: ChatModel, sampling: Sampling, names: Sequence[str]) -> None:
        self._model, self._sampling, self._names = model, sampling, names

    async def act(self, seat: Seat, seen: Observation, seed: int) -> Reply:
        """Send the whole observation as a chat; return the answer."""
        messages = [ChatMessage(**message) for message in chat(seen, seat, self._names)]
        answer = await self._model.reply(messages, self._sampling, seed % 2**31)
        return Reply(answer.text)

    def traces(self) -> tuple[Trace, ...]:
        """Return nothing: no tokens are known."""
        return ()
