"""Who or what sits at a seat is revealed after the game: to players after rating, to annotators after judging."""

import re

import pytest
from django.test import Client

from tests.webapp.api.test_api import Caller
from tests.webapp.arena import vigil
from tests.webapp.arena.conftest import negotiation
from tests.webapp.judgments.make import annotate, people_queue
from training.games.base import FORFEIT
from training.labels.codebooks import CONDUCT
from training.records import ALL
from training.seeding import rng
from webapp.arena import access, clock
from webapp.arena.live import client_state, consumers, fragments
from webapp.arena.models import Match
from webapp.arena.play import pace, services
from webapp.arena.setup import tables, waiting_room
from webapp.judgments.models import Guess, Queue
from webapp.runs.models import Checkpoint
from webapp.serving.models import Deployment, RemoteModel

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("registered")]
registered = vigil.registered
LINE = re.compile(r'<li class="table-line">.*?</li>', re.DOTALL)
MARK = re.compile(r'title="(Ann|Ben): ([a-z ]+)"')


def marks(client, address="/play/", match=None):
    """The marks of a match in a list (of the only one, however often the list shows it)."""
    lines = LINE.findall(client.get(address).content.decode())
    marks = set(MARK.findall("".join(line for line in lines if match is None or f'"/play/{match.pk}/"' in line)))
    assert len(marks) == 2
    return dict(sorted(marks))


def finish(match):
    services.submit(match_id=match.pk, seat=0, step=0, move=FORFEIT)
    match.refresh_from_db()


def guess(match, user):
    mine = match.seats.get(user=user)
    Guess.objects.create(by=mine, about=match.seats.exclude(pk=mine.pk).get(), person=True)


def test_marks_of_a_list_show_kinds_after_the_reveal(client_of, player, ben, annotator, two_people):
    Match.objects.update(visibility="public")
    host, other, stranger = client_of(player), client_of(ben), client_of(annotator)
    assert marks(host) == {"Ann": "person", "Ben": "person"}, "the host chose them"
    assert marks(other) == marks(other, "/play/matches/?of=me") == {"Ann": "taken", "Ben": "person"}
    assert marks(stranger) == marks(stranger, "/play/matches/") == {"Ann": "taken", "Ben": "taken"}
    finish(two_people)
    assert marks(other) == {"Ann": "taken", "Ben": "person"}, "he has not said what he took her for"
    assert marks(stranger) == {"Ann": "person", "Ben": "person"}
    guess(two_people, ben)
    assert marks(other) == {"Ann": "person", "Ben": "person"}


def test_a_rematch_reveals_nothing_to_its_host(client_of, player, ben, two_people):
    finish(two_people)
    guess(two_people, ben)
    client_of(ben).post(f"/play/{two_people.pk}/again/")
    match = Match.objects.get(swapped_from=two_people)
    assert match.host == ben
    assert marks(client_of(ben), match=match) == {"Ann": "person", "Ben": "taken"}


def test_a_rematch_is_asked_for_after_the_rating(client_of, player, ben, two_people):
    """It would begin at once with a bot and wait for a person, and the old game could be rated knowingly."""
    finish(two_people)
    page = client_of(ben).get(f"/play/{two_people.pk}/result/").content.decode()
    assert 'disabled aria-describedby="again-later"' in page
    answer = client_of(ben).post(f"/play/{two_people.pk}/again/", follow=True)
    assert "rate this game first" in answer.content.decode()
    assert not Match.objects.filter(swapped_from=two_people).exists()


def test_a_rematch_is_hidden_until_the_earlier_game_is_rated(client_of, player, ben, two_people):
    Match.objects.update(visibility="public")
    finish(two_people)
    guess(two_people, player)
    match = tables.again(match=two_people, host=player)
    client, old = client_of(ben), f"/play/{two_people.pk}/result/"

    def reached():
        pages = ("/", "/play/", "/play/matches/?of=me", "/play/matches/", old)
        reachable = [page for page in pages if f"/play/{match.pk}/" in client.get(page).content.decode()]
        reachable += [
            page for page in ("", "consent/", "result/") if client.get(f"/play/{match.pk}/{page}").status_code != 404
        ]
        listed = [line["id"] for line in Caller(ben).get("matches").json()["items"]]
        return reachable + [f"api {pk}" for pk in listed if pk == match.pk]

    assert reached() == []
    assert consumers.viewer_for(ben, match.pk) is None, "nor over a socket"
    guess(two_people, ben)
    assert reached() == ["/", "/play/", "/play/matches/?of=me", old, "", "consent/", "result/", f"api {match.pk}"]
    assert consumers.viewer_for(ben, match.pk) == 0
    assert f"/play/{match.pk}/" in client_of(player).get(old).content.decode()


