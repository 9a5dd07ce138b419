"""Conversations get the hash of their scenario and moves, which all copies of a game share."""

import hashlib
import json

from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps

BATCH = 500


def hash_episodes(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Fill the column as `training.dataset.episode_hash` does for rows that are stored from here on."""
    conversation = apps.get_model("scenarios", "StoredConversation")
    manager = conversation.objects.using(schema_editor.connection.alias)
    batch = []
    played = manager.values_list("pk", "data__scenario", "data__moves")
    for pk, scenario, moves in played.iterator(chunk_size=BATCH):
        data = {"scenario": scenario, "moves": moves}
        text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False, sort_keys=True)
        batch.append(conversation(pk=pk, episode_sha256=hashlib.sha256(text.encode()).hexdigest()))
        if len(batch) == BATCH:
            manager.bulk_update(batch, ["episode_sha256"])
            batch = []
    manager.bulk_update(batch, ["episode_sha256"])


class Migration(migrations.Migration):
    dependencies = [("scenarios", "0001_initial")]

    operations = [
        migrations.AddField(
            model_name="storedconversation",
            name="episode_sha256",
            field=models.CharField(
                default="", help_text="Of its scenario and moves: the same in every copy.", max_length=64
            ),
            preserve_default=False,
        ),
        migrations.RunPython(hash_episodes, migrations.RunPython.noop),
        migrations.AddIndex(
            model_name="storedconversation",
            index=models.Index(fields=["episode_sha256"], name="conversation_episode"),
        ),
    ]
