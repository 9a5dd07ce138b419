"""Guessing passwords or keys is slowed down, and forged forwarding headers do not help."""

import pytest
from django.core.cache import cache
from django.test import RequestFactory
from django.urls import reverse

from tests.conftest import PASSWORD
from webapp.accounts import services


@pytest.fixture(autouse=True)
def fresh_counters(databases):
    cache.clear()
    yield
    cache.clear()


def attempt(client, name, password, number):
    forged = {
        "x-forwarded-for": f"10.0.{number // 250}.{number % 250}",
        "forwarded": f"for=10.0.0.{number % 250}",
        "x-real-ip": f"10.1.0.{number % 250}",
        "client-ip": f"10.2.0.{number % 250}",
    }
    return client.post(reverse("account_login"), {"login": name, "password": password}, headers=forged)


def test_two_hundred_tries_on_one_account_are_cut_off(player, client):
    outcomes = [attempt(client, player.username, f"wrong {n}", n) for n in range(200)]
    checked = [r for r in outcomes if b"not correct" in r.content]
    assert 0 < len(checked) <= 8
    locked = attempt(client, player.username, PASSWORD, 999)
    assert locked.status_code != 302, "the right password is not looked at while the account is locked"


def test_two_hundred_tries_over_many_accounts_are_cut_off(db, client):
    outcomes = [attempt(client, f"name{n}", "password", n) for n in range(200)]
    checked = [r for r in outcomes if b"not correct" in r.content]
    assert 0 < len(checked) <= 20


def test_the_right_password_gets_in(player, client):
    assert attempt(client, player.username, PASSWORD, 1).status_code == 302


def test_wrong_keys_are_cut_off_and_right_ones_not_before(player):
    _, token = services.create_key(user=player, name="notebook")

    def ask(key, number):
        request = RequestFactory().get("/api/", headers={"x-forwarded-for": f"10.0.0.{number}"})
        return services.user_of_key(request=request, token=key)

    assert ask(token, 0) == player
    assert [ask(f"parley_wrong{n}", n) for n in range(20)] == [None] * 20
    with pytest.raises(services.TooManyFailures):
        ask("parley_wrong", 99)
    with pytest.raises(services.TooManyFailures):
        ask(token, 100)
