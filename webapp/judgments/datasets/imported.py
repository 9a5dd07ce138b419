"""Judgments that come with imported conversations: one row each, by an author outside this site.

A judgment under an unknown codebook stays with its conversation and gets no row. If the labels do not fit the codebook,
the row is stored as "could not score" with the reason.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from django.utils.dateparse import parse_datetime

from training.errors import BadInput
from training.labels.codebooks import Codebook as CodebookRecord
from training.labels.codebooks import check_turns
from training.records import Judgment as JudgmentRecord
from training.records import Label as LabelRecord
from webapp.judgments.models import CodebookVersion, Judgment, Label
from webapp.judgments.search.games import index_games
from webapp.scenarios.models import DatasetVersion, StoredConversation

log = logging.getLogger(__name__)
BATCH = 1000
UNNAMED = "an unnamed author"
OUTSIDE_KEY = ("conversation_id", "seat", "codebook_version_id", "outside_author", "decides")
"""What tells the judgments of outside authors apart."""

Codebooks = Mapping[tuple[str, int], CodebookRecord]
"""The codebooks of this site by name and version."""


def store_judgments(version: DatasetVersion) -> int:
    """Store the judgments of a version's conversations; return how many rows there are then. Safe to repeat."""
    rows = {(row.codebook.name, row.number): row for row in CodebookVersion.objects.select_related("codebook")}
    codebooks = {key: row.record() for key, row in rows.items()}
    conversations = StoredConversation.objects.filter(scenario__version=version).exclude(judgments=[])
    batch: list[tuple[Judgment, Sequence[LabelRecord]]] = []
    for conversation in conversations.iterator(chunk_size=BATCH):
        for key, labels, fields in judgment_fields(conversation.data, conversation.judgments, codebooks):
            batch.append((Judgment(conversation=conversation, codebook_version=rows[key], **fields), labels))
        if len(batch) >= BATCH:
            _store(batch, codebooks)
            batch = []
    _store(batch, codebooks)
    return Judgment.objects.filter(conversation__scenario__version=version).outside().count()


def _store(batch: Sequence[tuple[Judgment, Sequence[LabelRecord]]], codebooks: Codebooks) -> None:
    """Store judgments that are not stored yet, with their labels."""
    conversations = {judgment.conversation_id for judgment, _ in batch}
    stored = set(Judgment.objects.filter(conversation__in=conversations).outside().values_list(*OUTSIDE_KEY))
    new = [(row, labels) for row, labels in batch if tuple(getattr(row, name) for name in OUTSIDE_KEY) not in stored]
    Judgment.objects.bulk_create(row for row, _ in new)
    kinds = {
        key: {label_type.name: label_type.kind for label_type in record.labels} for key, record in codebooks.items()
    }
    Label.objects.bulk_create(
        Label.of(
            label, kinds[row.codebook_version.codebook.name, row.codebook_version.number][label.label], judgment=row
        )
        for row, labels in new
        for label in labels
    )
    index_games(row.conversation for row, _ in new if row.conversation is not None)


def judgment_fields(
    episode: Mapping[str, Any], records: list[dict[str, Any]], codebooks: Codebooks
) -> Iterator[tuple[tuple[str, int], Sequence[LabelRecord], dict[str, Any]]]:
    """Yield (name and version of the codebook, labels, fields of the row) for each judgment of one conversation.

    An author who judged a seat several times under one codebook gets a number from the second time on. Decisions are
    not counted, because an adjudicator may have judged the same seat.
    """
    times: Counter[tuple[object, ...]] = Counter()
    for data in records:
        record = JudgmentRecord.from_dict(data)
        key = record.codebook, record.codebook_version
        seats = len(episode["scenario"]["seats"])
        if key not in codebooks or (record.seat is not None and record.seat >= seats):
            log.info("a judgment by %r under %s v%d makes no row", record.author, *key)
            continue
        author = record.author.replace("\x00", "").strip()[:180] or UNNAMED
        times[key, record.seat, author, record.decides] += 1
        count = times[key, record.seat, author, record.decides]
        labels, reason = _answer(record, episode, codebooks[key])
        yield key, labels or (), {
            "seat": record.seat, "outside_author": author if count == 1 else f"{author} ({count})",
            "prompt_sha256": record.prompt_sha256[:64], "unscored": labels is None, "reason": reason,
            "updated_at": _time(record.judged_at), "seconds": record.seconds, "unsure": record.unsure,
            "suggestions_shown": record.suggestions_shown, "decides": record.decides,
        }  # fmt: skip


def _role(episode: Mapping[str, Any], seat: int) -> str:
    roles = episode.get("roles") or []
    return str(roles[seat]) if seat < len(roles) else ""


def _answer(
    record: JudgmentRecord, episode: Mapping[str, Any], codebook: CodebookRecord
) -> tuple[Sequence[LabelRecord] | None, str]:
    """Return the labels of a record, or None with the reason why there are none."""
    if record.labels is None:
        return None, record.reason or "the imported file gives no reason"
    try:
        asked = codebook if record.seat is None else codebook.of(_role(episode, record.seat))
        labels = asked.upgraded(record).labels or ()
        asked.check(labels, whole=False)
        texts = [entry["move"]["text"] for entry in episode["moves"]]
        check_turns(labels, texts, len(episode["scenario"]["seats"]))
    except BadInput as error:
        return None, f"the imported labels do not fit the codebook: {error}"
    if not labels and asked.about_seats:
        return None, "the imported file gives no label"
    return labels, record.reason  # of a whole game, an author may mark nothing


def _time(text: str) -> datetime | None:
    """Return a time with an offset, or None for anything else."""
    try:
        moment = parse_datetime(text)
    except ValueError:
        return None
    return moment if moment is not None and moment.tzinfo is not None else None
