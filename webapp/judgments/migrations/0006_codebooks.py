"""Rubrics become codebooks, and the values of judgments become typed labels: yes and no are no longer 1 and 0."""

from typing import Any

import django.db.models.deletion
from django.db import migrations, models

CHUNK = 1000


def label_type(dimension: dict[str, Any]) -> dict[str, Any]:
    """A rubric's dimension as a label type: what 0 and 1 mean becomes an example of no and of yes."""
    kept = {name: dimension[name] for name in ("name", "title", "roles") if name in dimension}
    common = {**kept, "about": "seat", "definition": dimension["question"]}
    anchors = dimension.get("anchors", [])
    if not dimension.get("yes_no"):
        return {**common, "kind": "scale", "low": dimension["low"], "high": dimension["high"], "anchors": anchors}
    texts = {bool(anchor["value"]): anchor["text"] for anchor in anchors}
    examples = {
        name: [texts[value].removeprefix(f"{word}: ")]
        for name, value, word in (("positive", True, "yes"), ("negative", False, "no"))
        if value in texts
    }
    return {**common, "kind": "yes_no", **examples}


def dimension(label_type: dict[str, Any]) -> dict[str, Any]:
    """The reverse."""
    if label_type["kind"] not in ("yes_no", "scale") or label_type["about"] != "seat":
        raise ValueError(f"the label type {label_type['name']} is no number about a seat: a rubric cannot hold it")
    yes_no = label_type["kind"] == "yes_no"
    examples = (("no", 0, label_type.get("negative") or ()), ("yes", 1, label_type.get("positive") or ()))
    anchors = [{"value": value, "text": f"{word}: {texts[0]}"} for word, value, texts in examples if texts]
    return {
        **{name: label_type[name] for name in ("name", "title")},
        "roles": label_type.get("roles", []),
        "question": label_type["definition"],
        "yes_no": yes_no,
        "low": 0 if yes_no else label_type["low"],
        "high": 1 if yes_no else label_type["high"],
        "anchors": anchors if yes_no else label_type["anchors"],
    }


def labels_of(values: dict[str, float], reasons: dict[str, str], seat: int, yes_no: set[str]) -> list[dict[str, Any]]:
    """The fields of the labels of one judgment."""
    return [
        {
            "name": name,
            "value": bool(value) if name in yes_no else float(value),
            "seat": seat,
            "reason": reasons.get(name, ""),
        }
        for name, value in values.items()
    ]


def earlier(entry: dict[str, Any], seat: int, yes_no: set[str]) -> dict[str, Any]:
    """An entry of a judgment's history with labels."""
    rest = {name: value for name, value in entry.items() if name != "values"}
    if entry.get("values") is None:
        return {**rest, "labels": None}
    fields = labels_of(entry["values"], {}, seat, yes_no)
    empty = {"turn": None, "start": None, "end": None, "other_turn": None}
    return {**rest, "labels": [{**{"label": each.pop("name")}, **each, **empty} for each in fields]}


def forwards(apps: Any, editor: Any) -> None:
    alias = editor.connection.alias
    judgments = apps.get_model("judgments", "Judgment").objects.using(alias)
    label = apps.get_model("judgments", "Label")
    yes_no: dict[int, set[str]] = {}
    for version in apps.get_model("judgments", "CodebookVersion").objects.using(alias):
        version.labels = [label_type(row) for row in version.labels]
        version.save(update_fields=["labels"])
        yes_no[version.pk] = {row["name"] for row in version.labels if row["kind"] == "yes_no"}
    batch: list[Any] = []
    for row in judgments.iterator(chunk_size=CHUNK):
        names = yes_no[row.codebook_version_id]
        row.unscored = row.values is None
        row.history = [earlier(entry, row.seat, names) for entry in row.history]
        row.save(update_fields=["unscored", "history"])
        fields = labels_of(row.values or {}, row.reasons, row.seat, names)
        batch += [label(judgment_id=row.pk, **each) for each in fields]
        if len(batch) >= CHUNK:
            label.objects.using(alias).bulk_create(batch)
            batch = []
    label.objects.using(alias).bulk_create(batch)


def backwards(apps: Any, editor: Any) -> None:
    alias = editor.connection.alias
    for version in apps.get_model("judgments", "CodebookVersion").objects.using(alias):
        version.labels = [dimension(row) for row in version.labels]
        version.save(update_fields=["labels"])
    for row in apps.get_model("judgments", "Judgment").objects.using(alias).prefetch_related("labels"):
        labels = list(row.labels.all())
        row.values = None if row.unscored else {each.name: float(each.value) for each in labels}
        row.reasons = {each.name: each.reason for each in labels if each.reason}
        row.history = [
            {
                **{name: value for name, value in entry.items() if name != "labels"},
                "values": None
                if entry["labels"] is None
                else {each["label"]: float(each["value"]) for each in entry["labels"]},
            }
            for entry in row.history
        ]
        row.save(update_fields=["values", "reasons", "history"])


class Migration(migrations.Migration):
    dependencies = [("judgments", "0005_rules")]

    operations = [
        migrations.RenameModel("Rubric", "Codebook"),
        migrations.RemoveConstraint("RubricVersion", "rubric_number_once"),
        migrations.RenameModel("RubricVersion", "CodebookVersion"),
        migrations.RenameField("CodebookVersion", "rubric", "codebook"),
        migrations.RenameField("CodebookVersion", "dimensions", "labels"),
        migrations.AddConstraint(
            "CodebookVersion",
            models.UniqueConstraint(fields=["codebook", "number"], name="codebook_number_once"),
        ),
        migrations.AddField(
            "CodebookVersion",
            "guideline",
            models.TextField(blank=True, default="", help_text="For annotators, in Markdown."),
            preserve_default=False,
        ),
        migrations.RenameField("Queue", "rubric_version", "codebook_version"),
        migrations.RemoveConstraint("Judgment", "one_rating_a_seat"),
        migrations.RemoveConstraint("Judgment", "one_outside_judgment_a_seat"),
        migrations.RenameField("Judgment", "rubric_version", "codebook_version"),
        migrations.AddConstraint(
            "Judgment",
            models.UniqueConstraint(fields=["author_seat", "seat", "codebook_version"], name="one_rating_a_seat"),
        ),
        migrations.AddConstraint(
            "Judgment",
            models.UniqueConstraint(
                fields=["conversation", "seat", "codebook_version", "outside_author"],
                condition=models.Q(("outside_author", ""), _negated=True),
                nulls_distinct=False,
                name="one_outside_judgment_a_seat",
            ),
        ),
        migrations.AddField(
            "Judgment",
            "unscored",
            models.BooleanField(default=False, help_text="The author could not score it."),
        ),
        migrations.CreateModel(
            name="Label",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(max_length=40)),
                ("value", models.JSONField(blank=True, null=True)),
                ("text", models.TextField(blank=True)),
                ("seat", models.PositiveSmallIntegerField(blank=True, null=True)),
                ("turn", models.PositiveIntegerField(blank=True, null=True)),
                ("start", models.PositiveIntegerField(blank=True, null=True)),
                ("end", models.PositiveIntegerField(blank=True, null=True)),
                ("other_turn", models.PositiveIntegerField(blank=True, null=True)),
                ("reason", models.TextField(blank=True)),
                (
                    "judgment",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="labels", to="judgments.judgment"
                    ),
                ),
            ],
            options={"ordering": ["pk"]},
        ),
        migrations.RunPython(forwards, backwards),
    ]
