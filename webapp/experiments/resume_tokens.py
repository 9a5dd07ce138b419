"""Resume tokens: how a browser that lost the response to the consent page comes back to what it began.

Opening the consent page puts a random number into a signed cookie of the browser. A participation stores a keyed hash
of it. If the response with the new session is lost, the browser has only the resume token, and agrees again: the same
number, the same id of the platform, and a participation of which no page has been shown yet are the same person. An id
alone, which can be guessed, opens nothing, and a resume token opens nothing once a page has been shown.
"""

from __future__ import annotations

import secrets
from datetime import timedelta

from django.conf import settings
from django.core import signing
from django.http import HttpRequest, HttpResponse
from django.utils.crypto import salted_hmac

from webapp.experiments.models import Experiment

LIFETIME = timedelta(hours=1)
SALT = "webapp.experiments.resume_tokens"


def token_of(request: HttpRequest) -> str:
    """The number in the browser's cookie; empty for none, and for a forged or old one."""
    try:
        cookie = request.COOKIES.get(settings.RESUME_COOKIE_NAME, "")
        return str(signing.loads(cookie, salt=SALT, max_age=LIFETIME))
    except signing.BadSignature:
        return ""


def issue(request: HttpRequest, response: HttpResponse) -> None:
    """Give the browser a resume token unless it has one."""
    if token_of(request):
        return
    response.set_cookie(
        settings.RESUME_COOKIE_NAME,
        signing.dumps(secrets.token_urlsafe(32), salt=SALT),
        max_age=LIFETIME,
        secure=settings.SESSION_COOKIE_SECURE,
        httponly=True,
        samesite="Lax",
    )


def hash_of(experiment: Experiment, resume_token: str) -> str:
    """The stored form of a resume token: a keyed hash, different in every experiment; empty without a resume token."""
    if not resume_token:
        return ""
    return salted_hmac(f"resume token of experiment {experiment.pk}", resume_token, algorithm="sha256").hexdigest()
