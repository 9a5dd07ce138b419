"""The host of a table that draws its seats and counts down learns nothing of who sits there before the game begins.

Worlds in which other people sit, read about consent, leave, press Ready or never come give the host the same bytes:
pages, answers to every button and API answers; and no frame comes for what others do.
"""

import re
from contextlib import suppress
from datetime import timedelta

import pytest
from channels.db import database_sync_to_async
from django.db import transaction

from tests.trust.test_non_interference import NOW, api_of, plain
from tests.webapp.arena import vigil
from tests.webapp.arena.browser import Tab
from training.errors import BadInput
from webapp.accounts.services import create_key
from webapp.arena import clock
from webapp.arena.models import Match
from webapp.arena.play import services
from webapp.arena.setup import tables, waiting_room

pytestmark = pytest.mark.usefixtures("registered")
registered = vigil.registered
SECRETS = re.compile(r"/play/join/[\w-]+")
"""The token of a new link to the table, which chance draws."""


class Time:
    """The database's clock, which a test moves."""

    def __init__(self):
        self.now = NOW


@pytest.fixture
def time(monkeypatch):
    time = Time()
    monkeypatch.setattr(services, "database_now", lambda: time.now)
    return time


def table(host, **options):
    match = tables.create(
        host=host,
        start=tables.Start(vigil.vigil(3), countdown=tables.Countdown(30)),
        places=[tables.Place(user=host), tables.Place(), tables.Place()],
        consent=True,
        shuffled=True,
        **options,
    )
    Match.objects.filter(pk=match.pk).update(created_at=NOW)  # the lobby says when
    return match


def sit(match, user, consent=True):
    waiting_room.take_seat(match=match, user=user, consent=consent)


def ready(match, user):
    with suppress(BadInput):  # the countdown runs
        waiting_room.say_ready(match=match, user=user)


def leave(match, user):
    waiting_room.leave(match=match, user=user)


def nobody(match, ben, eve):
    return iter(())


def reading(match, ben, eve):
    sit(match, ben, None)
    yield


def one_seated(match, ben, eve):
    sit(match, ben)
    yield


def one_comes_and_goes(match, ben, eve):
    sit(match, ben)
    yield
    leave(match, ben)
    yield


def one_is_ready(match, ben, eve):
    yield
    sit(match, ben)
    ready(match, ben)
    yield


def full(match, ben, eve):
    sit(match, ben)
    sit(match, eve)
    yield


def full_and_ready(match, ben, eve):
    sit(match, ben)
    sit(match, eve)
    yield
    ready(match, ben)
    ready(match, eve)
    yield
    leave(match, eve)
    yield


WORLDS = (reading, one_seated, one_comes_and_goes, one_is_ready, full, full_and_ready)
"""What others do before the first action of the host and after each."""
CHANGING = (reading, one_comes_and_goes, one_is_ready, full_and_ready)
"""What the host sees is compared with `nobody`; the other worlds are the beginnings of these."""
ACTIONS = (
    ("fill/", "fill/"),
    ("stop-countdown/", "fill/", "stop-countdown/", "stop-countdown/"),
    ("ready/", "stop-countdown/", "leave/", "ready/"),
    ("link/", "stop-countdown/", "link/"),
    ("invite/1/", "invite/2/", "stop-countdown/", "invite/1/", "invite/2/"),
    ("kick/1/", "kick/2/", "stop-countdown/", "kick/1/", "kick/2/"),
    ("replace/1/", "pause/", "leave/", "sit/", "consent/"),
)
"""What the host does, one after the other."""


