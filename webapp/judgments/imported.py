"""Judgments that come with imported conversations: one row each, by an author outside this site.

A judgment under an unknown rubric, or about a single turn, stays with its conversation and gets no row. If the values
do not fit the rubric, the row is stored as "could not score" with the reason.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from django.utils.dateparse import parse_datetime

from training.errors import BadInput
from training.records import Judgment as JudgmentRecord
from training.rewards.rubrics import Rubric as RubricRecord
from webapp.judgments.models import Judgment, RubricVersion
from webapp.judgments.services import check_values
from webapp.scenarios.models import DatasetVersion, StoredConversation

log = logging.getLogger(__name__)
BATCH = 1000
UNNAMED = "an unnamed author"

Rubrics = Mapping[tuple[str, int], RubricRecord]
"""The rubrics of this site by name and version."""


def store_judgments(version: DatasetVersion) -> int:
    """Store the judgments of a version's conversations; return how many rows there are then. Safe to repeat."""
    rows = {(row.rubric.name, row.number): row for row in RubricVersion.objects.select_related("rubric")}
    rubrics = {key: row.record() for key, row in rows.items()}
    conversations = StoredConversation.objects.filter(scenario__version=version).exclude(judgments=[])
    batch: list[Judgment] = []
    for conversation in conversations.iterator(chunk_size=BATCH):
        for key, fields in judgment_fields(conversation.data, conversation.judgments, rubrics):
            batch.append(Judgment(conversation=conversation, rubric_version=rows[key], **fields))
        if len(batch) >= BATCH:
            Judgment.objects.bulk_create(batch, ignore_conflicts=True)
            batch = []
    Judgment.objects.bulk_create(batch, ignore_conflicts=True)
    return Judgment.objects.filter(conversation__scenario__version=version).outside().count()


def judgment_fields(
    episode: Mapping[str, Any], records: list[dict[str, Any]], rubrics: Rubrics
) -> Iterator[tuple[tuple[str, int], dict[str, Any]]]:
    """Yield (name and version of the rubric, fields of the row) for each judgment of one conversation.

    An author who judged a seat several times under one rubric gets a number from the second time on.
    """
    times: Counter[tuple[object, ...]] = Counter()
    for data in records:
        record = JudgmentRecord.from_dict(data)
        key = record.rubric, record.rubric_version
        seats = len(episode["scenario"]["seats"])
        if key not in rubrics or record.turn is not None or record.seat is None or record.seat >= seats:
            log.info("a judgment by %r under %s v%d makes no row", record.author, *key)
            continue
        author = record.author.replace("\x00", "").strip()[:180] or UNNAMED
        times[key, record.seat, author] += 1
        count = times[key, record.seat, author]
        values, reason = _answer(record, _role(episode, record.seat), rubrics[key])
        yield key, {
            "seat": record.seat, "outside_author": author if count == 1 else f"{author} ({count})",
            "prompt_sha256": record.prompt_sha256[:64], "values": values, "reason": reason, "reasons": record.reasons,
            "updated_at": _time(record.judged_at),
        }  # fmt: skip


def _role(episode: Mapping[str, Any], seat: int) -> str:
    roles = episode.get("roles") or []
    return str(roles[seat]) if seat < len(roles) else ""


def _answer(record: JudgmentRecord, role: str, rubric: RubricRecord) -> tuple[dict[str, float] | None, str]:
    """Return the values of a record, or None with the reason why there are none."""
    if record.values is None:
        return None, record.reason or "the imported file gives no reason"
    try:
        values = check_values(rubric.of(role), record.values, whole=False)
    except BadInput as error:
        return None, f"the imported values do not fit the rubric: {error}"
    return (values, record.reason) if values else (None, "the imported file gives no value")


def _time(text: str) -> datetime | None:
    """Return a time with an offset, or None for anything else."""
    try:
        moment = parse_datetime(text)
    except ValueError:
        return None
    return moment if moment is not None and moment.tzinfo is not None else None
