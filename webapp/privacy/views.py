"""The page on which people download a copy of their own data."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from training.errors import BadInput
from webapp.accounts.permissions import current_user, everyone
from webapp.privacy import own_data, services
from webapp.runs.archive import contents_response


@require_http_methods(["GET", "POST"])
@everyone
def data(request: HttpRequest) -> HttpResponseBase:
    """What the copy contains; a POST downloads it, written while it is sent."""
    user = current_user(request)
    if request.method == "GET":
        return render(request, "privacy/data.html")
    try:
        services.count_copy(user=user)
    except BadInput as error:
        messages.error(request, f"No copy was made: {error.why}.")
        return redirect("privacy:data")
    return contents_response(request, "my-data", own_data.contents(user))
