"""Forms of the judgments: codebooks, judge models, queues, values."""

from __future__ import annotations

import re
from typing import Any, get_args

from django import forms
from django.db.models import Exists, OuterRef, QuerySet
from django.forms import BaseFormSet, formset_factory

from training.labels.codebooks import Codebook, LabelType, Shape
from training.records import LabelValue
from webapp.accounts.models import Role, User
from webapp.arena.models import Match
from webapp.core.choices import offer
from webapp.judgments.models import CodebookVersion, JudgeModel
from webapp.runs.models import PlayedEpisode, Run
from webapp.scenarios.models import DatasetVersion, StoredConversation
from webapp.serving.models import RemoteModel

ANCHOR = re.compile(r"(-?\d+(?:\.\d+)?)\s*=\s*(.+?)")
OPTION = re.compile(r"([a-z][a-z0-9_]{0,39})\s*=\s*(.+?)")
MOST_BUTTONS = 21


class CodebookForm(forms.Form):
    """A codebook's title and guideline."""

    title = forms.CharField(max_length=200, help_text="For people, such as “Fairness in bargaining”.")
    guideline = forms.CharField(
        max_length=20_000,
        required=False,
        widget=forms.Textarea(attrs={"rows": 4}),
        help_text="What annotators should know, in Markdown.",
    )


COLOURS = ("blue", "rust", "green", "magenta", "olive", "teal", "violet", "grey")
"""The colours of `--parley-label-0` to `-7` in the style sheet."""
KINDS = (
    ("yes_no", "yes or no"),
    ("scale", "a number on a scale"),
    ("one_of", "one of several options"),
    ("many_of", "any of several options"),
    ("ranking", "a ranking of turns"),
    ("text", "a text"),
    ("span", "words inside a turn"),
    ("relation", "a relation between two turns"),
)
ABOUT = (
    ("seat", "a seat"),
    ("game", "the whole game"),
    ("turn", "a turn"),
    ("span", "marked words"),
    ("pair", "two turns"),
)


