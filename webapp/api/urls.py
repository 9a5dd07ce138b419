"""The REST API: one description at `/api/v1/openapi.json`, refusals as {"where", "why"}."""

from __future__ import annotations

from django.db import DataError
from django.http import HttpRequest, HttpResponse
from django.urls import path
from django.views.decorators.http import require_GET
from ninja import NinjaAPI
from ninja.errors import ValidationError

from training.errors import BadInput, IllegalMove
from webapp.api import datasets, judgments, matches, runs
from webapp.api.access import Key

api = NinjaAPI(
    title="Parley",
    version="1",
    description="Datasets, runs, checkpoints, matches and judgments. Send a key as `Authorization: Bearer …`.",
    auth=Key(),
    docs_url=None,
    docs_decorator=require_GET,
    urls_namespace="api",
)
api.add_router("/datasets", datasets.router)
api.add_router("/runs", runs.router)
api.add_router("/checkpoints", runs.checkpoints)
api.add_router("/matches", matches.router)
api.add_router("/judgments", judgments.router)


@api.exception_handler(BadInput)
def refuse_input(request: HttpRequest, error: BadInput) -> HttpResponse:
    """422: something given is wrong."""
    return api.create_response(request, {"where": error.where, "why": error.why}, status=422)


@api.exception_handler(ValidationError)
def refuse_shape(request: HttpRequest, error: ValidationError) -> HttpResponse:
    """422: a field is missing, or not of its type; the first one is named."""
    first = error.errors[0]
    where = ".".join(str(part) for part in first["loc"][1:] if part != "data")
    return api.create_response(request, {"where": where, "why": first["msg"]}, status=422)


@api.exception_handler(IllegalMove)
def refuse_move(request: HttpRequest, error: IllegalMove) -> HttpResponse:
    """409: the move is not possible now."""
    return api.create_response(request, {"where": "move", "why": str(error)}, status=409)


@api.exception_handler(DataError)
def refuse_unstorable(request: HttpRequest, error: DataError) -> HttpResponse:
    """422: something given is no text or number that the database can hold."""
    why = "a text holds a NUL character, or a number is too large or a text too long to be stored"
    return api.create_response(request, {"where": "", "why": why}, status=422)


urlpatterns = [path("v1/", api.urls)]
