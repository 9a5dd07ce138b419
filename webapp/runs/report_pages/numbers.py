"""Numbers of runs as a report names them, `run:12 reward`: read, averaged over seeds, and described.

Several runs, `run:12,13,14 reward`, have a mean with Student's t interval over the runs. `@40` behind the metric names
a step, else the last one counts. A head-to-head's numbers are named by their path, `run:20 difference.points`, and have
the interval over scenarios that its result states.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from statistics import fmean, stdev
from typing import Any

from training.errors import BadInput
from training.evaluate.intervals import student
from webapp.accounts.models import User
from webapp.runs.models import Run
from webapp.runs.summaries import curves

METRIC = re.compile(r"[\w./+-]{1,150}")
REFERENCE = re.compile(
    rf"\{{\{{\s*run:(\d{{1,18}}(?:,\d{{1,18}}){{0,15}})\s+({METRIC.pattern})(?:\s+@(\d{{1,9}}))?\s*\}}\}}"
)


def references(text: str) -> list[str]:
    """The references in a text, each once, in their order."""
    return list(dict.fromkeys(reference_of(match) for match in REFERENCE.finditer(text)))


def reference_of(match: re.Match[str]) -> str:
    """The plain form of a reference: `run:12,13 reward @40`."""
    return f"run:{match[1]} {match[2]}" + (f" @{match[3]}" if match[3] else "")


def provenance(reference: str, user: User) -> dict[str, Any]:
    """The number with its provenance; raises `BadInput` at `text` if a run or its number is not there."""
    match = REFERENCE.fullmatch("{{" + reference + "}}")
    assert match, reference
    keys = list(dict.fromkeys(int(key) for key in match[1].split(",")))
    runs = {run.pk: run for run in Run.objects.visible_to(user).filter(pk__in=keys)}
    if missing := next((key for key in keys if key not in runs), None):
        raise BadInput(f"{reference}: there is no run {missing}", "text")
    ordered = [runs[key] for key in keys]
    step = int(match[3]) if match[3] else None
    if len(ordered) == 1 and (estimate := _estimate(ordered[0], match[2])):
        return {**_facts(reference, match[2], [(ordered[0], ordered[0].step)]), **estimate}
    read = [(run, *_read(run, match[2], step, reference)) for run in ordered]
    values = [value for _, _, value in read]
    facts = _facts(reference, match[2], [(run, at) for run, at, _ in read])
    return {**facts, **_mean(values)}


def _estimate(run: Run, path: str) -> dict[str, Any] | None:
    """The interval at a path of an evaluation's result."""
    value: Any = (run.result or {}).get("summary")
    for part in path.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    if not isinstance(value, Mapping) or not {"mean", "low", "high"} <= value.keys():
        return None
    n = value.get("n") or (run.result or {})["summary"].get("used")
    return {"value": value["mean"], "low": value["low"], "high": value["high"], "n": n, "of": "scenarios"}


def _read(run: Run, metric: str, step: int | None, reference: str) -> tuple[int, float]:
    rows = run.metrics.filter(values__has_key=metric)
    row = (rows.filter(step=step) if step is not None else rows.order_by("-step")).first()
    value = row.values.get(metric) if row is not None else None
    if row is None or not isinstance(value, int | float):
        where = f" at step {step}" if step is not None else ""
        raise BadInput(f"{reference}: run {run.pk} has no number {metric}{where}", "text")
    return row.step, float(value)


def _mean(values: Sequence[float]) -> dict[str, Any]:
    mean, n = fmean(values), len(values)
    low, high = student(mean, stdev(values) / n**0.5, n) if n > 1 else (None, None)
    return {"value": mean, "low": low, "high": high, "n": n, "of": "runs"}


def _facts(reference: str, metric: str, runs: Sequence[tuple[Run, int]]) -> dict[str, Any]:
    described = [
        {
            "id": run.pk,
            "name": run.name,
            "step": step,
            "code": run.code_version,
            "config": hashlib.sha256(json.dumps(run.config, sort_keys=True).encode()).hexdigest(),
            "seed": run.config.get("seed"),
        }
        for run, step in runs
    ]
    return {"reference": reference, "metric": metric, "title": curves.title(metric), "runs": described}
