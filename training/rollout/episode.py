"""Plays one episode: requests replies from the seats to act, concurrently in joint steps, and records every attempt.

A failure outside the model (engine, remote model, judge, tool) ends the episode and is stored in `Episode.error`.
Raises `BadInput` for a scenario that its game refuses.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from training.errors import BadInput, IllegalMove, OutsideError, boundary
from training.games import Game, make
from training.players.base import Answer, Measured, Player, Reply
from training.records import Belief, Episode, ErrorRecord, Move, Scenario, Seat, SeatMove, Trace, Turn
from training.rollout.probes import with_branches
from training.rollout.seats import Attempts, RolloutPolicy, SeatRecord

Tool = Callable[[Game], Awaitable[Move]]
"""Returns the move of the tool seat, of origin `tool`; failures outside the model raise `OutsideError`.

Without a tool, the game's default move is played for that seat.
"""


async def play(
    scenario: Scenario,
    players: Sequence[Player],
    *,
    rules: RolloutPolicy | None = None,
    number: int = 0,
    tool: Tool | None = None,
    on_reply: Callable[[Reply], None] = lambda reply: None,
) -> Episode:
    """Play one episode with `players[seat]` at each seat; `number` is its number within the training step.

    `on_reply` is called with every reply, legal or not.
    """
    game = make(scenario)
    if len(players) != len(scenario.seats):
        raise BadInput(f"{len(scenario.seats)} seats need as many players, not {len(players)}", "players")
    rules = rules or RolloutPolicy()
    seats = [SeatRecord(seat, player, rules, number, on_reply) for seat, player in enumerate(players)]
    table = _Table(game, seats, tool, probes=rules.probes)
    error: ErrorRecord | None = None
    traces: tuple[Trace, ...] = ()
    branches: tuple[Trace, ...] = ()
    beliefs = table.beliefs
    try:
        await table.play()
        with boundary():
            traces = table.traces()
            beliefs, branches = with_branches(beliefs, table.answers, traces)
    except OutsideError as failure:
        error = ErrorRecord(kind=failure.kind, message=str(failure))
    returns: Mapping[Seat, float | None] = dict.fromkeys(range(len(players))) if error else table.game.returns()
    return Episode(
        scenario=scenario,
        moves=tuple(table.moves),
        turns=tuple(table.turns),
        traces=traces + branches,
        returns=dict(returns),
        metrics={} if error else table.metrics(traces, branches),
        seat_metrics={} if error else table.seat_metrics(),
        roles=table.game.roles(),
        beliefs=tuple(beliefs),
        earned={} if error else table.earned,
        error=error,
    )


class _Table:
    """The state of an episode while it is played."""

    def __init__(self, game: Game, seats: Sequence[SeatRecord], tool: Tool | None, *, probes: bool) -> None:
        self.game = game
        self.moves: list[SeatMove] = []
        self.turns: list[Turn] = []
        self.beliefs: list[Belief] = []
        self.earned: dict[int, float] = {}
        self._recorded: defaultdict[Seat, float] = defaultdict(float)
        self.answers: list[Answer] = []
        self.unfit = 0
        self._probes = probes
        self._seats = seats
        self._places: list[list[int]] = [[] for _ in seats]
        self._tool = tool
        self._unread = dict.fromkeys(range(len(seats)), 0)

    async def play(self) -> None:
        """Play to the end; turns and moves before a failure are kept."""
        while acting := sorted(self.game.to_act()):
            await self._probe()
            attempts = [Attempts(seat) for seat in acting]
            try:
                await self._ask(attempts)
            finally:
                for attempt in attempts:
                    self._note(attempt)
            self.game.step({attempt.seat: attempt.move for attempt in attempts if attempt.move is not None})
            self._note_earned()
        await self._probe()

    async def _probe(self) -> None:
        """Ask the game's current probes to the players that can report beliefs."""
        if not self._probes:
            return
        asked = [
            (seat, probe, self._seats[seat].believe(believer, self.game, probe))
            for seat, probe in sorted(self.game.probes().items())
            if (believer := self._seats[seat].believer) is not None
        ]
        answers = await asyncio.gather(*(answering for _, _, answering in asked), return_exceptions=True)
        for (seat, probe, _), answer in zip(asked, answers, strict=True):
            if isinstance(answer, BaseException):
                raise answer
            if answer is None:
                self.unfit += 1
                continue
            facts: dict[str, Any] = {"question": probe.question, "truth": probe.truth}
            belief = Belief(seat=seat, after=len(self.moves), probabilities=dict(answer.probabilities), **facts)
            self.beliefs.append(belief)
            self.answers.append(answer)

    async def _ask(self, attempts: Sequence[Attempts]) -> None:
        if len(attempts) == 1:
            await self._decide(attempts[0])
            return
        outcomes = await asyncio.gather(*map(self._decide, attempts), return_exceptions=True)
        for outcome in outcomes:
            if outcome is not None:
                raise outcome

    async def _decide(self, attempts: Attempts) -> None:
        if attempts.seat != self.game.scenario.tool_seat:
            await self._seats[attempts.seat].decide(self.game, attempts)
        elif self._tool is None:
            attempts.move = self.game.default(attempts.seat)
        else:
            with boundary():
                move = await self._tool(self.game)
            try:
                self.game.check(attempts.seat, move)
            except IllegalMove as error:
                raise OutsideError(f"the tool's move: {error}") from error
            attempts.move = move

    def _note(self, attempts: Attempts) -> None:
        """Record a seat's attempts and, if there is one, its move."""
        for turn in attempts.turns:
            self._places[attempts.seat].append(len(self.turns))
            filled: dict[str, Any] = {"move_index": len(self.moves)} if turn.passed else {}
            self.turns.append(turn.model_copy(update=filled))
        if attempts.unread:
            self._unread[attempts.seat] += attempts.unread
        if attempts.move is not None:
            self.moves.append(SeatMove(seat=attempts.seat, move=attempts.move))

    def _note_earned(self) -> None:
        """Record what each seat has received in this step with its latest attempt; before its first one, with that."""
        for seat, total in self.game.earned().items():
            if self._places[seat] and (gain := total - self._recorded[seat]):
                place = self._places[seat][-1]
                self.earned[place] = self.earned.get(place, 0.0) + gain
                self._recorded[seat] = total

    def traces(self) -> tuple[Trace, ...]:
        """Return every player's traces, with turns and parents as indices into the episode."""
        traces: list[Trace] = []
        for record in self._seats:
            places, start = self._places[record.seat], len(traces)
            for trace in record.player.traces():
                turns = tuple(-1 if index < 0 else places[index] for index in trace.turn)
                parent = None if trace.parent is None else (trace.parent[0] + start, trace.parent[1])
                traces.append(trace.model_copy(update={"turn": turns, "parent": parent}))
        return tuple(traces)

    def metrics(self, traces: Sequence[Trace], branches: Sequence[Trace]) -> dict[str, float]:
        """Return the game's metrics, and metrics of attempts, moves and tokens; `branches` are the probes' traces."""
        attempts, passed = len(self.turns), sum(turn.passed for turn in self.turns)
        metrics: dict[str, float] = {
            "attempts": attempts,
            "refusals": attempts - passed,
            "defaults": sum(entry.move.origin == "default" and entry.seat < len(self._seats) for entry in self.moves),
            "forfeits": sum(entry.move.origin == "forfeit" for entry in self.moves),
            "branches": sum(trace.parent is not None for trace in traces),
            "probes": len(self.beliefs),
            "probes_unfit": self.unfit,
            "probe_tokens": sum(len(trace.tokens) for trace in branches),
            "tokens": sum(len(trace.tokens) for trace in traces),
            "sampled_tokens": sum(sum(trace.mask) for trace in traces),
        }
        if attempts:
            metrics["parse_rate"] = (attempts - sum(self._unread.values())) / attempts
            metrics["legal_rate"] = passed / attempts
        return {**self.game.metrics(), **metrics, **self._measured()}

    def _measured(self) -> dict[str, float]:
        """Return what players measured of their replies, as means over the replies of the players that measure it."""
        sums: dict[str, float] = {}
        replies: dict[str, int] = {}
        for seat in self._seats:
            if isinstance(seat.player, Measured):
                for name, total in seat.player.totals().items():
                    sums[name] = sums.get(name, 0.0) + total
                    replies[name] = replies.get(name, 0) + len(self._places[seat.seat])
        return {name: sums[name] / count for name, count in replies.items() if count}

    def seat_metrics(self) -> dict[Seat, dict[str, float]]:
        """Return the game's metrics of each seat, and its number of attempts that could not be parsed (`unread`)."""
        metrics = {seat: dict(self.game.seat_metrics().get(seat, {})) for seat in range(len(self._seats))}
        if self.turns:
            for seat, count in self._unread.items():
                metrics[seat]["unread"] = float(count)
        return metrics