def seen_of(client_of, host, user, place):
    """What a player sees of a running match whose other seat is taken by `place`: lobby, page, API."""
    match = tables.create(host=host, start=tables.Start(negotiation()), places=[tables.Place(user=user), place])
    for seat in match.seats.filter(kind="person"):
        waiting_room.answer_consent(match=match, user=seat.user, agreed=True)
    match.refresh_from_db()
    assert match.state == Match.State.RUNNING
    state = client_state.read(match, 0, user)
    (line,) = LINE.findall(client_of(user).get("/play/").content.decode())
    api = Caller(user).get(f"matches/{match.pk}").json()
    assert state.deadline is not None
    shown = str((line, fragments.contents(state), {**api, "deadline": None}))
    masked = rf"/play/{match.pk}/|data-draft=\"{match.pk}-|'id': {match.pk},"
    clock = r'<time.*?</time>|data-until="\d+"|datetime="[^"]+"|\d\d:\d\d:\d\d|title="[^"]+ UTC"'
    match.delete()
    return re.sub(f"{masked}|{clock}", "", shown)


def test_a_player_sees_the_same_of_a_person_and_of_a_scripted_player(client_of, player, ben, researcher):
    person = seen_of(client_of, researcher, player, tables.Place(user=ben))
    assert person == seen_of(client_of, researcher, player, tables.Place(scripted="scripted"))
    assert "Ben: taken" in person


def test_only_the_host_sees_who_still_reads(player, ben, two_people):
    Match.objects.update(state="open")
    two_people.seats.update(consent=None)
    match = Match.objects.get()
    revealed, blind = (fragments.contents(client_state.read(match, *who))["seats"] for who in ((0, player), (1, ben)))
    assert "ben, reading" in revealed
    assert re.findall(r'<span class="quiet">(.*?)</span>', blind) == ["", "you"]


@pytest.mark.parametrize("shows_hidden", [False, True])
def test_an_annotator_judges_before_the_reveal(client_of, player, ben, annotator, researcher, two_people, shows_hidden):
    """A match that they have yet to judge blind is closed to them though it is public: its replay has roles, private
    information and the ending. Where the queue shows these, its players alone are hidden.
    """
    finish(two_people)
    Match.objects.update(visibility="public")
    client, caller = client_of(annotator), Caller(annotator)
    result, replay = f"/play/{two_people.pk}/result/", f"/play/{two_people.pk}/replay/?viewer={ALL}"
    table = f'href="/play/{two_people.pk}/'

    def is_closed():
        answers = [client.get(result), client.get(replay), caller.get(f"matches/{two_people.pk}")]
        listed = [table in client.get("/play/").content.decode(), bool(caller.get("matches").json()["items"])]
        assert len({answer.status_code == 404 for answer in answers} | {not shown for shown in listed}) == 1
        return answers[0].status_code == 404

    def shown_page():
        page = client.get(result).content.decode()
        kinds = [seat["kind"] for seat in caller.get(f"matches/{two_people.pk}").json()["seats"]]
        assert ("> pia<" in page or " pia</p>" in page) == (kinds == ["person", "person"])
        assert bool(client.get(replay).context["behind"]) == (kinds == ["person", "person"])
        assert (marks(client) == {"Ann": "person", "Ben": "person"}) == (kinds == ["person", "person"])
        return kinds[0] is not None

    assert shown_page(), "nothing is assigned yet"
    queue = people_queue(researcher, two_people, [annotator])
    Queue.objects.update(shows_hidden=shows_hidden)
    values = {label_type.name: 6 for label_type in CONDUCT.labels}
    for target in queue.targets.order_by("position"):
        assert is_closed() != shows_hidden
        assert not shows_hidden or not shown_page()
        annotate(target=target, by=annotator, values=values)
    assert not is_closed()
    assert shown_page()
    assert "once you have judged it" not in client.get(result).content.decode()


