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
from webapp.serving.models import RemoteModel

ANCHOR = re.compile(r"\s*(-?\d+(?:\.\d+)?)\s*=\s*(.+?)\s*")
MOST_BUTTONS = 21


class RubricForm(forms.Form):
    """What a rubric is called."""

    title = forms.CharField(max_length=200, help_text="For people, such as “Fairness in bargaining”.")


class DimensionForm(forms.Form):
    """One question with its scale."""

    name = forms.RegexField(
        r"^[a-z][a-z0-9_]{0,39}$", help_text="Small letters, digits, underscores: the column in exports."
    )
    title = forms.CharField(max_length=80)
    low = forms.FloatField(help_text="Lowest value.")
    high = forms.FloatField(help_text="Highest value.")
    question = forms.CharField(max_length=1000, widget=forms.Textarea(attrs={"rows": 2}))
    anchors = forms.CharField(
        max_length=4000,
        required=False,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text="What some values mean, one a line: 0 = not at all.",
    )
    yes_no = forms.BooleanField(required=False, label="Yes or no", help_text="1 is yes, 0 is no, nothing between.")
    roles = forms.CharField(
        max_length=1000,
        required=False,
        help_text="Ask about seats with these roles only, separated by commas: seer, witch. Empty: about every seat.",
    )

    def clean_anchors(self) -> list[dict[str, Any]]:
        found = []
        for line in self.cleaned_data["anchors"].splitlines():
            if not line.strip():
                continue
            match = ANCHOR.fullmatch(line)
            if match is None:
                raise forms.ValidationError(f"Write value = meaning, not “{line.strip()[:60]}”.")
            found.append({"value": float(match[1]), "text": match[2]})
        return found

    def clean_roles(self) -> list[str]:
        return [role.strip() for role in self.cleaned_data["roles"].split(",") if role.strip()]


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
    """Which remote model may judge."""

    name = forms.CharField(max_length=120)
    remote = forms.ModelChoiceField(RemoteModel.objects.order_by("name"), label="Remote model")
    temperature = forms.FloatField(min_value=0, max_value=2, initial=0, help_text="0 gives the steadiest values.")


class FinishedMatches(forms.ModelMultipleChoiceField):
    """Matches by number, title and day."""

    def label_from_instance(self, obj: Match) -> str:
        return f"{obj.pk}: {obj.title}, {obj.created_at:%-d %B %Y}"


class QueueForm(forms.Form):
    """What is to be judged, by which rubric, and by whom.

    No field is called like a method of the form's element (`matches`): scripts would find the field in its place.
    """

    name = forms.CharField(max_length=120)
    rubric_version = forms.ModelChoiceField(RubricVersion.objects.none(), label="Rubric")
    match = FinishedMatches(
        Match.objects.none(),
        required=False,
        label="Matches",
        help_text="Finished matches at which everybody agreed to be rated.",
    )
    run = forms.ModelChoiceField(Run.objects.none(), required=False, help_text="Or episodes of a run.")
    step = forms.IntegerField(
        min_value=0, required=False, help_text="Training step of those episodes. Empty: the newest step that has any."
    )
    most = forms.IntegerField(min_value=1, max_value=5000, initial=20, label="Episodes at most")
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
        self._offer("match", Match.objects.exportable().order_by("-pk"))
        played = Exists(PlayedEpisode.objects.filter(run=OuterRef("pk")))
        self._offer("run", Run.objects.visible_to(user).filter(played).order_by("-pk"))
        people = User.objects.filter(is_active=True, role__in=[Role.ANNOTATOR, Role.RESEARCHER, Role.ADMIN])
        self._choose("annotators", people.order_by("username"))

    def _field(self, name: str) -> forms.ModelChoiceField[Any]:
        field = self.fields[name]
        assert isinstance(field, forms.ModelChoiceField)
        return field

    def _choose(self, name: str, rows: QuerySet[Any]) -> None:
        self._field(name).queryset = rows

    def _offer(self, name: str, rows: QuerySet[Any]) -> None:
        """Of many rows list the latest and those that are asked for."""
        field = self._field(name)
        sent = field.widget.value_from_datadict(self.data, self.files, self.add_prefix(name))
        wanted = sent if self.is_bound else self.get_initial_for_field(field, name)
        offer(field, rows, wanted if isinstance(wanted, list) else [wanted])

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        if not cleaned.get("match") and not cleaned.get("run"):
            self.add_error("match", "Choose finished matches, or a run.")
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
            step = run.episodes.order_by("-step").values_list("step", flat=True).first()
        found = run.episodes.filter(step=step, summary__error=None).select_related("run").order_by("number")
        return list(found[: self.cleaned_data["most"]])


class ValuesForm(forms.Form):
    """One value for each dimension of a rubric: buttons for whole-number scales that fit a row, else a number."""

    def __init__(self, rubric: Rubric, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for dimension in rubric.dimensions:
            self.fields[dimension.name] = _value_field(dimension)

    def values(self) -> dict[str, float]:
        """Return the chosen values."""
        return {name: float(self.cleaned_data[name]) for name in self.fields}


def _value_field(dimension: Dimension) -> forms.Field:
    anchors = "; ".join(f"{anchor.value:g} = {anchor.text}" for anchor in dimension.anchors)
    said: dict[str, Any] = {"label": dimension.title, "help_text": f"{dimension.question} {anchors}".strip()}
    if dimension.yes_no:
        return _buttons([("0", "0 no"), ("1", "1 yes")], said)
    steps = dimension.high - dimension.low
    if dimension.low.is_integer() and steps.is_integer() and steps < MOST_BUTTONS:
        values = [str(int(dimension.low) + step) for step in range(int(steps) + 1)]
        return _buttons([(value, value) for value in values], said)
    return forms.FloatField(min_value=dimension.low, max_value=dimension.high, **said)


def _buttons(choices: list[tuple[str, str]], said: dict[str, Any]) -> forms.Field:
    """A row of choices; the digit that a value begins with chooses it."""
    return forms.ChoiceField(choices=choices, widget=forms.RadioSelect(attrs={"class": "scale"}), **said)
