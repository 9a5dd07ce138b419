"""Experiments with people: their designs, results and exports."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from parley_client.models import ExperimentLineOut, ExperimentOut, ExperimentResultsOut
from parley_client.transport import Transport


class Experiments:
    """The experiments of a site: researchers get their own, administrators all."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(self, *, q: str = "", state: str = "") -> Iterator[ExperimentLineOut]:
        """Experiments, newest first; those whose title contains `q`, in this state."""
        return self._transport.rows(ExperimentLineOut, "experiments", q=q, state=state)

    def get(self, experiment: int) -> ExperimentOut:
        """One experiment with its design and counts."""
        return self._transport.model(ExperimentOut, "GET", f"experiments/{experiment}")

    def results(self, experiment: int) -> ExperimentResultsOut:
        """Each arm's means with intervals, and the differences of the other arms from the first one."""
        return self._transport.model(ExperimentResultsOut, "GET", f"experiments/{experiment}/results")

    def download(self, experiment: int, target: str | Path, *, form: Literal["jsonl", "csv"] = "jsonl") -> Path:
        """Write one row per participant to a file, as JSON lines or CSV."""
        return self._transport.download(f"experiments/{experiment}/export?form={form}", target)
