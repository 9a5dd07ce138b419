"""A head-to-head's social metrics as bars: both models on every judged label_type (OMAR, figure 3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from training.labels.codebooks import CODEBOOKS, LabelType

Interval = Mapping[str, float]


@dataclass(frozen=True)
class Bar:
    """One model's mean with its 95 % interval; `share` is where the mean lies on the scale, from 0 to 1."""

    estimate: Interval
    share: float


@dataclass(frozen=True)
class Bars:
    """One label type: both models' bars (None: not judged) and the paired difference. `name` is the summary's."""

    name: str
    label_type: LabelType
    a: Bar | None
    b: Bar | None
    difference: Interval | None


def of_summary(summary: Mapping[str, Any]) -> dict[str, list[Bars]]:
    """Return the bars of a head-to-head's summary by the codebook's title, as far as its seats were judged."""
    a, b, difference = (summary.get(group, {}) for group in ("a", "b", "difference"))
    titled: dict[str, list[Bars]] = {}
    for codebook in CODEBOOKS.values():
        for label_type in codebook.labels:
            name = f"{codebook.name}.{label_type.name}"
            if name in a or name in b:
                bars = Bars(
                    name, label_type, _bar(label_type, a.get(name)), _bar(label_type, b.get(name)), difference.get(name)
                )
                titled.setdefault(codebook.title, []).append(bars)
    return titled


def _bar(label_type: LabelType, estimate: Interval | None) -> Bar | None:
    if estimate is None:
        return None
    low, high = label_type.bounds
    return Bar(estimate, (estimate["mean"] - low) / (high - low))
