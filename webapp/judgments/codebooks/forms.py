"""Forms of codebooks and judge models."""

from __future__ import annotations

import re
from typing import Any, get_args

from django import forms
from django.forms import BaseFormSet, formset_factory
from django.http import QueryDict

from training.errors import BadInput
from training.labels.codebooks import LabelType, Shape
from webapp.judgments.models import CodebookVersion
from webapp.serving.models import RemoteModel

ANCHOR = re.compile(r"(-?\d+(?:\.\d+)?)\s*=\s*(.+?)")
OPTION = re.compile(r"([a-z][a-z0-9_]{0,39})\s*=\s*(.+?)")
PLACE = re.compile(r"labels\.(\d+)(?:\.(\w+))?.*")
"""Where a record of a codebook is wrong: the number of a label type, and perhaps its field."""
MARKS = {"span": "span", "relation": "pair"}
"""What label types of these kinds are about."""
MOST = 40


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
        """Only a scale keeps its ends, and it needs both; only a choice keeps its options. A mark is about itself."""
        cleaned = super().clean() or self.cleaned_data
        if about := MARKS.get(cleaned.get("kind", "")):
            cleaned = {**cleaned, "about": about}
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
    LabelTypeForm, extra=1, can_delete=True, can_order=False, min_num=1, validate_min=True, max_num=MOST
)


def label_type_set(version: CodebookVersion | None, data: Any = None) -> BaseFormSet[LabelTypeForm]:
    """Return the forms of a version's label types, with an empty one to add another."""
    initial = [_initial(label_type) for label_type in version.record().labels] if version else []
    words = {
        "too_few_forms": "A codebook has at least one label.",
        "too_many_forms": f"A codebook has at most {MOST} labels.",
    }
    return LabelTypeSet(data, initial=initial, prefix="labels", error_messages=words)


def with_another(data: QueryDict) -> QueryDict:
    """Return what was sent of a codebook with one more label type, as the form begins; one that stays so is none."""
    another = data.copy()
    sent = data.get("labels-TOTAL_FORMS", "")
    total = int(sent) if sent.isdecimal() and len(sent) < 4 else 0
    if total < MOST:
        another["labels-TOTAL_FORMS"] = str(total + 1)
        begins = {name: field.initial for name, field in LabelTypeForm.base_fields.items() if field.initial}
        another.update({f"labels-{total}-{name}": "on" if value is True else value for name, value in begins.items()})
    return another


def mark_error(form: CodebookForm, formset: BaseFormSet[LabelTypeForm], error: BadInput) -> None:
    """Put an error of the whole codebook at the label type that it names, if it names one."""
    place = PLACE.fullmatch(error.where)
    filled = _filled(formset)
    if place is None or int(place[1]) >= len(filled):
        form.add_error(None, str(error))
    else:
        part = filled[int(place[1])]
        part.add_error(place[2] if place[2] in part.fields else None, f"{error.why[:1].upper()}{error.why[1:]}.")


def _filled(formset: BaseFormSet[LabelTypeForm]) -> list[LabelTypeForm]:
    return [form for form in formset.forms if form.cleaned_data and not form.cleaned_data.get("DELETE")]


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
    rows = [form.cleaned_data for form in _filled(formset)]
    return [{name: value for name, value in row.items() if name != "DELETE"} for row in rows]


class JudgeForm(forms.Form):
    """A remote model as a judge."""

    name = forms.CharField(max_length=120)
    remote = forms.ModelChoiceField(RemoteModel.objects.order_by("name"), label="Remote model")
    temperature = forms.FloatField(min_value=0, max_value=2, initial=0, help_text="0 gives the most consistent values.")
