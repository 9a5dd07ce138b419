"""The form of a new classifier."""

from __future__ import annotations

from typing import Any

from django import forms

from training import bases
from webapp.accounts.models import User
from webapp.judgments.models import CodebookVersion, Queue
from webapp.scenarios.models import DatasetVersion

DEFAULT_BASE = "smollm2-135m"


class ClassifierForm(forms.Form):
    """Name, codebook version, labels and base model of a classifier."""

    name = forms.SlugField(max_length=80, help_text="Its name in lists and runs: letters, digits and hyphens.")
    codebook_version = forms.ModelChoiceField(
        queryset=CodebookVersion.objects.none(),
        label="Codebook",
        empty_label=None,
        help_text="The classifier is trained on this version's labels of turns.",
    )
    queues = forms.ModelMultipleChoiceField(
        queryset=Queue.objects.none(), required=False, help_text="Queues of whole games that people judged under it."
    )
    versions = forms.ModelMultipleChoiceField(
        queryset=DatasetVersion.objects.none(),
        required=False,
        label="Datasets",
        help_text="Dataset versions whose conversations carry judgments of people under it.",
    )
    base = forms.ChoiceField(
        label="Base model", initial=DEFAULT_BASE, help_text="A frozen model whose hidden states are the features."
    )

    def __init__(self, user: User, data: Any = None, **options: Any) -> None:
        super().__init__(data, **options)
        versions = CodebookVersion.objects.select_related("codebook").order_by("codebook__name", "-number")
        about_turns = [each.pk for each in versions if any(t["about"] in ("turn", "span") for t in each.labels)]
        choices: dict[str, Any] = {
            "codebook_version": versions.filter(pk__in=about_turns),
            "queues": Queue.objects.visible_to(user).filter(judge=None, rule="", codebook_version__in=about_turns),
            "versions": DatasetVersion.objects.visible_to(user)
            .readable()
            .filter(scenarios__conversations__judgment_rows__codebook_version__in=about_turns)
            .distinct(),
        }
        for name, queryset in choices.items():
            self.fields[name].queryset = queryset  # type: ignore[attr-defined]
        names = [(name, entry.title) for name, entry in bases.REGISTRY.items()]
        self.fields["base"].choices = names  # type: ignore[attr-defined]
