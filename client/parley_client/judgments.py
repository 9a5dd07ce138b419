"""Judgments: read those of people and models, and add some."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from parley_client.models import JudgmentIn, JudgmentOut, TargetOut
from parley_client.transport import Transport


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

    def add(self, target: int, values: Mapping[str, float] | None, reason: str = "") -> JudgmentOut:
        """Judge a target: one value per label_type, or None with a reason where it cannot be scored."""
        body = JudgmentIn(target=target, values=None if values is None else dict(values), reason=reason)
        return self._transport.model(JudgmentOut, "POST", "judgments", json=body.model_dump(mode="json"))
