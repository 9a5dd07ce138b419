"""Storing records read from an attempt's files: metrics, events, episodes, checkpoints.

An attempt overwrites rows with an equal or lower fence, so the same lines may be stored twice. Only
`webapp.runs.attempts.record` calls `store`, in a transaction that holds the run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from django.db import connection
from django.db.backends.postgresql.psycopg_any import Jsonb

from training import phases
from training.phases import Phase
from webapp.runs.alerts import services as alerts
from webapp.runs.models import Attempt, Checkpoint, Event, Metric, PlayedEpisode, Run
from webapp.runs.summaries import keymetric


@dataclass
class Batch:
    """Records read from an attempt's files since the last batch; `offsets` are the new file positions."""

    metrics: list[dict[str, Any]] = field(default_factory=list)
    events: list[dict[str, Any]] = field(default_factory=list)
    episodes: list[dict[str, Any]] = field(default_factory=list)
    checkpoints: list[dict[str, Any]] = field(default_factory=list)
    offsets: dict[str, int] = field(default_factory=dict)
    log: str | None = None

    def __bool__(self) -> bool:
        return bool(self.offsets or self.log is not None)


def moment(seconds: float) -> datetime:
    """Convert Unix seconds to a datetime."""
    return datetime.fromtimestamp(seconds, UTC)


def store(batch: Batch, attempt: Attempt, run: Run, source: Attempt) -> None:
    """Store a batch except its offsets: under `attempt`'s fence, with events assigned to `source`."""
    _store_metrics(attempt, run, batch.metrics)
    Event.objects.bulk_create(
        Event(run=run, attempt=source, at=moment(line.pop("at")), kind=str(line.pop("kind"))[:40], data=line)
        for line in [dict(event) for event in batch.events]
    )
    for event in batch.events:
        if event["kind"] == "watchdog":
            key = f"watchdog {source.pk} {event['at']}"
            alerts.note(run=run, event="watchdog", key=key, why=str(event.get("why", "")))
    _store_episodes(attempt, run, batch.episodes)
    for checkpoint in batch.checkpoints:
        _store_checkpoint(run, checkpoint)


def _upsert(model: type[Metric | PlayedEpisode], key: str, columns: list[str], rows: list[list[Any]]) -> None:
    """Insert rows, or overwrite those whose stored fence is not higher; of rows with one key, the last counts.

    It is one statement, and no `executemany`: psycopg sends that as a pipeline, in the middle of which the database
    does not count a frozen process as idle, so that its locks would outlive the lease.
    """
    if not rows:
        return
    keys = key.split(", ")
    places = [columns.index(name) for name in keys]
    rows = list({tuple(row[place] for place in places): row for row in rows}.values())
    table = model._meta.db_table
    names = ", ".join(f'"{column}"' for column in columns)
    changes = ", ".join(f'"{column}" = EXCLUDED."{column}"' for column in columns if column not in keys)
    holes = ", ".join([f"({', '.join(['%s'] * len(columns))})"] * len(rows))
    statement = (
        f'INSERT INTO "{table}" ({names}) VALUES {holes} '  # noqa: S608 (names of our own columns)
        f'ON CONFLICT ({key}) DO UPDATE SET {changes} WHERE "{table}"."fence" <= EXCLUDED."fence"'
    )
    with connection.cursor() as cursor:
        cursor.execute(statement, [value for row in rows for value in row])


def _store_metrics(attempt: Attempt, run: Run, lines: list[dict[str, Any]]) -> None:
    if not lines:
        return
    rows = []
    for line in lines:
        values = {name: value for name, value in line.items() if name not in {"step", "at"}}
        rows.append([run.pk, int(line["step"]), attempt.fence, moment(line["at"]), Jsonb(values)])
        run.step = int(line["step"])
        keymetric.add(run, run.step, values)
    _upsert(Metric, "run_id, step", ["run_id", "step", "fence", "at", "values"], rows)
    run.save(update_fields=["step", "key_metric", "sparkline"])


def outcome_of(summary: Mapping[str, Any]) -> str:
    """An episode's outcome, as the conversation filter shows it."""
    facts = summary.get("metrics") or {}
    if summary.get("error"):
        return "error"
    if "agreement" in facts:
        return "agreement" if facts["agreement"] else "no agreement"
    return next((name for name, value in sorted(facts.items()) if name.startswith("end_") and value), "")[4:44]


def _store_episodes(attempt: Attempt, run: Run, lines: list[dict[str, Any]]) -> None:
    rows = [
        [
            run.pk,
            int(line["step"]),
            int(line["episode"]),
            attempt.fence,
            line["file"],
            int(line["offset"]),
            int(line["length"]),
            outcome_of(line["summary"]),
            Jsonb(line["summary"]),
        ]
        for line in lines
    ]
    columns = ["run_id", "step", "number", "fence", "file", "offset", "length", "outcome", "summary"]
    _upsert(PlayedEpisode, "run_id, step, number", columns, rows)


def _store_checkpoint(run: Run, entry: dict[str, Any]) -> None:
    """One row per saved step; a later attempt that saves the same step again replaces the folder, not the row."""
    base = Checkpoint.objects.filter(kind=Checkpoint.Kind.BASE, name=run.base).first()
    metrics = run.metrics.filter(step=entry["step"]).values_list("values", flat=True).first()
    facts = {
        "kind": entry["kind"],
        "run": run,
        "step": entry["step"],
        "parent": _earlier(run, entry["step"]) or run.start_checkpoint or base,
        "base": run.base,
        "path": entry["path"],
        "sha256": entry["sha256"],
        "metrics": metrics or {},
    }
    Checkpoint.objects.update_or_create(name=entry["name"], defaults=facts)


def _earlier(run: Run, step: int) -> Checkpoint | None:
    """The checkpoint from which the weights after a step come: the one before, but for a phase that states `begin`."""
    saved = run.checkpoints.filter(step__lt=step).order_by("-step").first()
    made = [Phase.from_dict(phase) for phase in run.config.get("phases", ())]
    if saved is None or not made:
        return saved
    return run.checkpoints.filter(step=phases.weights_after(made, saved.step)).first() or saved
