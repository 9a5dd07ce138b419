"""Parley's own form: a dataset line per scenario, written conversation by conversation."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from training import dataset
from training.dataset import Conversation
from training.labels.codebooks import Codebook
from training.labels.exchange.base import LabelledScenario


def write(codebook: Codebook, scenarios: Iterable[LabelledScenario]) -> Iterator[str]:
    """Yield the text of `DatasetLine.dumps` for each scenario in pieces of one conversation."""
    for labelled in scenarios:
        yield '{"conversations":['
        for number, conversation in enumerate(labelled.conversations):
            yield f"{',' if number else ''}{_dumps(conversation.to_dict())}"
        yield f'],"scenario":{_dumps(labelled.scenario.to_dict())}}}\n'


def read(path: Path, codebook: Codebook) -> Iterator[Conversation]:
    """Yield the conversations of a file, whose judgments name their codebooks."""
    for line in dataset.read(path):
        yield from line.conversations


def _dumps(data: Any) -> str:
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False, sort_keys=True)
