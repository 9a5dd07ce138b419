"""A lost answer to the consent page: the same browser comes back to its participation, and nobody else does."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings
from django.core import signing
from django.test import Client

from tests.webapp.experiments import making
from webapp.accounts.models import User
from webapp.arena.play import services
from webapp.experiments import resume_tokens
from webapp.experiments.models import Experiment, Participant

pytestmark = pytest.mark.django_db
ID = "PROLIFIC_PID=P-1"
REFUSED = "You cannot begin now"


@pytest.fixture
def experiment(researcher: User) -> Experiment:
    made = making.experiment(researcher)
    making.arm(made, "only", making.PAIR)
    making.question(made, "age", part="before", kind="number", options=[])
    making.design.open_experiment(experiment=made)
    return Experiment.objects.get(pk=made.pk)


def link(experiment: Experiment, query: str = ID) -> str:
    return f"/experiments/take/{experiment.token}/?{query}"


def agree(client: Client, experiment: Experiment, query: str = ID) -> Any:
    return client.post(f"/experiments/take/{experiment.token}/begin/?{query}", {"agree": "yes"})


def lose_the_answer(client: Client) -> None:
    """The browser never got the session that the answer carried."""
    del client.cookies[settings.SESSION_COOKIE_NAME]


def begun(experiment: Experiment) -> Client:
    """A browser that has agreed, and whose answer got lost."""
    client = Client()
    client.get(link(experiment))
    assert agree(client, experiment).status_code == 302
    lose_the_answer(client)
    return client


@pytest.mark.parametrize("query", [ID, ""])
def test_agreeing_again_brings_back_the_same_participation(experiment: Experiment, query: str) -> None:
    client = Client()
    client.get(link(experiment, query))
    for _ in range(3):  # the second answer gets lost as well
        assert agree(client, experiment, query).status_code == 302
        if _ < 2:
            lose_the_answer(client)
    assert Participant.objects.count() == 1
    assert "Before the game" in client.get(link(experiment, query)).content.decode()


def test_somebody_else_with_the_same_id_gets_nothing(experiment: Experiment) -> None:
    begun(experiment)
    stranger = Client()
    stranger.get(link(experiment))  # has a resume token of its own
    answer = agree(stranger, experiment)
    assert answer.status_code == 400
    assert REFUSED in answer.content.decode()
    assert settings.SESSION_COOKIE_NAME not in stranger.cookies


def test_a_forged_token_opens_nothing(experiment: Experiment) -> None:
    client = begun(experiment)
    number = resume_tokens.token_of(type("Request", (), {"COOKIES": {n: m.value for n, m in client.cookies.items()}})())
    for forged in (number, signing.dumps(number, salt="another salt"), "", "x:y:z"):
        stranger = Client()
        stranger.cookies[settings.RESUME_COOKIE_NAME] = forged
        assert agree(stranger, experiment).status_code == 400


def test_a_token_is_of_one_id_and_one_experiment(experiment: Experiment, researcher: User) -> None:
    client = begun(experiment)
    other = making.opened(researcher, making.PAIR)
    agree(client, other)
    lose_the_answer(client)
    agree(client, experiment, "PROLIFIC_PID=P-2")
    participations = Participant.objects.order_by("pk").values_list("experiment", "external_id")
    assert list(participations) == [(experiment.pk, "P-1"), (other.pk, "P-1"), (experiment.pk, "P-2")]
    assert Participant.objects.values("user").distinct().count() == 3


def test_a_token_opens_nothing_once_a_page_was_shown(experiment: Experiment) -> None:
    """A copy of the cookie does not bring a stranger into a participation that goes on."""
    client = Client()
    client.get(link(experiment))
    agree(client, experiment)
    client.get(link(experiment))
    assert Participant.objects.get().resume_token_hash == ""
    lose_the_answer(client)
    assert agree(client, experiment).status_code == 400


@pytest.mark.parametrize("change", ["late", "answered"])
def test_a_token_ends(experiment: Experiment, change: str) -> None:
    client = begun(experiment)
    if change == "late":
        Participant.objects.update(created_at=services.database_now() - timedelta(minutes=11))
    else:
        Participant.objects.update(answers={"age": 30})
    assert agree(client, experiment).status_code == 400


def test_a_member_has_no_token(experiment: Experiment, player: User) -> None:
    """Their session says who they are: a resume token would sign in whoever has the cookie."""
    client = Client()
    client.force_login(player)
    client.get(link(experiment))
    agree(client, experiment)
    lose_the_answer(client)
    assert Participant.objects.get().resume_token_hash == ""
    assert agree(client, experiment).status_code == 400
    client.force_login(player)
    assert "Before the game" in client.get(link(experiment)).content.decode()


def test_the_cookie_is_for_the_site_alone(experiment: Experiment) -> None:
    client = Client()
    client.get(link(experiment))
    cookie = client.cookies[settings.RESUME_COOKIE_NAME]
    assert (cookie["httponly"], cookie["samesite"], cookie["max-age"]) == (True, "Lax", 3600)
    before = cookie.value
    client.get(link(experiment))
    assert client.cookies[settings.RESUME_COOKIE_NAME].value == before
