"""The cost of a turn of each game on one core, beside TextArena where it has the same game.

Both sides play random legal moves. The time of a turn is the work that does not depend on the model: rendering the
seat's chat, parsing the reply, checking and applying the move. Choosing the move is not counted, nor is the search of
a tool; the making of the game is. It is CPU time of the thread, which other programs hardly change. Fails if
TextArena refuses a move that it listed as legal.
"""

from __future__ import annotations

import asyncio
import platform
import random
import re
import statistics
import time
from argparse import Namespace
from collections.abc import Callable, Sequence
from importlib.metadata import version
from typing import Any, ParamSpec, TypeVar

import textarena

from bench.alternate import Reading, alternate
from training import samples
from training.errors import ParleyError
from training.games import REGISTRY, make
from training.players.random import RandomPlayer
from training.records import Scenario
from training.seeding import derive
from training.text.messages import chat
from training.text.parsing import parse

P = ParamSpec("P")
T = TypeVar("T")
LIMIT_MS = 0.5
THEIRS = {"tic_tac_toe": "TicTacToe-v0", "connect_four": "ConnectFour-v0", "kuhn_poker": "KuhnPoker-v0-short"}
"""TextArena's name of the same game; each round of its Kuhn poker is one deal."""
_OFFERED = re.compile(r"\[\w+\]")


def main(arguments: Namespace) -> dict[str, Any]:
    """Measure every registered game; return milliseconds per turn, and the ratio where TextArena has the game."""
    seed, games = arguments.seed, arguments.games
    costs: dict[str, Any] = {}
    for name in REGISTRY:
        starts = samples.for_game(name)
        rounds = [_ours(starts, games, seed) for _ in range(arguments.rounds + 1)][1:]
        milliseconds = [1000 / reading.rate for reading in rounds]
        median = statistics.median(milliseconds)
        spread = [min(milliseconds), max(milliseconds)]
        costs[name] = {"median_ms": median, "spread_ms": spread, "ok": median <= LIMIT_MS}
    beside = {name: _beside(name, env, games, seed, arguments.rounds) for name, env in THEIRS.items()}
    conditions = {
        "games": games,
        "seed": seed,
        "rounds": arguments.rounds,
        "python": platform.python_version(),
        "processor": platform.processor() or platform.machine(),
        "open_spiel": version("open_spiel"),
        "textarena": version("textarena"),
    }
    return {"limit_ms": LIMIT_MS, "turn": costs, "textarena": beside, "conditions": conditions}


def show(result: dict[str, Any]) -> str:
    """Return one line per game, and one per comparison."""
    lines = [f"{name}: {cost['median_ms']:.3f} ms per turn" for name, cost in result["turn"].items()]
    lines += [
        f"{name} beside TextArena: {1000 / sides['a']['median']:.3f} and {1000 / sides['b']['median']:.3f} ms per "
        f"turn, {sides['ratio']:.2f} times as many turns"
        for name, sides in result["textarena"].items()
    ]
    return "\n".join(lines)


def _beside(name: str, env: str, games: int, seed: int, rounds: int) -> dict[str, Any]:
    empty = Scenario(id=name, game=name, seats=("Ada", "Ben"))
    return alternate(lambda: _ours([empty], games, seed), lambda: _theirs(env, games, seed), rounds)


def _ours(starts: Sequence[Scenario], games: int, seed: int) -> Reading:
    clock = _Clock()
    for number in range(games):
        start = starts[number % len(starts)]
        _play(start.with_seed(derive(seed, number) or 1), clock)
    return clock.reading()


def _play(scenario: Scenario, clock: _Clock) -> None:
    """Play one game; the clock does not run while a reply is drawn."""
    game = clock.time(make, scenario)
    turn = 0
    while acting := sorted(game.to_act()):
        moves = {}
        for seat in acting:
            turn += 1
            if seat == scenario.tool_seat:
                moves[seat] = game.default(seat)
                continue
            observation = clock.time(game.observe, seat)
            clock.time(chat, observation, seat, scenario.seats)
            reply = asyncio.run(RandomPlayer().act(seat, observation, derive(scenario.seed, turn))).text
            moves[seat] = clock.time(parse, reply, observation)[0]
            clock.turns += 1
        clock.time(game.step, moves)


def _theirs(env: str, games: int, seed: int) -> Reading:
    clock = _Clock()
    chance = random.Random(seed)
    for number in range(games):
        table = textarena.make(env_id=env)
        clock.time(table.reset, num_players=2, seed=derive(seed, number) % 2**31)
        over = False
        while not over:
            _, text = clock.time(table.get_observation)
            reply = chance.choice(_legal(env, text))
            over, _ = clock.time(table.step, action=reply)
            clock.turns += 1
        if any(info["invalid_move"] for info in table.close()[1].values()):
            raise ParleyError(f"TextArena refused a move of {env} that it listed as legal")
    return clock.reading()


def _legal(env: str, text: str) -> list[str]:
    """Return the legal replies in TextArena's text."""
    if env.startswith("ConnectFour"):
        top = text.rpartition("-------------\n")[2].splitlines()[0].split()
        return [f"[col {column}]" for column, cell in enumerate(top) if cell == "."]
    offers = [line for line in text.splitlines() if "vailable" in line]
    return _OFFERED.findall(offers[-1].partition(":")[2])


class _Clock:
    """Sums the CPU seconds of calls."""

    def __init__(self) -> None:
        self.turns = 0
        self._seconds = 0.0

    def time(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Make a call, add its seconds, and return its result."""
        began = time.thread_time()
        try:
            return call(*args, **kwargs)
        finally:
            self._seconds += time.thread_time() - began

    def reading(self) -> Reading:
        """Return turns per second."""
        return Reading(self.turns / self._seconds)
