"""Judgments: read those of people and models, add some, and download the labels of a queue."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Literal

from parley_client.models import JudgmentIn, JudgmentOut, LabelShape, TargetOut
from parley_client.transport import Transport

Value = bool | float | str | list[str] | list[int]


class Judgments:
    """The judgments of people and models, and the targets that wait for the owner of the key."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(self, *, queue: int | None = None, match: int | None = None) -> Iterator[JudgmentOut]:
        """Judgments in order of creation, of a queue or a match."""
        return self._transport.rows(JudgmentOut, "judgments", queue=queue, match=match)

    def targets(self, *, queue: int | None = None) -> Iterator[TargetOut]:
        """The seats that are assigned to the key's owner and not judged yet."""
        return self._transport.rows(TargetOut, "judgments/targets", queue=queue)

    def add(
        self, target: int, labels: Mapping[str, Value] | Iterable[LabelShape] | None, reason: str = ""
    ) -> JudgmentOut:
        """Judge a target by labels, or None with a reason where it cannot be scored.

        A mapping from label types to values labels the target's seat.
        """
        if isinstance(labels, Mapping):
            labels = [LabelShape.model_validate({"label": name, "value": value}) for name, value in labels.items()]
        body = JudgmentIn(target=target, labels=None if labels is None else list(labels), reason=reason)
        return self._transport.model(JudgmentOut, "POST", "judgments", json=body.model_dump(mode="json"))

    def download(
        self, queue: int, target: str | Path, *, format: Literal["jsonl", "csv", "label-studio", "w3c"] = "jsonl"
    ) -> Path:
        """Write the labels of a queue to a file."""
        return self._transport.download(f"judgments/queues/{queue}/labels?format={format}", target)
