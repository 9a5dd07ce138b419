"""Middleware: access log, probes, no caching, hidden characters shown, and errors in the format of the client."""

import json
import logging
import time
from collections.abc import Callable

from django.db import DataError
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.urls import Resolver404, resolve
from whitenoise.middleware import WhiteNoiseMiddleware
from whitenoise.responders import StaticFile

from webapp.core.errors import API, bad_request
from webapp.core.http import unstorable
from webapp.core.views import healthz
from webapp.core.visible import reveal

logger = logging.getLogger(__name__)
access = logging.getLogger("access")
Next = Callable[[HttpRequest], HttpResponseBase]


class AccessLogMiddleware:
    """Writes one line for every request: method, path, status, milliseconds, and the id of the signed-in person.

    Neither query strings nor the tokens of links are written.
    """

    def __init__(self, get_response: Next) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        started = time.monotonic()
        response = self.get_response(request)
        milliseconds = 1000 * (time.monotonic() - started)
        access.info(
            "%s %s %s %.0f ms user %s",
            request.method, loggable_path(request.path_info), response.status_code, milliseconds, _user_id(request),
        )  # fmt: skip
        return response


def loggable_path(path: str) -> str:
    """The path without tokens and control characters; only its length where it is not an address of ours."""
    try:
        match = resolve(path)
    except Resolver404:
        is_static = path.startswith("/static/") and len(path) < 200
        return ascii(path)[1:-1] if is_static else f"- ({len(path)} characters)"
    for name in ("token", "key"):
        if secret := match.kwargs.get(name):
            path = path.replace(secret, f"<{name}>")
    return ascii(path)[1:-1]


def _user_id(request: HttpRequest) -> object:
    """The id of the signed-in person, by session or API key; `-` where the request did not read it."""
    user = getattr(request, "auth", None) or getattr(request, "_cached_user", None)
    return getattr(user, "pk", None) or "-"


class JsonErrorsMiddleware:
    """Gives every error below `/api/` the API's form: `{"where": …, "why": …}`."""

    def __init__(self, get_response: Next) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response = self.get_response(request)
        if response.status_code < 400 or not request.path_info.startswith(API):
            return response
        if response.headers.get("Content-Type", "").startswith("application/json"):
            return response
        why = WHY.get(response.status_code, OTHERWISE)
        content = json.dumps({"where": "", "why": why}).encode()
        if isinstance(response, HttpResponse):
            response.content = content
            response.headers["Content-Type"] = "application/json"
            response.headers["Content-Length"] = str(len(content))
        return response


WHY = {
    400: "the request could not be read",
    403: "this was refused: you may not do it, or the form was no longer valid",
    404: "there is nothing here that you may see",
    405: "this address does not take that method",
    429: "too many requests: wait a minute",
    500: "something went wrong on our side; nothing of this request was done",
}
OTHERWISE = "this was refused; nothing was changed"


class NoStoreMiddleware:
    """Marks every page `no-store`; static files are answered before it, and a view may set its own header."""

    def __init__(self, get_response: Next) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response = self.get_response(request)
        response.headers.setdefault("Cache-Control", "no-store, private")
        return response


class ProbeMiddleware:
    """Answers `/healthz` before the host's name is checked: probes ask a machine by its address."""

    def __init__(self, get_response: Next) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        return healthz(request) if request.path_info == "/healthz" else self.get_response(request)


class HiddenCharactersMiddleware:
    """Shows characters that reorder or hide text by their numbers in every page."""

    def __init__(self, get_response: Next) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response = self.get_response(request)
        if isinstance(response, HttpResponse) and response.headers.get("Content-Type", "").startswith("text/html"):
            content = response.text
            if (revealed := reveal(content)) != content:
                response.content = revealed.encode()
        return response


class StaticFilesMiddleware(WhiteNoiseMiddleware):
    """WhiteNoise, with each file as one piece: under ASGI, Django would read a file object in one piece anyway and
    warn about it.
    """

    @staticmethod
    def serve(static_file: StaticFile, request: HttpRequest) -> HttpResponse:
        """Answer with the file, or with the part of it that was asked for."""
        answer = static_file.get_response(request.method, request.META)
        content = b""
        if answer.file is not None:
            with answer.file as file:
                content = file.read()
        response = HttpResponse(content, status=int(answer.status))
        del response.headers["Content-Type"]
        for name, value in answer.headers:
            response.headers[name] = value
        return response


class UnstorableMiddleware:
    """Answers 400 where the database refused a value as such: a NUL character, half a surrogate pair, a huge number."""

    def __init__(self, get_response: Next) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        """Say which field cannot be stored; every other exception stays what it is."""
        if not isinstance(exception, DataError | UnicodeEncodeError):
            return None
        field = unstorable(request.POST.dict()) or unstorable(request.GET.dict())
        logger.warning("%s %s: %s", request.method, loggable_path(request.path_info), type(exception).__name__)
        return bad_request(request, exception, field)
