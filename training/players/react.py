"""A player that writes a strategy before each of its replies, both in one answer (ReAct prompting).

Source: "EPO: Explicit Policy Optimization for Strategic Reasoning in LLMs via Reinforcement Learning", table 8 and the
baselines of section 4.1. Nobody else reads the strategies. The player raises what the one that it wraps raises.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from training.errors import IllegalMove
from training.players.base import Measured, Player, Reply
from training.records import Message, Observation, Seat, Trace
from training.text.parsing import parse
from training.text.refusals import with_lines
from training.text.strategies import ADVICE, REMEMBERS, Form, asks_react, name_move, split_strategy


class ReActPlayer:
    """One seat of one episode; `player` is a model's.

    `reasons` also asks for reasoning, which is private. A player that keeps no context `forgets` its strategies, and
    reads them again in lines of their own; `earlier` are those of earlier turns, each with the number of messages that
    its seat had read.
    """

    def __init__(
        self,
        player: Player,
        form: Form,
        *,
        reasons: bool = False,
        forgets: bool = False,
        earlier: Sequence[tuple[int, str]] = (),
    ) -> None:
        self._player, self._form = player, form
        self._reasons, self._forgets = reasons, forgets
        self._written = [(after, _lines(strategy)) for after, strategy in earlier if strategy]
        self._formed = 0

    async def act(self, seat: Seat, observation: Observation, seed: int) -> Reply:
        """Return the reply in the player's answer, with the strategy in it."""
        read = with_lines(observation, self._written) if self._forgets else observation
        answer = await self._player.act(seat, asks_react(read, self._form, reasons=self._reasons), seed)
        strategy, reply = split_strategy(answer.text, self._form)
        if strategy.text:
            self._written.append((len(observation.messages), _lines(strategy.text)))
        self._formed += strategy.formed
        return Reply(reply, answer.tokens, strategy.text)

    def traces(self) -> tuple[Trace, ...]:
        """Return the traces of the player, whose replies are whole answers."""
        return self._player.traces()

    def totals(self) -> Mapping[str, float]:
        """Return what the player measures, and how many strategies were in the form asked for."""
        measured = self._player.totals() if isinstance(self._player, Measured) else {}
        return {**measured, "strategies_formed": float(self._formed)}


def _lines(strategy: str) -> tuple[Message, ...]:
    return (Message(author=None, text=f"{REMEMBERS}{strategy}", channel=ADVICE),)


class NamingPlayer:
    """A player without a model whose strategies name its moves, such as `propose food 2, water 1`.

    As a strategist it advises these moves to a speaker.
    """

    def __init__(self, player: Player, form: Form) -> None:
        self.form = form
        self._player = player

    async def act(self, seat: Seat, observation: Observation, seed: int) -> Reply:
        """Return the player's reply with the strategy that names its move, empty where the reply is no legal one."""
        reply = await self._player.act(seat, observation, seed)
        try:
            move, _ = parse(reply.text, observation)
        except IllegalMove:
            return reply
        words = name_move(move, observation.actions).split()
        return Reply(reply.text, strategy=" ".join(words[: self.form.words]))

    def traces(self) -> tuple[Trace, ...]:
        """Return the player's traces, of which there are none."""
        return self._player.traces()
