"""Authentication by an API key in `Authorization: Bearer …`; objects that its owner may not see are 404."""

from __future__ import annotations

from typing import cast

from django.http import Http404, HttpRequest
from ninja.errors import HttpError
from ninja.security import HttpBearer

from webapp.accounts.models import User
from webapp.accounts.services import TooManyFailures, user_of_key


class Key(HttpBearer):
    """An API key, created on the account page; with `researchers` only keys of researchers and administrators work."""

    def __init__(self, *, researchers: bool = False) -> None:
        super().__init__()
        self._researchers = researchers

    def authenticate(self, request: HttpRequest, token: str) -> User | None:
        try:
            user = user_of_key(request=request, token=token)
        except TooManyFailures as error:
            raise HttpError(429, str(error)) from error
        if user is not None and self._researchers and not user.is_researcher:
            raise Http404
        return user


def caller(request: HttpRequest) -> User:
    """Return the person whose key this is."""
    return cast(User, request.auth)  # type: ignore[attr-defined]
