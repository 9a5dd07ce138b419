"""Who may do what, in one place. Anything that a person may not see or do is 404, as if it were not there.

Somebody who is not signed in is sent to the sign-in page, before any object is looked up. A part of a page that asks
for itself gets a 401 instead, so that the sign-in page does not end up inside the page.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import ObjectDoesNotExist
from django.db.models import Model, QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect

from webapp.accounts.models import Role, User
from webapp.core.http import wants_fragment

View = Callable[..., HttpResponseBase]
M = TypeVar("M", bound=Model)

MEMBERS = frozenset({Role.PLAYER, Role.ANNOTATOR, Role.RESEARCHER, Role.ADMIN})
EVERYONE = MEMBERS | {Role.GUEST}


def current_user(request: HttpRequest) -> User:
    """The signed-in person of a view that one of the decorators below guards."""
    return cast(User, request.user)


def roles(*allowed: Role) -> Callable[[View], View]:
    """Only for these roles, and always for admins; for other signed-in people it is 404."""
    permitted = frozenset(allowed) | {Role.ADMIN}

    def guard(view: View) -> View:
        @wraps(view)
        def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            if not request.user.is_authenticated:
                if wants_fragment(request):
                    return HttpResponse(status=401)
                if request.method == "GET":
                    return redirect_to_login(request.get_full_path())
                return redirect("account_login")
            if current_user(request).role not in permitted:
                raise Http404
            return view(request, *args, **kwargs)

        return guarded

    return guard


researchers = roles(Role.RESEARCHER)
annotators = roles(Role.ANNOTATOR, Role.RESEARCHER)
members = roles(*MEMBERS)
everyone = roles(*EVERYONE)
admins = roles(Role.ADMIN)


def get_or_404(rows: QuerySet[M], **lookup: Any) -> M:
    """The row of a query set that is limited to what the user may see (or change), else 404."""
    try:
        return rows.get(**lookup)
    except (ObjectDoesNotExist, ValueError, OverflowError) as error:
        raise Http404 from error
