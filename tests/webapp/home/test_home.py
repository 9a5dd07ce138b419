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
    FIVES,
    conversation,
    finished_match,
    imported,
    outside,
    people_queue,
    version,
)
from tests.webapp.runs.making import make_run
from training import bases, samples
from training.errors import BadInput
from training.store import write_json
from webapp.accounts.models import User
from webapp.arena.models import Match
from webapp.arena.setup import finding, tables
from webapp.home.management.commands import demo_data
from webapp.judgments import services as judging
from webapp.runs import attempts
from webapp.runs.models import Run
from webapp.scenarios.models import Dataset

pytestmark = pytest.mark.django_db


def page(client, name="home:index"):
    return client.get(reverse(name)).content.decode()


def test_a_new_installation_offers_three_ways_to_begin(client_of, researcher):
    client = client_of(researcher)
    first = page(client)
    assert "Watch a model learn" in first
    assert "Play a game first" in first
    started = client.post(reverse("home:watch"), follow=True)
    run = Run.objects.get()
    assert started.redirect_chain[-1][0] == reverse("runs:detail", args=[run.pk])
    assert (run.base, run.state) == ("tiny", "queued")
    left = page(client)
    assert "Watch a model learn" not in left
    for heading in ("Not tried yet", "Play against it", "Judge a game"):
        assert heading in left
    finished_match(researcher)
    left = page(client)
    assert "Play against it" not in left
    assert "Queue the last game" in left
    seat = Match.objects.get().seats.get(user=researcher)
    judging.rate(by=seat, version=version(), values={1: FIVES}, guesses={1: judging.Answer(person=False)})
    assert "Judge a game" not in page(client)


def test_judgments_of_an_import_are_no_beginning_of_ones_own(client_of, researcher):
    imported(researcher, conversation(0, (outside("gpt-4", 0, FIVES),)))
    assert "Judge a game" in page(client_of(researcher))


def test_nothing_of_the_beginnings_is_read_for_a_player(client_of, player):
    context = client_of(player).get(reverse("home:index")).context
    assert context["begins"] == 0
    assert "finished" not in context


def test_a_player_lands_on_the_games(client_of, player, annotator):
    shown = page(client_of(player))
    for spec in finding.games():
        assert reverse("arena:play-now", args=[spec.name]) in shown
    assert "/play/now/" not in page(client_of(annotator))


def test_an_installation_at_work_offers_no_beginnings(client_of, researcher):
    for number in range(5):
        assert "Play against it" in page(client_of(researcher))
        make_run(researcher, name=f"run {number}")
    assert "Play against it" not in page(client_of(researcher))


def test_ones_own_open_table_waits_for_others(client_of, player, annotator):
    tables.create(
        host=player, start=tables.Start(negotiation()), places=[tables.Place(user=player), tables.Place()], consent=True
    )
    assert "Waiting for a player" in page(client_of(annotator))
    own = page(client_of(player))
    assert "Waiting for a player" not in own
    assert "<h3>Yours</h3>" in own


def test_the_cards_say_how_far_the_tiny_model_is(client_of, researcher, monkeypatch, tmp_path):
    monkeypatch.setenv("PARLEY_HOME", str(tmp_path))
    entry, client = bases.REGISTRY["tiny"], client_of(researcher)
    with bases.PreparationLog(entry) as log:
        now = time.time()
        write_json(log.path, {"began": now - 30, "at": now, "share": 0.25})
        first = page(client)
        assert "being prepared: 25 %, 1 min 2" in first or "being prepared: 25 %, 1 min 30 s left" in first
        assert "<button disabled>Start the quick trial" in first
        part = client.get(reverse("home:index"), headers={"HX-Request": "true"})
        assert (part.status_code, 'id="begin"' in part.content.decode()) == (200, True)
        with pytest.raises(BadInput, match=r"being prepared on this machine; try again in (8|9)\d s"):
            bases.resolve("tiny")
        write_json(log.path, {"began": now - 900, "at": now - 200, "share": 0.25})  # nobody works on it any more
        left = page(client)
        assert "being prepared" not in left
        assert "models prepare tiny" in left
        assert "<button disabled>Start the quick trial" in left
    monkeypatch.setattr(bases, "is_prepared", lambda entry: True)
    part = client.get(reverse("home:index"), headers={"HX-Request": "true"})
    assert (part.status_code, "<button>Start the quick trial" in part.content.decode()) == (286, True)


def test_the_first_page_shows_what_is_ones_own(client_of, researcher, annotator, player):
    queue = people_queue(researcher, finished_match(researcher), [annotator])
    assert f"{queue.targets.count()} left" in page(client_of(annotator))
    shown = page(client_of(player))
    assert "Running" not in shown
    assert "To judge" not in shown
    assert "No table is waiting" in shown


def test_a_game_is_offered_for_judging_only_if_everybody_agreed_to_its_use(client_of, researcher):
    agreed, refused = finished_match(researcher), finished_match(researcher)
    refused.seats.update(consent=False)
    client = client_of(researcher)
    (offered,) = re.findall(r"/queues/new/[^\"]*match=[^\"]*", page(client))
    assert f"match={agreed.pk}&" in offered.replace("&amp;", "&")
    query = offered.split("?")[1].replace("&amp;", "&")
    form = client.get(f"{reverse('judgments:queue-new')}?{query}").context["form"]
    listed = [str(value) for value, _ in form.fields["match"].choices]
    assert listed == [str(agreed.pk)]
    agreed.seats.update(consent=False)
    assert "Play a game first" in page(client)


def test_the_first_page_of_a_guest_is_their_match_or_the_next_game(client_of, guest, player):
    client = client_of(guest)
    match = seated(guest, consent=None)
    seated(player)
    assert client.get(reverse("home:index")).url == reverse("arena:table", args=[match.pk])
    tables.close(match=match)
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
