"""What the script of curves needs besides numbers: a person's choices, and which runs differ only in their seed."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from django.urls import reverse

from training.evaluate.intervals import student
from webapp.accounts.models import User
from webapp.runs.models import Run
from webapp.runs.preferences.services import ChartChoices


def drawn(data: Mapping[str, Any], user: User) -> dict[str, Any]:
    """The data of curves with this person's choices, and where they are stored."""
    return {**data, "choices": ChartChoices.of(user).model_dump(mode="json"), "save": reverse("runs:charts")}


def bundles(runs: Sequence[Run]) -> list[dict[str, Any]]:
    """Runs whose configurations are equal but for seed and name, by their places among `runs`."""
    alike: dict[str, list[int]] = {}
    for place, run in enumerate(runs):
        trained = {name: value for name, value in run.config.items() if name not in {"seed", "name"}}
        start = (run.start_checkpoint_id, run.dataset_version_id)
        alike.setdefault(json.dumps([start, trained], sort_keys=True), []).append(place)
    return [{"name": _title(runs, places), "runs": places} for places in alike.values()]


def _title(runs: Sequence[Run], places: Sequence[int]) -> str:
    first = runs[places[0]]
    others = f" and {len(places) - 1} more seed{'s' if len(places) > 2 else ''}" if len(places) > 1 else ""
    return f"{first.name} #{first.pk}{others}"


def quantiles(most: int) -> list[float]:
    """Student's t for two-sided 95 % intervals of 2, 3, … values: half widths in standard errors."""
    return [student(0.0, 1.0, count)[1] for count in range(2, most + 1)]


class Smoothing:
    """An exponential moving average, corrected for its start at zero: the weights of all values so far sum to one."""

    def __init__(self, weight: float) -> None:
        self.weight = weight
        self._total = self._norm = 0.0

    def add(self, value: float | None) -> float | None:
        """Return the average up to this value; None for none, which changes nothing."""
        if value is None:
            return None
        self._total, self._norm = self.weight * self._total + value, self.weight * self._norm + 1
        return self._total / self._norm
