"""Devices on which somebody has signed in before: a signed cookie that lets them try while strangers are held off.

The cookie opens nothing by itself. It names up to five people with a random number each, under which the failures of
this device are counted apart from those of everybody else (OWASP: "Slow down online guessing attacks with device
cookies").
"""

from __future__ import annotations

import secrets

from django.conf import settings
from django.core import signing
from django.http import HttpRequest, HttpResponse

from webapp.accounts.models import User

MOST = 5
SECONDS = 180 * 86400
SALT = "webapp.accounts.devices"


def _read(request: HttpRequest) -> dict[int, str]:
    """The random number of each person who has signed in on this device; nothing for a forged or old cookie."""
    try:
        pairs = signing.loads(request.COOKIES.get(settings.DEVICE_COOKIE_NAME, ""), salt=SALT, max_age=SECONDS)
        return {int(key): str(number) for key, number in pairs}
    except (signing.BadSignature, ValueError, TypeError):
        return {}


def known(request: HttpRequest, user: User) -> str:
    """Return the number of this device if the person has signed in on it before, else an empty text."""
    return _read(request).get(user.pk, "")


def remember(request: HttpRequest, response: HttpResponse, user: User) -> None:
    """Make the device known as one of this person's, newest first."""
    devices = _read(request)
    number = devices.pop(user.pk, "") or secrets.token_urlsafe(12)
    pairs = [(user.pk, number), *devices.items()][:MOST]
    response.set_cookie(
        settings.DEVICE_COOKIE_NAME,
        signing.dumps(pairs, salt=SALT),
        max_age=SECONDS,
        secure=settings.SESSION_COOKIE_SECURE,
        httponly=True,
        samesite="Lax",
    )
