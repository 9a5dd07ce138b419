"""The pages on which people download a copy of their own data, and delete their account."""

from __future__ import annotations

from typing import Any

from allauth.account.adapter import get_adapter
from django import forms
from django.contrib import messages
from django.contrib.auth import logout
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from training.errors import BadInput
from webapp.accounts.models import User
from webapp.accounts.permissions import admins, current_user, everyone, get_or_404
from webapp.privacy import erasing, own_data, services
from webapp.runs.archive import contents_response


@require_http_methods(["GET", "POST"])
@everyone
def data(request: HttpRequest) -> HttpResponseBase:
    """What the copy contains; a POST downloads it, written while it is sent."""
    user = current_user(request)
    if request.method == "GET":
        return render(request, "privacy/data.html")
    try:
        services.count_copy(user=user)
    except BadInput as error:
        messages.error(request, f"No copy was made: {error.why}.")
        return redirect("privacy:data")
    return contents_response(request, "my-data", own_data.contents(user))


class DeletionForm(forms.Form):
    """The confirmation that an account is deleted: its password, a tick where it has none, from an admin its name."""

    withdraw = forms.BooleanField(
        required=False,
        label="Refuse the use of all these games, too",
        help_text="They leave queues, datasets and exports, as on each game's page about consent.",
    )
    password = forms.CharField(
        widget=forms.PasswordInput(attrs={"autocomplete": "current-password"}), label="Your password"
    )
    sure = forms.BooleanField(label="Delete this account for good")
    username = forms.CharField(label="The name of the account")

    def __init__(self, request: HttpRequest, person: User, data: Any) -> None:
        super().__init__(data)
        self.request, self.person = request, person
        is_own = request.user.pk == person.pk
        asked = "username" if not is_own else "password" if person.has_usable_password() else "sure"
        for name in {"username", "password", "sure"} - {asked}:
            del self.fields[name]
        if not is_own:  # nobody refuses for somebody else
            del self.fields["withdraw"]

    def clean_password(self) -> None:
        """Check the password; too many wrong ones are refused, as at sign-in."""
        if not get_adapter(self.request).reauthenticate(self.person, self.cleaned_data["password"]):
            raise forms.ValidationError("This is not your password.")

    def clean_username(self) -> None:
        """Check that the admin means this account."""
        if self.cleaned_data["username"] != self.person.username:
            raise forms.ValidationError("This is not the name of the account.")


@require_http_methods(["GET", "POST"])
@everyone
def delete(request: HttpRequest) -> HttpResponseBase:
    """What is deleted with one's own account and what stays; a POST deletes it and signs out."""
    return _deletion(request, current_user(request))


@require_http_methods(["GET", "POST"])
@admins
def delete_person(request: HttpRequest, user_id: int) -> HttpResponseBase:
    """The same for another person's account."""
    person = get_or_404(User.objects.members(), pk=user_id)
    if person.pk == current_user(request).pk:
        return redirect("privacy:delete")
    return _deletion(request, person)


def _deletion(request: HttpRequest, person: User) -> HttpResponseBase:
    form = DeletionForm(request, person, request.POST if request.method == "POST" else None)
    is_own = current_user(request).pk == person.pk
    if form.is_valid():
        try:
            erasing.erase(user=person, withdraw=form.cleaned_data.get("withdraw", False))
        except BadInput as error:
            form.add_error(None, f"The account was not deleted: {error.why}.")
        else:
            if is_own:
                logout(request)
            messages.success(request, "The account was deleted.")
            return redirect("account_login" if is_own else "accounts:people")
    context = {"form": form, "person": person, "own": is_own, "extent": erasing.extent(person)}
    return render(request, "privacy/delete.html", context, status=400 if form.errors else 200)
