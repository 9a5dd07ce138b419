"""The guided tour: all of it over requests, and what each step says while it works, fails, or waits."""

import re
import time
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from training import bases
from training.games.base import FORFEIT
from training.store import write_json
from webapp.accounts.models import User
from webapp.arena.models import Match
from webapp.arena.play import services
from webapp.home import tour as tours
from webapp.home.models import Tour
from webapp.home.tour import State
from webapp.judgments.models import Judgment, Queue
from webapp.runs.models import Checkpoint, Run
from webapp.scenarios.models import DatasetVersion
from webapp.serving.models import Deployment

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def prepared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bases, "is_prepared", lambda entry: True)


def begin(client: Client, step: str) -> Any:
    return client.post(reverse("home:begin", args=[step]))


def states(user: User) -> dict[str, str]:
    return {name: progress.state.value for name, progress in tours.progress(tours.of(user)).items()}


def learned(user: User, state: str = "succeeded") -> Run:
    """A watched run that has written a checkpoint, which answers."""
    run = tours.watch(user=user)
    checkpoint = Checkpoint.objects.create(name=f"r{run.pk}/4", kind="full", base="tiny", path="x", run=run, step=4)
    Deployment.objects.create(checkpoint=checkpoint, state="ready")
    Run.objects.filter(pk=run.pk).update(state=state, step=20)
    return run


def played(user: User, client: Client, consent: str = "yes") -> Match:
    """The tour's game, given up by whoever begins."""
    match = tours.play(user=user)
    client.post(reverse("arena:consent", args=[match.pk]), {"consent": consent})
    services.submit(match_id=match.pk, seat=match.due.get().seat, step=0, move=FORFEIT)
    match.refresh_from_db()
    return match


def annotate(client: Client, queue: Queue) -> None:
    """Give the lowest value that each question has, for every seat."""
    for _ in range(queue.targets.count()):
        page = client.get(reverse("judgments:annotate", args=[queue.pk])).content.decode()
        target = re.search(r'name="target" value="(\d+)"', page)
        assert target is not None
        values = dict(reversed(re.findall(r'name="(value-[\w-]+)" value="(-?\d+)"', page)))
        answer = client.post(reverse("judgments:annotate", args=[queue.pk]), {"target": target[1], **values})
        assert answer.status_code == 302


def test_the_whole_tour_over_requests(client_of, researcher: User) -> None:
    client = client_of(researcher)
    assert states(researcher) == {"watch": "ready", "play": "locked", "judge": "locked", "train": "locked"}
    started = begin(client, "watch")
    run = Run.objects.get()
    assert started["Location"] == reverse("runs:detail", args=[run.pk])
    assert (run.base, run.kind, run.owner) == ("tiny", "train", researcher)
    assert "Waiting for a worker" in client.get("/").content.decode()
    checkpoint = Checkpoint.objects.create(name="first/4", kind="full", base="tiny", path="x", run=run, step=4)
    Deployment.objects.create(checkpoint=checkpoint, state="ready")
    assert states(researcher)["play"] == "ready"  # one need not wait for the end of the run
    assert f'href="{started["Location"]}">To the run<' in client.get("/").content.decode()
    Run.objects.update(state="succeeded")
    result = reverse("runs:evaluation", args=[run.pk])
    assert f'href="{result}">See who won<' in client.get("/").content.decode()
    table = begin(client, "play")
    match = Match.objects.get()
    assert table["Location"] == reverse("arena:table", args=[match.pk])
    assert match.seats.get(kind="model").deployment.checkpoint == checkpoint
    assert match.scenario["settings"]["deal"]["kind"] == "items"
    assert begin(client, "play")["Location"] == table["Location"]  # it is not over
    client.post(reverse("arena:consent", args=[match.pk]), {"consent": "yes"})
    services.submit(match_id=match.pk, seat=match.due.get().seat, step=0, move=FORFEIT)
    assert states(researcher) == {"watch": "done", "play": "done", "judge": "ready", "train": "locked"}
    queue = begin(client, "judge")
    assert queue["Location"] == reverse("judgments:annotate", args=[Queue.objects.get().pk])
    assert "0 of 2 seats judged" in client.get("/").content.decode()
    annotate(client, Queue.objects.get())
    assert Judgment.objects.filter(author=researcher, unscored=False).count() == 2
    assert states(researcher)["judge"] == "done"
    trained = begin(client, "train")
    second = Run.objects.latest("pk")
    assert trained["Location"] == reverse("runs:detail", args=[second.pk])
    assert (second.kind, second.start_checkpoint) == ("sft", checkpoint)
    version = DatasetVersion.objects.get()
    assert second.dataset_version == version
    conversation = version.scenarios.get().conversations.get()
    assert conversation.source == f"match:{match.pk}"
    Run.objects.filter(pk=second.pk).update(state="succeeded")
    assert set(states(researcher).values()) == {"done"}
    assert "You have finished the guided tour" in client.get("/").content.decode()


