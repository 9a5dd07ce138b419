"""What a classifier learns from, as dataset files: the judged games of queues, and dataset versions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from training.dataset import DatasetLine
from training.errors import BadInput
from webapp.judgments.datasets import export
from webapp.judgments.models import Classifier, Queue
from webapp.judgments.suggesting.withdrawn import names_of
from webapp.scenarios.models import DatasetVersion
from webapp.scenarios.services import lines_of


def write(classifier: Classifier, folder: Path) -> list[dict[str, Any]]:
    """Write a file for each source, and return what each is: `kind`, `pk`, `name`, `file`, `games` and
    their `names`.

    Games whose players did not all agree, and those whose players the owner may not know yet, are left out. Raises
    `BadInput` for a source that was deleted.
    """
    sources = []
    for kind, pks in (("queue", classifier.trained_on["queues"]), ("dataset", classifier.trained_on["versions"])):
        for pk in pks:
            name, lines = _queue(pk, classifier) if kind == "queue" else _version(pk)
            file = f"{kind}-{pk}.jsonl"
            (folder / file).write_text("".join(line.dumps() + "\n" for line in lines), "utf-8")
            games = sum(len(line.conversations) for line in lines)
            sources.append(
                {"kind": kind, "pk": pk, "name": name, "file": file, "games": games, "names": names_of(lines)}
            )
    return sources


def _queue(pk: int, classifier: Classifier) -> tuple[str, list[DatasetLine]]:
    queue = Queue.objects.select_related("codebook_version__codebook").filter(pk=pk).first()
    if queue is None:
        raise BadInput("a queue of its labels was deleted", f"queue {pk}")
    return queue.name, export.Export(queue, classifier.owner).lines()


def _version(pk: int) -> tuple[str, list[DatasetLine]]:
    version = DatasetVersion.objects.select_related("dataset").filter(pk=pk).first()
    if version is None:
        raise BadInput("a dataset version of its labels was deleted", f"version {pk}")
    if version.closed_at is not None and version.replacement is not None:
        version = version.replacement
    return str(version), list(lines_of(version))
