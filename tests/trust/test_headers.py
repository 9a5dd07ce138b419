"""Headers of every page as every role."""

import pytest
from django.urls import reverse

from tests.conftest import ROLES
from tests.trust.routes import ROUTES, ask

PAGES = [route for route in ROUTES if route.method == "GET"]


def check(response):
    policy = response.headers["Content-Security-Policy"]
    assert "unsafe-inline" not in policy
    assert "unsafe-eval" not in policy
    assert "script-src 'self'" in policy
    assert "style-src 'self'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "default-src 'none'" in policy
    assert response.headers["X-Content-Type-Options"] == "nosniff"
    assert response.headers["X-Frame-Options"] == "DENY"
    assert "no-store" in response.headers["Cache-Control"]


@pytest.mark.parametrize("role", ROLES)
def test_every_page_of_every_role(role, person, client_of):
    user = person(role)
    client = client_of(user)
    for route in PAGES:
        kwargs = route.make(user) if route.make else {}
        response = client.get(reverse(route.name, kwargs=kwargs))
        check(response)
        if "text/html" in response.headers["Content-Type"]:
            text = b"".join(response) if response.streaming else response.content
            inline_free(text.decode(), route.name)


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


def inline_free(html, name):
    """No inline script, style or handler: the policy would block them, and somebody would miss them."""
    from html.parser import HTMLParser

    class Check(HTMLParser):
        def handle_starttag(self, tag, attrs):
            attributes = dict(attrs)
            data_block = tag == "script" and attributes.get("type") == "application/json"
            assert tag != "style", f"{name}: inline style"
            assert tag != "script" or "src" in attributes or data_block, f"{name}: inline script"
            assert "style" not in attributes, f"{name}: style attribute on {tag}"
            handlers = [a for a in attributes if a.startswith(("on", "hx-on", "hx-vals-js"))]
            assert not handlers, f"{name}: handler {handlers} on {tag}"
            assert not any((value or "").startswith(("js:", "javascript:")) for value in attributes.values()), name

    Check().feed(html)


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
