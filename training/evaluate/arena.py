"""The arena: two models hold different seats of the same conversations, and swap on every scenario.

Source: OMAR, §4 (evaluation); swapping on every scenario is ours. Raises `BadInput` for games that do not have two
seats, or that are not fair to swap.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, Literal

from training.errors import BadInput
from training.games import lookup
from training.players.base import Reply
from training.records import Episode, Scenario, Seat
from training.rollout import Job, PlayerFactory, Rules, Tool, rollout
from training.seeding import rng, seeded

Name = Literal["a", "b"]
NAMES: tuple[Name, Name] = ("a", "b")


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two that are compared: what makes its player, and what a result must say of it (hashes, sampling)."""

    title: str
    player: PlayerFactory
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Pairing:
    """One conversation to be held: which scenario, which repetition of it, and who sits where."""

    number: int
    scenario: Scenario
    repeat: int
    swapped: bool

    def seat_of(self, name: Name) -> Seat:
        """Return the seat that a side holds: a has seat 0 unless swapped."""
        return int((name == "b") != self.swapped)


@dataclass(frozen=True, slots=True)
class Match:
    """A pairing with what came of it."""

    pairing: Pairing
    episode: Episode


@dataclass(frozen=True, slots=True)
class Tell:
    """Who is told as an arena is held: `seen` of each conversation that ended, `replied` of each reply in one."""

    seen: Callable[[Match], None] = lambda match: None
    replied: Callable[[Reply], None] = lambda reply: None


def pairings(scenarios: Sequence[Scenario], conversations: int, seed: int) -> list[Pairing]:
    """Return at least `conversations` pairings: every scenario in both seatings, repeated if needed.

    If half as many scenarios suffice, they are drawn from the seed. Both seatings of a repetition are the same start.
    """
    if not scenarios:
        raise BadInput("an arena needs at least one scenario", "data.path")
    for scenario in scenarios:
        if len(scenario.seats) != 2 or not lookup(scenario.game).symmetric:
            raise BadInput("an arena needs a game of two seats that may be swapped", scenario.id)
    couples = -(-conversations // 2)
    chosen = list(scenarios)
    if couples < len(chosen):
        kept = sorted(rng(seed, "arena").sample(range(len(chosen)), couples))
        chosen = [chosen[i] for i in kept]
    found: list[Pairing] = []
    for repeat in range(-(-couples // len(chosen))):
        for scenario in chosen:
            start = seeded(scenario, seed, repeat)
            found += [Pairing(len(found) + i, start, repeat, swapped) for i, swapped in enumerate((False, True))]
    return found


async def play(
    pairs: Sequence[Pairing],
    a: Side,
    b: Side,
    *,
    lanes: int,
    rules: Rules,
    tool: Tool | None = None,
    tell: Tell | None = None,
) -> list[Match]:
    """Hold every pairing; the result is in the order of `pairs`."""
    tell = tell or Tell()
    by_number = {pairing.number: pairing for pairing in pairs}
    jobs = [Job(p.number, p.scenario, NAMES[::-1] if p.swapped else NAMES) for p in pairs]
    players = {"a": a.player, "b": b.player}
    found: dict[int, Match] = {}
    # closed at once when `seen` raises: nothing may be in flight when the caller closes the engines
    async with aclosing(rollout(jobs, players, lanes=lanes, rules=rules, tool=tool, replied=tell.replied)) as playing:
        async for job, episode in playing:
            found[job.number] = Match(by_number[job.number], episode)
            tell.seen(found[job.number])
    return [found[pairing.number] for pairing in pairs]
