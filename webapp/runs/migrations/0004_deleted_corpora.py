"""A run keeps the name and the content's hash of each corpus that it searches, which may be deleted once it is over."""

import django.db.models.deletion
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps
from django.db.models import OuterRef, Subquery


def fill_in(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Record the name and hash of every corpus that a run names: none of them can have been deleted yet."""
    corpora = apps.get_model("corpora", "Corpus").objects.filter(pk=OuterRef("corpus"))
    apps.get_model("runs", "RunCorpus").objects.update(
        name=Subquery(corpora.values("name")), sha256=Subquery(corpora.values("file__sha256"))
    )


def leave_out(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Delete the records of corpora that are gone, which older tables cannot hold."""
    apps.get_model("runs", "RunCorpus").objects.filter(corpus=None).delete()


class Migration(migrations.Migration):
    dependencies = [("corpora", "0001_initial"), ("runs", "0003_run_corpora")]

    operations = [
        migrations.AlterModelOptions(name="runcorpus", options={}),
        migrations.AddField(
            model_name="runcorpus",
            name="name",
            field=models.CharField(default="", max_length=80),
            preserve_default=False,
        ),
        migrations.AddField(
            model_name="runcorpus",
            name="sha256",
            field=models.CharField(default="", help_text="Hash of its file.", max_length=64),
            preserve_default=False,
        ),
        migrations.AlterField(
            model_name="runcorpus",
            name="run",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE, related_name="searched", to="runs.run"
            ),
        ),
        migrations.AlterField(
            model_name="runcorpus",
            name="corpus",
            field=models.ForeignKey(
                help_text="None once deleted.",
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                to="corpora.corpus",
            ),
        ),
        migrations.RunPython(fill_in, leave_out),
    ]
