"""The page on which people make their accounts."""

from allauth.account.forms import SignupForm
from allauth.account.views import SignupView
from django.db import IntegrityError, transaction
from django.http import HttpResponse

from webapp.accounts.adapter import LOOKS_LIKE_ANOTHER


class SignUp(SignupView):
    """allauth's page; the database decides between people who ask for lookalike names at the same time."""

    def form_valid(self, form: SignupForm) -> HttpResponse:
        """Make the account and sign its owner in, or show the form again if the name was taken meanwhile."""
        try:
            with transaction.atomic():
                response: HttpResponse = super().form_valid(form)
        except IntegrityError:
            form.add_error("username", LOOKS_LIKE_ANOTHER)
            response = self.form_invalid(form)
        return response
