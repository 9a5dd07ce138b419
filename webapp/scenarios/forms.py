"""Forms of the datasets: an upload, a fork, a scenario."""

from __future__ import annotations

import json
import re
from typing import Any

from django import forms
from django.core.files.uploadedfile import UploadedFile

from training.dataset import DatasetLine
from training.errors import BadInput
from training.games import anonymised, lookup, make
from training.records import Scenario
from webapp.core.schema import SchemaForm
from webapp.core.transcripts import Start, starts
from webapp.scenarios import importers, services
from webapp.scenarios.importers.reading import LONGEST_SEAT, storable


class NameField(forms.SlugField):
    """A dataset's name: a slug."""

    default_error_messages = {"invalid": "Use letters, digits, hyphens and underscores only."}

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(
            max_length=80, label="Name", help_text="Letters, digits and hyphens, such as casino-train.", **kwargs
        )

    def clean(self, value: Any) -> str:
        name = str(super().clean(value))
        try:
            services.check_name(name)
        except BadInput as error:
            raise forms.ValidationError(f"{error.why}.") from error
        return name


class SeveralFiles(forms.ClearableFileInput):
    """A file input that takes more than one file."""

    allow_multiple_selected = True


class FilesField(forms.FileField):
    """One or more files; the cleaned value is their list."""

    widget = SeveralFiles

    def clean(self, data: Any, initial: Any = None) -> Any:
        files = data if isinstance(data, list) and data else [data or None]
        return [super(FilesField, self).clean(file, initial) for file in files]


def option_fields() -> dict[str, forms.Field]:
    """Return a field for every option of every format, by name; formats share options of the same name.

    `data-formats` of a field's control names its formats, so that the page shows those of the chosen one.
    """
    fields: dict[str, forms.Field] = {}
    formats: dict[str, list[str]] = {}
    for format_name, fmt in importers.FORMATS.items():
        if fmt.options is None:
            continue
        options = fmt.options().model_dump(mode="json")
        form = SchemaForm(options, fmt.options.model_json_schema())
        for name, value in options.items():
            field = form.fields[json.dumps([name])]
            field.required, field.initial, field.label = False, value, name.capitalize()
            fields.setdefault(name, field)
            formats.setdefault(name, []).append(format_name)
    for name, field in fields.items():
        field.help_text = f"{field.help_text} Of the formats: {', '.join(formats[name])}."
        field.widget.attrs["data-formats"] = " ".join(formats[name])
    return fields


class UploadForm(forms.Form):
    """The upload: format, files, the dataset's name, and the options of the format."""

    format = forms.ChoiceField(
        choices=[(name, fmt.title) for name, fmt in importers.FORMATS.items()], help_text="How the file is written."
    )
    chosen = FilesField(
        label="File",
        help_text="One file. Several together: the four files of SOTOPIA's JSONL form, episodes.jsonl with "
        "scores.json for played episodes, all files of nine-player Werewolf (one per game), any relations of "
        "EntityQuestions. "
        f"At most {importers.MAX_BYTES // 2**20} MiB.",
    )
    name = NameField()
    source = forms.CharField(
        max_length=400, required=False, help_text="Where the data comes from. Empty: the format's."
    )
    licence = forms.CharField(max_length=120, required=False, help_text="Its licence. Empty: the format's.")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields.update({f"option-{name}": field for name, field in option_fields().items()})

    @property
    def options(self) -> dict[str, Any]:
        """The options of the chosen format; call it on cleaned data only. An empty number has its default."""
        model = importers.FORMATS[self.cleaned_data["format"]].options
        names = model.model_fields if model else {}
        values = {name: self.cleaned_data.get(f"option-{name}") for name in names}
        return {name: value for name, value in values.items() if value is not None}

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        if cleaned.get("chosen") and cleaned.get("format"):
            files: list[UploadedFile] = cleaned["chosen"]
            try:
                importers.check_upload(cleaned["format"], [(file.name or "", file.size or 0) for file in files])
            except BadInput as error:
                self.add_error("chosen", error.why)
        if cleaned.get("format"):
            try:
                importers.options_of(cleaned["format"], self.options)
            except BadInput as error:
                self.add_error(f"option-{error.where}", error.why)
            model = importers.FORMATS[cleaned["format"]].options
            named = str(self.options.get("codebook") or "").strip()
            if model and "codebook" in model.model_fields and not named:  # no labels can be read without it
                self.add_error("option-codebook", "Name the codebook under which the labels are read.")
        return cleaned


class ForkForm(forms.Form):
    """The name of the copy."""

    name = NameField()


class DatasetNameForm(forms.Form):
    """The name of a new dataset, or of the user's own dataset to add a version to."""

    name = forms.SlugField(
        max_length=80, help_text="A new name creates a dataset; the name of one of yours adds a version to it."
    )


class ScenarioForm(SchemaForm):
    """A scenario's settings field by field, checked by its own game; `preview` is what each seat will see."""

    def __init__(self, scenario: Scenario, data: Any = None) -> None:
        self._scenario = scenario
        settings = lookup(scenario.game).settings
        full = settings.model_validate(scenario.settings).model_dump(mode="json")
        super().__init__(full, settings.model_json_schema(), data, prefix="settings")
        seats = {
            f"seat {n}": forms.CharField(
                max_length=LONGEST_SEAT, label=f"Seat {n + 1}", help_text="Display name.", initial=name
            )
            for n, name in enumerate(scenario.seats)
        }
        help_text = "Seed of all randomness in the game. 0: training draws a new one each time; any other is replayed."
        seed = forms.IntegerField(min_value=0, max_value=2**63 - 1, initial=scenario.seed, help_text=help_text)
        self.fields = {**seats, "seed": seed, **self.fields}
        self.preview: list[Start] = []

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        if not self.errors:
            try:
                self.scenario = self._make(cleaned)
                game = make(anonymised(self.scenario))
                storable(DatasetLine(scenario=self.scenario), "")
            except BadInput as error:
                self.blame(re.sub(r"^(scenario\.)?settings\.", "", error.where), error.why)
            else:
                self.preview = starts(game)
        return cleaned

    def _make(self, cleaned: dict[str, Any]) -> Scenario:
        self.cleaned_data = cleaned
        return Scenario.from_dict(
            {
                **self._scenario.to_dict(),
                "settings": self.document(),
                "seats": [cleaned[f"seat {n}"].strip() for n in range(len(self._scenario.seats))],
                "seed": cleaned["seed"],
            }
        )
