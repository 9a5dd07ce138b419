"""Accounts: signing in, keys that are shown once, guests, and what administrators change."""

import pytest
from django.core.management import call_command
from django.db import transaction
from django.urls import reverse

from tests.conftest import PASSWORD
from tests.elsewhere import begin, until_somebody_waits
from training.errors import BadInput
from webapp.accounts import services
from webapp.accounts.models import ApiKey, Role, User, digest

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def fresh_counters(databases):
    from django.core.cache import cache

    cache.clear()


@pytest.mark.parametrize("known_as", ["pia", "pia@example.org"])
def test_signing_in_by_name_or_address(client, player, known_as):
    User.objects.filter(pk=player.pk).update(email="pia@example.org")
    response = client.post(reverse("account_login"), {"login": known_as, "password": PASSWORD})
    assert response.status_code == 302
    assert client.session["_auth_user_id"] == str(player.pk)


def test_an_inactive_person_does_not_get_in(client, player):
    User.objects.filter(pk=player.pk).update(is_active=False)
    client.post(reverse("account_login"), {"login": "pia", "password": PASSWORD})
    assert "_auth_user_id" not in client.session


def test_who_is_invited_can_make_an_account_first(client):
    invitation = reverse("judgments:invitation", args=["some-token"])
    page = client.get(reverse("account_login"), {"next": invitation})
    assert "You are invited to judge conversations." in page.text
    address = f"{reverse('account_signup')}?next=/judgments/invitations/some-token/"
    assert f'href="{address}"' in page.text.replace("%2F", "/")
    assert f'href="{reverse("account_login")}?next={invitation}"' in client.get(address).text.replace("%2F", "/")
    data = {"username": "nina", "password1": "a long pass phrase", "password2": "a long pass phrase"}
    assert client.post(reverse("account_signup"), {**data, "next": invitation}).url == invitation


def test_a_new_account_is_a_player(client):
    data = {"username": "nina", "password1": "a long pass phrase", "password2": "a long pass phrase"}
    assert client.post(reverse("account_signup"), data).status_code == 302
    assert User.objects.get(username="nina").role == Role.PLAYER


def test_createsuperuser_makes_an_administrator(client, monkeypatch):
    monkeypatch.setenv("DJANGO_SUPERUSER_PASSWORD", PASSWORD)
    call_command("createsuperuser", username="root", email="root@example.org", interactive=False)
    assert User.objects.get().is_admin
    assert client.post(reverse("account_login"), {"login": "root", "password": PASSWORD}).status_code == 302
    assert client.get(reverse("accounts:people")).status_code == 200


def test_after_signing_in_one_is_where_one_wanted_to_be(client, researcher):
    wanted = reverse("runs:list") + "?state=failed"
    sent = client.get(wanted)
    response = client.post(sent["Location"], {"login": "rosa", "password": PASSWORD})
    assert response["Location"] == wanted


@pytest.mark.parametrize("method, name", [("get", "home:running"), ("get", "runs:list"), ("post", "runs:bulk")])
def test_a_part_of_a_page_is_not_sent_to_the_sign_in_page(client, method, name):
    part = {"HX-Request": "true"}
    refused = getattr(client, method)(reverse(name), headers=part)
    assert (refused.status_code, refused.content) == (401, b"")
    whole = getattr(client, method)(reverse(name), headers={**part, "HX-History-Restore-Request": "true"})
    assert whole["Location"].startswith(reverse("account_login"))


def test_a_page_says_where_one_signs_in(client_of, player):
    assert f'data-sign-in="{reverse("account_login")}"' in client_of(player).get("/").content.decode()


def test_a_key_is_shown_once_and_stored_as_a_hash(client_of, player):
    client = client_of(player)
    shown = client.post(reverse("accounts:account"), {"name": "notebook"}).content.decode()
    key = ApiKey.objects.get()
    token = shown.split('<code class="token">')[1].split("<")[0]
    assert key.digest == digest(token)
    assert token not in str(ApiKey.objects.values())
    assert token not in client.get(reverse("accounts:account")).content.decode()


def test_a_revoked_key_opens_nothing(rf, player):
    key, token = services.create_key(user=player, name="notebook")
    assert services.user_of_key(request=rf.get("/"), token=token) == player
    services.revoke_key(key=key)
    assert services.user_of_key(request=rf.get("/"), token=token) is None


def test_a_key_of_an_inactive_person_opens_nothing(rf, player):
    _, token = services.create_key(user=player, name="notebook")
    services.set_role(user=player, role=Role.PLAYER, active=False)
    assert services.user_of_key(request=rf.get("/"), token=token) is None


def test_a_guest_cannot_sign_in_and_is_called_what_they_said():
    guest = services.create_guest(shown_name="Somebody")
    assert not guest.has_usable_password()
    assert (guest.is_guest, guest.shown_name) == (True, "Somebody (guest)")
    assert services.create_guest(shown_name="Somebody").username != guest.username


def test_an_administrator_changes_roles_but_not_their_own(client_of, admin, player):
    client = client_of(admin)
    change = {"role": "researcher", "active": "on"}
    client.post(reverse("accounts:change-person", args=[player.pk]), change)
    player.refresh_from_db()
    assert player.is_researcher
    response = client.post(reverse("accounts:change-person", args=[admin.pk]), change, follow=True)
    assert "cannot change your own role" in response.content.decode()
    admin.refresh_from_db()
    assert admin.is_admin


