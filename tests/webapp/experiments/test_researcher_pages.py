"""Pages of researchers: design, monitor, results, and what stays the owner's."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from tests.webapp.experiments import making
from webapp.accounts.models import User
from webapp.experiments.models import PERSON, Arm, Experiment, Participant, Question

pytestmark = pytest.mark.django_db
TEXTS = {
    "title": "Framing", "consent_text": "Play a game.", "per_arm": "4", "wait_seconds": "60", "shortest_wait_s": "0",
    "repeats": "2", "seed": "3", "id_parameter": "PROLIFIC_PID",
    "study_parameter": "STUDY_ID", "session_parameter": "SESSION_ID",
}  # fmt: skip


@pytest.fixture
def rosa(client: Client, researcher: User) -> Client:
    client.force_login(researcher)
    return client


def shown(client: Client, address: str) -> str:
    response = client.get(address)
    assert response.status_code == 200
    return str(response.content.decode())


def test_an_experiment_is_made_and_opened_page_by_page(rosa: Client) -> None:
    assert "no experiment yet" in shown(rosa, "/experiments/")
    response = rosa.post("/experiments/new/", TEXTS)
    experiment = Experiment.objects.get()
    page = f"/experiments/{experiment.pk}/"
    assert response["Location"] == page
    assert "Add at least one arm." in shown(rosa, page)
    arm = {"name": "framed", "scenario": "sample", "deadline_s": "60", "shown_as": "person", "seat_0": PERSON}
    rosa.post(
        f"{page}arms/new/?game=negotiation&seats=2", {**arm, "seat_1": "scripted:scripted", 'rules-["turn_limit"]': "4"}
    )
    made = Arm.objects.get()
    assert (made.players, made.rules) == ([PERSON, "scripted:scripted"], {"turn_limit": 4})
    assert 'value="4" placeholder="as in the scenario"' in shown(rosa, f"{page}arms/{made.pk}/")
    assert "Write a debriefing" in shown(rosa, page)
    assert rosa.post(f"{page}open/").status_code == 302
    experiment.refresh_from_db()
    assert experiment.state == "draft"
    rosa.post(f"{page}edit/", {**TEXTS, "debriefing": "It was a script."})
    assert "suggests a machine" in shown(rosa, page)
    assert "at least 0 s, at most 1 min" in shown(rosa, page)
    scale = {
        "part": "after",
        "name": "trust",
        "text": "Trust?",
        "kind": "likert",
        "options": "no\nyes",
        "on_wrong": "note",
    }
    rosa.post(f"{page}questions/new/", {**scale, "required": "on"})
    assert Question.objects.get().options == ["no", "yes"]
    rosa.post(f"{page}open/")
    experiment.refresh_from_db()
    assert experiment.state == "open"
    link = f"/experiments/take/{experiment.token}/"
    assert f'{link}</code> <button type="button" class="secondary small" data-copy="link"' in shown(rosa, page)
    assert rosa.get(f"{page}edit/").status_code == 302
    assert rosa.post(f"{page}arms/{made.pk}/?game=negotiation&seats=2", {**arm, "seat_1": PERSON}).status_code == 400


def test_the_design_says_who_plays(rosa: Client, researcher: User) -> None:
    made = making.experiment(researcher)
    making.arm(made, "only", [PERSON, "checkpoint:999"], fallback="scripted:scripted")
    page = shown(rosa, f"/experiments/{made.pk}/")
    assert "<dd>Negotiation, A sample scenario (" in page
    assert "<dd>A participant · checkpoint:999</dd>" in page, "a player that is gone has no other name"
    assert "<dd>A scripted player takes empty seats</dd>" in page


def test_errors_stand_at_their_fields(rosa: Client, researcher: User) -> None:
    assert "This field is required" in rosa.post("/experiments/new/", {**TEXTS, "title": ""}).content.decode()
    page = f"/experiments/{making.experiment(researcher).pk}/"
    arm = {"name": "x", "scenario": "sample", "deadline_s": "60", "shown_as": "unknown"}
    nobody = rosa.post(
        f"{page}arms/new/?game=negotiation", {**arm, "seat_0": "scripted:scripted", "seat_1": "scripted:random"}
    )
    assert nobody.status_code == 400
    assert "At least one seat is a participant" in nobody.content.decode()
    choice = {"part": "before", "name": "colour", "text": "?", "kind": "choice", "on_wrong": "note"}
    refused = rosa.post(f"{page}questions/new/", {**choice, "options": "red\nblue", "right": "green"})
    assert "must be one of the options" in refused.content.decode()
    assert "at least two options" in rosa.post(f"{page}questions/new/", {**choice, "options": "red"}).content.decode()


def test_the_power_of_a_comparison_is_a_part_of_the_page(rosa: Client) -> None:
    query = "outcome=means&effect=0.5&first=0.5&second=0.6&alpha=0.05&power=0.8&people=1&correlation=0&n=64"
    part = rosa.get(f"/experiments/power/?{query}", headers={"HX-Request": "true"}).content.decode()
    assert "65 participants per arm" in part
    assert "<html" not in part
    assert "0.796" in part
    assert "65 participants per arm" in shown(rosa, "/experiments/new/")
    assert "Correct the marked numbers" in shown(rosa, "/experiments/power/?outcome=means&effect=x")


def test_the_monitor_shows_who_waits_and_lets_the_facilitator_act(rosa: Client, researcher: User) -> None:
    experiment = making.opened(researcher, making.PAIR)
    participant = making.come(experiment, "P-<1>")
    page = f"/experiments/{experiment.pk}/monitor/"
    whole = shown(rosa, page)
    assert "P-&lt;1&gt;" in whole
    assert "Waiting room" in whole
    rosa.post(f"/experiments/{experiment.pk}/participants/{participant.pk}/nudge/", {"text": "Hello?"})
    participant.refresh_from_db()
    assert participant.notice == "Hello?"
    rosa.post(f"/experiments/{experiment.pk}/participants/{participant.pk}/replace/")
    participant.refresh_from_db()
    assert participant.outcome == "removed"
    part = rosa.get(page, headers={"HX-Request": "true"}).content.decode()
    assert "Removed by the facilitator" in part
    assert "<html" not in part


def test_pause_resume_close_copy_delete(rosa: Client, researcher: User) -> None:
    experiment = making.opened(researcher)
    for action, state in (("pause", "paused"), ("resume", "open"), ("close", "closed")):
        rosa.post(f"/experiments/{experiment.pk}/{action}/")
        experiment.refresh_from_db()
        assert experiment.state == state
    rosa.post(f"/experiments/{experiment.pk}/copy/")
    copied = Experiment.objects.latest("pk")
    rosa.post(f"/experiments/{copied.pk}/delete/")
    assert list(Experiment.objects.all()) == [experiment]
    rosa.post(f"/experiments/{experiment.pk}/delete/")
    assert Experiment.objects.exists()


def test_results_and_export_pages(rosa: Client, researcher: User) -> None:
    experiment = making.opened(researcher, per_arm=2)
    page = f"/experiments/{experiment.pk}/"
    assert "No participant is complete yet" in shown(rosa, f"{page}results/")
    for _ in range(4):
        making.completed(experiment)
    whole = shown(rosa, f"{page}results/")
    assert "arm 2 against arm 1" in whole
    assert "2 participants in 2 groups" in whole
    response: Any = rosa.get(f"{page}export.csv")
    assert b"".join(response.streaming_content).decode().count("\n") == 5
    assert rosa.get(f"{page}export.xls").status_code == 404


def test_an_administrator_sees_no_ids(client: Client, researcher: User, admin: User) -> None:
    experiment = making.opened(researcher, making.PAIR)
    making.come(experiment, "P-31337")
    client.force_login(admin)
    assert "P-31337" not in shown(client, f"/experiments/{experiment.pk}/monitor/")
    response: Any = client.get(f"/experiments/{experiment.pk}/export.jsonl")
    assert b"P-31337" not in b"".join(response.streaming_content)
    assert Participant.objects.get().external_id == "P-31337"
