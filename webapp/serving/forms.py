"""The form with which an administrator adds a remote model."""

from __future__ import annotations

from django import forms


class RemoteForm(forms.Form):
    """A model behind an OpenAI-compatible address."""

    name = forms.CharField(max_length=120, label="Name", help_text="As people at the table read it afterwards.")
    address = forms.CharField(
        max_length=200,
        label="Address",
        help_text="Such as https://models.example.org/v1; it must be on the list in MODEL_ADDRESSES.",
    )
    model = forms.CharField(max_length=200, label="Model", help_text="The model's name at that address.")
    secret = forms.CharField(
        max_length=120,
        required=False,
        label="Name of its key",
        help_text="The environment variable that holds the key, ending in _API_KEY; never the key itself. "
        "The address's entry in MODEL_ADDRESSES must name it: ADDRESS=SOME_API_KEY.",
    )
    open_to_players = forms.BooleanField(required=False, label="Players may play against it")
