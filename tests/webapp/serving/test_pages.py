"""The page of the deployments, and a seat that waits for its model."""

import re
from datetime import UTC, datetime, timedelta

import pytest

from tests.webapp.arena.conftest import negotiation
from webapp.arena import clock
from webapp.arena.models import Match
from webapp.arena.play import services as table
from webapp.arena.setup import tables
from webapp.runs.models import Checkpoint
from webapp.serving import services
from webapp.serving.models import Deployment, RemoteModel

pytestmark = pytest.mark.django_db


@pytest.fixture
def checkpoint(admin):
    return Checkpoint.objects.create(name="cold start 7", kind="base", base="tiny", path="/models/x")


def test_an_empty_page_names_the_next_step(client_of, researcher, checkpoint):
    page = client_of(researcher).get("/deployments/").content.decode()
    assert "No model is served yet" in page
    assert f"/play/new/?checkpoint={checkpoint.pk}" in page
    assert "Add a remote model" not in page


def test_serve_and_stop(client_of, admin, checkpoint):
    client = client_of(admin)
    client.post(f"/deployments/checkpoints/{checkpoint.pk}/serve/")
    assert "waiting for a slot" in client.get("/deployments/").content.decode()
    services.settle()
    part = client.get("/deployments/", HTTP_HX_REQUEST="true").content.decode()
    assert "starting" in part
    for address in (f"/runs/{Deployment.objects.get().run_id}/log/", f"/checkpoints/{checkpoint.pk}/"):
        assert f'href="{address}"' in part
        assert client.get(address).status_code == 200
    client.post(f"/deployments/{Deployment.objects.get().pk}/stop/")
    assert Deployment.objects.get().state == "stopping"


@pytest.mark.parametrize(
    "query, names",
    [
        ("", ["late", "early", "never"]),
        ("?sort=-used", ["early", "late", "never"]),
        ("?sort=name", ["early", "late", "never"]),
        ("?sort=-name", ["never", "late", "early"]),
        ("?sort=where", ["late", "early", "never"]),
        ("?state=ready", ["late"]),
        ("?q=E&sort=name", ["early", "late", "never"]),
        ("?q=ever&state=failed", []),
    ],
)
def test_deployments_are_filtered_and_sorted_by_their_address(client_of, researcher, query, names):
    for name, day, state in (("early", 1, "failed"), ("late", 2, "ready"), ("never", None, "cold")):
        made = Checkpoint.objects.create(name=name, kind="base", base="tiny", path="/models/x")
        used = datetime(2026, 1, day, tzinfo=UTC) if day else None
        Deployment.objects.create(checkpoint=made, state=state, used_at=used)
    answer = client_of(researcher).get("/deployments/" + query)
    assert [str(deployment) for deployment, _ in answer.context["rows"]] == names
    assert ("Nothing matches" in answer.content.decode()) == (not names)


def test_many_deployments_come_in_pages_and_ask_for_their_own_page_anew(
    client_of, researcher, django_assert_max_num_queries
):
    made = Checkpoint.objects.bulk_create(
        Checkpoint(name=f"c{n:03}", kind="base", base="tiny", path="/models/x") for n in range(60)
    )
    Deployment.objects.bulk_create(Deployment(checkpoint=checkpoint) for checkpoint in made)
    client = client_of(researcher)
    with django_assert_max_num_queries(7):
        page = client.get("/deployments/?sort=name&page=2").content.decode()
    assert "51–60 of 60" in page
    assert page.count("Play against it") == 10
    assert 'hx-get="/deployments/?sort=name&amp;page=2"' in page


def test_what_can_have_the_focus_keeps_it_when_the_list_is_replaced(client_of, admin):
    remote = RemoteModel.objects.create(name="far", address="http://x/v1", model="m", added_by=admin)
    Deployment.objects.create(remote=remote, state="ready")
    for number, state in enumerate(["cold", "ready", *["failed"] * 49]):
        made = Checkpoint.objects.create(name=f"c{number}", kind="base", base="tiny", path="/models/x")
        Deployment.objects.create(checkpoint=made, state=state)
    part = client_of(admin).get("/deployments/?sort=-state", HTTP_HX_REQUEST="true").content.decode()
    assert all(f">{word}</button>" in part for word in ("Serve", "Stop", "Remove"))
    controls = re.findall(r"<(?:a|button)\b[^>]*>", part)
    names = [match[1] for control in controls if (match := re.search(r' id="([^"]+)"', control))]
    assert len(names) == len(set(names)) == len(controls)


