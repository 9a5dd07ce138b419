"""The pages of the table: two clicks to a game, consent first, moves by form, what one may look at afterwards."""

import re

import pytest
from django.urls import reverse

from tests.games.cases.strategic import strategic
from tests.trust.matrix.scenarios import SCENARIO
from training.dataset import DatasetLine
from training.games.base import FORFEIT
from training.records import ALL, SPECTATOR, Scenario
from webapp.arena.models import Match
from webapp.arena.play import services
from webapp.arena.setup import tables
from webapp.scenarios.services import create_dataset
from worker.play import play

pytestmark = pytest.mark.django_db


def new_table(client, **changes):
    form = client.get("/play/new/").context["form"]
    data = {name: field.initial for name, field in form.fields.items()}
    return client.post("/play/new/", {**data, "consent": "yes", **changes})


def test_two_clicks_start_a_game(client_of, player):
    client = client_of(player)
    assert "/play/new/" in client.get("/play/").content.decode()
    answer = new_table(client)
    match = Match.objects.get()
    assert answer.status_code == 302
    assert answer.url == f"/play/{match.pk}/"
    assert match.state == Match.State.RUNNING
    page = client.get(answer.url)
    assert page.status_code == 200
    assert 'role="log"' in page.content.decode()


def test_the_page_of_a_table_is_written_in_the_order_of_a_small_screen(client_of, player, two_people):
    page = client_of(player).get(f"/play/{two_people.pk}/").content.decode()
    parts = ("table-head", "table-stage", "table-talk", 'id="move"', "table-more")
    places = [page.index(part) for part in parts]
    assert places == sorted(places)


def test_nothing_begins_without_an_answer_about_consent(client_of, player, ben):
    client, other = client_of(player), client_of(ben)
    new_table(client, seat_1="open")
    match = Match.objects.get()
    assert match.state == Match.State.OPEN
    assert f"/play/{match.pk}/" in other.get("/play/").content.decode()
    assert other.post(f"/play/{match.pk}/sit/").url == f"/play/{match.pk}/"
    assert other.get(f"/play/{match.pk}/").url == f"/play/{match.pk}/consent/"
    match.refresh_from_db()
    assert match.state == Match.State.OPEN
    other.post(f"/play/{match.pk}/consent/", {"consent": "no"})
    match.refresh_from_db()
    assert match.state == Match.State.RUNNING
    assert list(match.seats.order_by("seat").values_list("consent", flat=True)) == [True, False]


def test_a_no_keeps_a_match_out_of_exports(two_people):
    Match.objects.update(state=Match.State.FINISHED)
    assert list(Match.objects.exportable()) == [two_people]
    two_people.seats.filter(seat=1).update(consent=False)
    assert list(Match.objects.exportable()) == []


def test_a_guest_link_shows_a_page_and_a_post_takes_the_seat_once(client_of, player):
    host, stranger, late = client_of(player), client_of(None), client_of(None)
    new_table(host, seat_1="open")
    match = Match.objects.get()
    shown = host.post(f"/play/{match.pk}/invite/1/").content.decode()
    link = re.search(r"/play/guest/[\w-]+/", shown).group()
    assert match.seats.get(seat=1).guest_link.token_hash not in link
    assert link.split("/")[3] not in str(list(match.seats.values()))

    host_page = host.get(link).content.decode()
    assert "send the link to somebody else" in host_page
    assert "Sit down" not in host_page
    for _ in range(2):
        assert "Sit down" in stranger.get(link).content.decode()
    assert match.seats.get(seat=1).kind == "open"
    assert stranger.post(link, {"shown_name": "Zoe"}).url == f"/play/{match.pk}/"
    seat = match.seats.get(seat=1)
    assert (seat.kind, seat.user.shown_name, seat.user.is_guest) == ("person", "Zoe (guest)", True)
    assert late.post(link, {"shown_name": "Max"}).status_code == 400
    assert stranger.get(f"/play/{match.pk}/").url == f"/play/{match.pk}/consent/"
    stranger.post(f"/play/{match.pk}/consent/", {"consent": "yes"})
    match.refresh_from_db()
    assert match.state == Match.State.RUNNING
    assert stranger.get("/play/").status_code == 404  # a guest sees the one match only


def test_a_kept_seat_is_nobody_elses(client_of, player, ben):
    host, other = client_of(player), client_of(ben)
    new_table(host, seat_1="open")
    match = Match.objects.get()
    host.post(f"/play/{match.pk}/invite/1/")
    assert other.get(f"/play/{match.pk}/").status_code == 404
    assert other.post(f"/play/{match.pk}/sit/").status_code == 404
    assert client_of(None).get("/play/guest/nonsense/").status_code == 404


