"""Datasets, checkpoints and judgments: what goes into a run, what comes out, and what people and models say of it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from parley_client.models import CheckpointOut, DatasetOut, ImportOut, JudgmentIn, JudgmentOut, TargetOut
from parley_client.transport import Transport


class Datasets:
    """The datasets of a site."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(self, *, q: str = "", game: str = "") -> Iterator[DatasetOut]:
        """Datasets, newest first; those whose name contains `q`, with scenarios of `game`."""
        return self._transport.rows(DatasetOut, "datasets", q=q, game=game)

    def get(self, name: str) -> DatasetOut:
        """One dataset with its versions."""
        return self._transport.model(DatasetOut, "GET", f"datasets/{name}")

    def upload(
        self, name: str, files: Sequence[str | Path], *, format: str = "jsonl", options: Mapping[str, Any] | None = None
    ) -> ImportOut:
        """Import files as a new dataset, or as the next version of one that has this name.

        Raises `Invalid` with the first thing that is wrong in them; nothing is stored then.
        """
        with ExitStack() as opened:
            parts = [("files", (Path(file).name, opened.enter_context(Path(file).open("rb")))) for file in files]
            fields = {"format": format, "name": name, "options": json.dumps(dict(options or {}))}
            return self._transport.model(ImportOut, "POST", "datasets", data=fields, files=parts)

    def download(self, name: str, target: str | Path, *, version: int | None = None) -> Path:
        """Write a version as JSONL, one scenario per line, to a file; the newest version unless a number is stated."""
        number = self.get(name).versions[-1].number if version is None else version
        return self._transport.download(f"datasets/{name}/versions/{number}/export", target)


class Checkpoints:
    """The checkpoints of a site."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(self, *, run: int | None = None) -> Iterator[CheckpointOut]:
        """Checkpoints that may be used, newest first; those that a run wrote."""
        return self._transport.rows(CheckpointOut, "checkpoints", run=run)

    def get(self, checkpoint: int) -> CheckpointOut:
        """One checkpoint."""
        return self._transport.model(CheckpointOut, "GET", f"checkpoints/{checkpoint}")

    def download(self, checkpoint: int, target: str | Path) -> Path:
        """Write the checkpoint's folder as a zip file."""
        return self._transport.download(f"checkpoints/{checkpoint}/download", target)


class Judgments:
    """What people and models judged, and what waits for the owner of the key."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(self, *, queue: int | None = None, match: int | None = None) -> Iterator[JudgmentOut]:
        """Judgments in order of creation, of a queue or a match."""
        return self._transport.rows(JudgmentOut, "judgments", queue=queue, match=match)

    def targets(self, *, queue: int | None = None) -> Iterator[TargetOut]:
        """The seats that are assigned to the key's owner and not judged yet."""
        return self._transport.rows(TargetOut, "judgments/targets", queue=queue)

    def add(self, target: int, values: Mapping[str, float] | None, reason: str = "") -> JudgmentOut:
        """Judge a target: one value per dimension, or None with a reason where it cannot be scored."""
        body = JudgmentIn(target=target, values=None if values is None else dict(values), reason=reason)
        return self._transport.model(JudgmentOut, "POST", "judgments", json=body.model_dump(mode="json"))
