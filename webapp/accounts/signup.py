"""The page on which people make their accounts."""

from typing import Any

from allauth.account.forms import SignupForm
from allauth.account.mixins import RedirectAuthenticatedUserMixin
from allauth.account.views import SignupView
from allauth.decorators import rate_limit
from django.db import IntegrityError, transaction
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.utils.decorators import method_decorator
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters

from webapp.accounts.adapter import LOOKS_LIKE_ANOTHER, is_guest


class SignUp(SignupView):
    """allauth's page; the database decides between people who ask for lookalike names at the same time.

    A guest's account is their own row with a name and a password, so that their games stay theirs.
    """

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        """Redirect who has an account already; a guest has none."""
        response: HttpResponseBase = (self._of_guest if is_guest(request) else super().dispatch)(
            request, *args, **kwargs
        )
        return response

    @method_decorator([rate_limit(action="signup"), sensitive_post_parameters(), never_cache])  # as allauth's own
    def _of_guest(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        after: Any = super(RedirectAuthenticatedUserMixin, self)
        response: HttpResponseBase = after.dispatch(request, *args, **kwargs)
        return response

    def form_valid(self, form: SignupForm) -> HttpResponse:
        """Make the account and sign its owner in, or show the form again if the name was taken meanwhile."""
        try:
            with transaction.atomic():
                response: HttpResponse = super().form_valid(form)
        except IntegrityError:
            form.add_error("username", LOOKS_LIKE_ANOTHER)
            response = self.form_invalid(form)
        return response
