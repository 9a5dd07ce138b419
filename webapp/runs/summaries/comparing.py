"""Comparison of several runs: differing configuration fields, and last metrics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from django.db.models import OuterRef, Subquery
from django.urls import reverse

from webapp.accounts.models import User
from webapp.runs.models import Metric, Run
from webapp.runs.summaries import chart_page, curves

MISSING = "—"


def flat(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every leaf of a configuration with its dotted path."""
    if isinstance(value, Mapping) and value:
        for name, inner in value.items():
            yield from flat(inner, f"{path}.{name}" if path else str(name))
    else:
        yield path, value


def differences(configs: Sequence[Mapping[str, Any]]) -> list[tuple[str, list[Any]]]:
    """The paths whose values differ, with the value of each configuration."""
    configs_flat = [dict(flat(config)) for config in configs]
    paths = sorted({path for leaves in configs_flat for path in leaves})
    rows = [(path, [leaves.get(path, MISSING) for leaves in configs_flat]) for path in paths]
    return [(path, values) for path, values in rows if any(value != values[0] for value in values)]


def last_metrics(runs: Sequence[Run]) -> dict[int, dict[str, Any]]:
    """The newest metrics of each run that has any, in one query that reads one row per run."""
    newest = Metric.objects.filter(run=OuterRef("pk")).order_by("-step").values("values")[:1]
    with_newest = Run.objects.filter(pk__in=[run.pk for run in runs]).annotate(newest=Subquery(newest))
    return {pk: values for pk, values in with_newest.values_list("pk", "newest") if values is not None}


def comparison(runs: Sequence[Run], user: User) -> dict[str, Any]:
    """The context of the comparison page, with this person's choices of charts."""
    bundles = chart_page.bundles(runs)
    last = last_metrics(runs)
    names = curves.in_order({name for values in last.values() for name in values})
    metrics = [(name, curves.title(name), [last.get(run.pk, {}).get(name) for run in runs]) for name in names]
    return {
        "runs": runs,
        "metrics": metrics,
        "differences": differences([run.config for run in runs]),
        "seeds": any(len(bundle["runs"]) > 1 for bundle in bundles),
        "csv": "&".join(f"run={run.pk}" for run in runs),
        "curves": {
            **chart_page.drawn({}, user),
            "bundles": bundles,
            "quantiles": chart_page.quantiles(len(runs)),
            "live": False,
            "groups": curves.groups(names),
            "runs": [
                {
                    "name": f"{run.name} #{run.pk}",
                    "url": reverse("runs:metrics", args=[run.pk]),
                    "href": reverse("runs:detail", args=[run.pk]),
                }
                for run in runs
            ],
        },
    }
