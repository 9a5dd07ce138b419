"""Copies the files of a batch to the storage before its rows are stored, so that every row can be read.

Raises `StorageError` if the storage fails. A checkpoint that the process prunes meanwhile is left out of the batch.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from training.store import MANIFEST
from webapp.runs import files
from webapp.runs.batches import Batch
from worker.tail import Tail


def unreadable(batch: Batch, tail: Tail) -> dict[str, Path]:
    """The episode files of a batch that no page could read yet, by their names: none where the storage is local."""
    named = {line["file"] for line in batch.episodes if files.local(line["file"]) is None}
    return {name: tail.attempt.root / "episodes" / name.rpartition("/")[2] for name in sorted(named)}


def publish(batch: Batch, played: Mapping[str, Path]) -> None:
    """Publish these episode files and the batch's checkpoints, and keep those checkpoints that were not pruned."""
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