def test_a_move_by_form(client_of, player, ben, two_people):
    client, other = client_of(player), client_of(ben)
    url = f"/play/{two_people.pk}/move/"
    offer = {
        "turn": "0",
        "action": "propose",
        "text": "fair?",
        "propose.food": "2",
        "propose.water": "1",
        "propose.firewood": "0",
    }
    assert client.post(url, offer).status_code == 302
    stored = two_people.moves.get().move
    assert stored["args"] == {"food": 2, "water": 1, "firewood": 0}
    assert stored["text"] == "fair? <propose>food 2, water 1, firewood 0</propose>"
    assert "fair?" in other.get(f"/play/{two_people.pk}/").content.decode()
    assert client.post(url, offer).status_code == 302  # sent twice, stored once
    assert two_people.moves.count() == 1


@pytest.mark.parametrize(
    "data, why",
    [
        ({"turn": "0", "action": "talk", "text": ""}, "write something"),
        (
            {"turn": "0", "action": "propose", "propose.food": "7", "propose.water": "0", "propose.firewood": "0"},
            "0 to 3",
        ),
        ({"turn": "0", "action": "propose"}, "whole number"),
        ({"turn": "0", "action": "fly"}, "Choose one of"),
        ({"turn": "x", "action": "talk", "text": "hi"}, "number of the turn"),
        ({"turn": "0", "action": "talk", "text": "x" * 1001}, "1000 are allowed"),
        ({"turn": "4", "action": "talk", "text": "hi"}, "moved on"),
    ],
)
def test_a_wrong_move_is_explained_and_changes_nothing(client_of, player, two_people, data, why):
    answer = client_of(player).post(f"/play/{two_people.pk}/move/", data)
    assert answer.status_code == 400
    assert why in answer.content.decode()
    assert two_people.moves.count() == 0


def test_tags_in_speech_are_only_words(client_of, player, ben, two_people):
    said = {"turn": "0", "action": "talk", "text": "ok <accept/> <script>alert(1)</script>"}
    client_of(player).post(f"/play/{two_people.pk}/move/", said)
    move = two_people.moves.get().move
    assert move["action"] == "talk"
    assert "<" not in move["text"]
    assert "<script>alert" not in client_of(ben).get(f"/play/{two_people.pk}/").content.decode()


def finish(match):
    services.submit(match_id=match.pk, seat=0, step=0, move=FORFEIT)
    match.refresh_from_db()


def test_viewpoints_during_and_after(client_of, player, ben, annotator, two_people):
    replay = f"/play/{two_people.pk}/replay/"
    for asked in ({}, {"viewer": "1"}, {"viewer": str(SPECTATOR)}, {"viewer": str(ALL)}):
        response = client_of(player).get(replay, asked)
        assert (response.status_code, response.url) == (302, f"/play/{two_people.pk}/"), (
            "during a match there is the table"
        )
    assert client_of(annotator).get(replay).status_code == 404
    assert client_of(player).get(f"/play/{two_people.pk}/result/").status_code == 302
    finish(two_people)
    for place in (0, 1, SPECTATOR, ALL):
        for user in (player, ben):
            assert client_of(user).get(replay, {"viewer": place}).status_code == 200
    assert client_of(annotator).get(replay).status_code == 404
    Match.objects.update(visibility="open")
    assert client_of(annotator).get(replay).status_code == 200
    assert client_of(annotator).get(replay, {"viewer": 0}).status_code == 404
    assert "cold nights" not in client_of(annotator).get(f"/play/{two_people.pk}/result/").content.decode()
    Match.objects.update(visibility="public")
    assert client_of(annotator).get(replay, {"viewer": ALL}).status_code == 200


def test_the_result_reveals_and_leads_on(client_of, player, ben, two_people):
    from webapp.judgments.models import Guess

    finish(two_people)
    result, replay = f"/play/{two_people.pk}/result/", f"/play/{two_people.pk}/replay/?viewer={ALL}"
    page = client_of(player).get(result).content.decode()
    assert "cold nights" in page
    assert "Rate this game, and see who it was" in page
    assert "> ben<" not in page, "what one takes the other for is asked first"
    assert "Details of this step" in client_of(player).get(replay).content.decode()
    assert client_of(player).get(replay).context["behind"] == []
    mine, other = two_people.seats.get(user=player), two_people.seats.get(user=ben)
    Guess.objects.create(by=mine, about=other, person=True)
    assert "> ben<" in client_of(player).get(result).content.decode()
    assert [move.seat for move in client_of(player).get(replay).context["behind"]] == [0]
    assert "> pia<" not in client_of(ben).get(result).content.decode(), "each player sees it after their own guess"
    client_of(player).post(f"/play/{two_people.pk}/again/")
    following = Match.objects.get(swapped_from=two_people)
    assert [seat.user.username for seat in following.seats.order_by("seat")] == ["ben", "pia"]
    assert following.state == Match.State.OPEN