def test_a_step_before_its_time_is_refused_on_its_card(client_of, researcher: User) -> None:
    client = client_of(researcher)
    for step, why in (("play", "there is no checkpoint yet"), ("judge", "play the game"), ("train", "judge the game")):
        page = begin(client, step)
        assert page.status_code == 400
        assert f'role="alert">This did not start: {why}' in page.content.decode()
    assert begin(client, "fly").status_code == 404
    assert not Run.objects.exists()


@pytest.mark.parametrize("state, why", [("failed", "The run failed"), ("stopped", "The run was stopped")])
def test_a_run_that_fails_can_be_started_again(client_of, researcher: User, state: str, why: str) -> None:
    client = client_of(researcher)
    first = tours.watch(user=researcher)
    assert tours.watch(user=researcher) == first  # it works
    Run.objects.update(state=state)
    page = client.get("/").content.decode()
    assert why in page
    assert reverse("runs:detail", args=[first.pk]) in page
    begin(client, "watch")
    assert Tour.objects.get().run != first


def test_a_game_that_may_not_be_used_leads_to_another(client_of, researcher: User) -> None:
    client = client_of(researcher)
    learned(researcher)
    match = played(researcher, client, consent="no")
    page = client.get("/").content.decode()
    assert "You kept this game out of exports" in page
    assert page.count(f'action="{reverse("home:begin", args=["play"])}"') == 1
    assert begin(client, "judge").status_code == 400
    begin(client, "play")
    assert Tour.objects.get().match != match


def test_a_game_without_a_result_is_played_again(client_of, researcher: User) -> None:
    learned(researcher)
    match = tours.play(user=researcher)
    services.abort(match_id=match.pk, why="a model could not be started")
    progress = tours.progress(tours.of(researcher))["play"]
    assert (progress.state, "a model could not be started" in progress.message) == (State.FAILED, True)
    assert tours.play(user=researcher) != match


def test_the_cards_can_be_put_away_and_come_back(client_of, researcher: User) -> None:
    client = client_of(researcher)
    assert 'id="tour"' in client.get("/").content.decode()
    client.post(reverse("home:hide"), {"hidden": "1"})
    page = client.get("/").content.decode()
    assert 'id="tour"' not in page
    assert "Show the guided tour" in page
    client.post(reverse("home:hide"), {"hidden": "0"})
    assert 'id="tour"' in client.get("/").content.decode()


def test_the_cards_are_ones_own(client_of, researcher: User, person) -> None:
    learned(researcher)
    other = person("researcher", "rudi")
    assert states(other) == {"watch": "ready", "play": "locked", "judge": "locked", "train": "locked"}
    assert 'id="tour"' not in client_of(person("annotator")).get("/").content.decode()


def test_what_was_made_can_be_deleted(researcher: User) -> None:
    run = tours.watch(user=researcher)
    Run.objects.filter(pk=run.pk).delete()
    assert states(researcher)["watch"] == "ready"


def test_the_cards_ask_again_while_something_works(client_of, researcher: User) -> None:
    client = client_of(researcher)
    assert client.get(reverse("home:tour")).status_code == 286
    tours.watch(user=researcher)
    working = client.get(reverse("home:tour"))
    assert (working.status_code, 'hx-trigger="every 5s"' in working.content.decode()) == (200, True)


def test_the_cards_say_how_far_the_tiny_model_is(client_of, researcher: User, monkeypatch, tmp_path) -> None:
    monkeypatch.setattr(bases, "is_prepared", lambda entry: False)
    monkeypatch.setenv("PARLEY_HOME", str(tmp_path))
    client = client_of(researcher)
    with bases.PreparationLog(bases.REGISTRY["tiny"]) as log:
        now = time.time()
        write_json(log.path, {"began": now - 30, "at": now, "share": 0.25})
        page = client.get("/").content.decode()
        assert re.search(r"being prepared: 25 %, 1 min (30|2\d) s left", page)
        assert "<button disabled>Start the quick trial" in page
        write_json(log.path, {"began": now - 900, "at": now - 200, "share": 0.25})  # nobody works on it any more
        assert "models prepare tiny" in client.get("/").content.decode()
    monkeypatch.setattr(bases, "is_prepared", lambda entry: True)
    part = client.get(reverse("home:tour"))
    assert (part.status_code, "<button>Start the quick trial" in part.content.decode()) == (286, True)
