"""Forms of the judgments: rubrics, judge models, queues, values."""

from __future__ import annotations

import re
from typing import Any

from django import forms
from django.db.models import Exists, OuterRef, QuerySet
from django.forms import BaseFormSet, formset_factory

from training.rewards.rubrics import Dimension, Rubric
from webapp.accounts.models import Role, User
from webapp.arena.models import Match
from webapp.core.choices import offer
from webapp.judgments.models import JudgeModel, RubricVersion
from webapp.runs.models import PlayedEpisode, Run
from webapp.scenarios.models import DatasetVersion, StoredConversation
from webapp.serving.models import RemoteModel

ANCHOR = re.compile(r"\s*(-?\d+(?:\.\d+)?)\s*=\s*(.+?)\s*")
MOST_BUTTONS = 21


class RubricForm(forms.Form):
    """A rubric's title."""

    title = forms.CharField(max_length=200, help_text="For people, such as “Fairness in bargaining”.")


class DimensionForm(forms.Form):
    """One question with its scale."""

    name = forms.RegexField(
        r"^[a-z][a-z0-9_]{0,39}$", help_text="Small letters, digits, underscores: the column in exports."
    )
    title = forms.CharField(max_length=80)
    yes_no = forms.BooleanField(
        required=False, label="Yes or no", help_text="1 is yes, 0 is no, nothing between: such a question has no scale."
    )
    low = forms.FloatField(required=False, help_text="Lowest value.")
    high = forms.FloatField(required=False, help_text="Highest value.")
    question = forms.CharField(max_length=1000, widget=forms.Textarea(attrs={"rows": 2}))
    anchors = forms.CharField(
        max_length=4000,
        required=False,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text="Meanings of some values, one per line: 0 = not at all.",
    )
    roles = forms.CharField(
        max_length=1000,
        required=False,
        help_text="Ask about seats with these roles only, separated by commas: seer, witch. Empty: about every seat.",
    )

    def clean_anchors(self) -> list[dict[str, Any]]:
        anchors = []
        for line in self.cleaned_data["anchors"].splitlines():
            if not line.strip():
                continue
            match = ANCHOR.fullmatch(line)
            if match is None:
                raise forms.ValidationError(f"Write value = meaning, not “{line.strip()[:60]}”.")
            anchors.append({"value": float(match[1]), "text": match[2]})
        return anchors

    def clean_roles(self) -> list[str]:
        return [role.strip() for role in self.cleaned_data["roles"].split(",") if role.strip()]

    def clean(self) -> dict[str, Any]:
        """Give a yes-or-no question its scale, whatever else was entered; any other needs both ends."""
        cleaned = super().clean() or self.cleaned_data
        if cleaned.get("yes_no"):
            for name in ("low", "high"):
                self.errors.pop(name, None)
            return {**cleaned, "low": 0.0, "high": 1.0}
        for name in ("low", "high"):
            if cleaned.get(name) is None and name not in self.errors:
                self.add_error(name, "Enter a number, or choose yes or no.")
        return cleaned


DimensionSet = formset_factory(
    DimensionForm, extra=1, can_delete=True, can_order=False, min_num=1, validate_min=True, max_num=40
)


def dimension_set(version: RubricVersion | None, data: Any = None) -> BaseFormSet[DimensionForm]:
    """Return the forms of a version's dimensions, with an empty one to add another."""
    initial = [_initial(dimension) for dimension in version.record().dimensions] if version else []
    return DimensionSet(data, initial=initial, prefix="dimensions")


def _initial(dimension: Dimension) -> dict[str, Any]:
    anchors = "\n".join(f"{anchor.value:g} = {anchor.text}" for anchor in dimension.anchors)
    return {**dimension.model_dump(exclude={"anchors"}), "anchors": anchors, "roles": ", ".join(dimension.roles)}


def dimensions_of(formset: BaseFormSet[DimensionForm]) -> list[dict[str, Any]]:
    """Return the dimensions that a valid formset holds."""
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
    """The seats to be judged, the rubric and the judges.

    No field is called like a method of the form's element (`matches`): scripts would find the field in its place.
    """

    name = forms.CharField(max_length=120)
    rubric_version = forms.ModelChoiceField(RubricVersion.objects.none(), label="Rubric")
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
            "rubric_version", RubricVersion.objects.select_related("rubric").order_by("rubric__name", "-number")
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
    """One value for each dimension of a rubric: buttons for whole-number scales that fit a row, else a number.

    `optional`: a dimension may be left without a value.
    """

    def __init__(self, rubric: Rubric, *args: Any, optional: bool = False, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for dimension in rubric.dimensions:
            self.fields[dimension.name] = _value_field(dimension, required=not optional)

    def values(self) -> dict[str, float]:
        """Return the chosen values."""
        cleaned = {name: self.cleaned_data[name] for name in self.fields}
        return {name: float(value) for name, value in cleaned.items() if value not in (None, "")}


def form_value(dimension: Dimension, value: float) -> str | float:
    """Return a stored value as the form's field for this dimension holds it."""
    return str(int(value)) if _has_buttons(dimension) and value.is_integer() else value


def _has_buttons(dimension: Dimension) -> bool:
    steps = dimension.high - dimension.low
    return dimension.yes_no or (dimension.low.is_integer() and steps.is_integer() and steps < MOST_BUTTONS)


def _value_field(dimension: Dimension, *, required: bool) -> forms.Field:
    anchors = "; ".join(f"{anchor.value:g} = {anchor.text}" for anchor in dimension.anchors)
    help_text = f"{dimension.question} {anchors}".strip()
    if not _has_buttons(dimension):
        return forms.FloatField(
            min_value=dimension.low, max_value=dimension.high, label=dimension.title, help_text=help_text,
            required=required,
        )  # fmt: skip
    values = [str(value) for value in range(int(dimension.low), int(dimension.high) + 1)]
    choices = [("0", "0 no"), ("1", "1 yes")] if dimension.yes_no else [(value, value) for value in values]
    # the digit that a value begins with chooses it
    return forms.ChoiceField(
        choices=choices, widget=forms.RadioSelect(attrs={"class": "scale"}), label=dimension.title,
        help_text=help_text, required=required,
    )  # fmt: skip
