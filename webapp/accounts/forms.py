"""Forms of the account pages."""

from django import forms

from webapp.accounts.models import Role


class KeyForm(forms.Form):
    """A new API key."""

    name = forms.CharField(max_length=80, label="Name", help_text="What the key is for.")


class PersonForm(forms.Form):
    """What a person may do, as an administrator sets it."""

    role = forms.ChoiceField(choices=[(role.value, role.label) for role in Role if role is not Role.GUEST])
    active = forms.BooleanField(required=False, label="May sign in")