def test_a_player_who_rated_keeps_the_reveal_when_the_game_is_to_be_judged(
    client_of, player, ben, researcher, two_people
):
    finish(two_people)
    two_people.seats.filter(user=ben).update(user=researcher)
    result = f"/play/{two_people.pk}/result/"
    people_queue(researcher, two_people, [researcher])
    assert not access.players_revealed(two_people, researcher)
    assert "once you have rated the game" in client_of(researcher).get(result).content.decode()
    guess(two_people, researcher)
    assert access.players_revealed(two_people, researcher), "though they have not judged it"
    page = client_of(researcher).get(result).content.decode()
    assert "Who sat at the table" in page
    assert "once you have" not in page


@pytest.fixture
def model(admin):
    remote = RemoteModel.objects.create(name="far", address="http://far.example/", model="far-1", added_by=admin)
    return Deployment.objects.create(remote=remote, state=Deployment.State.READY)


def replaced(host, place, ben):
    """What a host who did not choose the seats reads after letting a bot move for the one taken by `place`."""
    match = tables.create(
        host=host, start=tables.Start(negotiation()), places=[tables.Place(user=host), place], consent=True
    )
    if place.user == ben:
        waiting_room.answer_consent(match=match, user=ben, agreed=True)
    Match.objects.filter(pk=match.pk).update(shuffled=True)
    match.refresh_from_db()
    assert match.state == Match.State.RUNNING
    client = Client()
    client.force_login(host)
    answer = client.post(f"/play/{match.pk}/replace/1/", follow=True)
    match.refresh_from_db()
    responses = (
        [str(message) for message in answer.context["messages"]],
        fragments.contents(client_state.read(match, 0, host)),
    )
    match.delete()
    return re.sub(
        r'data-(?:draft|deadline|until)="[^"]*"|datetime="[^"]*"|\d\d:\d\d:\d\d|/play/\d+/', "", str(responses)
    )


def test_letting_a_bot_move_does_not_reveal_to_the_host_who_sat_there(player, ben, model):
    places = [tables.Place(user=ben), tables.Place(scripted="scripted"), tables.Place(deployment=model)]
    assert len({replaced(player, place, ben) for place in places}) == 1


@pytest.mark.parametrize("shuffled", [False, True])
def test_a_host_who_had_the_seats_drawn_does_not_know_the_players(client_of, player, ben, shuffled):
    places = [tables.Place(user=player), tables.Place(user=ben), tables.Place(scripted="scripted")]
    match = tables.create(
        host=player, start=tables.Start(vigil.vigil(3)), places=places, consent=True, shuffled=shuffled
    )
    for begun in (False, True):
        (line,) = LINE.findall(client_of(player).get("/play/").content.decode())
        kinds = re.findall(r'title="\w+: ([a-z ]+)"', line)
        assert sorted(kinds) == (["person", "taken", "taken"] if shuffled else ["person", "person", "scripted player"])
        assert ("reading" in fragments.contents(client_state.read(match, 0, player))["seats"]) == (
            not shuffled and not begun
        )
        if not begun:
            waiting_room.answer_consent(match=match, user=ben, agreed=True)
            waiting_room.fill(match=match)
            match.refresh_from_db()
    services.abort(match_id=match.pk, why="enough")
    assert "taken" not in LINE.findall(client_of(player).get("/play/").content.decode())[0]


def test_being_ready_reveals_nothing_to_the_others(player, ben, annotator):
    """Only people press Ready, so a seat that shows it would be recognised as a person."""
    places = [*(tables.Place(user=user) for user in (player, ben, annotator)), tables.Place(scripted="scripted")]
    match = tables.create(host=player, start=tables.Start(vigil.vigil(4)), places=places, consent=True)
    for user in (ben, annotator):
        waiting_room.answer_consent(match=match, user=user, agreed=True)

    def seen(viewer, user):
        match.refresh_from_db()
        return fragments.contents(client_state.read(match, viewer, user))

    before = seen(2, annotator)
    waiting_room.say_ready(match=match, user=ben)
    assert seen(2, annotator) == before
    assert "ben, ready<" in seen(0, player)["seats"], "the host, who chose them, waits for somebody to press"
    assert "you, ready" in seen(1, ben)["seats"]


