"""The lobby: which tables are listed where, and what a host sees of guests and hands to them."""

import re

import pytest

from tests.webapp.arena import vigil
from tests.webapp.arena.conftest import dialogue, negotiation
from tests.webapp.judgments.make import annotate, finished_match, people_queue, rated
from webapp.arena.models import Match
from webapp.arena.play import hosting, services
from webapp.arena.setup import links, tables, waiting_room

pytestmark = pytest.mark.django_db
registered = vigil.registered


def listed(client):
    """The matches of every list of the lobby."""
    context = client.get("/play/").context
    return {name: [line.match.pk for line in context[name]] for name in ("waiting", "running", "mine", "public")}


def opened(match, visibility):
    Match.objects.filter(pk=match.pk).update(visibility=visibility)
    return match


@pytest.mark.parametrize("visibility, watched", [("private", False), ("open", True), ("public", True)])
def test_a_running_game_is_listed_for_watching_if_its_host_opened_it(
    client_of, player, ben, annotator, two_people, visibility, watched
):
    opened(two_people, visibility)
    onlooker = client_of(annotator)
    expected = [two_people.pk] if watched else []
    assert listed(onlooker) == {"waiting": [], "running": expected, "mine": [], "public": []}
    page = onlooker.get("/play/").content.decode()
    assert ("Games to watch" in page) == watched
    assert onlooker.get(f"/play/{two_people.pk}/").status_code == (200 if watched else 404)
    for user in (player, ben):
        assert listed(client_of(user)) == {"waiting": [], "running": [], "mine": [two_people.pk], "public": []}


def test_a_game_that_is_over_is_no_longer_listed_for_watching(client_of, annotator, two_people):
    opened(two_people, "public")
    services.abort(match_id=two_people.pk, why="x")
    assert listed(client_of(annotator)) == {"waiting": [], "running": [], "mine": [], "public": []}
    Match.objects.update(state=Match.State.FINISHED)
    assert listed(client_of(annotator)) == {"waiting": [], "running": [], "mine": [], "public": [two_people.pk]}


def test_a_paused_game_can_still_be_watched(client_of, annotator, two_people):
    hosting.pause(match=opened(two_people, "open"))
    assert listed(client_of(annotator))["running"] == [two_people.pk]


def test_who_watches_is_not_shown_who_plays(client_of, annotator, two_people):
    opened(two_people, "public")
    line = re.search(r'<li class="table-line">.*?</li>', client_of(annotator).get("/play/").content.decode(), re.DOTALL)
    assert line[0].count("mark-taken") == 2
    assert "mark-person" not in line[0]
    assert "ben" not in line[0]


def test_a_rematch_is_listed_once_the_game_before_is_judged(client_of, researcher, player, ben, annotator):
    before = rated(rated(finished_match(player, partner=ben), player), ben)
    queue = people_queue(researcher, before, [annotator])
    rematch = opened(tables.again(match=before, host=player), "public")
    waiting_room.answer_consent(match=rematch, user=ben, agreed=True)
    waiting_room.answer_consent(match=rematch, user=player, agreed=True)
    assert Match.objects.get(pk=rematch.pk).state == Match.State.RUNNING
    assert listed(client_of(annotator))["running"] == []
    for target in queue.targets.all():
        annotate(target=target, by=annotator, values=None, reason="too short")
    assert listed(client_of(annotator))["running"] == [rematch.pk]


def test_running_games_cost_the_lobby_no_queries_of_their_own(
    client_of, player, ben, annotator, django_assert_max_num_queries
):
    for _ in range(12):
        places = [tables.Place(user=player), tables.Place(user=ben)]
        match = tables.create(
            host=player, start=tables.Start(dialogue()), places=places, consent=True, visibility="public"
        )
        waiting_room.answer_consent(match=match, user=ben, agreed=True)
    client = client_of(annotator)
    with django_assert_max_num_queries(23):
        assert len(listed(client)["running"]) == 12


@pytest.fixture
def waiting(player):
    """A table of a player with a free seat."""
    places = [tables.Place(user=player), tables.Place()]
    return tables.create(host=player, start=tables.Start(negotiation()), places=places, consent=True)


def test_ones_own_open_table_is_listed_once(client_of, player, ben, waiting):
    assert listed(client_of(player)) == {"waiting": [], "running": [], "mine": [waiting.pk], "public": []}
    assert listed(client_of(ben)) == {"waiting": [waiting.pk], "running": [], "mine": [], "public": []}


@pytest.mark.parametrize("list_name, verb", [("waiting", "join"), ("running", "watch"), ("mine", "go on")])
def test_a_line_ends_with_what_one_can_do(client_of, player, annotator, two_people, waiting, list_name, verb):
    opened(two_people, "open")
    client = client_of(player if list_name == "mine" else annotator)
    (first, *_) = listed(client)[list_name]
    page = client.get("/play/").content.decode()
    assert re.search(rf'<a class="do" href="/play/{first}/">{verb}<span class="unseen"> food 3', page)


# --- links and guests ---


@pytest.mark.parametrize("ask", ["invite/1", "link"])
def test_a_link_has_a_button_that_copies_exactly_the_link(client_of, player, waiting, ask):
    page = client_of(player).post(f"/play/{waiting.pk}/{ask}/").content.decode()
    (named,) = re.findall(r'<button type="button"[^>]* data-copy="(\w+)" hidden>Copy', page)
    (link,) = re.findall(rf'<code class="token" id="{named}">([^<]*)</code>', page)
    assert re.fullmatch(r"http://testserver/play/(guest|join)/[\w-]+/", link)
    assert client_of(None).get(link).status_code == 200
    assert "/js/copy" in page, "without the script the button stays hidden"


def seats_shown(client, match):
    """What the table shows of each seat, without tags."""
    page = client.get(f"/play/{match.pk}/").content.decode()
    chairs = page.split('<ul class="chairs" aria-label="Seats">')[1].split("</ul>")[0]
    return [" ".join(re.sub("<[^>]+>", " ", chair).split()) for chair in chairs.split("<li")[1:]]


def test_the_host_reads_the_guests_name_before_and_during_the_game(client_of, player, waiting):
    host, guest = client_of(player), client_of(None)
    guest.post(f"/play/guest/{links.invite(match=waiting, number=1)}/", {"shown_name": "Zoe"})
    assert seats_shown(host, waiting)[1].endswith("Zoe (guest), reading")
    guest.post(f"/play/{waiting.pk}/consent/", {"consent": "yes"})
    assert Match.objects.get(pk=waiting.pk).state == Match.State.RUNNING
    assert seats_shown(host, waiting)[1].endswith("Zoe (guest)")


@pytest.mark.usefixtures("registered")
@pytest.mark.parametrize("shuffled", [False, True])
def test_nobody_but_a_host_who_chose_the_seats_reads_a_guests_name(client_of, player, ben, annotator, shuffled):
    match = tables.create(
        host=player,
        start=tables.Start(vigil.vigil(3)),
        places=[tables.Place(user=player), tables.Place(user=ben), tables.Place()],
        consent=True,
        shuffled=shuffled,
        visibility="open",
    )
    client_of(None).post(f"/play/join/{links.open_link(match=match)}/", {"shown_name": "Zoe"})
    waiting_room.answer_consent(match=match, user=ben, agreed=True)
    readers = {
        user.username for user in (player, ben, annotator) if "Zoe" in " ".join(seats_shown(client_of(user), match))
    }
    assert readers == (set() if shuffled else {"pia"})
