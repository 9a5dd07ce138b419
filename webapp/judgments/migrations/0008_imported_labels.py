"""Judgments that are stored with conversations get labels, too; versions with such judgments have a new export, and hash.
"""

import hashlib
from collections.abc import Iterator
from typing import Any

from django.db import migrations

from training.dataset import Conversation, DatasetLine
from training.records import Judgment, Scenario

CHUNK = 500


def convert(apps: Any, editor: Any) -> None:
    alias = editor.connection.alias
    conversations = apps.get_model("scenarios", "StoredConversation").objects.using(alias).exclude(judgments=[])
    versions = set()
    for row in conversations.select_related("scenario").iterator(chunk_size=CHUNK):
        if any("rubric" in data for data in row.judgments):
            row.judgments = [Judgment.from_dict(data).to_dict() for data in row.judgments]
            row.save(update_fields=["judgments"])
            versions.add(row.scenario.version_id)
    for version in apps.get_model("scenarios", "DatasetVersion").objects.using(alias).filter(pk__in=versions):
        digest = hashlib.sha256()
        for line in lines_of(version):
            digest.update(line.dumps().encode() + b"\n")
        version.sha256 = digest.hexdigest()
        version.save(update_fields=["sha256"])


def lines_of(version: Any) -> Iterator[DatasetLine]:
    """The lines of a version as they are exported."""
    scenarios = version.scenarios.order_by("position").prefetch_related("conversations")
    for stored in scenarios.iterator(chunk_size=CHUNK):
        rows = sorted(stored.conversations.all(), key=lambda row: row.position)
        conversations = (
            Conversation.from_dict({"source": row.source, "episode": row.data, "judgments": row.judgments})
            for row in rows
        )
        yield DatasetLine(scenario=Scenario.from_dict(stored.data), conversations=tuple(conversations))


def drop_unused(apps: Any, editor: Any) -> None:
    """Going back: codebooks that no rubric can hold are dropped where nobody used them; others stop the next step."""
    alias = editor.connection.alias
    versions = apps.get_model("judgments", "CodebookVersion").objects.using(alias)
    unused = versions.filter(queues=None, judgments=None)
    beyond = [
        version.pk
        for version in unused
        if any(each["kind"] not in ("yes_no", "scale") or each["about"] != "seat" for each in version.labels)
    ]
    versions.filter(pk__in=beyond)._raw_delete(alias)  # nothing refers to them
    apps.get_model("judgments", "Codebook").objects.using(alias).filter(versions=None)._raw_delete(alias)


class Migration(migrations.Migration):
    dependencies = [("judgments", "0007_labels"), ("scenarios", "0003_import_options")]

    operations = [migrations.RunPython(convert, drop_unused)]
