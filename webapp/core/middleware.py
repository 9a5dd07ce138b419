"""Response headers that depend on nothing but the response: pages are never kept by a cache."""

from collections.abc import Callable

from django.http import HttpRequest
from django.http.response import HttpResponseBase


class NoStoreMiddleware:
    """Marks every page `no-store`; static files are answered before it, and a view may set its own header."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response = self.get_response(request)
        response.headers.setdefault("Cache-Control", "no-store, private")
        return response
