"""The values of a sweep: read from text, and combined into trials.

Values are a list, `1e-5, 3e-5`, or in a random search a range: `1..8` draws whole numbers, `0.0..1.0` numbers, and
`1e-6..1e-4 log` numbers whose logarithm is uniform. Both ends of a range belong to it.
"""

from __future__ import annotations

import itertools
import json
import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from training.errors import BadInput

MOST_TRIALS = 100


@dataclass(frozen=True)
class Range:
    """Numbers from `low` to `high`; `log`: uniform in their logarithm."""

    low: float
    high: float
    log: bool = False

    def draw(self, rng: random.Random) -> float | int:
        """Draw one number."""
        if self.log:
            return float(math.exp(rng.uniform(math.log(self.low), math.log(self.high))))
        if isinstance(self.low, int) and isinstance(self.high, int):
            return rng.randint(self.low, self.high)
        return rng.uniform(self.low, self.high)


Values = Sequence[Any] | Range


def parse_values(text: str, where: str) -> Values:
    """Read the values of a field; raises `BadInput` at `where`."""
    plain = text.strip()
    if ".." in plain and not plain.startswith(("[", '"')):
        return _range(plain, where)
    try:
        values = json.loads(f"[{plain}]")
    except ValueError:
        values = [_value(part.strip()) for part in plain.split(",")]
    if not values or "" in values:
        raise BadInput("values separated by commas, or a range such as 1e-6..1e-4 log", where)
    return list(values)


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _range(text: str, where: str) -> Range:
    ends, _, kind = text.partition(" ")
    low, high = (_value(end) for end in ends.split("..", 1))
    numbers = all(isinstance(end, int | float) and not isinstance(end, bool) for end in (low, high))
    if not numbers or kind.strip() not in {"", "log"} or not low < high or not math.isfinite(high - low):
        raise BadInput("a range is LOW..HIGH or LOW..HIGH log, the lower number first", where)
    if kind and low <= 0:
        raise BadInput("a logarithmic range begins above zero", where)
    return Range(low, high, bool(kind))


def combinations(fields: Mapping[str, Values]) -> list[dict[str, Any]]:
    """Every combination of the values of a grid. Raises `BadInput` for a range, or more than `MOST_TRIALS`."""
    for path, values in fields.items():
        if isinstance(values, Range):
            raise BadInput("a grid needs a list of values; ranges are for a random search", path)
    lists = [list(values) for values in fields.values() if not isinstance(values, Range)]
    _refuse_above(math.prod(len(values) for values in lists))
    return [dict(zip(fields, values, strict=True)) for values in itertools.product(*lists)]


def drawn(fields: Mapping[str, Values], trials: int, seed: int) -> list[dict[str, Any]]:
    """So many trials with values drawn by the seed: the same seed draws the same values."""
    _refuse_above(trials)
    rng = random.Random(seed)
    return [
        {path: values.draw(rng) if isinstance(values, Range) else rng.choice(values) for path, values in fields.items()}
        for _ in range(trials)
    ]


def shown(value: Any) -> Any:
    """A value as a table shows it: numbers and texts as they are, anything else as JSON."""
    return value if isinstance(value, int | float | str) and not isinstance(value, bool) else json.dumps(value)


def _refuse_above(count: int) -> None:
    if count > MOST_TRIALS:
        raise BadInput(f"{count} runs are more than a sweep may have ({MOST_TRIALS})", "values")
