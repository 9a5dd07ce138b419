"""Copies the files of a batch to the storage before its rows are stored, so that every row can be read.

Raises `StorageError` if the storage fails. A checkpoint that the process prunes meanwhile is left out of the batch.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from training.store import MANIFEST
from webapp.core import files
from webapp.runs.batches import Batch
from worker.tail import Tail


def unreadable(batch: Batch, tail: Tail) -> dict[str, Path]:
    """A batch's files of episodes, and of rows of calibrations, that no page could read yet, by their names: none where
    the storage is local.
    """
    named = {line["file"]: "episodes" for line in batch.episodes}
    named |= {
        event["rows"]: "calibration" for event in batch.events if event["kind"] == "calibration" and "rows" in event
    }
    return {
        name: tail.attempt.root / folder / name.rpartition("/")[2]
        for name, folder in sorted(named.items())
        if files.local(name) is None
    }


def publish(batch: Batch, played: Mapping[str, Path]) -> None:
    """Publish these files and the batch's checkpoints, and keep those checkpoints that were not pruned."""
    for name, path in played.items():
        files.publish_file(path, name)
    batch.checkpoints = [checkpoint for checkpoint in batch.checkpoints if _publish_checkpoint(checkpoint)]


def _publish_checkpoint(checkpoint: Mapping[str, Any]) -> bool:
    """Publish a complete checkpoint; False, and nothing stays published, if it was pruned meanwhile.

    Pruning deletes the manifest first: where that is still there afterwards, everything was.
    """
    manifest = checkpoint["source"] / MANIFEST
    try:
        files.publish_folder(checkpoint["source"], checkpoint["path"])
    except FileNotFoundError:
        if manifest.exists():
            raise
    if manifest.exists():
        return True
    files.delete_folder(checkpoint["path"])
    return False