def test_a_game_does_not_begin_because_the_others_are_no_people(player, ben):
    """Who is asked for Ready only where others are people, too, would learn from it that they are not."""
    for place in (tables.Place(user=player), tables.Place(scripted="scripted")):
        places = [place, tables.Place(user=ben), tables.Place(scripted="scripted")]
        match = tables.create(host=player, start=tables.Start(vigil.vigil(3)), places=places, consent=True)
        waiting_room.answer_consent(match=match, user=ben, agreed=True)
        match.refresh_from_db()
        assert match.state == Match.State.OPEN
        assert "Ready</button>" in fragments.contents(client_state.read(match, 1, ben))["waiting"]


def test_how_long_a_script_thinks_cannot_be_computed(player):
    """Whoever can, from what the page tells (the table's number, steps and seats), knows scripts by their pace."""
    places = [tables.Place(user=player), *[tables.Place(scripted="scripted")] * 2]
    match = tables.create(host=player, start=tables.Start(vigil.vigil(3, seed=1)), places=places, consent=True)
    due = match.due.get(seat=1)
    thinks = (due.hint_at - services.HINT_EVERY - due.deadline).total_seconds() + match.deadline_s
    guessed = rng(match.pk, "pace", 0, 1).uniform(*pace.READING_S)
    assert thinks <= pace.READING_S[1]
    assert abs(thinks - guessed) > 1e-4


def test_a_model_that_sleeps_keeps_a_blind_table_waiting_like_a_person(player, ben, model):
    Deployment.objects.update(state=Deployment.State.COLD)
    local = Deployment.objects.create(checkpoint=Checkpoint.objects.create(kind="full", base="tiny", name="small"))
    places = [tables.Place(user=ben), tables.Place(deployment=local)]
    match = tables.create(host=player, start=tables.Start(negotiation()), places=places)
    waiting_room.answer_consent(match=match, user=ben, agreed=True)
    assert clock.begin_with_models() == 0
    assert Match.objects.get(pk=match.pk).state == Match.State.OPEN
    Deployment.objects.filter(pk=local.pk).update(state=Deployment.State.READY)
    assert clock.begin_with_models() == 1
    assert Match.objects.get(pk=match.pk).state == Match.State.RUNNING
    assert match.due.get().deadline is not None


def test_tables_that_wait_for_people_do_not_hold_up_one_that_waits_for_its_model(player, ben):
    """The clock looks at a bounded number of tables at each tick, the oldest first."""
    local = Deployment.objects.create(checkpoint=Checkpoint.objects.create(kind="full", base="tiny", name="small"))
    model = tables.Place(deployment=local)
    for place in (tables.Place(), tables.Place(user=ben)):  # an empty seat; a person who has not answered
        tables.create(host=player, start=tables.Start(negotiation()), places=[place, model])
    complete = tables.create(host=player, start=tables.Start(negotiation()), places=[tables.Place(user=ben), model])
    waiting_room.answer_consent(match=complete, user=ben, agreed=True)
    assert waiting_room.waiting_for_models(limit=1) == [complete.pk]


def test_tables_that_wait_for_ready_or_for_a_slot_do_not_hold_up_one_that_can_begin(player, ben):
    names = ("slow", "small")
    slow, small = (Checkpoint.objects.create(kind="full", base="tiny", name=name) for name in names)
    model, other = (tables.Place(deployment=Deployment.objects.create(checkpoint=row)) for row in (slow, small))
    places = [tables.Place(user=ben), model, tables.Place(scripted="scripted")]
    unready = tables.create(host=player, start=tables.Start(vigil.vigil(3)), places=places)
    waiting, able = (
        tables.create(host=player, start=tables.Start(negotiation()), places=[tables.Place(user=ben), place])
        for place in (model, other)
    )
    for match in (unready, waiting, able):
        waiting_room.answer_consent(match=match, user=ben, agreed=True)
    Deployment.objects.filter(checkpoint=small).update(state=Deployment.State.READY)
    assert waiting_room.waiting_for_models(limit=9) == [able.pk, waiting.pk]
    Match.objects.filter(pk=unready.pk).update(host=ben)  # who is alone with models need not press it
    assert waiting_room.waiting_for_models(limit=9) == [able.pk, unready.pk, waiting.pk]
    Match.objects.filter(pk=unready.pk).update(host=player)
    unready.seats.filter(user=ben).update(ready=True)
    assert waiting_room.waiting_for_models(limit=9) == [able.pk, unready.pk, waiting.pk]
