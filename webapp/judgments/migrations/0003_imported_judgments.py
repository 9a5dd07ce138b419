"""What the new columns say of older rows; judgments that came with conversations become rows."""

from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps
from django.db.models import F, Q
from django.utils.dateparse import parse_datetime


def keep_times(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Judgments until here were last saved when they were made, as far as is known."""
    judgments = apps.get_model("judgments", "Judgment").objects.using(schema_editor.connection.alias)
    judgments.filter(updated_at=None).update(updated_at=F("created_at"))


def close_ratings(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Whoever has guessed or rated after a game has voted."""
    alias = schema_editor.connection.alias
    seats = apps.get_model("arena", "MatchSeat").objects.using(alias)
    rated = seats.filter(Q(guesses__isnull=False) | Q(judgments__isnull=False)).distinct()
    closed = apps.get_model("judgments", "GameRating")
    closed.objects.using(alias).bulk_create([closed(by=seat, voted=True) for seat in rated], ignore_conflicts=True)


def read_imported(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Judgments that came with conversations become rows."""
    alias = schema_editor.connection.alias
    versions = apps.get_model("judgments", "RubricVersion").objects.using(alias).select_related("rubric")
    rows = {(row.rubric.name, row.number): row for row in versions}
    judgment = apps.get_model("judgments", "Judgment")
    conversations = apps.get_model("scenarios", "StoredConversation").objects.using(alias).exclude(judgments=[])
    for stored in conversations.iterator(chunk_size=1000):
        judgment.objects.using(alias).bulk_create(
            judgment(conversation=stored, rubric_version=rows[key], **fields)
            for key, fields in judgment_fields(stored.data, stored.judgments, rows)
        )


def judgment_fields(
    episode: Mapping[str, Any], records: list[dict[str, Any]], rubrics: Mapping[tuple[str, int], Any]
) -> Iterator[tuple[tuple[str, int], dict[str, Any]]]:
    """The rubric's name and version, and the fields of a row, for each judgment of one conversation.

    Judgments under unknown rubrics, or about no seat, make no row; values that do not fit count as "could not score".
    """
    times: Counter[tuple[object, ...]] = Counter()
    for data in records:
        key, seat = (data["rubric"], data["rubric_version"]), data.get("seat")
        if key not in rubrics or data.get("turn") is not None or seat is None:
            continue
        if seat >= len(episode["scenario"]["seats"]):
            continue
        author = data["author"].replace("\x00", "").strip()[:180] or "an unnamed author"
        times[key, seat, author] += 1
        count = times[key, seat, author]
        roles = episode.get("roles") or []
        role = roles[seat] if seat < len(roles) else ""
        values, reason = answer(data, [row for row in rubrics[key].dimensions if role in (row.get("roles") or [role])])
        yield key, {
            "seat": seat, "outside_author": author if count == 1 else f"{author} ({count})",
            "prompt_sha256": data.get("prompt_sha256", "")[:64], "values": values, "reason": reason,
            "reasons": data.get("reasons") or {}, "updated_at": time_of(data.get("judged_at", "")),
        }  # fmt: skip


def answer(data: Mapping[str, Any], dimensions: list[dict[str, Any]]) -> tuple[dict[str, float] | None, str]:
    """The values of a judgment, or None with the reason why there are none."""
    values, bounds = data.get("values"), {row["name"]: (row["low"], row["high"]) for row in dimensions}
    if values is None:
        return None, data.get("reason") or "the imported file gives no reason"
    for name, value in values.items():
        if name not in bounds:
            return None, f"the imported values do not fit the rubric: {name}: not a dimension of this rubric"
        low, high = bounds[name]
        if not low <= value <= high:
            why = f"choose a value: {low:g} to {high:g}"
            return None, f"the imported values do not fit the rubric: {name}: {why}"
    return (values, data.get("reason", "")) if values else (None, "the imported file gives no value")


def time_of(text: str) -> datetime | None:
    """A time with an offset, or None for anything else."""
    try:
        moment = parse_datetime(text)
    except ValueError:
        return None
    return moment if moment is not None and moment.tzinfo is not None else None


def drop_conversations(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """The tables before this migration cannot hold judgments of conversations, or by outside authors."""
    alias = schema_editor.connection.alias
    for name in ("Judgment", "Target"):
        apps.get_model("judgments", name).objects.using(alias).filter(conversation__isnull=False).delete()


class Migration(migrations.Migration):
    dependencies = [("judgments", "0002_conversations"), ("arena", "0004_rules"), ("scenarios", "0001_initial")]

    operations = [
        migrations.RunPython(keep_times, migrations.RunPython.noop),
        migrations.RunPython(close_ratings, migrations.RunPython.noop),
        migrations.RunPython(read_imported, drop_conversations),
    ]
