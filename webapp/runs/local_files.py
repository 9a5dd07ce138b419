"""What this machine's disk still has of deleted runs, of datasets that were closed, and of models that were served.

The clock and every worker call `delete_leftovers` again and again, each for its own machine: a machine that was away
does it once it is back, and what could not be deleted is tried again.
"""

from __future__ import annotations

import logging
import shutil
import socket
from collections.abc import Iterator, Mapping
from pathlib import Path

from django.conf import settings

from webapp.runs.models import DeletedRun, Run
from webapp.scenarios.models import DatasetVersion

logger = logging.getLogger(__name__)
READING = (Run.State.STARTING, Run.State.RUNNING, Run.State.STOPPING)
"""States of a run whose process may still read its copy of a closed dataset. A queued run is refused when it starts."""
_reported: set[Path] = set()


def delete_leftovers() -> int:
    """Delete the directories of deleted runs, and copies in those of others that are of no use any more; how many.

    These are of closed dataset versions, and of models that are not served any more. What cannot be deleted keeps
    nothing else, and is named in the log once.
    """
    runs = {int(folder.name): folder for folder in settings.RUNS_ROOT.glob("*") if folder.name.isdecimal()}
    leftovers = [*_directories(runs), *_copies(runs), *_served(runs)]
    return sum(delete(path) for path in leftovers if path.exists())


def _directories(runs: Mapping[int, Path]) -> list[Path]:
    deleted = DeletedRun.objects.filter(run_id__in=runs).exclude(run_id__in=Run.objects.values("pk"))
    return [runs[number] for number in deleted.values_list("run_id", flat=True)]


def _copies(runs: Mapping[int, Path]) -> Iterator[Path]:
    """The files of closed versions, also those that a killed worker was writing."""
    for number, sha256 in _closed(runs):
        for suffix in (".jsonl", ".part"):
            yield runs[number] / "inputs" / f"{sha256}{suffix}"


def _served(runs: Mapping[int, Path]) -> list[Path]:
    """The inputs of models that are not served any more: each start fetches its model from the bucket anew."""
    over = Run.objects.over().filter(pk__in=runs, kind=Run.Kind.SERVE)
    return [runs[number] / "inputs" for number in over.values_list("pk", flat=True)]


def _closed(runs: Mapping[int, Path]) -> Iterator[tuple[int, str]]:
    """The number of a run and the hash of a closed version that it trained or was measured on."""
    over = Run.objects.filter(pk__in=runs).exclude(state__in=READING)
    yield from over.filter(dataset_version__closed_at__isnull=False).values_list("pk", "dataset_version__sha256")
    measured = over.filter(config__calibration__sets__0__isnull=False).values_list("pk", "config__calibration__sets")
    if not measured:
        return
    versions = DatasetVersion.objects.filter(closed_at__isnull=False).select_related("dataset")
    closed = {str(version): version.sha256 for version in versions}
    for number, sets in measured:
        yield from ((number, closed[each["path"]]) for each in sets if each["path"] in closed)


def delete(path: Path) -> bool:
    """Delete a file or a folder as far as possible; return whether nothing of it is left."""
    failures: list[str] = []
    if path.is_dir():
        shutil.rmtree(path, onerror=lambda _work, _name, raised: failures.append(str(raised[1])))
    else:
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            failures.append(str(error))
    if not path.exists():
        _reported.discard(path)
        return True
    if path not in _reported:
        _reported.add(path)
        why = "; ".join(failures[:3])
        logger.error("%s: %s should be deleted and cannot be; it is tried again: %s", socket.gethostname(), path, why)
    return False
