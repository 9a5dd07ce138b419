"""A sweep's table: values and last value of its metric, the best trial first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from webapp.runs.models import Run
from webapp.runs.summaries import comparing
from webapp.runs.sweeps import charts, space
from webapp.runs.sweeps.models import Sweep, Trial


@dataclass(frozen=True)
class Row:
    """One trial: its values in the order of the fields, and the last value of the metric; None before the first."""

    number: int
    run: Run
    trial: Trial
    values: Sequence[Any]
    result: float | None
    best: bool


def charts_of(sweep: Sweep, rows: Sequence[Row], metric: str) -> dict[str, Any]:
    """The drawings of a sweep's page, from the trials with a result."""
    trials = [(row.trial.values, row.result) for row in rows if row.result is not None]
    return {
        "importances": charts.importances(trials, [path for path, _ in sweep.fields]),
        "coordinates": charts.coordinates(trials, sweep.fields, metric),
    }


def rows(sweep: Sweep) -> list[Row]:
    """The trials, the best first; those without a result last, by number."""
    trials = list(sweep.trials.select_related("run").defer("run__config", "run__result"))
    last = comparing.last_metrics([trial.run for trial in trials])
    results: dict[int, float] = {}
    for trial in trials:
        value = last.get(trial.run_id, {}).get(sweep.metric)
        if isinstance(value, int | float):
            results[trial.pk] = float(value)
    sign = -1 if sweep.goal == Sweep.Goal.MAXIMUM else 1
    ranked = sorted((t for t in trials if t.pk in results), key=lambda t: (sign * results[t.pk], t.number))
    ordered = [*ranked, *(trial for trial in trials if trial.pk not in results)]
    paths = [path for path, _ in sweep.fields]
    return [
        Row(
            t.number,
            t.run,
            t,
            [space.shown(t.values.get(path)) for path in paths],
            results.get(t.pk),
            bool(ranked) and t is ranked[0],
        )
        for t in ordered
    ]
