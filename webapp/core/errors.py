"""The error pages: what happened, what was kept, what to do. They need no database and no session."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

API = "/api/"
"""Below this address every refusal is JSON."""


def _page(request: HttpRequest, status: int, **texts: str) -> HttpResponse:
    return render(request, "error.html", {"status": status, **texts}, status=status)


def bad_request(request: HttpRequest, exception: Exception | None = None, field: str = "") -> HttpResponse:
    """400: the request cannot be read, because of one field if it is named."""
    about = f"The field “{field[:80]}” holds a character that cannot be stored."
    return _page(
        request,
        400,
        happened=about if field else "This request could not be read.",
        kept="Nothing was changed.",
        advice="Go back, reload the page and try again.",
    )


def forbidden(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    """403: refused for everybody."""
    return _page(
        request,
        403,
        happened="This was refused.",
        kept="Nothing was changed.",
        advice="Sign in with an account that may do this, or ask an administrator.",
    )


def not_found(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    """404: missing, or not visible to this user; the page does not say which."""
    return _page(
        request,
        404,
        happened="There is nothing here that you may see.",
        kept="Nothing was changed.",
        advice="Check the address. What was deleted, or belongs to somebody else, is not shown.",
    )


def server_error(request: HttpRequest) -> HttpResponse:
    """500: an internal error."""
    return _page(
        request,
        500,
        happened="Something went wrong on our side.",
        kept="What you had saved before is kept; this last step was not done.",
        advice="Try again. If it happens twice, tell an administrator the time and the address of this page.",
    )


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """403 for a form whose token is missing or old."""
    return _page(
        request,
        403,
        happened="The form was no longer valid, so it was not sent.",
        kept="Nothing was changed.",
        advice="This happens after signing in or out in another tab. Go back, reload the page and send it again.",
    )
