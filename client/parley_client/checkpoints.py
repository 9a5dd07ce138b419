"""Checkpoints: list and download them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from parley_client.models import CheckpointOut
from parley_client.transport import Transport


class Checkpoints:
    """The checkpoints of a site."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(self, *, run: int | None = None) -> Iterator[CheckpointOut]:
        """Checkpoints that may be used, newest first; those that a run wrote."""
        return self._transport.rows(CheckpointOut, "checkpoints", run=run)

    def get(self, checkpoint: int | str) -> CheckpointOut:
        """One checkpoint, by its id or an alias such as `best`."""
        return self._transport.model(CheckpointOut, "GET", f"checkpoints/{checkpoint}")

    def download(self, checkpoint: int | str, target: str | Path) -> Path:
        """Write the checkpoint's folder as a zip file."""
        return self._transport.download(f"checkpoints/{checkpoint}/download", target)
