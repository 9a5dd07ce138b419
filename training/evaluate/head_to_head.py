"""The head-to-head: two models hold different seats of the same conversations, and swap on every scenario.

A side is the seats that one model holds: those with certain roles, or half of them. Source: OMAR, §4 (evaluation);
swapping on every scenario is ours. Raises `BadInput` for games that are not fair to swap, or lack the roles.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Literal

from training.errors import BadInput
from training.games import lookup, make
from training.players.base import Reply
from training.players.contestants import Contestant
from training.records import Episode, Scenario, Seat
from training.rollout import Job, RolloutPolicy, Tool, rollout
from training.seeding import rng, seeded

Name = Literal["a", "b"]
NAMES: tuple[Name, Name] = ("a", "b")


@dataclass(frozen=True, slots=True)
class Pairing:
    """One conversation to be held: which scenario, which repetition of it, and who sits where."""

    number: int
    scenario: Scenario
    repeat: int
    names: tuple[Name, ...]

    def seats_of(self, name: Name) -> tuple[Seat, ...]:
        """Return the seats that a side holds."""
        return tuple(seat for seat, held in enumerate(self.names) if held == name)


@dataclass(frozen=True, slots=True)
class Match:
    """A pairing with what came of it."""

    pairing: Pairing
    episode: Episode


@dataclass(frozen=True, slots=True)
class Tell:
    """Who is told as a head-to-head is held: `seen` of each conversation that ended, `replied` of each reply in one."""

    seen: Callable[[Match], None] = lambda match: None
    replied: Callable[[Reply], None] = lambda reply: None


def pairings(scenarios: Sequence[Scenario], conversations: int, seed: int, side: Collection[str] = ()) -> list[Pairing]:
    """Return at least `conversations` pairings: every scenario in both seatings, repeated if needed.

    If half as many scenarios suffice, they are drawn from the seed. Both seatings of a repetition are the same start;
    in the first, a holds the seats with the roles `side`, or the first half of the seats; in a game of more than two,
    the half moves on by one seat from start to start.
    """
    if not scenarios:
        raise BadInput("a head-to-head needs at least one scenario", "data.path")
    for scenario in scenarios:
        if len(scenario.seats) < 2 or not (side or lookup(scenario.game).symmetric):
            raise BadInput("a head-to-head needs a game of two seats or more that may be swapped", scenario.id)
    couples = -(-conversations // 2)
    chosen = list(scenarios)
    if couples < len(chosen):
        kept = sorted(rng(seed, "arena").sample(range(len(chosen)), couples))
        chosen = [chosen[i] for i in kept]
    found: list[Pairing] = []
    for repeat in range(-(-couples // len(chosen))):
        for scenario in chosen:
            start = seeded(scenario, seed, repeat)
            names = _roles(start, side) if side else _halves(start, len(found) // 2)
            swapped: tuple[Name, ...] = tuple("b" if name == "a" else "a" for name in names)
            found += [Pairing(len(found) + i, start, repeat, held) for i, held in enumerate((names, swapped))]
    return found


def _roles(start: Scenario, side: Collection[str]) -> tuple[Name, ...]:
    """Give a the seats with the roles of `side`, and b all others."""
    roles = make(start).roles()
    names: tuple[Name, ...] = tuple("a" if role in side else "b" for role in roles)
    if set(names) != set(NAMES):
        raise BadInput(
            f"{start.id} has the roles {', '.join(sorted(set(roles))) or 'of no game'}: name some, not all, of them",
            "evaluate.side",
        )
    return names


def _halves(start: Scenario, turn: int) -> tuple[Name, ...]:
    """Give a half of the seats, rounded down, in a row; in a game of more than two it begins `turn` seats later."""
    count = len(start.seats)
    first = turn % count if count > 2 else 0
    return tuple("a" if (seat - first) % count < count // 2 else "b" for seat in range(count))


async def play(
    pairs: Sequence[Pairing],
    a: Contestant,
    b: Contestant,
    *,
    lanes: int,
    rules: RolloutPolicy,
    tool: Tool | None = None,
    tell: Tell | None = None,
) -> list[Match]:
    """Hold every pairing; the result is in the order of `pairs`."""
    tell = tell or Tell()
    by_number = {pairing.number: pairing for pairing in pairs}
    jobs = [Job(p.number, p.scenario, p.names) for p in pairs]
    players = {"a": a.player, "b": b.player}
    found: dict[int, Match] = {}
    # closed at once when `seen` raises: nothing may be in flight when the caller closes the engines
    async with aclosing(rollout(jobs, players, lanes=lanes, rules=rules, tool=tool, replied=tell.replied)) as playing:
        async for job, episode in playing:
            found[job.number] = Match(by_number[job.number], episode)
            tell.seen(found[job.number])
    return [found[pairing.number] for pairing in pairs]
