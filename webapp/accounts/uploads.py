"""Who may upload files, which must be known before the body of the request is read."""

from __future__ import annotations

import io
from typing import Any

from channels.db import database_sync_to_async
from django.contrib.auth import get_user
from django.contrib.sessions.middleware import SessionMiddleware
from django.core.handlers.asgi import ASGIRequest
from django.db import DatabaseError
from django.http import HttpResponse

from webapp.accounts.models import ApiKey, Role, User, digest

UPLOADERS = (Role.RESEARCHER, Role.ADMIN)


async def may_upload(scope: dict[str, Any]) -> bool:
    """Whether the session or the API key of a request is that of a researcher or administrator.

    Without the database nobody is known. The view decides about the request itself.
    """
    allowed: bool = await database_sync_to_async(_may_upload, thread_sensitive=False)(scope)
    return allowed


def _may_upload(scope: dict[str, Any]) -> bool:
    request = ASGIRequest(scope, io.BytesIO())
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    try:
        if scheme.lower() == "bearer":
            return ApiKey.objects.live().filter(digest=digest(token.strip()), user__role__in=UPLOADERS).exists()
        SessionMiddleware(lambda _request: HttpResponse()).process_request(request)
        user = get_user(request)
        return isinstance(user, User) and user.is_active and user.is_researcher
    except DatabaseError:
        return False
