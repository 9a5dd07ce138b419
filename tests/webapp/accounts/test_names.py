"""Names that look like others are refused at sign-up; those that exist stay, however they look."""

import pytest
from django.core.cache import cache
from django.urls import reverse

from tests.conftest import PASSWORD
from training.errors import BadInput
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
    "one, other",
    [("coco", "сосо"), ("anna", "ΑΝΝΑ"), ("bill", "BlLL"), ("maria", "rnaria"), ("josé", "jose"), ("wanda", "vvanda")],
)
def test_names_that_are_drawn_alike_have_one_skeleton(one, other):
    assert one != other
    assert skeleton(one) == skeleton(other)


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


@pytest.mark.parametrize("name, said", [("pіa", "mixes"), ("Pla", "looks like somebody"), ("admın", "kept for the")])
def test_sign_up_says_what_is_wrong_on_the_field(sign_up, player, name, said):
    response = sign_up(name)
    errors = response.context["form"].errors
    assert list(errors) == ["username"]
    assert said in errors["username"][0]
    assert not User.objects.filter(username=name).exists()
    assert sign_up("paul").status_code == 302


def test_names_from_before_stay_valid(client, person):
    cache.clear()
    for name in ("admın", "Pia", "ρia"):
        old = person("player", name)
        assert client.post(reverse("account_login"), {"login": name, "password": PASSWORD}).status_code == 302
        assert client.session["_auth_user_id"] == str(old.pk)
        client.logout()
