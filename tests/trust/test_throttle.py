"""Guessing passwords or keys is slowed down, forged forwarding headers do not help, and nobody is locked out by it."""

import pytest
from django.core.cache import cache
from django.test import RequestFactory
from django.urls import reverse

from tests.conftest import PASSWORD
from tests.webapp.arena.conftest import negotiation
from webapp.accounts import services
from webapp.accounts.models import User
from webapp.arena.setup import links, tables


@pytest.fixture(autouse=True)
def fresh_counters(databases):
    cache.clear()
    yield
    cache.clear()


def attempt(client, name, password, number, address="127.0.0.1"):
    forged = {
        "x-forwarded-for": f"10.0.{number // 250}.{number % 250}",
        "forwarded": f"for=10.0.0.{number % 250}",
        "x-real-ip": f"10.1.0.{number % 250}",
        "client-ip": f"10.2.0.{number % 250}",
    }
    return client.post(
        reverse("account_login"), {"login": name, "password": password}, headers=forged, REMOTE_ADDR=address
    )


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


def test_one_link_does_not_make_guests_without_end(player, client_of, settings):
    settings.GUEST_LIMITS = {"guest": "5/m/ip"}
    match = tables.create(host=player, start=tables.Start(negotiation()), places=[tables.Place()] * 2)
    link = reverse("arena:join", args=[links.open_link(match=match)])
    answers = []
    for _ in range(8):
        client = client_of(None)
        answers.append(client.post(link, {"shown_name": "Zoe"}).status_code)
        client.post(reverse("arena:leave", args=[match.pk]))
    assert answers == [302] * 5 + [429] * 3
    assert User.objects.filter(role="guest").count() == 5


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


def checked(responses):
    """How many of the answers say that a password was looked at and is wrong."""
    return sum(b"not correct" in response.content for response in responses)


@pytest.mark.parametrize("role", ["player", "admin"])
def test_the_owner_gets_in_while_somebody_else_guesses(role, person, client_of):
    """From another address at once; from the attacker's own on a device that is known."""
    owner = person(role, "olga")
    known = client_of(None)
    assert attempt(known, "olga", PASSWORD, 0).status_code == 302
    known.post(reverse("account_logout"))
    stranger = client_of(None)
    assert checked(attempt(stranger, "olga", f"wrong {n}", n) for n in range(30)) == 8
    assert attempt(client_of(None), "olga", PASSWORD, 1).status_code == 200
    assert attempt(client_of(None), "olga", PASSWORD, 1, address="10.9.8.7").status_code == 302
    assert attempt(known, "olga", PASSWORD, 1).status_code == 302
    assert known.session["_auth_user_id"] == str(owner.pk)


def test_many_addresses_together_are_cut_off_and_a_known_device_is_not(player, client_of, settings):
    settings.SIGN_IN_LIMITS = {**settings.SIGN_IN_LIMITS, "account": "25/h/key"}
    known = client_of(None)
    assert attempt(known, player.username, PASSWORD, 0).status_code == 302
    known.post(reverse("account_logout"))
    guesses = [attempt(client_of(None), player.username, "wrong", n, address=f"10.1.{n}.1") for n in range(40)]
    assert checked(guesses) == 25
    assert attempt(client_of(None), player.username, PASSWORD, 1, address="10.2.2.2").status_code == 200
    assert attempt(known, player.username, PASSWORD, 1).status_code == 302


def test_a_known_device_has_no_more_tries_than_another(player, client_of):
    known = client_of(None)
    assert attempt(known, player.username, PASSWORD, 0).status_code == 302
    known.post(reverse("account_logout"))
    assert checked(attempt(known, player.username, "wrong", n) for n in range(20)) == 8
    assert attempt(known, player.username, PASSWORD, 1).status_code == 200


def test_a_device_is_known_for_its_own_people_only_and_cannot_be_forged(player, researcher, client_of, settings):
    mine = client_of(None)
    assert attempt(mine, player.username, PASSWORD, 0).status_code == 302
    mine.post(reverse("account_logout"))
    stranger = client_of(None)
    assert checked(attempt(stranger, researcher.username, "wrong", n) for n in range(10)) == 8
    assert attempt(mine, researcher.username, PASSWORD, 1).status_code == 200, "known for another person"
    cookie = mine.cookies[settings.DEVICE_COOKIE_NAME]
    assert (cookie["httponly"], cookie["samesite"]) == (True, "Lax")
    for forged in ("", "x", cookie.value[:-1] + "x", f'[[{researcher.pk}, "x"]]'):
        stranger.cookies[settings.DEVICE_COOKIE_NAME] = forged
        assert attempt(stranger, researcher.username, PASSWORD, 1).status_code == 200


def test_name_and_mail_address_are_one_account(player, client_of):
    player.email = "pia@example.org"
    player.save()
    client = client_of(None)
    guesses = [attempt(client, name, "wrong", 0) for name in ("pia", "PIA", "pia@example.org") * 5]
    assert checked(guesses) == 8


def test_a_number_as_a_name_is_not_the_account_of_that_number(player, client_of):
    """Whoever does not know a name must not be able to use up the tries of its owner's address."""
    stranger = client_of(None)
    assert checked(attempt(stranger, str(player.pk), f"wrong {n}", n) for n in range(10)) == 8
    assert attempt(client_of(None), player.username, PASSWORD, 1).status_code == 302


def test_there_is_no_other_way_to_sign_in_with_a_password(db, client):
    """Django's own administration is not installed; its sign-in page would need a throttle of its own."""
    assert client.get("/admin/login/").status_code == 404
