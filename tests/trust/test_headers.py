"""Headers of cookies and of error pages; those of every page as every role are checked in `test_permissions`."""

import pytest

from tests.trust.headers import check
from tests.trust.routes import ROUTES, ask


@pytest.mark.parametrize("role", ["guest", "admin"])
def test_every_cookie_is_bound_to_the_host_in_production(role, person, client_of, settings):
    """`__Host-` holds only for a secure cookie of the whole host; browsers drop any other of that name."""
    settings.SESSION_COOKIE_NAME, settings.CSRF_COOKIE_NAME = "__Host-session", "__Host-csrf"
    settings.RESUME_COOKIE_NAME = "__Host-resume"
    settings.SESSION_COOKIE_SECURE = settings.CSRF_COOKIE_SECURE = True
    hosted = {"open_tables": {role: 1000}, "tables_per_hour": {role: 1000}}  # one person hosts a table for every route
    settings.QUOTAS = {**settings.QUOTAS, **hosted}
    user, seen = person(role), set()
    for route in ROUTES:
        if route.kind != "page":
            continue
        kwargs = route.make(user) if route.make else {}
        for cookie in ask(route, client_of(user), kwargs).cookies.values():
            assert cookie.key.startswith("__Host-"), f"{route.method} {route.name} sets {cookie.key}"
            assert (cookie["secure"], cookie["path"], cookie["domain"]) == (True, "/", "")
            seen.add(cookie.key)
    assert seen == {"__Host-session", "__Host-csrf", "__Host-resume"}


@pytest.mark.parametrize("address", ["/nothing-here/", "/accounts/keys/1/revoke/"])
def test_error_pages_have_them_too(address, db, client):
    check(client.get(address))


def test_a_page_that_fails_says_what_to_do(db, client, monkeypatch):
    from webapp.core import errors

    for handler, status, kept in (
        (errors.bad_request, 400, "Nothing was changed."),
        (errors.forbidden, 403, "Nothing was changed."),
        (errors.server_error, 500, "What you had saved before is kept; this last step was not done."),
    ):
        from django.test import RequestFactory

        response = handler(RequestFactory().get("/"))
        assert response.status_code == status
        assert kept in response.content.decode()
