"""The form of one questionnaire, made of an experiment's questions. Text of participants is data, never markup."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from django import forms

from webapp.experiments.models import Question

LONGEST = 4000


class Questionnaire(forms.Form):
    """One field per question; a choice and a scale are radio buttons."""

    def __init__(self, questions: Iterable[Question], data: Mapping[str, Any] | None = None) -> None:
        super().__init__(data, prefix="q")
        for question in questions:
            self.fields[question.name] = field_of(question)

    def answers(self) -> dict[str, Any]:
        """The answers by the names of their questions, None where there is none; only for a valid form."""
        return {name: self._answer(name) for name in self.fields}

    def _answer(self, name: str) -> Any:
        value = self.cleaned_data[name]
        if isinstance(self.fields[name], forms.TypedChoiceField | forms.FloatField):
            return value
        return value or None


def field_of(question: Question) -> forms.Field:
    """The field of a question. The answer to a scale is its position, from 1."""
    label = question.text if question.required else f"{question.text} (optional)"
    options: dict[str, Any] = {"label": label, "required": question.required}
    if question.kind == Question.Kind.LIKERT:
        labelled = [(number, f"{number}: {text}") for number, text in enumerate(question.options, 1)]
        return forms.TypedChoiceField(
            choices=labelled, coerce=int, empty_value=None, widget=forms.RadioSelect, **options
        )
    if question.kind == Question.Kind.CHOICE:
        choices = [(option, option) for option in question.options]
        return forms.ChoiceField(choices=choices, widget=forms.RadioSelect, **options)
    if question.kind == Question.Kind.NUMBER:
        return forms.FloatField(min_value=question.low, max_value=question.high, **options)
    return forms.CharField(max_length=LONGEST, widget=forms.Textarea(attrs={"rows": 4}), **options)
