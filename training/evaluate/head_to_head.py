"""The head-to-head: two models play the same scenarios, and each scenario is played in both seatings.

Without roles, each model plays half of the seats against the other, and then they swap. With a `side` (the seats with
certain roles), each model plays that side against the same common opponent, which plays all other seats in both
seatings; with `opposition="each_other"` the other model plays them, and its skill in those roles affects the
comparison. Source: OMAR, section 4 (evaluation); playing both seatings of every scenario is Parley's addition. Raises
`BadInput` for games whose seats cannot be swapped fairly, or that lack the roles.
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
"""The two models that are compared."""
COMMON = "common"
"""The policy name of the common opponent, whose own results are not compared."""
Opposition = Literal["common", "each_other"]


@dataclass(frozen=True, slots=True)
class Pairing:
    """One conversation to be played: its scenario, its repetition, and the contestant at each seat (a, b or common)."""

    number: int
    scenario: Scenario
    repeat: int
    names: tuple[str, ...]

    def seats_of(self, name: str) -> tuple[Seat, ...]:
        """Return the seats that a contestant plays."""
        return tuple(seat for seat, contestant in enumerate(self.names) if contestant == name)


@dataclass(frozen=True, slots=True)
class Match:
    """A pairing with the episode that was played."""

    pairing: Pairing
    episode: Episode


@dataclass(frozen=True, slots=True)
class Callbacks:
    """Callbacks of a head-to-head: `on_match` after each conversation, `on_reply` after each reply."""

    on_match: Callable[[Match], None] = lambda match: None
    on_reply: Callable[[Reply], None] = lambda reply: None


def pairings(
    scenarios: Sequence[Scenario],
    conversations: int,
    seed: int,
    side: Collection[str] = (),
    opposition: Opposition = "common",
) -> list[Pairing]:
    """Return at least `conversations` pairings: every scenario in both seatings, repeated if needed.

    If half as many scenarios suffice, they are drawn by the seed. Both seatings of a repetition have the same seed.
    With a `side`, a plays it in the first seating and b in the second; the common opponent plays all other seats, or
    with `each_other` the other model. Without a `side`, a plays the first half of the seats and b the rest, then they
    swap; in a game of more than two seats the half moves by one seat from start to start.
    """
    if not scenarios:
        raise BadInput("a head-to-head needs at least one scenario", "data.path")
    for scenario in scenarios:
        if len(scenario.seats) < 2 or not (side or lookup(scenario.game).symmetric):
            raise BadInput("a head-to-head needs a game of two seats or more that may be swapped", scenario.id)
    couples = -(-conversations // 2)
    chosen = list(scenarios)
    if couples < len(chosen):
        drawn = sorted(rng(seed, "arena").sample(range(len(chosen)), couples))
        chosen = [chosen[i] for i in drawn]
    pairs: list[Pairing] = []
    for repeat in range(-(-couples // len(chosen))):
        for scenario in chosen:
            start = seeded(scenario, seed, repeat)
            if side:
                seatings = _roles(start, side, opposition)
            else:
                halves = _halves(start, len(pairs) // 2)
                seatings = (halves, _swapped(halves))
            pairs += [Pairing(len(pairs) + i, start, repeat, names) for i, names in enumerate(seatings)]
    return pairs


def _roles(start: Scenario, side: Collection[str], opposition: Opposition) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return both seatings of a start: a plays the seats with the roles of `side`, then b does."""
    roles = make(start).roles()
    if not roles:
        raise BadInput(f"{start.game} has no roles: a side can be named in games with roles only", "evaluate.side")
    if len({role in side for role in roles}) < 2:
        raise BadInput(
            f"{start.id} has the roles {', '.join(sorted(set(roles)))}: name some, not all, of them", "evaluate.side"
        )
    if opposition == "each_other":
        first = tuple("a" if role in side else "b" for role in roles)
        return first, _swapped(first)
    first, second = (tuple(name if role in side else COMMON for role in roles) for name in NAMES)
    return first, second


def _swapped(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple("b" if name == "a" else "a" for name in names)


def _halves(start: Scenario, turn: int) -> tuple[str, ...]:
    """Assign a half of the seats, rounded down, in a row; in a game of more than two it begins `turn` seats later."""
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
    common: Contestant | None = None,
    tool: Tool | None = None,
    callbacks: Callbacks | None = None,
) -> list[Match]:
    """Play every pairing; the result is in the order of `pairs`. `common` is needed where pairings seat it."""
    callbacks = callbacks or Callbacks()
    by_number = {pairing.number: pairing for pairing in pairs}
    jobs = [Job(p.number, p.scenario, p.names) for p in pairs]
    players = {"a": a.player, "b": b.player} | ({COMMON: common.player} if common else {})
    matches: dict[int, Match] = {}
    # closed at once when `on_match` raises: no request may be in flight when the caller closes the engines
    async with aclosing(
        rollout(jobs, players, lanes=lanes, rules=rules, tool=tool, on_reply=callbacks.on_reply)
    ) as playing:
        async for job, episode in playing:
            matches[job.number] = Match(by_number[job.number], episode)
            callbacks.on_match(matches[job.number])
    return [matches[pairing.number] for pairing in pairs]
