"""Names that look like others are refused at sign-up; those that exist stay, however they look."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from django.contrib.auth.hashers import make_password
from django.core.cache import cache
from django.db import IntegrityError, connection, connections, transaction
from django.db.migrations.executor import MigrationExecutor
from django.urls import reverse

from tests.conftest import PASSWORD
from training.errors import BadInput
from webapp.accounts.adapter import LOOKS_LIKE_ANOTHER
from webapp.accounts.models import User
from webapp.accounts.names import check_form, scripts, skeleton

FINE = ["nina", "José", "Łukasz", "Анна", "Δημήτρης", "山田太郎", "さくら", "김민수", "ada.l-2", "Zoë_99", "yamada山田"]
MIXED = ["аdmin2", "pаypal", "Δanna", "νiktor", "абвxyz", "ninа"]
FORMS = ["ｎｉｎａ", "ﬁona", "𝓷ina", "nⅸon"]
KEPT = ["admin", "ADMIN", "admın", "adrnin", "administrat0r", "r00t", "Root", "support", "systern"]


@pytest.mark.parametrize("name", FINE)
def test_ordinary_names_of_every_script_pass(name):
    check_form(name)


@pytest.mark.parametrize("name", MIXED)
def test_scripts_are_not_mixed(name):
    with pytest.raises(BadInput, match="mixes"):
        check_form(name)


@pytest.mark.parametrize("name", FORMS)
def test_other_forms_of_letters_are_refused(name):
    with pytest.raises(BadInput, match="ordinary letters"):
        check_form(name)


@pytest.mark.parametrize("name", KEPT)
def test_names_that_look_like_the_site_speaks_are_refused(name):
    with pytest.raises(BadInput, match="kept for the site"):
        check_form(name)


@pytest.mark.parametrize(
    "name, lookalike",
    [("coco", "сосо"), ("anna", "ΑΝΝΑ"), ("bill", "BlLL"), ("maria", "rnaria"), ("josé", "jose"), ("wanda", "vvanda")],
)
def test_names_that_are_drawn_alike_have_one_skeleton(name, lookalike):
    assert name != lookalike
    assert skeleton(name) == skeleton(lookalike)


def test_names_that_differ_to_the_eye_have_two():
    names = ["anna", "hanna", "anne", "nina", "mina", "Анна", "Нина", "bob", "rob", "player2", "player3"]
    assert len({skeleton(name) for name in names}) == len(names)


def test_digits_belong_to_every_script():
    assert scripts("анна2") == {"CYRILLIC"}
    assert scripts("a٣") == {"LATIN", "ARABIC-INDIC"}


@pytest.fixture
def sign_up(client, db):
    cache.clear()

    def send(name):
        data = {"username": name, "password1": "a long pass phrase", "password2": "a long pass phrase"}
        response = client.post(reverse("account_signup"), data)
        client.logout()
        return response

    return send


@pytest.mark.parametrize(
    "name, expected", [("pіa", "mixes"), ("Pla", "looks like somebody"), ("admın", "kept for the")]
)
def test_sign_up_says_what_is_wrong_on_the_field(sign_up, player, name, expected):
    response = sign_up(name)
    errors = response.context["form"].errors
    assert list(errors) == ["username"]
    assert expected in errors["username"][0]
    assert not User.objects.filter(username=name).exists()
    assert sign_up("paul").status_code == 302


@pytest.fixture
def old(db):
    """Makes an account without a skeleton, as the migration leaves those that look like an older one."""

    def make(name):
        (user,) = User.objects.bulk_create([User(username=name, password=make_password(PASSWORD))])
        return user

    return make


def test_names_from_before_stay_valid(client, player, old):
    cache.clear()
    for name in ("admın", "Pla", "ρia"):
        user = old(name)
        user.save()
        assert client.post(reverse("account_login"), {"login": name, "password": PASSWORD}).status_code == 302
        assert client.session["_auth_user_id"] == str(user.pk)
        client.logout()


def test_a_lookalike_is_refused_by_the_database(player):
    with pytest.raises(IntegrityError, match="skeleton"), transaction.atomic():
        User.objects.create_user("Pla")
    renamed = User.objects.create_user("paul")
    renamed.username = "Pla"
    with pytest.raises(IntegrityError, match="skeleton"):
        renamed.save()


@pytest.mark.django_db(transaction=True)
def test_of_lookalikes_that_sign_up_at_once_one_gets_an_account(client_of, monkeypatch):
    """All of them have passed the form's check before the first is stored."""
    cache.clear()
    asked = ["nina1", "ninal", "nlna1", "Nina1"]
    together = Barrier(len(asked))
    save = User.save

    def wait_and_save(self, *args, **kwargs):
        if self._state.adding:
            together.wait(20)
        save(self, *args, **kwargs)

    def sign_up(name):
        data = {"username": name, "password1": "a long pass phrase", "password2": "a long pass phrase"}
        try:
            return client_of(None).post(reverse("account_signup"), data)
        finally:
            connections.close_all()

    with monkeypatch.context() as patched, ThreadPoolExecutor(len(asked)) as pool:
        patched.setattr(User, "save", wait_and_save)
        answers = list(pool.map(sign_up, asked))
    assert sorted(answer.status_code for answer in answers) == [200, 200, 200, 302]
    refused = [answer.context["form"].errors for answer in answers if answer.status_code == 200]
    assert refused == [{"username": [LOOKS_LIKE_ANOTHER]}] * 3
    assert User.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_accounts_that_look_alike_survive_the_constraint_and_its_removal(client):
    """Names of a database from before skeletons: the oldest of each kind has its skeleton, the others none."""
    names = ["pia", "Pla", "paul", "ρia", "pаul"]

    def migrate(step):
        MigrationExecutor(connection).migrate([("accounts", step)])
        return (
            MigrationExecutor(connection).loader.project_state([("accounts", step)]).apps.get_model("accounts", "User")
        )

    try:
        older = migrate("0001_initial")
        for name in names:
            older.objects.create(username=name, password=make_password(PASSWORD))
        kept = list(older.objects.order_by("pk").values())
        newer = migrate("0003_unique_skeleton")
        skeletons = list(newer.objects.order_by("pk").values_list("skeleton", flat=True))
        assert skeletons == ["pla", None, "paul", None, None]
        rows = newer.objects.order_by("pk").values()
        assert [{name: row[name] for name in kept[0]} for row in rows] == kept
        assert migrate("0002_user_skeleton").objects.filter(skeleton="pla").count() == 3
    finally:
        executor = MigrationExecutor(connection)
        executor.migrate(executor.loader.graph.leaf_nodes())
    cache.clear()
    for name in names:
        assert client.post(reverse("account_login"), {"login": name, "password": PASSWORD}).status_code == 302
        client.logout()


@pytest.mark.django_db
def test_an_administrators_lookalike_name_is_refused_with_the_reason(person):
    person("player", "modern")
    with pytest.raises(BadInput, match="'modem' looks like the name of another account: choose another"):
        User.objects.create_superuser("modem", password=PASSWORD)
