"""Flags of runs whose dataset contained a conversation to which consent was withdrawn.

Weights cannot forget a conversation, so checkpoints stay as they are and say so, as do runs and checkpoints that start
from them. A run that has not begun is refused when it starts (`webapp.scenarios.services.check_open`). Copies of the
dataset in run directories are deleted by `webapp.runs.local_files`.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from django.db import transaction
from django.db.models import Exists, OuterRef

from webapp.runs.models import Attempt, Checkpoint, Run, WithdrawnData
from webapp.scenarios.models import DatasetVersion


@transaction.atomic
def flag_runs(*, version: DatasetVersion) -> int:
    """Flag every run that began with a version which is now closed, and those derived from them; return how many."""
    began = Run.objects.filter(Exists(Attempt.objects.filter(run=OuterRef("pk"))), dataset_version=version)
    at = version.closed_at
    assert at is not None, "only closed versions are announced"
    return _flag(list(began), version, at, None)


def _flag(runs: Iterable[Run], version: DatasetVersion, at: datetime, start: Run | None) -> int:
    count = 0
    for run in runs:
        _, new = WithdrawnData.objects.get_or_create(run=run, version=version, defaults={"at": at, "start": start})
        if new:
            count += 1 + _flag(Run.objects.filter(start_checkpoint__run=run), version, at, run)
    return count


def inherit(*, run: Run) -> None:
    """Flag a new run that starts from a flagged run's checkpoint."""
    start = run.start_checkpoint.run if run.start_checkpoint is not None else None
    if start is not None:
        for row in start.withdrawn_data.trained():
            WithdrawnData.objects.get_or_create(run=run, version=row.version, defaults={"at": row.at, "start": start})


def notice(checkpoint: Checkpoint) -> str:
    """Return what goes with the files of a checkpoint that may have learned from withdrawn data; empty for others."""
    rows = checkpoint.run.withdrawn_data.trained() if checkpoint.run is not None else []
    lines = [f"- {row.version} (SHA-256 {row.version.sha256}), on {row.at:%-d %B %Y}\n" for row in rows]
    head = "Consent to conversations of these datasets was withdrawn after this model had learned from them:\n\n"
    return head + "".join(lines) if lines else ""
