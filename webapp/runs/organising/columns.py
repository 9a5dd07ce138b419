"""The columns of the list of runs: standard ones, last values of metrics, and fields of the configuration.

A column is `state`, `metric:reward` or `config:learn.steps`. Each person chooses which there are, and their order.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from django.db.models import F, OuterRef, Subquery
from django.db.models.fields.json import KeyTransform

from webapp.accounts.models import User
from webapp.core.sorting import Order
from webapp.runs.models import Metric, Run
from webapp.runs.preferences.services import Choices, Names
from webapp.runs.querysets import SORTS, RunQuerySet
from webapp.runs.summaries import comparing, curves, head_to_heads

STANDARD = {
    "state": "State",
    "name": "Name",
    "kind": "Kind",
    "method": "Method",
    "game": "Game",
    "base": "Base",
    "progress": "Step",
    "metric": "Key metric",
    "trend": "Trend",
    "age": "Age",
    "owner": "Owner",
    "group": "Group",
    "note": "Note",
    "seed": "Seed",
    "head_to_head": "Head-to-head",
}
SORTABLE = {**SORTS, "kind": "kind", "owner": "owner__username", "group": "group", "seed": "config__seed"}
DEFAULT = tuple(STANDARD)[:10]
NUMBERS = frozenset({"progress", "metric", "seed", "head_to_head"})
PATH = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*")
MOST = 40
RECENT = 40
"""Runs whose configurations and metrics name the columns that are offered."""


class ColumnChoices(Choices):
    """The columns of the list, in their order."""

    key = "columns"
    shown: Names = DEFAULT


def valid(column: str) -> bool:
    """Whether this names a column."""
    kind, _, name = column.partition(":")
    if column in STANDARD or not name or "__" in name or len(column) > 200:
        return column in STANDARD
    return kind == "metric" or (kind == "config" and bool(PATH.fullmatch(name)))


def of(user: User) -> list[str]:
    """The columns of this person's list; the name is always one of them."""
    shown = [column for column in dict.fromkeys(ColumnChoices.of(user).shown) if valid(column)][:MOST]
    return shown if "name" in shown else ["name", *shown]


def title(column: str) -> str:
    """The head of a column."""
    kind, _, name = column.partition(":")
    return STANDARD.get(column) or (curves.title(name) if kind == "metric" else name)


def offered(user: User, shown: Sequence[str]) -> dict[str, list[tuple[str, str]]]:
    """The columns that can be added, by kind, as (column, title): those that recent runs have values for."""
    recent = list(Run.objects.visible_to(user).without_servers().order_by("-pk").only("config")[:RECENT])
    metrics = curves.in_order({name for values in comparing.last_metrics(recent).values() for name in values})
    paths = sorted({path for run in recent for path, _ in comparing.flat(run.config)})
    kinds = {
        "Standard": list(STANDARD),
        "Last values": [f"metric:{name}" for name in metrics],
        "Configuration": [f"config:{path}" for path in paths],
    }
    new = {kind: [name for name in names if valid(name) and name not in shown] for kind, names in kinds.items()}
    return {kind: [(name, title(name)) for name in names] for kind, names in new.items() if names}


def sorts(shown: Sequence[str]) -> dict[str, str]:
    """The field by which each shown column sorts; `trend`, `note` and `head_to_head` have none."""
    fields = {name: SORTABLE[name] for name in shown if name in SORTABLE}
    fields |= {name: _field(name) for name in shown if name.startswith("config:")}
    return fields | {name: "sorted_metric" for name in shown if name.startswith("metric:")}


def _field(column: str) -> str:
    return "config__" + column.partition(":")[2].replace(".", "__")


def in_order(runs: RunQuerySet, order: Order, shown: Sequence[str]) -> RunQuerySet:
    """The runs in the requested order; the last values of a metric are read only where they decide it."""
    if order.name in shown and order.name.startswith("metric:"):
        newest = Metric.objects.filter(run=OuterRef("pk")).order_by("-step").values("values")[:1]
        name = order.name.partition(":")[2]
        runs = runs.annotate(newest=Subquery(newest)).annotate(sorted_metric=KeyTransform(name, "newest"))
    return order.apply(runs, {**SORTS, **sorts(shown)}, "age")


def with_fields(runs: RunQuerySet, shown: Sequence[str]) -> RunQuerySet:
    """The runs with the fields of the configuration that are shown, as `field_0`, `field_1` and so on."""
    fields = [_field(name) for name in shown if name.startswith("config:")]
    return runs.annotate(seed=F("config__seed"), **{f"field_{place}": F(name) for place, name in enumerate(fields)})


def values(runs: Sequence[Run], shown: Sequence[str]) -> Iterator[tuple[Run, list[tuple[str, Any]]]]:
    """Each run with its cells (column, value) in the order of the columns; runs are those of `with_fields`."""
    metrics = [name for name in shown if name.startswith("metric:")]
    last: Mapping[int, Mapping[str, Any]] = comparing.last_metrics(runs) if metrics else {}
    differences = head_to_heads.of_runs(runs) if "head_to_head" in shown else {}
    fields = [name for name in shown if name.startswith("config:")]
    for run in runs:
        results = {**last.get(run.pk, {}), "head_to_head": differences.get(run.pk)}
        yield run, [(name, _value(run, name, results, fields)) for name in shown]


def _value(run: Run, column: str, results: Mapping[str, Any], fields: Sequence[str]) -> Any:
    if column == "head_to_head":
        return results[column]
    if column.startswith("metric:"):
        return results.get(column.partition(":")[2])
    if column in fields:
        return getattr(run, f"field_{fields.index(column)}")
    plain = {"progress": "step", "metric": "key_metric", "age": "created_at", "trend": "sparkline"}
    return run.owner.shown_name if column == "owner" else getattr(run, plain.get(column, column))
