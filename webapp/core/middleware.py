"""What holds for every page: it is never kept by a cache, and values that the database cannot hold are a 400."""

import logging
from collections.abc import Callable

from django.db import DataError
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase

from webapp.core.errors import bad_request

logger = logging.getLogger(__name__)


class NoStoreMiddleware:
    """Marks every page `no-store`; static files are answered before it, and a view may set its own header."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response = self.get_response(request)
        response.headers.setdefault("Cache-Control", "no-store, private")
        return response


class UnstorableMiddleware:
    """Answers 400 where the database refused a value as such: a NUL character, half a surrogate pair, a huge number."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        """Say that the request cannot be read; every other exception stays what it is."""
        if not isinstance(exception, DataError | UnicodeEncodeError):
            return None
        logger.warning("%s %s: %s", request.method, request.path, type(exception).__name__)
        return bad_request(request, exception)
