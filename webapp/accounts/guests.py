"""The throttle of guests: how often one network address may become a guest, or do what only guests do."""

from __future__ import annotations

from allauth.core.internal import ratelimit
from django.conf import settings
from django.http import HttpRequest


def is_throttled(request: HttpRequest, action: str = "guest") -> bool:
    """Whether this address has done `action`, one of `GUEST_LIMITS`, too often; otherwise counts this attempt.

    Each guest is a row, and leaving a table makes room for the next one.
    """
    return ratelimit.consume(request, app="parley", action=action, config=settings.GUEST_LIMITS) is None
