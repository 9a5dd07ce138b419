"""The form of a new run: data and models at the top, then every field of its configuration.

The configuration's validation errors are shown on their fields.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from django import forms
from django.forms.boundfield import BoundField
from django.template.defaultfilters import pluralize

from training import bases, games
from training import config as configs
from training.config import RunConfig
from training.errors import BadInput
from training.sections import LoraConfig
from training.suites import MOST_GAMES
from webapp.accounts.models import User
from webapp.core.choices import offer
from webapp.core.schema import SchemaForm
from webapp.runs import presets, suites
from webapp.runs.models import Checkpoint
from webapp.runs.registry.fields import ChoiceOfCheckpoint
from webapp.runs.services import TRAIN_QUEUES, check_bytes
from webapp.runs.summaries import lineage
from webapp.scenarios.models import DatasetVersion

PLACES = [(place, place.upper()) for place in TRAIN_QUEUES]
WEIGHTS = [("adapters", "adapters (LoRA)"), ("all", "all weights")]


class ChoiceOfVersion(forms.ModelChoiceField):
    """A choice of dataset version that shows its counts."""

    def label_from_instance(self, obj: DatasetVersion) -> str:
        """Name, number and counts."""
        scenarios, conversations = obj.scenario_count, obj.conversation_count
        counts = f"{scenarios} scenario{pluralize(scenarios)}, {conversations} conversation{pluralize(conversations)}"
        return f"{obj} ({counts})"


class StartForm(forms.Form):
    """The run's name, data, starting weights and queue."""

    name = forms.CharField(max_length=120, help_text="The run's name in lists.")
    game = forms.ChoiceField(help_text="Which game is played.")
    dataset = ChoiceOfVersion(
        queryset=DatasetVersion.objects.none(),
        required=False,
        empty_label="the project's sample scenarios",
        help_text="Where the games start, or the conversations that a cold start learns from.",
    )
    model = ChoiceOfCheckpoint(
        queryset=Checkpoint.objects.none(), help_text="The model that is trained, or measured in a head-to-head."
    )
    opponent = ChoiceOfCheckpoint(
        queryset=Checkpoint.objects.none(),
        required=False,
        empty_label="what it started from",
        help_text="The other model in head-to-heads.",
    )
    weights = forms.ChoiceField(choices=WEIGHTS, help_text="Adapters need less memory; all weights can change more.")
    place = forms.ChoiceField(choices=PLACES, help_text="Which workers may take it.")

    def __init__(
        self,
        config: Mapping[str, Any],
        user: User,
        data: Mapping[str, Any] | None,
        *,
        redrawn: bool = False,
        **initial: Any,
    ) -> None:
        super().__init__(None if redrawn else data, prefix="run", initial=initial)
        self.fields["game"].choices = [(name, name) for name in sorted(games.REGISTRY)]  # type: ignore[attr-defined]
        models = Checkpoint.objects.visible_to(user).order_by("-kind", "-created_at")
        if config["kind"] == "sft":
            dataset = self.fields["dataset"]
            assert isinstance(dataset, forms.ModelChoiceField)
            dataset.required, dataset.empty_label = True, "choose one that has conversations"
        for name in ("dataset", "model", "opponent"):
            field, selected = self.fields[name], [initial.get(name), (data or {}).get(self.add_prefix(name))]
            if isinstance(field, ChoiceOfCheckpoint):
                field.offer(models, selected)
            elif isinstance(field, ChoiceOfVersion):
                offer(field, DatasetVersion.objects.playable(), selected)
        if config["kind"] == "eval":
            del self.fields["weights"]
        if config["kind"] == "sft":
            del self.fields["opponent"]
        if redrawn and data is not None:
            _keep(self, data)


