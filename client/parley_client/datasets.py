"""Datasets: list, import and download them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from parley_client.models import DatasetOut, ImportOut
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
        """Write a version as JSONL, one scenario per line, to a file; the newest version by default."""
        number = self.get(name).versions[-1].number if version is None else version
        return self._transport.download(f"datasets/{name}/versions/{number}/export", target)
