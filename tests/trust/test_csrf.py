"""Every unsafe route asks for a CSRF token; the API is exempt because it takes keys, not cookies."""

import pytest
from django.test import Client
from django.urls import reverse

from tests.trust.routes import ROUTES, ask, walk

UNSAFE = [route for route in ROUTES if route.method != "GET" and route.kind == "page"]


@pytest.mark.parametrize("route", UNSAFE, ids=lambda r: f"{r.name}-{r.method}")
def test_a_post_without_a_token_is_refused(route, admin):
    client = Client(enforce_csrf_checks=True)
    client.force_login(admin)
    kwargs = route.make(admin) if route.make else {}
    response = ask(route, client, kwargs)
    assert response.status_code == 403
    assert "no longer valid" in response.content.decode()


def test_no_page_is_exempt():
    exempt = {route.name for route in walk() if getattr(route.view, "csrf_exempt", False)}
    api = {route.name for route in ROUTES if route.kind == "api"} | {"account_logout"}
    assert exempt <= api


def test_a_form_of_another_site_is_refused_even_with_a_token(admin):
    client = Client(enforce_csrf_checks=True)
    client.force_login(admin)
    client.get(reverse("accounts:account"))
    token = client.cookies["csrf"].value
    data = {"name": "stolen", "csrfmiddlewaretoken": token}
    foreign = client.post(reverse("accounts:account"), data, headers={"origin": "https://evil.example"})
    assert foreign.status_code == 403
    allowed = client.post(reverse("accounts:account"), data, headers={"origin": "http://testserver"})
    assert allowed.status_code == 200