class LabelTypeForm(forms.Form):
    """One label type."""

    name = forms.RegexField(
        r"^[a-z][a-z0-9_]{0,39}$", help_text="Small letters, digits, underscores: the column in exports."
    )
    title = forms.CharField(max_length=80)
    kind = forms.ChoiceField(choices=KINDS, initial="yes_no", label="Value")
    about = forms.ChoiceField(choices=ABOUT, initial="seat")
    definition = forms.CharField(max_length=1000, widget=forms.Textarea(attrs={"rows": 2}))
    low = forms.FloatField(required=False, help_text="Lowest value of a scale.")
    high = forms.FloatField(required=False, help_text="Highest value of a scale.")
    anchors = forms.CharField(
        max_length=4000,
        required=False,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text="Meanings of some values of a scale, one per line: 0 = not at all.",
    )
    options = forms.CharField(
        max_length=4000,
        required=False,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text="Options to choose from, one per line: small_talk = Small talk.",
    )
    positive = forms.CharField(
        max_length=10_000, required=False, widget=forms.Textarea(attrs={"rows": 2}),
        help_text="Examples that count, one per line.",
    )  # fmt: skip
    negative = forms.CharField(
        max_length=10_000, required=False, widget=forms.Textarea(attrs={"rows": 2}),
        help_text="Examples that do not count, one per line.",
    )  # fmt: skip
    roles = forms.CharField(
        max_length=1000,
        required=False,
        help_text="Ask about seats with these roles only, separated by commas: seer, witch. Empty: about every seat.",
    )
    when = forms.CharField(
        max_length=90,
        required=False,
        help_text="Ask only where an earlier label has a value: deception = yes. Without a value: where it was marked.",
    )
    key = forms.RegexField(
        r"^[a-z0-9]$", required=False, help_text="A letter or digit that chooses it. Empty: by place."
    )
    colour = forms.TypedChoiceField(
        choices=[("", "by place"), *((str(number), f"{number + 1}: {name}") for number, name in enumerate(COLOURS))],
        coerce=int,
        empty_value=None,
        required=False,
    )
    shape = forms.ChoiceField(choices=[(shape, shape or "by place") for shape in get_args(Shape)], required=False)
    overlap = forms.BooleanField(required=False, help_text="Spans of this type may overlap each other.")
    required = forms.BooleanField(required=False, initial=True, help_text="A judgment without it is incomplete.")

    def clean_anchors(self) -> list[dict[str, Any]]:
        return [
            {"value": float(value), "text": text} for value, text in self._pairs("anchors", ANCHOR, "value = meaning")
        ]

    def clean_options(self) -> list[dict[str, Any]]:
        return [{"name": name, "title": title} for name, title in self._pairs("options", OPTION, "name = title")]

    def _pairs(self, name: str, pattern: re.Pattern[str], form: str) -> list[tuple[str, str]]:
        """The two sides of each line of a field."""
        pairs = []
        for line in _lines(self.cleaned_data[name]):
            match = pattern.fullmatch(line)
            if match is None:
                raise forms.ValidationError(f"Write {form}, not “{line[:60]}”.")
            pairs.append((match[1], match[2]))
        return pairs

    def clean_positive(self) -> list[str]:
        return _lines(self.cleaned_data["positive"])

    def clean_negative(self) -> list[str]:
        return _lines(self.cleaned_data["negative"])

    def clean_roles(self) -> list[str]:
        return [role.strip() for role in self.cleaned_data["roles"].split(",") if role.strip()]

    def clean_when(self) -> dict[str, Any] | None:
        name, equals, value = (part.strip() for part in self.cleaned_data["when"].partition("="))
        if not name:
            return None
        return {"label": name, "equals": {"yes": True, "no": False}.get(value, value) if equals else None}

    def clean(self) -> dict[str, Any]:
        """Only a scale keeps its ends, and it needs both; only a choice keeps its options."""
        cleaned = super().clean() or self.cleaned_data
        if cleaned.get("kind") != "scale":
            for name in ("low", "high", "anchors"):
                self.errors.pop(name, None)
            cleaned = {**cleaned, "low": None, "high": None, "anchors": []}
        else:
            for name in ("low", "high"):
                if cleaned.get(name) is None and name not in self.errors:
                    self.add_error(name, "Enter a number, or choose another kind of value.")
        return cleaned if cleaned.get("kind") in ("one_of", "many_of") else {**cleaned, "options": []}


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


LabelTypeSet = formset_factory(
    LabelTypeForm, extra=1, can_delete=True, can_order=False, min_num=1, validate_min=True, max_num=40
)


def label_type_set(version: CodebookVersion | None, data: Any = None) -> BaseFormSet[LabelTypeForm]:
    """Return the forms of a version's label types, with an empty one to add another."""
    initial = [_initial(label_type) for label_type in version.record().labels] if version else []
    return LabelTypeSet(data, initial=initial, prefix="labels")


def _initial(label_type: LabelType) -> dict[str, Any]:
    when = label_type.when
    return {
        **label_type.model_dump(),
        "anchors": "\n".join(f"{anchor.value:g} = {anchor.text}" for anchor in label_type.anchors),
        "options": "\n".join(f"{option.name} = {option.title}" for option in label_type.options),
        "positive": "\n".join(label_type.positive),
        "negative": "\n".join(label_type.negative),
        "roles": ", ".join(label_type.roles),
        "when": "" if when is None else when.label if when.equals is None else f"{when.label} = {_word(when.equals)}",
    }


def _word(value: bool | str) -> str:
    return value if isinstance(value, str) else "yes" if value else "no"


def label_types_of(formset: BaseFormSet[LabelTypeForm]) -> list[dict[str, Any]]:
    """Return the label types that a valid formset holds."""
    filled = [form.cleaned_data for form in formset.forms if form.cleaned_data and not form.cleaned_data.get("DELETE")]
    return [{name: value for name, value in row.items() if name != "DELETE"} for row in filled]


