"""How a person works on the page of a judgment: keys and breaks."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from training.errors import BadInput
from webapp.accounts.models import User
from webapp.accounts.permissions import current_user, members
from webapp.judgments.annotating import keys, marks
from webapp.judgments.annotating import services as annotating
from webapp.judgments.models import AnnotatorSettings, CodebookVersion

LONGEST_BREAK = 240


def own_settings(user: User) -> AnnotatorSettings:
    """Return a person's settings; the defaults, unsaved, if they changed none."""
    return AnnotatorSettings.objects.filter(user=user).first() or AnnotatorSettings(user=user)


class SettingsForm(forms.Form):
    """A field for each action whose keys can be changed and each label type, and the minutes until a break.

    `codebooks` are those of the person's queues.
    """

    break_minutes = forms.IntegerField(
        min_value=0, max_value=LONGEST_BREAK, label="Minutes until a break", help_text="0: no reminder."
    )

    def __init__(self, stored: AnnotatorSettings, versions: list[CodebookVersion], data: Any = None) -> None:
        super().__init__(data, initial={"break_minutes": stored.break_minutes})
        custom: Mapping[str, list[str]] = stored.keys
        for action in keys.ACTIONS:
            if not action.fixed:
                usual = " ".join(action.keys)
                self._key_field(action.name, action.title, " ".join(custom.get(action.name, action.keys)), usual)
        for version in versions:
            record = version.record()
            effective = keys.of_labels(record, custom)
            for label_type in marks.offered(record):
                name = f"label:{record.name}:{label_type.name}"
                chosen = " ".join(custom.get(name, ()))
                self._key_field(name, f"{record.title}: {label_type.title}", chosen, effective[label_type.name])

    def _key_field(self, name: str, title: str, value: str, usual: str) -> None:
        attributes = {"data-key": name, "data-title": title, "autocomplete": "off", "placeholder": usual}
        field = forms.CharField(
            max_length=80, label=title, initial=value, required=False, widget=forms.TextInput(attrs=attributes)
        )
        self.fields[name] = field

    def chosen(self) -> dict[str, list[str]]:
        """Return the keys that were entered, by action; an empty field keeps the defaults."""
        entered = {name: self.cleaned_data[name].split() for name in self.fields if name != "break_minutes"}
        return {name: written for name, written in entered.items() if written}


@require_http_methods(["GET", "POST"])
@members
def settings_page(request: HttpRequest) -> HttpResponseBase:
    """A person's keys and breaks; `usual` restores the default keys."""
    user = current_user(request)
    stored = own_settings(user)
    if request.method == "POST" and "usual" in request.POST:
        annotating.save_settings(user=user, custom_keys={}, break_minutes=stored.break_minutes)
        messages.success(request, "The default keys are restored.")
        return redirect("judgments:annotator-settings")
    versions = CodebookVersion.objects.filter(queues__annotators=user).select_related("codebook").order_by("pk")
    newest = {version.codebook_id: version for version in versions.distinct()}
    form = SettingsForm(stored, list(newest.values()), request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            annotating.save_settings(
                user=user, custom_keys=form.chosen(), break_minutes=form.cleaned_data["break_minutes"]
            )
        except BadInput as error:
            form.add_error(error.where if error.where in form.fields else None, f"{error.why}. Nothing was saved.")
        else:
            messages.success(request, "Saved.")
            return redirect("judgments:annotator-settings")
    context = {"form": form, "actions": json.dumps(keys.actions_for_page({})), "changed": bool(stored.keys)}
    return render(request, "judgments/annotator_settings.html", context, status=400 if form.errors else 200)