@pytest.mark.parametrize("change", [{"role": Role.PLAYER, "active": True}, {"role": Role.ADMIN, "active": False}])
def test_the_last_administrator_stays_one(admin, person, change):
    other = person("admin", "bob")
    services.set_role(user=other, **change)
    with pytest.raises(BadInput, match="last administrator"):
        services.set_role(user=admin, **change)
    assert User.objects.filter(role=Role.ADMIN, is_active=True).get() == admin
    services.set_role(user=other, role=Role.ADMIN, active=True)
    services.set_role(user=admin, **change)


@pytest.mark.django_db(transaction=True)
def test_two_administrators_who_demote_each_other_at_once_leave_one(client_of, admin, person):
    bob, page = person("admin", "bob"), "accounts:change-person"
    mine, theirs = client_of(admin), client_of(bob)
    with transaction.atomic():
        mine.post(reverse(page, args=[bob.pk]), {"role": "player", "active": "on"})
        begun = begin(lambda: theirs.post(reverse(page, args=[admin.pk]), {"role": "player", "active": "on"}))
        until_somebody_waits()
    begun.result(10)
    assert User.objects.filter(role=Role.ADMIN).get() == admin


def test_an_administrator_sets_a_new_password_which_ends_old_sessions(client_of, client, admin, player):
    theirs, page = client_of(player), reverse("accounts:new-password", args=[player.pk])
    assert theirs.get(reverse("accounts:account")).status_code == 200
    ada = client_of(admin)
    assert page in ada.get(reverse("accounts:people")).content.decode()
    new = "correct horse battery"
    assert ada.post(page, {"new_password1": new, "new_password2": new}).status_code == 302
    assert theirs.get(reverse("accounts:account"))["Location"].startswith(reverse("account_login"))
    assert ada.get(reverse("accounts:people")).status_code == 200
    for password, status in ((PASSWORD, 200), (new, 302)):
        assert client.post(reverse("account_login"), {"login": "pia", "password": password}).status_code == status


@pytest.mark.parametrize(
    "first, second", [("short", "short"), ("password1", "password1"), ("a long phrase", "another")]
)
def test_a_weak_or_mistyped_new_password_is_refused_with_the_reason(client_of, client, admin, player, first, second):
    page = reverse("accounts:new-password", args=[player.pk])
    answer = client_of(admin).post(page, {"new_password1": first, "new_password2": second})
    assert answer.status_code == 400
    assert 'role="alert"' in answer.content.decode()
    assert client.post(reverse("account_login"), {"login": "pia", "password": PASSWORD}).status_code == 302


def test_an_administrator_changes_their_own_password_where_the_old_one_is_asked_for(client_of, admin):
    answer = client_of(admin).get(reverse("accounts:new-password", args=[admin.pk]))
    assert answer["Location"] == reverse("account_change_password")


def test_revoking_a_key_asks_first(client_of, player):
    services.create_key(user=player, name="notebook")
    page = client_of(player).get(reverse("accounts:account")).content.decode()
    form = page.split("/revoke/")[1].split(">")[0]
    assert "data-confirm=" in form
    assert "notebook" in form


@pytest.mark.parametrize("role", ["guest", "king", ""])
def test_a_role_that_does_not_exist_changes_nothing(client_of, admin, player, role):
    response = client_of(admin).post(
        reverse("accounts:change-person", args=[player.pk]), {"role": role, "active": "on"}, follow=True
    )
    assert "was not changed" in response.content.decode()
    player.refresh_from_db()
    assert player.role == Role.PLAYER


def test_the_bar_shows_what_a_role_may_use(client_of, person):
    shown = {}
    for role in ("player", "annotator", "researcher", "admin"):
        page = client_of(person(role)).get(reverse("accounts:account")).content.decode()
        bar = page.split("</header>")[0]
        shown[role] = [
            word for word in ("Play", "Datasets", "Runs", "Checkpoints", "Judgments", "People") if f">{word}<" in bar
        ]
    assert shown == {
        "player": ["Play", "Checkpoints"],
        "annotator": ["Play", "Checkpoints", "Judgments"],
        "researcher": ["Play", "Datasets", "Runs", "Checkpoints", "Judgments"],
        "admin": ["Play", "Datasets", "Runs", "Checkpoints", "Judgments", "People"],
    }


@pytest.mark.parametrize(
    "query, names",
    [
        ("", ["ada", "pia", "rosa"]),
        ("?sort=-name", ["rosa", "pia", "ada"]),
        ("?sort=joined", ["rosa", "pia", "ada"]),
        ("?sort=nonsense", ["ada", "pia", "rosa"]),
        ("?q=OSA", ["rosa"]),
        ("?role=player", ["pia"]),
        ("?q=nobody", []),
    ],
)
def test_people_are_filtered_and_sorted_by_their_address(client_of, admin, player, researcher, query, names):
    services.create_guest(shown_name="Somebody")
    answer = client_of(admin).get(reverse("accounts:people") + query)
    assert [person.username for person in answer.context["page"]] == names
    assert ("No person matches" in answer.content.decode()) == (not names)


def test_many_people_come_in_pages_of_few_queries(client_of, admin, django_assert_max_num_queries):
    User.objects.bulk_create(User(username=f"player-{n:03}", role=Role.PLAYER) for n in range(120))
    client = client_of(admin)
    with django_assert_max_num_queries(6):
        answer = client.get(reverse("accounts:people") + "?page=3&role=player")
    assert [person.username for person in answer.context["page"]] == [f"player-{n:03}" for n in range(100, 120)]
    assert "101–120 of 120" in answer.content.decode()


def test_changing_a_person_returns_to_the_same_page(client_of, admin, player):
    change = {"role": "annotator", "active": "on", "back": "role=player&page=1"}
    answer = client_of(admin).post(reverse("accounts:change-person", args=[player.pk]), change)
    assert answer["Location"] == reverse("accounts:people") + "?role=player&page=1"
