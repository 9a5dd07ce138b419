"""Forms of the corpora: an upload, who sees a corpus."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms

from training.errors import BadInput
from training.retrieval import dense
from webapp.accounts.models import User
from webapp.corpora import services
from webapp.corpora.models import Index

PRIVATE = (
    "Only you and administrators see it. What a run retrieves from it is shown with the run. Tables search it if you "
    "are the host and made the scenario; everybody at them reads what is found."
)


class UploadForm(forms.Form):
    """The upload: a file, the corpus's name, and which indexes are built."""

    file = forms.FileField(
        label="File",
        help_text='JSONL with one passage per line, such as {"id": "7", "title": "Eiffel Tower", "text": "…"}; the '
        f"title may be missing. At most {services.MAX_BYTES // 2**30} GiB.",
    )
    name = forms.SlugField(
        max_length=80,
        help_text="Letters, digits, hyphens and underscores, such as wikipedia-2018. Runs name the corpus by it.",
        error_messages={"invalid": "Use letters, digits, hyphens and underscores only."},
    )
    dense = forms.BooleanField(
        required=False,
        label="Also index by meaning",
        help_text="Vectors of a sentence encoder, beside BM25. On one CPU core this takes about a minute per thousand "
        "passages.",
    )
    private = forms.BooleanField(required=False, help_text=PRIVATE)
    source = forms.CharField(max_length=400, required=False, help_text="Where the passages come from.")
    licence = forms.CharField(max_length=120, required=False, help_text="Their licence.")

    def __init__(self, user: User, data: Mapping[str, Any] | None = None, files: Any = None) -> None:
        super().__init__(data, files)
        self._user = user
        if not dense.installed():
            field = self.fields["dense"]
            field.disabled, field.help_text = True, f"Dense retrieval is not installed: {dense.INSTALL}."

    def clean_name(self) -> str:
        name = str(self.cleaned_data["name"])
        try:
            services.check_name(name, self._user)
        except BadInput as error:
            raise forms.ValidationError(f"{error.why}.") from error
        return name

    def clean_file(self) -> Any:
        file = self.cleaned_data["file"]
        try:
            services.check_upload(file.size or 0)
        except BadInput as error:
            raise forms.ValidationError(f"{error.why}.") from error
        return file

    def kinds(self) -> list[str]:
        """The indexes to build; only for a valid form."""
        return [Index.Kind.BM25, Index.Kind.DENSE] if self.cleaned_data["dense"] else [Index.Kind.BM25]
