"""One seat in one episode: request a reply, parse and check it, retry, fall back; every attempt becomes a Turn.

A refused attempt is shown to its seat only, as its reply and the reason, at its place in the observation, so that a
player's observation only grows. Failures outside the model raise `OutsideError`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from training.errors import EngineError, IllegalMove, ParseError, boundary
from training.games import Game
from training.players.base import Answer, Believer, Player, Reply
from training.records import Move, Observation, Probe, Seat, Turn
from training.seeding import derive
from training.text.parsing import parse, split_private
from training.text.refusals import Refusal, with_refusals

OnRefused = Literal["default", "forfeit"]


@dataclass(frozen=True, slots=True)
class RolloutPolicy:
    """How attempts are handled, and what seeds depend on: `seed` is the configuration's, `step` the training step.

    After `retries` further attempts a refused seat plays the game's default or forfeits. A forfeit loses a game of two;
    in other games the seat plays defaults for the rest of the game. With `probes`, players that can report beliefs are
    asked the game's questions at the start and after every step.
    """

    seed: int = 0
    step: int = 0
    retries: int = 0
    on_refused: OnRefused = "default"
    probes: bool = False


@dataclass(slots=True)
class Attempts:
    """A seat's attempts in one step of the game, in order, and the resulting move."""

    seat: Seat
    turns: list[Turn] = field(default_factory=list)
    move: Move | None = None
    unread: int = 0


class SeatRecord:
    """One seat of an episode: its player and its refusals so far. `on_reply` is called with every reply."""

    def __init__(
        self, seat: Seat, player: Player, rules: RolloutPolicy, episode: int, on_reply: Callable[[Reply], None]
    ) -> None:
        self.seat = seat
        self.player = player
        self.forfeited = False
        self._rules = rules
        self._episode = episode
        self._on_reply = on_reply
        self._requests = 0
        self._refusals: list[Refusal] = []

    async def decide(self, game: Game, attempts: Attempts) -> None:
        """Request replies until one is a legal move or the retries are used up; set `attempts.move`."""
        if not self.forfeited:
            for _ in range(self._rules.retries + 1):
                observation = game.observe(self.seat)
                reply = await self._reply(with_refusals(observation, self._refusals))
                self._on_reply(reply)
                if self._take(game, observation, reply, attempts):
                    return
        attempts.move = self._fall_back(game)

    @property
    def believer(self) -> Believer | None:
        """The seat's player if it can report beliefs: those of a local model can, until the seat has given up."""
        return None if self.forfeited or not isinstance(self.player, Believer) else self.player

    async def believe(self, believer: Believer, game: Game, probe: Probe) -> Answer | None:
        """Return the answer of the seat's player, or None if the question does not fit its window."""
        with boundary():
            return await believer.believe(with_refusals(game.observe(self.seat), self._refusals), probe)

    async def _reply(self, observation: Observation) -> Reply:
        rules, task = self._rules, asyncio.current_task()
        seed = derive(rules.seed, "sample", rules.step, self._episode, self.seat, self._requests)
        self._requests += 1
        try:
            with boundary():
                return await self.player.act(self.seat, observation, seed)
        except asyncio.CancelledError:
            if task is None or task.cancelling():
                raise
            raise EngineError(f"the request of seat {self.seat} was cancelled before it was answered") from None

    def _take(self, game: Game, observation: Observation, reply: Reply, attempts: Attempts) -> bool:
        """Record the attempt as a Turn; return whether it is a legal move."""
        public, thought = (part.strip() for part in split_private(reply.text))
        facts: dict[str, Any] = {"seat": self.seat, "strategy": reply.strategy}
        try:
            move, private = parse(reply.text, observation)
            game.check(self.seat, move)
        except IllegalMove as error:
            attempts.unread += isinstance(error, ParseError)
            attempts.turns.append(Turn(**facts, reply=public, private=thought, error=str(error), passed=False))
            self._refusals.append(Refusal(self.seat, len(observation.messages), reply.text, str(error)))
            return False
        if private != thought:  # in this game, text beside the move is reasoning and is recorded as private
            public = move.text
        attempts.turns.append(Turn(**facts, reply=public, private=private, move=move, passed=True))
        attempts.move = move
        return True

    def _fall_back(self, game: Game) -> Move:
        move = game.default(self.seat)
        if self._rules.on_refused == "forfeit" and not self.forfeited:
            self.forfeited = True
            return move.model_copy(update={"origin": "forfeit"})
        return move
