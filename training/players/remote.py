"""A seat played by a ChatModel: messages out, text in, no tokens, never trained. Needs no local model.

Raises `RemoteModelError` when the model does not answer.
"""

from __future__ import annotations

from collections.abc import Sequence

from training.engines.base import ChatMessage, ChatModel, Sampling
from training.players.base import Reply
from training.records import Observation, Seat, Trace
from training.text.messages import chat


class RemotePlayer:
    """One seat of one episode. `names` are the display names of all seats; `spent` counts tokens as the server does."""

    def __init__(self, model: ChatModel, sampling: Sampling, *, seat: Seat, names: Sequence[str]) -> None:
        self._model = model
        self._sampling = sampling
        self._seat, self._names = seat, names
        self.spent = (0, 0)

    async def act(self, seat: Seat, seen: Observation, seed: int) -> Reply:
        """Send the whole conversation as this seat saw it; return the answer as it came."""
        messages = [ChatMessage(**message) for message in chat(seen, self._seat, self._names)]
        reply = await self._model.reply(messages, self._sampling, seed % 2**31)  # servers take 32 bits
        self.spent = (self.spent[0] + reply.prompt_tokens, self.spent[1] + reply.completion_tokens)
        return Reply(text=reply.text)

    def traces(self) -> tuple[Trace, ...]:
        """Return nothing: what a remote model samples is text."""
        return ()
