"""An alias wherever a checkpoint is chosen: resolved once, stored as the checkpoint with the alias that named it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from tests.webapp.api.calling import Caller
from tests.webapp.experiments import making as experiments
from tests.webapp.runs.making import make_checkpoint, make_run
from tests.webapp.runs.test_new import filled
from webapp.arena.models import Match, MatchSeat
from webapp.experiments.models import Arm
from webapp.runs.models import Checkpoint, Run
from webapp.runs.registry import services
from webapp.serving.models import Deployment

pytestmark = pytest.mark.django_db


@pytest.fixture
def client(researcher: Any, client_of: Callable[..., Client]) -> Client:
    return client_of(researcher)


@pytest.fixture
def best(researcher: Any) -> Checkpoint:
    Checkpoint.objects.create(name="tiny", kind="base", base="tiny", path="/models/tiny")
    checkpoint = make_checkpoint(make_run(researcher))
    services.set_alias(name="best", checkpoint=checkpoint, by=researcher)
    return checkpoint


def move(alias: str, by: Any) -> Checkpoint:
    """Let an alias stand for another checkpoint."""
    other = make_checkpoint(make_run(by), step=9)
    services.set_alias(name=alias, checkpoint=other, by=by)
    return other


@pytest.mark.parametrize("preset, field", [("quick", "model"), ("eval", "model"), ("eval", "opponent")])
def test_a_new_run(client: Client, researcher: Any, best: Checkpoint, preset: str, field: str) -> None:
    query = f"?preset={preset}"
    page = client.get(reverse("runs:new") + query).content.decode()
    assert f'<option value="checkpoint:best">best → {best.name}</option>' in page
    sent = client.post(
        reverse("runs:new") + query, {**filled(client, query), "run-model": best.pk, f"run-{field}": "checkpoint:best"}
    )
    assert sent.status_code == 302, sent.context["form"].start.errors
    move("best", researcher)
    run = Run.objects.get(pk=sent.headers["Location"].strip("/").rpartition("/")[2])
    column = {"model": "start_checkpoint", "opponent": "opponent_checkpoint"}[field]
    assert (getattr(run, column), run.aliases) == (best, {column: "best"})
    assert '<span class="tag">best</span>' in client.get(reverse("runs:lineage", args=[run.pk])).content.decode()


def test_an_unknown_alias_is_refused_at_its_field(client: Client, best: Checkpoint) -> None:
    refused = client.post(reverse("runs:new"), {**filled(client), "run-model": "checkpoint:worst"})
    assert refused.status_code == 400
    assert "No checkpoint that you may use has the alias worst." in refused.content.decode()


def test_the_players_of_a_table(client: Client, researcher: Any, best: Checkpoint) -> None:
    page = client.get("/play/new/?game=negotiation").content.decode()
    assert f'<option value="checkpoint:best">Model: best → {best.name}</option>' in page
    form = client.get("/play/new/?game=negotiation").context["form"]
    fields = [*form, *form.rules]
    data = {field.html_name: field.value() for field in fields if field.value() not in (None, False)}
    client.post("/play/new/?game=negotiation", {**data, "seat_1": "checkpoint:best", "consent": "yes"})
    move("best", researcher)
    seat = Match.objects.get().seats.get(kind=MatchSeat.Kind.MODEL)
    assert seat.deployment is not None
    assert (seat.deployment.checkpoint, seat.alias) == (best, "best")
    assert seat.who == f"{best.name} (as best)"


def test_players_are_offered_only_aliases_of_open_checkpoints(player: Any, best: Checkpoint) -> None:
    client = Client()
    client.force_login(player)
    assert "checkpoint:best" not in client.get("/play/new/?game=negotiation").content.decode()
    Checkpoint.objects.filter(pk=best.pk).update(open_to_players=True)
    assert "checkpoint:best" in client.get("/play/new/?game=negotiation").content.decode()


def test_the_players_of_an_arm(client: Client, researcher: Any, best: Checkpoint) -> None:
    experiment = experiments.experiment(researcher)
    address = f"/experiments/{experiment.pk}/arms/new/?game=negotiation&seats=2"
    form = client.get(address).context["form"]
    data = {field.html_name: field.value() for field in form if field.value() is not None}
    sent = client.post(
        address,
        {**data, "scenario": "sample", "name": "model", "seat_1": "checkpoint:best", "fallback": "checkpoint:best"},
    )
    assert sent.status_code == 302, sent.context["form"].errors
    move("best", researcher)
    arm = Arm.objects.get(name="model")
    chosen = f"checkpoint:{best.pk}"
    assert (arm.players[1], arm.fallback, arm.aliases) == (chosen, chosen, {chosen: "best"})
    assert '<span class="tag">best</span>' in client.get(f"/experiments/{experiment.pk}/").content.decode()


def test_serving_takes_the_checkpoint_that_has_the_alias_by_then(
    client: Client, researcher: Any, best: Checkpoint
) -> None:
    assert 'name="alias" value="best"' in client.get(reverse("serving:list")).content.decode()
    newer = move("best", researcher)
    client.post(reverse("serving:serve", args=[best.pk]), {"alias": "best"})
    assert Deployment.objects.get().checkpoint == newer


def test_a_run_over_the_api(researcher: Any, best: Checkpoint) -> None:
    call = Caller(researcher)
    config = {"kind": "eval", "opponents": []}
    body = {"config": config, "start_checkpoint": "best", "opponent_checkpoint": best.pk}
    made = call.post("runs", **body).json()
    assert made["start_checkpoint_id"] == best.pk
    assert made["aliases"] == {"start_checkpoint": "best"}
    opponents = {"opponents": [{"source": "checkpoint:best", "weight": 1.0}]}
    made = call.post("runs", config=opponents).json()
    assert made["config"]["opponents"][0]["source"] == best.name
    assert made["aliases"] == {"opponents.0.source": "best"}
    assert call.post("runs", config={}, start_checkpoint="worst").status_code == 422


def test_a_table_and_a_checkpoint_over_the_api(researcher: Any, player: Any, best: Checkpoint) -> None:
    call = Caller(researcher)
    places = [{"me": True}, {"checkpoint": "best"}]
    assert call.post("matches", game="negotiation", places=places, consent=True).status_code == 201
    seat = MatchSeat.objects.get(kind=MatchSeat.Kind.MODEL)
    assert seat.deployment is not None
    assert (seat.deployment.checkpoint, seat.alias) == (best, "best")
    shown = call.get("checkpoints/best").json()
    assert (shown["id"], shown["aliases"]) == (best.pk, ["best"])
    assert call.get("checkpoints/worst").status_code == 404
    assert Caller(player).get("checkpoints/best").status_code == 404, "it is not open to players"