def seen(world, actions, people, client_of):
    """The table, and everything that its host gets in a world."""
    host, ben, eve = people
    match, client, key = table(host), client_of(host), create_key(user=host, name="k")[1]
    others, seen = world(match, ben, eve), []
    for action in (*actions, None):
        next(others, None)
        pages = [client.get(f"/play/{match.pk}/")]
        if action is None:
            pages += [client.get(f"/play/{match.pk}/consent/"), client.get("/play/")]
        else:
            pages.append(client.post(f"/play/{match.pk}/{action}", {"consent": "yes"}, follow=True))
        for page in pages:
            seen += [action, page.status_code, *SECRETS.sub("", plain(page.content.decode())).splitlines()]
    return match, [*seen, api_of(client, match, key)]


@pytest.mark.django_db
@pytest.mark.parametrize("actions", ACTIONS, ids=lambda actions: actions[0].strip("/"))
def test_a_host_gets_the_same_whoever_sits_there(actions, player, ben, annotator, client_of, time):
    worlds = []
    for world in (nobody, *CHANGING):
        with transaction.atomic():
            worlds.append(seen(world, actions, (player, ben, annotator), client_of)[1])
            assert Match.objects.get().state == Match.State.OPEN
            transaction.set_rollback(True)
    assert "<h2>Before the game</h2>" in worlds[0]
    for world, answers in zip(CHANGING, worlds[1:], strict=True):
        assert answers == worlds[0], world.__name__


@pytest.mark.django_db
@pytest.mark.parametrize(
    "world, stopped",
    [*((world, False) for world in (nobody, *WORLDS)), (nobody, True), (full_and_ready, True)],
    ids=lambda value: getattr(value, "__name__", "stopped" if value else ""),
)
def test_started_by_the_host_it_begins_ten_seconds_later(world, stopped, player, ben, annotator, client_of, time):
    actions = ("stop-countdown/", "fill/") if stopped else ("fill/",)
    match, _ = seen(world, actions, (player, ben, annotator), client_of)
    time.now += timedelta(seconds=9.9)
    assert (clock.finish_countdowns(), Match.objects.get().state) == (0, Match.State.OPEN)
    time.now += timedelta(seconds=0.2)
    assert (clock.finish_countdowns(), Match.objects.get().state) == (1, Match.State.RUNNING)
    assert match.seats.filter(user=player).exists()
    assert not match.seats.filter(kind="person", consent=None).exists(), "who has not answered does not play"


@pytest.mark.django_db
def test_the_button_says_when_it_begins(player, client_of, time):
    match = table(player)
    page = client_of(player).get(f"/play/{match.pk}/").content.decode()
    assert f"Start in {waiting_room.LAST_SEATS.seconds} seconds" in page
    assert "Fill with bots and start" not in page
    assert "Link to the table" in page


@pytest.mark.django_db
def test_a_person_who_looks_before_they_sit_down_sees_no_more(player, ben, annotator, client_of, time):
    """Else they would know how many seats are a bot's: a spectator sees which seats of other tables are free."""
    pages = []
    for arrives in (False, True):
        with transaction.atomic():
            match = table(player, visibility="public")
            if arrives:
                sit(match, annotator)
            client = client_of(ben)
            pages.append([plain(client.get(each).content.decode()) for each in ("/play/", f"/play/{match.pk}/")])
            transaction.set_rollback(True)
    assert pages[0] == pages[1]
    assert "Sit down" in pages[0][1]


@pytest.mark.django_db(transaction=True)
async def test_nobody_elses_coming_or_going_sends_the_host_a_frame(player, ben, annotator, client_of, application):
    def sync(function, *args, **options):
        return database_sync_to_async(function)(*args, **options)

    match = await sync(table, player)
    tab = await (await Tab(application, await sync(client_of, player), match.pk).load()).open()
    await tab.hear()
    tab.frames.clear()
    for does in (
        lambda: sit(match, ben, None),
        lambda: waiting_room.answer_consent(match=match, user=ben, agreed=True),
        lambda: sit(match, annotator),
        lambda: leave(match, ben),
    ):
        await sync(does)
        await tab.hear(0.4)
    assert tab.frames == []
    await tab.leave()


@pytest.fixture
def application():
    from webapp.asgi import application

    return application
