"""Every route, HTTP and socket, for every role, with their own object and with another's.

A route that no file in `matrix/` lists with every method it takes fails, and so does a listed one that does not exist.
"""

import pytest
from asgiref.sync import async_to_sync
from django.urls import reverse

from tests.conftest import ROLES
from tests.trust.headers import check, check_cookies
from tests.trust.matrix.base import METHODS
from tests.trust.routes import ROUTES, SOCKETS, ask, walk
from tests.websocket import Socket, browser_headers


def test_every_route_is_listed_with_every_method_it_takes(db, client_of):
    """A method is refused before anything else is looked at, so that nobody need be signed in to find out which."""
    client = client_of(None)
    taken = {
        (route.pattern, method)
        for route in walk()
        for method in METHODS
        if client.generic(method, route.address).status_code != 405
    }
    patterns = {route.name: route.pattern for route in walk()}
    listed = {(patterns.get(route.name, route.name), route.method) for route in ROUTES}
    assert taken - listed == set(), "routes and methods that no file of tests/trust/matrix lists"
    assert listed - taken == set(), "listed routes and methods that do not exist"
    assert {route.name for route in walk()} == {route.name for route in ROUTES}


def test_every_socket_route_is_listed():
    from webapp.core.sockets import routes

    assert sorted(str(route.pattern) for route in routes()) == sorted(route.pattern for route in SOCKETS)


@pytest.fixture
def production_cookies(settings):
    """Cookies as they are in production, to be checked on the way."""
    settings.SESSION_COOKIE_NAME, settings.CSRF_COOKIE_NAME = "__Host-session", "__Host-csrf"
    settings.RESUME_COOKIE_NAME, settings.DEVICE_COOKIE_NAME = "__Host-resume", "__Host-device"
    settings.SESSION_COOKIE_SECURE = settings.CSRF_COOKIE_SECURE = True


def refused(response):
    return response.status_code == 404


CASES = [(r, whose) for r in ROUTES if not r.public for whose in (["own", "other"] if r.make else ["own"])]


@pytest.mark.usefixtures("production_cookies")
@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("route, whose", CASES, ids=[f"{r.name}-{r.method}-{whose}" for r, whose in CASES])
def test_a_role_gets_what_the_matrix_says(route, role, whose, person, client_of):
    user = person(role, f"the-{role}")
    owner = user if whose == "own" else person("researcher", "somebody-else")
    kwargs = route.make(owner) if route.make else {}
    response = ask(route, client_of(user), kwargs, user)
    allowed = route.own if whose == "own" or route.other is None else route.other
    assert refused(response) != (role in allowed), f"{route.name} for {role}, {whose}: {response.status_code}"
    assert response.status_code < 500
    assert response.status_code != 405
    if route.kind == "page":
        check_cookies(response, f"{route.method} {route.name}")
    if route.method == "GET":
        check(response, route.name)


@pytest.mark.parametrize("route", [r for r in ROUTES if not r.public], ids=lambda r: f"{r.name}-{r.method}")
def test_without_signing_in_nothing_is_revealed(route, person, client_of):
    owner = person("researcher", "somebody")
    response = ask(route, client_of(None), route.make(owner) if route.make else {})
    if route.kind == "api":
        assert response.status_code == 401
    else:
        assert response.status_code == 302
        assert response["Location"].startswith(reverse("account_login"))


@pytest.mark.usefixtures("production_cookies")
@pytest.mark.parametrize("route", [r for r in ROUTES if r.public], ids=lambda r: f"{r.name}-{r.method}")
def test_public_routes_answer_without_a_session(route, person, client_of):
    expected = {route.status} if route.status else {200, 302}
    kwargs = route.make(person("researcher", "somebody")) if route.make else {}
    response = ask(route, client_of(None), kwargs)
    assert response.status_code in expected
    if route.kind == "page":
        check_cookies(response, f"{route.method} {route.name}")
    if route.method == "GET":
        check(response, route.name)


@pytest.mark.parametrize("route", SOCKETS, ids=lambda r: r.pattern)
@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("whose", ["own", "other"])
@pytest.mark.django_db(transaction=True)
def test_a_role_gets_the_sockets_that_the_matrix_says(route, role, whose, person, client_of):
    from webapp.core.sockets import guarded

    user = person(role, f"the-{role}")
    owner = user if whose == "own" else person("researcher", "somebody-else")
    path = route.make(owner)
    client = client_of(user)
    headers = browser_headers(client.cookies["session"].value)

    async def connect():
        socket = Socket(guarded(), path, headers)
        opened = await socket.connect()
        if opened:
            await socket.leave()
        return opened

    assert async_to_sync(connect)() == (role in (route.own if whose == "own" else route.other))
