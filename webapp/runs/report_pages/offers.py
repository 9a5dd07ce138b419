"""What the editor of a report offers to insert: the newest runs with their metrics, and examples made of them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from webapp.accounts.models import User
from webapp.runs.models import Run
from webapp.runs.report_pages.numbers import METRIC
from webapp.runs.summaries import comparing, curves

RUNS = 30
METRICS = 20


@dataclass(frozen=True)
class Offer:
    """A run with (name, title) of its main metrics, at least one."""

    run: Run
    metrics: Sequence[tuple[str, str]]

    @property
    def metrics_json(self) -> str:
        """The metrics for the script of the page."""
        return json.dumps(self.metrics)


def offers(user: User) -> list[Offer]:
    """The newest runs with metrics that this person may see, newest first, in two queries."""
    visible = Run.objects.visible_to(user).without_servers().in_archive("")
    runs = list(visible.order_by("-pk").only("pk", "name")[:RUNS])
    last = comparing.last_metrics(runs)
    made = [Offer(run, _metrics(last.get(run.pk, {}))) for run in runs]
    return [offer for offer in made if offer.metrics]


def _metrics(values: dict[str, object]) -> list[tuple[str, str]]:
    numbers = [name for name, value in values.items() if isinstance(value, int | float) and METRIC.fullmatch(name)]
    return [(name, curves.title(name)) for name in curves.in_order(numbers)[:METRICS]]


def syntax(offered: Sequence[Offer]) -> str:
    """How a text names numbers and charts, with runs that there are."""
    if not offered:
        return "Markdown. A report can show numbers and curves of runs; no run has any yet."
    metric = offered[0].metrics[0][0]
    keys = [str(offer.run.pk) for offer in offered if metric in dict(offer.metrics)][:2]  # the newest is among them
    parts = [f"Markdown. {{{{ run:{keys[0]} {metric} }}}} pins a number; @ and a step behind the metric name a step"]
    if len(keys) > 1:
        parts.append(f"{{{{ run:{','.join(keys)} {metric} }}}} pins the mean of several runs")
    named = " ".join(f"run:{key}" for key in keys)
    return "; ".join([*parts, f"a block ```chart with “{named} {metric}” draws curves."])
