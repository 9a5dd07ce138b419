"""The games that `tiny` is pretrained on: scripted players on the project's samples, with varied names and numbers.

Without the variation, the model would memorise the two dozen sample scenarios instead of reading its prompt.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from random import Random
from typing import Any

from training import players, rollout, samples
from training.records import Episode, Scenario
from training.rollout import RolloutPolicy
from training.seeding import rng

ITEMS = ("book", "hat", "ball", "apples", "bread", "rope", "tea", "coins", "candles")
CAMP = ("food", "water", "firewood")
"""The items of CaSiNo, the corpus that most item negotiations come from."""
NAMES = ("Ada", "Ben", "Cleo", "Dan", "Eva", "Finn", "Gus", "Hana", "Ivo", "June", "Kim", "Leo", "Mia", "Noa", "Sam")


def play(counts: dict[str, int], seed: int) -> list[Episode]:
    """Return scripted games: `counts[sample]` of each sample, each with its own seed and variation."""
    starts: list[Scenario] = []
    for name, count in counts.items():
        loaded = samples.load(name)
        for at in range(count):
            start = loaded[at % len(loaded)].with_seed(rng(seed, name, at).getrandbits(62))
            starts.append(vary(start, rng(seed, "vary", name, at)))
    return asyncio.run(_played(starts, RolloutPolicy(seed=seed)))


async def _played(starts: Sequence[Scenario], rules: RolloutPolicy) -> list[Episode]:
    """Return one game of each start, under the names of the sample, from which the model learns to copy names."""
    return [
        await rollout.play(
            start, [players.make("scripted", start, seat) for seat in (0, 1)], rules=rules, number=number
        )
        for number, start in enumerate(starts)
    ]


def vary(start: Scenario, random: Random) -> Scenario:
    """Return a varied scenario: about a third of the negotiations get other names, and item deals another pool.

    Other games and the remaining negotiations are returned unchanged.
    """
    if start.game != "negotiation" or random.random() < 0.65:
        return start
    settings = dict(start.settings)
    if settings["deal"]["kind"] == "items":
        settings["deal"] = settings["deal"] | _pool(random)
    return start.model_copy(update={"seats": tuple(random.sample(NAMES, 2)), "settings": settings})


def _pool(random: Random) -> dict[str, Any]:
    """Return items with their counts, and each side's values."""
    names = random.sample(CAMP, 3) if random.random() < 0.4 else random.sample(ITEMS, random.choice((2, 3, 3)))
    items = [{"name": name, "count": random.randint(1, 4)} for name in names]
    sides = []
    for _ in range(2):
        values = {name: random.randint(0, 6) for name in names}
        values[random.choice(names)] += 1  # at least one item has a value
        sides.append({"values": values, "walk_away": random.choice((0, 0, 1))})
    return {"items": items, "sides": sides}
