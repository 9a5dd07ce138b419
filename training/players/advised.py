"""A seat of two voices: a strategist writes a strategy before every reply, and a speaker, which reads it, moves.

Source: "EPO: Explicit Policy Optimization for Strategic Reasoning in LLMs via Reinforcement Learning", eq. 1 and 2.
The strategist reads what its seat is shown and its own earlier strategies. The speaker reads the game and all
strategies, and need not follow them. Nobody else reads a strategy. Both raise what their players raise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from training.engines.base import ChatModel, Sampling
from training.players.base import Measured, Player, Reply
from training.players.model import ModelPlayer
from training.players.react import ReActPlayer
from training.players.remote import RemotePlayer
from training.records import SPECTATOR, Action, Message, Observation, Seat, Trace
from training.run_sections import SpeakerSection
from training.seeding import derive
from training.text.messages import Chat
from training.text.refusals import with_lines
from training.text.strategies import (
    BRIEFING,
    Form,
    Strategy,
    asks_strategist,
    line_of,
    read_strategy,
    strategist_news,
)


class Advisor(Player, Protocol):
    """A player whose reply is a strategy in a form: its text, or its `strategy` where that is set."""

    form: Form


class Strategist(ModelPlayer):
    """A `ModelPlayer` whose replies are strategies, in the form of `form`; it reads its seat's replies as all others'.

    Its keyword arguments are those of `ModelPlayer`.
    """

    def __init__(self, *arguments: Any, form: SpeakerSection, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.form: Form = form

    def _news(self, observation: Observation) -> list[Chat]:
        return strategist_news(observation, self._heard, self._names[self._seat], self._names, self.form)

    def _choices(self, actions: Sequence[Action], seed: int) -> tuple[tuple[int, ...], ...]:
        """Return no list: a strategy is free text."""
        return ()


class RemoteStrategist:
    """A remote model whose replies are strategies; it reads what a `Strategist` reads.

    `earlier` are the strategies that it has written before, each with the number of messages that its seat had read.
    """

    def __init__(
        self,
        model: ChatModel,
        sampling: Sampling,
        names: Sequence[str],
        form: Form,
        earlier: Sequence[tuple[int, str]] = (),
    ) -> None:
        self.form = form
        self._player, self._names = RemotePlayer(model, sampling, names), names
        self._written = [(after, self._lines(text)) for after, text in earlier]

    async def act(self, seat: Seat, observation: Observation, seed: int) -> Reply:
        """Send the seat's observation and the earlier strategies as a chat of the strategist; return the answer."""
        asked = asks_strategist(with_lines(observation, self._written), self._names[seat], self.form)
        reply = await self._player.act(SPECTATOR, asked, seed)
        strategy = read_strategy(reply.text, self.form).text
        self._written.append((len(observation.messages), self._lines(strategy)))
        return reply

    def _lines(self, strategy: str) -> tuple[Message, ...]:
        return (Message(author=SPECTATOR, text=f"{self.form.label}: {strategy}"),)

    def traces(self) -> tuple[Trace, ...]:
        """Return no traces: the tokens are unknown."""
        return ()


def remote_strategist(
    model: ChatModel,
    sampling: Sampling,
    names: Sequence[str],
    form: SpeakerSection,
    earlier: Sequence[tuple[int, str]] = (),
) -> RemoteStrategist | ReActPlayer:
    """Return a remote model that writes strategies, for a speaker or, where `form.react`, for its own replies.

    `earlier` as for a `RemoteStrategist`.
    """
    if form.react:
        return ReActPlayer(RemotePlayer(model, sampling, names), form, forgets=True, earlier=earlier)
    return RemoteStrategist(model, sampling, names, form, earlier)


class AdvisedPlayer:
    """One seat of one episode; `earlier` as for a `RemoteStrategist`."""

    def __init__(self, strategist: Advisor, speaker: Player, earlier: Sequence[tuple[int, str]] = ()) -> None:
        self._strategist, self._speaker = strategist, speaker
        self._lines: list[tuple[int, tuple[Message, ...]]] = []
        for after, strategy in earlier:
            self._read(after, strategy)
        self._formed = 0

    async def act(self, seat: Seat, observation: Observation, seed: int) -> Reply:
        """Return the speaker's reply, with the strategy that it was given."""
        written = await self._strategist.act(seat, observation, derive(seed, "strategist"))
        form = self._strategist.form
        strategy = Strategy(written.strategy, formed=True) if written.strategy else read_strategy(written.text, form)
        self._formed += strategy.formed
        self._read(len(observation.messages), strategy.text)
        reply = await self._speaker.act(seat, with_lines(observation, self._lines), derive(seed, "speaker"))
        return Reply(reply.text, written.tokens + reply.tokens, strategy.text)

    def _read(self, after: int, strategy: str) -> None:
        self._lines = self._lines or [(1, (BRIEFING,))]
        self._lines.append((after, (line_of(strategy),)))

    def traces(self) -> tuple[Trace, ...]:
        """Return the traces of both, the strategist's first."""
        strategist_traces, speaker_traces = self._strategist.traces(), self._speaker.traces()
        moved = (
            trace
            if trace.parent is None
            else trace.model_copy(update={"parent": (trace.parent[0] + len(strategist_traces), trace.parent[1])})
            for trace in speaker_traces
        )
        return (*strategist_traces, *moved)

    def totals(self) -> Mapping[str, float]:
        """Return what the strategist measures of its strategies, and how many were in the form asked for."""
        measured = self._strategist.totals() if isinstance(self._strategist, Measured) else {}
        return {**measured, "strategies_formed": float(self._formed)}
