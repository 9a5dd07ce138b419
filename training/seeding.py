"""Seeds derived from names: the same path of names gives the same seed on every machine and in every process."""

from __future__ import annotations

import hashlib
import random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from training.records import Scenario


def derive(seed: int, *path: str | int) -> int:
    """Return a 63-bit seed for `path` under `seed`.

    A request's seed is `derive(config_seed, "sample", step, episode, seat, turn)`: it does not depend on the order
    in which requests happen to run.
    """
    text = "\x1f".join([str(seed), *(f"{type(part).__name__}:{part}" for part in path)])
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big") >> 1


def seeded(scenario: Scenario, seed: int, repeat: int) -> Scenario:
    """Return the start that a run with `seed` plays when it comes to the scenario for the `repeat`-th time, from 0.

    A scenario with seed 0 is given a new one every time; any other seed is part of the start and is kept.
    """
    return scenario if scenario.seed else scenario.with_seed(derive(seed, "start", scenario.id, repeat))


def rng(seed: int, *path: str | int) -> random.Random:
    """Return a generator of its own for `path` under `seed`."""
    return random.Random(derive(seed, *path))