@pytest.mark.parametrize(
    "game, shuffled, asks",
    [
        ("negotiation", False, True),  # rated by a codebook
        ("kuhn_poker", False, False),  # not rated, and the host chose the player
        ("kuhn_poker", True, True),  # a guess who sat there
    ],
)
def test_the_end_asks_for_a_rating_where_the_rating_page_does(client_of, player, game, shuffled, asks):
    scenario = SCENARIO if game == "negotiation" else strategic(game)
    places = [tables.Place(user=player), tables.Place(scripted="scripted" if game == "negotiation" else "random")]
    match = tables.create(host=player, start=tables.Start(scenario), places=places, consent=True, shuffled=shuffled)
    match.refresh_from_db()
    (seat,) = services.fold(match).game.to_act()
    services.submit(match_id=match.pk, seat=seat, step=0, move=FORFEIT)
    client, rate = client_of(player), reverse("judgments:rate", args=[match.pk])
    table = client.get(f"/play/{match.pk}/").content.decode()
    result = client.get(f"/play/{match.pk}/result/").content.decode()
    assert (f'<a href="{rate}" role="button">Rate it, and see who they were' in table) == asks
    assert (f'<a href="/play/{match.pk}/result/" role="button">See the result' in table) == (not asks)
    assert ("Rate this game, and see who it was" in result) == asks
    assert ("See what they thought</a>" in result) == (not asks)
    assert client.get(rate).context["asks"] == asks


def test_the_scrubber_goes_step_by_step(client_of, player, two_people):
    finish(two_people)
    replay = f"/play/{two_people.pk}/replay/"
    start = client_of(player).get(replay, {"viewer": 0, "step": 0}).content.decode()
    end = client_of(player).get(replay, {"viewer": 0, "step": 1}).content.decode()
    assert "gives up" not in start
    assert "gives up" in end
    for page in (start, end):  # where there is no step that way, the mark that stands there says what it is, too
        assert page.count('aria-label="One step back"') == page.count('aria-label="One step forward"') == 1
        assert page.count('role="button"') - page.count("aria-disabled") == 1
    assert client_of(player).get(replay, {"step": 2}).status_code == 404
    fragment = client_of(player).get(replay, {"step": 1}, HTTP_HX_REQUEST="true").content.decode()
    assert "<html" not in fragment


def test_only_the_host_closes_a_table(client_of, player, ben, two_people):
    assert client_of(ben).post(f"/play/{two_people.pk}/close/").status_code == 404
    client_of(player).post(f"/play/{two_people.pk}/close/")
    two_people.refresh_from_db()
    assert two_people.state == Match.State.ABORTED
    assert "closed by the host" in client_of(ben).get(f"/play/{two_people.pk}/").content.decode()


def test_empty_lists_name_the_next_step(client_of, player):
    assert client_of(player).get("/play/").content.decode().count("/play/new/") >= 3
    assert "/play/new/" in client_of(player).get("/play/matches/").content.decode()


def test_the_lobby_costs_the_same_however_many_tables(client_of, player, ben, django_assert_max_num_queries):
    from tests.webapp.arena.conftest import negotiation

    for _ in range(12):
        tables.create(
            host=ben, start=tables.Start(negotiation()), places=[tables.Place(user=ben), tables.Place()], consent=True
        )
    client = client_of(player)
    with django_assert_max_num_queries(23):
        client.get("/play/")


@pytest.mark.parametrize(
    "query, names",
    [
        ("", ["dialogue", "negotiation"]),
        ("&sort=-age", ["negotiation", "dialogue"]),
        ("&sort=game", ["dialogue", "negotiation"]),
        ("&sort=-game", ["negotiation", "dialogue"]),
        ("&sort=state", ["dialogue", "negotiation"]),
        ("&state=running", ["negotiation"]),
        ("&state=open&game=dialogue", ["dialogue"]),
        ("&game=dialogue&state=running", []),
        ("&game=chess", []),
    ],
)
def test_matches_are_filtered_and_sorted_by_their_address(client_of, player, two_people, query, names):
    from tests.webapp.arena.conftest import dialogue

    tables.create(
        host=player, start=tables.Start(dialogue()), places=[tables.Place(user=player), tables.Place()], consent=True
    )
    answer = client_of(player).get(f"/play/matches/?of=me{query}")
    assert [match.game for match in answer.context["page"]] == names
    assert ("Show all" in answer.content.decode()) == (not names)


def test_a_stored_scenario_of_a_game_that_is_only_known_by_its_name_can_be_played(client_of, researcher):
    scenario = Scenario(id="heaps", game="openspiel:nim", seats=("Ada", "Ben"), seed=1)
    stored = create_dataset(name="heaps", owner=researcher, lines=[DatasetLine(scenario=scenario)]).scenarios.get()
    client, address = client_of(researcher), f"/play/new/?scenario={stored.pk}"
    form = client.get(address).context["form"]
    offered = [name for name, _ in form.fields["seat_1"].choices if name.startswith("scripted:")]
    assert offered == ["scripted:random"], "no script plays it"
    data = {name: field.initial for name, field in form.fields.items()}
    assert client.post(address, {**data, "seat_1": "open", "consent": "yes"}).status_code == 302
    match = Match.objects.get()
    assert (match.game, match.source) == ("openspiel:nim", stored)
    client.post(f"/play/{match.pk}/fill/")
    move = services.fold(match).game.default(0)
    services.submit(match_id=match.pk, seat=0, step=0, move=move)
    play(match.due.get().pk)
    assert match.moves.get(seat=1).move["origin"] == "seat", "the seat that was filled plays by itself"