class RunForm:
    """Both halves of the page, validated together. `config` is the initial configuration.

    A form that is `redrawn` shows what was entered, without checking it.
    """

    def __init__(
        self,
        config: Mapping[str, Any],
        user: User,
        data: Mapping[str, Any] | None = None,
        *,
        redrawn: bool = False,
        **initial: Any,
    ) -> None:
        self.config = dict(config)
        section = {"train": "learn", "sft": "sft"}.get(config["kind"])
        base = Checkpoint.objects.filter(name=config["model"]["base"]).first()
        lora = self.config[section]["lora"] if section else None
        values = {
            "name": config["name"],
            "game": config["game"]["name"],
            "model": base.pk if base else None,
            "weights": "adapters" if lora else "all",
            "place": "cpu",
            **initial,
        }
        self.start = StartForm(config, user, data, redrawn=redrawn, **values)
        if base is None and (why := bases.unprepared(config["model"]["base"])):
            self.start.fields["model"].help_text += f" {why}."
        if section:
            weights = (data or {}).get("run-weights", values["weights"])
            adapters = lora or LoraConfig().to_dict()
            self.config[section] = {**self.config[section], "lora": adapters if weights == "adapters" else None}
            data = _with_adapters(data, section, adapters) if not lora else data
        document = presets.offered(self.config)
        self.rest = SchemaForm(document, _schema(document), None if redrawn else data, prefix="config")
        if redrawn and data is not None:
            _keep(self.rest, data)

    def is_valid(self) -> bool:
        """Whether both halves and the resulting configuration are valid; sets field errors."""
        if not (self.start.is_valid() & self.rest.is_valid()):
            return False
        try:
            self.run_config = self._config()
        except BadInput as error:
            self.blame(error)
            return False
        return True

    def blame(self, error: BadInput) -> None:
        """Put an error on the field that it names, or above the form."""
        names = {"dataset": "dataset", "data.path": "dataset", "model.base": "model", "name": "name", "game": "game"}
        if error.where in names:
            self.start.add_error(names[error.where], error.why)
        else:
            self.rest.blame(error.where, error.why)

    def _config(self) -> RunConfig:
        entered = presets.merged(self.config, self.rest.document())
        start = self.start.cleaned_data
        base = start["model"].base if start["model"].kind != Checkpoint.Kind.BASE else start["model"].name
        entered["name"] = start["name"]
        entered["game"] = {**entered["game"], "name": start["game"]}
        entered["model"] = {**entered["model"], "base": base}
        check_bytes(entered)
        return configs.parse(entered)

    def wrong(self) -> list[BoundField]:
        """The fields that have errors, in the page's order."""
        return [field for half in (self.start, self.rest) for field in half if field.errors]

    def choices(self) -> dict[str, Any]:
        """The arguments of `create_run` besides the configuration; only for a valid form."""
        start = self.start.cleaned_data
        return {
            "place": start["place"],
            "dataset_version": start["dataset"],
            "start_checkpoint": start["model"],
            "opponent_checkpoint": start.get("opponent"),
        }

    def sections(self) -> Iterator[tuple[str, str, list[BoundField], bool]]:
        """The configuration's sections: name, meaning, fields, and whether one of them has an error."""
        described = presets.schema()["properties"]
        for name in presets.SECTIONS[self.config["kind"]]:
            fields = [self.rest[field] for field in self.rest.fields if _section(field) == name]
            if fields or name == "opponents":
                about = lineage.meaning(described.get(name, {}))
                yield name, about, fields, any(field.errors for field in fields)


def _with_adapters(
    data: Mapping[str, Any] | None, section: str, adapters: Mapping[str, Any]
) -> Mapping[str, Any] | None:
    """The submitted data, with the adapters' defaults if the page did not have their fields."""
    if data is None:
        return None
    defaults = {f'config-["{section}", "lora", "{name}"]': value for name, value in adapters.items()}
    missing = {name: json.dumps(value) for name, value in defaults.items() if name not in data}
    return {**{name: data[name] for name in data}, **missing}


def _keep(form: forms.Form, data: Mapping[str, Any]) -> None:
    """Let a form that is not bound show what was entered; a checkbox that was not sent is unchecked."""
    for name, field in form.fields.items():
        sent = form.add_prefix(name)
        if not field.disabled and (sent in data or isinstance(field.widget, forms.CheckboxInput)):
            form.initial[name] = field.bound_data(field.widget.value_from_datadict(data, {}, sent), None)


def _section(field: str) -> str:
    return field.removeprefix('["').split('"', 1)[0]


def _schema(document: Mapping[str, Any]) -> dict[str, Any]:
    """The configuration's JSON schema, of which the form shows the part that the document has."""
    schema = presets.schema()
    return {**schema, "properties": {name: schema["properties"][name] for name in document}}


class SuiteForm(forms.Form):
    """An evaluation suite for one checkpoint."""

    suite = forms.ChoiceField(choices=suites.titles, help_text="The games and opponents, listed below.")
    games = forms.IntegerField(
        min_value=1,
        max_value=MOST_GAMES,
        initial=100,
        help_text="Games of each task with the model at each seat. Few games have wide intervals.",
    )
    opponent = forms.CharField(
        max_length=120,
        required=False,
        help_text="Who opposes the checkpoint where it plays a side, such as the imposter: a checkpoint’s name or a "
        "player. Empty: as in the suite.",
    )
    partner = forms.CharField(
        max_length=120,
        required=False,
        help_text="Who plays one of the side’s seats, such as one crewmate. Empty: as in the suite.",
    )
    speaker = forms.CharField(
        max_length=500,
        required=False,
        help_text="Who speaks where models only advise: a checkpoint’s name, follower:N, or ADDRESS MODEL [SECRET]. "
        "Empty: as in the run that wrote the checkpoint, or else in the suite.",
    )
    judge = forms.CharField(
        max_length=900,
        required=False,
        help_text="Who scores games without results of their own: ADDRESS MODEL [SECRET]. Empty: as in the run that "
        "wrote the checkpoint.",
    )
    seed = forms.IntegerField(
        min_value=0, max_value=2**63 - 1, initial=0, help_text="Seed of the deals and of all replies."
    )
    place = forms.ChoiceField(choices=PLACES, help_text="Which workers may take it.")


class BaseForm(forms.Form):
    """A base model that an administrator adds."""

    name = forms.CharField(max_length=120, help_text="What it is called here.")
    source = forms.CharField(
        max_length=400,
        help_text="A folder below one of MODEL_ROOTS, or a hub name (owner/model) that is downloaded on this machine. "
        "Only safetensors are accepted, and no code of the model's own is run.",
    )
