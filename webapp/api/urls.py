"""The REST API: one description at `/api/v1/openapi.json`, every refusal as {"where", "why"}."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

from django.db import DataError
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import path
from django.views.decorators.http import require_GET
from ninja import NinjaAPI
from ninja.errors import AuthenticationError, HttpError, ValidationError
from ninja.openapi.schema import OpenAPISchema

from training.errors import BadInput, IllegalMove
from webapp.api import corpora, datasets, experiments, judgments, matches, queues, runs
from webapp.api.access import Key
from webapp.core.http import unstorable

REFUSALS = {
    400: "The body is not JSON.",
    401: "The key is missing, wrong or revoked.",
    404: "It is not there, or not for you.",
    409: "Not possible now.",
    422: "A field is wrong.",
    429: "Too many wrong keys from this address: wait a minute.",
}
"""What any address may answer instead, with a `Problem` each."""


class Api(NinjaAPI):
    """Describes with every operation how it is refused."""

    def get_openapi_schema(self, **options: Any) -> OpenAPISchema:
        schema = super().get_openapi_schema(**options)
        content = {"application/json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
        refusals = {code: {"description": meaning, "content": content} for code, meaning in REFUSALS.items()}
        for operations in schema["paths"].values():
            for operation in operations.values():
                operation["responses"] = refusals | operation["responses"]
        return schema


api = Api(
    title="Parley",
    version="1",
    description="Datasets, corpora, runs, checkpoints, matches, judgments and experiments. "
    "Send a key as `Authorization: Bearer …`.",
    auth=Key(),
    docs_url=None,
    docs_decorator=require_GET,
    urls_namespace="api",
)
api.add_router("/datasets", datasets.router)
api.add_router("/corpora", corpora.router)
api.add_router("/runs", runs.router)
api.add_router("/checkpoints", runs.checkpoints)
api.add_router("/matches", matches.router)
api.add_router("/judgments", judgments.router)
api.add_router("/queues", queues.router)
api.add_router("/experiments", experiments.router)


def _refuse(request: HttpRequest, status: int, why: str, where: str = "") -> HttpResponse:
    return api.create_response(request, {"where": where, "why": why}, status=status)


@api.exception_handler(Http404)
def refuse_absent(request: HttpRequest, error: Http404) -> HttpResponse:
    """404: not there, or not for the caller; the answer does not tell which."""
    return _refuse(request, 404, "there is nothing here that you may see")


@api.exception_handler(AuthenticationError)
def refuse_unknown(request: HttpRequest, error: AuthenticationError) -> HttpResponse:
    """401: no key that opens anything."""
    return _refuse(request, 401, "send a key that has not been revoked", "Authorization")


@api.exception_handler(HttpError)
def refuse_request(request: HttpRequest, error: HttpError) -> HttpResponse:
    """What no field is wrong in: a body that is not JSON (400), too many wrong keys (429), a version that holds
    judgments of seats that the caller has yet to judge (409).
    """
    response = _refuse(request, error.status_code, str(error))
    if error.status_code == 429:
        response.headers["Retry-After"] = "60"
    return response


@api.exception_handler(BadInput)
def refuse_input(request: HttpRequest, error: BadInput) -> HttpResponse:
    """422: a field is wrong."""
    return _refuse(request, 422, error.why, error.where)


@api.exception_handler(ValidationError)
def refuse_shape(request: HttpRequest, error: ValidationError) -> HttpResponse:
    """422: a field is missing, or not of its type; the first one is named."""
    first = error.errors[0]
    where = ".".join(str(part) for part in first["loc"][1:] if part != "data")
    return _refuse(request, 422, first["msg"], where)


@api.exception_handler(IllegalMove)
def refuse_move(request: HttpRequest, error: IllegalMove) -> HttpResponse:
    """409: the move is not possible now."""
    return _refuse(request, 409, str(error), "move")


@api.exception_handler(DataError)
def refuse_unstorable(request: HttpRequest, error: DataError) -> HttpResponse:
    """422: a field holds a text or number that the database cannot store."""
    why = "a text contains a NUL character, or a number is too large or a text too long to be stored"
    return _refuse(request, 422, why, _unstorable_field(request))


def _unstorable_field(request: HttpRequest) -> str:
    """Return the path of what cannot be stored, in the query string, a form or a JSON body."""
    data: list[Any] = [request.GET.dict(), request.POST.dict()]
    if request.content_type == "application/json":
        with suppress(ValueError, RecursionError):
            data.append(json.loads(request.body))
    return next((path for part in data if (path := unstorable(part))), "")


urlpatterns = [path("v1/", api.urls)]
