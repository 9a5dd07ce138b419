"""Rules, observations, parsing and chat rendering cost little beside sampling."""

import time

import pytest

from tests.games.worlds import CASES
from training.games import REGISTRY, make
from training.seeding import rng
from training.text.messages import chat
from training.text.parsing import parse, write

BOUND_MS = 1.0
"""Twice the target of `python -m bench games`, which measures it on an idle machine: a slow processor needs 0.5 ms."""


def value(arg, chance):
    """A legal value of an argument."""
    if arg.kind == "integer":
        return arg.low
    return chance.choice(arg.choices) if arg.kind == "choice" else "looks at the clock"


def turns(scenario, seed, times):
    """Play by chance; add the seconds of every turn to `times`, without the choice of the move."""
    game, chance = make(scenario.with_seed(seed)), rng(seed)
    while acting := sorted(game.to_act()):
        moves = {}
        for seat in acting:
            if seat == scenario.tool_seat:
                moves[seat] = game.default(seat)
                continue
            start = time.perf_counter()
            seen = game.observe(seat)
            chat(seen, seat, scenario.seats)
            times.append(time.perf_counter() - start)
            listed = [a for a in seen.actions if all(arg.kind != "choice" or arg.choices for arg in a.args)]
            action = chance.choice([a for a in listed if a.name not in ("leave", "walk_away", "accept", "none")])
            args = {arg.name: value(arg, chance) for arg in action.args}
            reply = write(action, args, "I would like to hear more" if action.text in ("optional", "required") else "")
            start = time.perf_counter()
            moves[seat], _ = parse(reply, seen)
            game.check(seat, moves[seat])
            times[-1] += time.perf_counter() - start
        start = time.perf_counter()
        game.step(moves)
        times[-1:] = [times[-1] + time.perf_counter() - start] if times else []


@pytest.mark.serial
@pytest.mark.parametrize("name", REGISTRY)
def test_a_turn_takes_at_most_a_millisecond(name):
    rounds = []
    for _ in range(5):
        times = []
        for seed in range(10):
            for scenario in CASES[name]:
                if scenario.settings.get("max_chars", 1000) >= 100:
                    turns(scenario, seed, times)
        rounds.append(1000 * sum(times) / len(times))
    assert min(rounds) <= BOUND_MS, rounds