class JudgeForm(forms.Form):
    """A remote model as a judge."""

    name = forms.CharField(max_length=120)
    remote = forms.ModelChoiceField(RemoteModel.objects.order_by("name"), label="Remote model")
    temperature = forms.FloatField(min_value=0, max_value=2, initial=0, help_text="0 gives the most consistent values.")


class FinishedMatches(forms.ModelMultipleChoiceField):
    """Matches by number, title and day."""

    def label_from_instance(self, obj: Match) -> str:
        return f"{obj.pk}: {obj.title}, {obj.created_at:%-d %B %Y}"


class ConversationVersions(forms.ModelChoiceField):
    """Dataset versions with the number of their conversations."""

    def label_from_instance(self, obj: DatasetVersion) -> str:
        return f"{obj}: {obj.conversation_count} conversations"


class QueueForm(forms.Form):
    """The seats to be judged, the codebook and the judges.

    No field is called like a method of the form's element (`matches`): scripts would find the field in its place.
    """

    name = forms.CharField(max_length=120)
    codebook_version = forms.ModelChoiceField(CodebookVersion.objects.none(), label="Codebook")
    match = FinishedMatches(
        Match.objects.none(),
        required=False,
        label="Matches",
        help_text="Finished matches at which everybody agreed to be rated; of running experiments, only your own.",
    )
    run = forms.ModelChoiceField(Run.objects.none(), required=False, help_text="Or episodes of a run.")
    step = forms.IntegerField(
        min_value=0, required=False, help_text="Training step of those episodes. Empty: the newest step that has any."
    )
    version = ConversationVersions(
        DatasetVersion.objects.none(),
        required=False,
        label="Dataset",
        help_text="Or conversations that came with a dataset, in its order.",
    )
    most = forms.IntegerField(
        min_value=1,
        max_value=5000,
        initial=20,
        label="At most",
        help_text="Largest number of episodes or conversations.",
    )
    judge = forms.ModelChoiceField(
        JudgeModel.objects.order_by("name"),
        required=False,
        label="Judge model",
        help_text="Or choose annotators below.",
    )
    annotators = forms.ModelMultipleChoiceField(User.objects.none(), required=False)

    def __init__(self, user: User, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._choose(
            "codebook_version", CodebookVersion.objects.select_related("codebook").order_by("codebook__name", "-number")
        )
        self._offer("match", Match.objects.judgeable_by(user).order_by("-pk"))
        has_episodes = Exists(PlayedEpisode.objects.filter(run=OuterRef("pk")))
        self._offer("run", Run.objects.visible_to(user).filter(has_episodes).order_by("-pk"))
        versions = DatasetVersion.objects.visible_to(user).filter(conversation_count__gt=0)
        self._offer("version", versions.select_related("dataset").order_by("-pk"))
        people = User.objects.filter(is_active=True, role__in=[Role.ANNOTATOR, Role.RESEARCHER, Role.ADMIN])
        self._choose("annotators", people.order_by("username"))

    def _field(self, name: str) -> forms.ModelChoiceField[Any]:
        field = self.fields[name]
        assert isinstance(field, forms.ModelChoiceField)
        return field

    def _choose(self, name: str, rows: QuerySet[Any]) -> None:
        self._field(name).queryset = rows

    def _offer(self, name: str, rows: QuerySet[Any]) -> None:
        """List the latest rows and the selected ones."""
        field = self._field(name)
        submitted = field.widget.value_from_datadict(self.data, self.files, self.add_prefix(name))
        selected = submitted if self.is_bound else self.get_initial_for_field(field, name)
        offer(field, rows, selected if isinstance(selected, list) else [selected])

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        if not any(cleaned.get(name) for name in ("match", "run", "version")):
            self.add_error("match", "Choose finished matches, a run or a dataset.")
        if bool(cleaned.get("judge")) == bool(cleaned.get("annotators")):
            self.add_error("judge", "Choose either a judge model or annotators.")
        return cleaned

    def episodes(self) -> list[PlayedEpisode]:
        """Return the episodes that were chosen, without those that ended in an error."""
        run = self.cleaned_data["run"]
        if run is None:
            return []
        step = self.cleaned_data["step"]
        if step is None:
            step = run.episodes.of_training().order_by("-step").values_list("step", flat=True).first()
        episodes = (
            run.episodes.of_training().filter(step=step, summary__error=None).select_related("run").order_by("number")
        )
        return list(episodes[: self.cleaned_data["most"]])

    def conversations(self) -> list[StoredConversation]:
        """Return the first conversations of the chosen dataset version."""
        version = self.cleaned_data["version"]
        if version is None:
            return []
        rows = StoredConversation.objects.filter(scenario__version=version)
        ordered = rows.select_related("scenario__version__dataset").order_by("scenario__position", "position")
        return list(ordered[: self.cleaned_data["most"]])


class ValuesForm(forms.Form):
    """A value for each label type about a seat or a game: buttons for short scales and choices, else a field.

    `optional`: a label type may be left without a value.
    """

    def __init__(
        self, codebook: Codebook, *args: Any, about: str = "seat", optional: bool = False, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self.codebook = codebook
        for label_type in codebook.labels:
            if label_type.about == about and label_type.kind != "ranking":
                required = not optional and label_type.required and label_type.when is None
                self.fields[label_type.name] = _value_field(label_type, required=required)

    def values(self) -> dict[str, LabelValue]:
        """Return the chosen values by label type."""
        chosen = {name: self.cleaned_data[name] for name in self.fields}
        return {
            name: _value(self.codebook.type_of(name), value)
            for name, value in chosen.items()
            if value not in (None, "", [])
        }


def _value(label_type: LabelType, entered: Any) -> LabelValue:
    """The value of a label for what was entered."""
    match label_type.kind:
        case "yes_no":
            return bool(entered == "1")
        case "scale":
            return float(entered)
        case "many_of":
            return tuple(entered)
        case _:
            return str(entered)


def form_value(label_type: LabelType, value: LabelValue) -> Any:
    """Return a stored value as the form's field for this label type holds it."""
    if isinstance(value, bool):
        return "1" if value else "0"
    if isinstance(value, tuple):
        return list(value)
    return str(int(value)) if isinstance(value, float) and _has_buttons(label_type) and value.is_integer() else value


def _has_buttons(label_type: LabelType) -> bool:
    low, high = label_type.bounds
    return label_type.yes_no or (low.is_integer() and (high - low).is_integer() and high - low < MOST_BUTTONS)


def _value_field(label_type: LabelType, *, required: bool) -> forms.Field:
    field = _bare_field(label_type)
    meanings = "; ".join(f"{value:g} = {text}" for value, text in label_type.meanings)
    field.label, field.help_text = label_type.title, f"{label_type.definition} {meanings}".strip()
    field.required = field.widget.is_required = required
    return field


def _bare_field(label_type: LabelType) -> forms.Field:
    options = [(option.name, option.title) for option in label_type.options]
    match label_type.kind:
        case "one_of":
            return forms.ChoiceField(choices=options, widget=forms.RadioSelect)
        case "many_of":
            return forms.MultipleChoiceField(choices=options, widget=forms.CheckboxSelectMultiple)
        case "text":
            return forms.CharField(max_length=10_000, widget=forms.Textarea(attrs={"rows": 2}))
    low, high = label_type.bounds
    if not _has_buttons(label_type):
        return forms.FloatField(min_value=low, max_value=high)
    numbers = [str(value) for value in range(int(low), int(high) + 1)]
    choices = [("0", "0 no"), ("1", "1 yes")] if label_type.yes_no else [(number, number) for number in numbers]
    # the digit that a value begins with chooses it
    return forms.ChoiceField(choices=choices, widget=forms.RadioSelect(attrs={"class": "scale"}))
