"""The first page and the demo data."""

import re
import time

import pytest
from django.core.management import call_command
from django.urls import reverse
from django.utils.html import strip_tags

from tests.trust.matrix.arena import seated
from tests.webapp.arena.conftest import negotiation
from tests.webapp.judgments.make import (
    finished_match,
    people_queue,
)
from tests.webapp.runs.making import make_run
from training import samples
from webapp.accounts.models import User
from webapp.arena.setup import finding, tables, waiting_room
from webapp.home.management.commands import demo_data
from webapp.runs import attempts
from webapp.runs.models import Run
from webapp.scenarios.models import Dataset

pytestmark = pytest.mark.django_db


def page(client, name="home:index"):
    return client.get(reverse(name)).content.decode()


def test_a_player_lands_on_the_games(client_of, player, annotator):
    shown = page(client_of(player))
    for spec in finding.games():
        assert reverse("arena:play-now", args=[spec.name]) in shown
    assert "/play/now/" not in page(client_of(annotator))


def test_ones_own_open_table_waits_for_others(client_of, player, annotator):
    tables.create(
        host=player, start=tables.Start(negotiation()), places=[tables.Place(user=player), tables.Place()], consent=True
    )
    assert "Waiting for a player" in page(client_of(annotator))
    home = page(client_of(player))
    assert "Waiting for a player" not in home
    assert "<h3>Yours</h3>" in home


def test_the_first_page_shows_what_is_ones_own(client_of, researcher, annotator, player):
    queue = people_queue(researcher, finished_match(researcher), [annotator])
    assert f"{queue.targets.count()} left" in page(client_of(annotator))
    shown = page(client_of(player))
    assert "Running" not in shown
    assert "To judge" not in shown
    assert "No table is waiting" in shown


def test_the_first_page_of_a_guest_is_their_match_or_the_next_game(client_of, guest, player):
    client = client_of(guest)
    match = seated(guest, consent=None)
    seated(player)
    assert client.get(reverse("home:index")).url == reverse("arena:table", args=[match.pk])
    waiting_room.close(match=match)
    between = page(client)
    assert reverse("arena:table", args=[match.pk]) in between
    assert between.count("/play/now/") == len(finding.games())


def test_every_link_that_a_guest_is_shown_leads_somewhere(client_of, guest, player):
    match = finished_match(player, guest)
    client, seen, ahead = client_of(guest), {}, ["/", "/nothing-here/"]
    while ahead:
        address = ahead.pop()
        answer = client.get(address, follow=True)
        seen[address] = answer.status_code
        if "text/html" in answer["Content-Type"]:
            links = re.findall(r'href="(/[^"#?]*)', answer.content.decode())
            ahead += [link for link in set(links) if not link.startswith("/static/") and link not in {*seen, *ahead}]
    assert seen.pop("/nothing-here/") == 404
    assert {address for address, status in seen.items() if status != 200} == set()
    assert reverse("arena:replay", args=[match.pk]) in seen
    assert len(seen) > 4


def test_a_run_shows_its_trend_and_its_last_sign_of_progress(client_of, researcher, django_assert_max_num_queries):
    for number in range(3):
        run = make_run(researcher, name=f"run {number}", state="queued", sparkline=[1, 0.1, 0.5, 0.3], steps=20)
        attempt = attempts.claim(run_id=run.pk, worker="w:1:1", host="here")
        attempts.beat(attempt=attempt, status={"phase": "sampling", "at": time.time() - 90})
    client = client_of(researcher)
    with django_assert_max_num_queries(16):
        shown = page(client)
    assert shown.count("<polyline") == 3
    assert shown.count('aria-label="Step 0 of 20"') == 3
    assert len(re.findall(r"last progress <time [^>]*>a\sminute ago", shown)) == 3


def test_what_is_running_is_a_count_with_a_list(client_of, researcher):
    client = client_of(researcher)
    assert "nothing running" in page(client, "home:running")
    Run.objects.create(kind="train", name="alpha", owner=researcher, queue="train-cpu", config={}, state="running")
    shown = page(client, "home:running")
    assert "1 running" in strip_tags(shown)
    assert "queued" not in shown
    assert "alpha" in shown
    for number in range(2):
        make_run(researcher, name=f"beta {number}", state="queued")
    shown = page(client, "home:running")
    assert "● 1 running, 2 queued" in strip_tags(shown)
    Run.objects.filter(name="alpha").update(state="failed")
    assert "○ 2 queued" in strip_tags(page(client, "home:running"))


def test_the_demo_data_is_made_once_and_opens_the_door(client, capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(demo_data, "KEPT", tmp_path / "demo-password")
    call_command("demo_data")
    first = capsys.readouterr().out
    password = re.search(r"password (\S+)\.", first)[1]
    titles = set(Dataset.objects.values_list("title", flat=True))
    assert len(titles) == Dataset.objects.count() == len(samples.names())
    assert {"Negotiation (items)", "Negotiation (prices)", "Social dialogue"} <= titles
    call_command("demo_data")
    assert capsys.readouterr().out == first
    assert demo_data.KEPT.stat().st_mode & 0o077 == 0
    assert (Dataset.objects.count(), User.objects.filter(username="demo").count()) == (len(samples.names()), 1)
    client.post(reverse("account_login"), {"login": "demo", "password": password})
    assert client.get(reverse("home:index")).status_code == 200