def test_an_admin_adds_a_remote_model_and_reads_what_is_wrong(client_of, admin, monkeypatch):
    monkeypatch.setenv("MODEL_ADDRESSES", "https://models.example.org/v1")
    client = client_of(admin)
    data = {"name": "far", "address": "https://evil.example/v1", "model": "m", "secret": ""}
    answer = client.post("/deployments/remote/", data)
    assert answer.status_code == 400
    assert "not on the list" in answer.content.decode()
    assert client.post("/deployments/remote/", {**data, "address": "https://models.example.org/v1"}).status_code == 302
    assert "far" in client.get("/deployments/").content.decode()


def test_players_sit_down_only_against_what_is_open(client_of, player, checkpoint):
    client = client_of(player)
    assert client.get("/play/new/", {"checkpoint": checkpoint.pk}).status_code == 404
    Checkpoint.objects.update(open_to_players=True)
    form = client.get("/play/new/", {"checkpoint": checkpoint.pk}).context["form"]
    assert form.fields["seat_1"].initial == f"checkpoint:{checkpoint.pk}"


@pytest.fixture
def waiting(player, checkpoint):
    """A running match whose model sits at seat 0, begins, and is not awake."""
    places = [tables.Place(deployment=services.of_checkpoint(checkpoint)), tables.Place(user=player)]
    return tables.create(host=player, start=tables.Start(negotiation()), places=places, consent=True, deadline_s=60)


def test_the_table_says_waking_up_and_the_clock_starts_when_it_is_ready(client_of, player, waiting):
    client = client_of(player)
    assert "starting" in client.get(f"/play/{waiting.pk}/").content.decode()
    due = waiting.due.get()
    assert due.deadline is None
    services.settle()
    assert clock.start_clocks() == 0
    services.ready(run_id=Deployment.objects.get().run_id, address="http://127.0.0.1:9/v1")
    assert clock.start_clocks() == 1
    due.refresh_from_db()
    left = due.deadline - table.database_now()
    assert timedelta(seconds=58) < left <= timedelta(seconds=60)
    page = client.get(f"/play/{waiting.pk}/").content.decode()
    assert "starting" not in page
    assert "thinking" in page


def test_only_the_host_who_chose_the_seats_reads_that_a_model_is_starting(client_of, person, waiting):
    watcher = client_of(person("player", "watcher"))
    Match.objects.update(visibility="open")
    page = watcher.get(f"/play/{waiting.pk}/").content.decode()
    assert "thinking" in page
    for word in ("starting", "waking", "awake", "model"):
        assert word not in page.partition('id="part-situation"')[2].partition("</section>")[0]


def test_a_model_that_cannot_start_ends_the_match(client_of, player, researcher, waiting):
    services.settle()
    services.ended(run_id=Deployment.objects.get().run_id, error="no such file")
    assert clock.start_clocks() == 1
    waiting.refresh_from_db()
    assert waiting.state == Match.State.ABORTED
    shown = client_of(player).get(f"/play/{waiting.pk}/").content.decode()
    assert "a model could not be started" in shown
    assert "no such file" not in shown, "what the server said is for who runs it"
    assert "no such file" in client_of(researcher).get("/deployments/").content.decode()


def test_a_model_that_never_starts_ends_the_match(waiting):
    services.settle()
    waiting.due.update(created_at=table.database_now() - timedelta(minutes=16))
    assert clock.start_clocks() == 1
    waiting.refresh_from_db()
    assert waiting.state == Match.State.ABORTED


def test_a_model_that_yielded_its_slot_is_asked_for_again(waiting):
    services.settle()
    deployment = Deployment.objects.get()
    services.stop(deployment=deployment)
    services.ended(run_id=deployment.run_id)
    assert Deployment.objects.get().requested_at is None
    assert clock.request_models() == 1
    services.settle()
    assert Deployment.objects.get().state == "starting"
