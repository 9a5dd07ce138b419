"""The table's socket: what a tab shows is what the database holds, whatever gets lost on the way."""

import asyncio
import contextlib
import json
import random
from datetime import timedelta

import pytest
from channels.db import database_sync_to_async

from tests.games.worlds import CASES
from tests.trust.seated import moves_by_chance, play_on, seated, viewer_named
from tests.webapp.arena.browser import Page, Tab
from tests.webapp.arena.conftest import dialogue, negotiation
from tests.webapp.arena.telling import WITHIN, telling
from training.records import SPECTATOR, Move
from webapp.arena import clock, hints
from webapp.arena.live import consumers, fragments
from webapp.arena.models import DueSeat, Match, ViewerRow
from webapp.arena.play import hosting, model_seats, services
from webapp.arena.setup import countdowns, links, tables, waiting_room
from webapp.runs.models import Checkpoint
from webapp.serving.models import Deployment

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def application(monkeypatch):
    from webapp.asgi import application

    monkeypatch.setattr(consumers.TableConsumer, "REFRESH_EVERY", 0.3)
    return application


def sync(function, *args, **kwargs):
    return database_sync_to_async(function)(*args, **kwargs)


async def at(application, client_of, user, match):
    client = await sync(client_of, user)
    return await (await Tab(application, client, match.pk).load()).open()


def talk(turn, text):
    return {"turn": str(turn), "action": "talk", "text": text}


async def test_what_one_says_the_other_reads(application, client_of, player, ben, two_people):
    ann = await at(application, client_of, player, two_people)
    other = await at(application, client_of, ben, two_people)
    await ann.play(**talk(0, "good morning"))
    await other.until(lambda: "good morning" in "".join(other.page.rows))
    await ann.until(lambda: "good morning" in "".join(ann.page.rows))
    assert other.page.numbers == ann.page.numbers == [1, 2, 3]
    assert "Your turn" in other.page.parts["status"]
    assert "say-button" not in ann.page.parts["act"]
    await ann.leave()
    await other.leave()


async def test_a_refused_move_is_explained_to_its_sender_only(application, client_of, player, ben, two_people):
    ann = await at(application, client_of, player, two_people)
    other = await at(application, client_of, ben, two_people)
    await ann.hear()
    await other.hear()
    before, heard = ann.page.state(), len(other.frames)
    await ann.play(**talk(0, ""))
    await ann.hear()
    await other.hear()
    assert "write something first" in ann.page.refusal.lower()
    assert ann.page.state() == before
    assert len(other.frames) == heard
    await ann.leave()
    await other.leave()


async def test_a_lost_connection_and_a_second_tab_lose_nothing(application, client_of, player, ben, two_people):
    ann = await at(application, client_of, player, two_people)
    other = await at(application, client_of, ben, two_people)
    await ann.play(**talk(0, "one"))
    await other.until(lambda: other.page.last == 3)
    await other.leave()
    await sync(say, two_people, 1, "two")
    await sync(say, two_people, 0, "three")
    second = await at(application, client_of, ben, two_people)
    await other.open()
    await other.until(lambda: other.page.last == 5)
    await second.hear()
    assert other.page.state() == second.page.state()
    for tab in (ann, other, second):
        await tab.leave()


def say(match, seat, text):
    step = Match.objects.get(pk=match.pk).step
    return services.submit(match_id=match.pk, seat=seat, step=step, move=Move(action="talk", text=text))


# --- old state + events = fresh state ---


def propose(match):
    step = Match.objects.get(pk=match.pk).step
    args = {"food": 1, "water": 1, "firewood": 1}
    move = Move(action="propose", args=args, text="<propose>food 1, water 1, firewood 1</propose>")
    services.submit(match_id=match.pk, seat=match.due.get().seat, step=step, move=move)


def answer(match, action):
    step = Match.objects.get(pk=match.pk).step
    services.submit(
        match_id=match.pk, seat=match.due.get().seat, step=step, move=Move(action=action, text=f"<{action}/>")
    )


def pass_deadline(match):
    DueSeat.objects.filter(match=match).update(deadline=services.database_now() - timedelta(seconds=1))


def pause_ends(match):
    Match.objects.filter(pk=match.pk).update(paused_at=services.database_now() - timedelta(hours=1))
    assert clock.go_on() == 1


def late(match):
    pass_deadline(match)
    services.time_out(due_id=match.due.first().pk)


def away(match):
    match.seats.filter(seat=1).update(seen_at=services.database_now() - timedelta(hours=1))
    assert clock.stand_in() == 1


def events(ben):
    """Every way in which people change a match, as (service, call), in a playable order."""
    return [
        ("links.invite", lambda match: links.invite(match=match, number=1)),
        ("unclaimed", lambda match: match.seats.get(seat=1).guest_link.delete()),
        ("waiting_room.take_seat", lambda match: waiting_room.take_seat(match=match, user=ben)),
        ("waiting_room.leave", lambda match: waiting_room.leave(match=match, user=ben)),
        (
            "links.claim",
            lambda match: links.claim(token=links.invite(match=match, number=1), user=ben, shown_name=""),
        ),
        ("hosting.kick", lambda match: hosting.kick(match=match, number=1)),
        ("links.join", lambda match: links.join(token=links.open_link(match=match), user=ben, shown_name="")),
        ("waiting_room.say_ready", lambda match: waiting_room.say_ready(match=match, user=match.host)),
        ("waiting_room.answer_consent", lambda match: waiting_room.answer_consent(match=match, user=ben, agreed=True)),
        ("services.submit", lambda match: say(match, 0, "hello")),
        ("hosting.pause", lambda match: hosting.pause(match=match)),
        ("hosting.resume", lambda match: hosting.resume(match=match)),
        ("hosting.pause", lambda match: hosting.pause(match=match)),
        ("hosting.end_pause", pause_ends),
        ("hosting.replace", lambda match: hosting.replace(match=match, number=1)),
        ("hosting.take_back", lambda match: hosting.take_back(match=match, user=ben)),
        ("hosting.stand_in", away),
        ("hosting.take_back", lambda match: hosting.take_back(match=match, user=ben)),
        ("services.submit", propose),
        ("services.submit", lambda match: answer(match, "reject")),
        ("services.time_out", late),
        ("services.submit", propose),
        ("services.submit", lambda match: answer(match, "accept")),
    ]


def model_is(state):
    Deployment.objects.update(state=state, address="http://127.0.0.1:9/v1")


def model_wakes(match):
    model_is("ready")
    assert clock.start_clocks() == 1
    assert match.due.get().deadline is not None


def model_answers(match):
    claim = model_seats.claim(due_id=match.due.get().pk)
    model_seats.answer(answering=model_seats.Answering(claim).answered("hello yourself"))


def clock_strikes(match):
    pass_deadline(match)
    assert clock.time_out() == 1


def model_is_lost(match):
    model_is("failed")
    assert clock.start_clocks() == 1


def model_begins(match):
    model_is("ready")
    assert clock.begin_with_models() == 1


WAITING = "The model at Ben's seat is starting; the clock starts when it is ready"
MODEL_EVENTS = [
    ("services.submit", lambda match: say(match, 0, "hello"), WAITING),
    ("clock.start_clocks", model_wakes, 'id="deadline"'),
    ("model_seats.answer", model_answers, "Ann is to move"),
    ("clock.time_out", clock_strikes, "Ben is to move"),
    ("model_seats.answer", model_answers, "Ann is to move"),
    ("services.submit", lambda match: [model_is("cold"), say(match, 0, "still there?")], WAITING),
    ("clock.start_clocks", model_is_lost, "a model could not be started"),
]
"""What models, workers and the clock do, in a playable order: service, call, text that people read."""
WATCHED_EVENTS = [
    ("waiting_room.begin_with_models", model_begins, "Ann is to move"),
    ("services.submit", lambda match: say(match, 0, "hello"), "Ben is to move"),
    *MODEL_EVENTS[2:5],
]
"""The same at a table that others may watch, which waits for its models before the game."""


def countdown_ends(match):
    Match.objects.filter(pk=match.pk).update(countdown_ends_at=services.database_now())
    assert clock.finish_countdowns() == 1


COUNTDOWN_EVENTS = [
    ("countdowns.finish", countdown_ends),
    ("countdowns.end_early", lambda match: countdowns.end_early(match=match)),
    ("countdowns.stop", lambda match: countdowns.stop(match=match)),
]
"""What ends a countdown, each at a table of its own."""

ENDINGS = [
    ("services.abort", lambda match: services.abort(match_id=match.pk, why="closed by the host")),
    ("waiting_room.close", lambda match: waiting_room.close(match=match)),
]


def test_every_service_that_notifies_viewers_has_a_case(ben):
    """`waiting_room.fill` has its case where every game is played: `tests.trust.test_tabs_of_every_game`; a table that
    waits for its models begins in `test_blinding`.
    """
    covered = {name for name, *_ in (*events(ben), *MODEL_EVENTS, *ENDINGS, *COUNTDOWN_EVENTS)}
    assert {"clock.start_clocks", *WITHIN} <= telling()
    assert telling() - WITHIN - covered == {"waiting_room.fill", "waiting_room.begin_with_models"}


@pytest.mark.parametrize("place", ["seat", "watcher"])
async def test_only_hints_bring_what_a_model_and_the_clock_do(application, client_of, player, monkeypatch, place):
    """The sockets do not poll here: every change is announced to them."""
    monkeypatch.setattr(consumers.TableConsumer, "REFRESH_EVERY", 60)
    checkpoint = await sync(Checkpoint.objects.create, name="x", kind="base", base="x", path="/nowhere")
    sleeping = await sync(Deployment.objects.create, checkpoint=checkpoint)
    places = [tables.Place(user=player), tables.Place(deployment=sleeping)]
    options = {"consent": True, "visibility": "private" if place == "seat" else "open"}
    match = await sync(tables.create, host=player, start=tables.Start(negotiation()), places=places, **options)
    tab = await at(application, client_of, player if place == "seat" else await sync(make_person, "watcher"), match)
    for _, happen, read in MODEL_EVENTS if place == "seat" else WATCHED_EVENTS:
        await sync(happen, match)
        fresh = Page(await tab.fetch())
        await tab.until(lambda fresh=fresh: tab.page.state() == fresh.state(), wait=5)
        assert read.replace("Ann is", "Your turn" if place == "seat" else "Ann is").partition(" to move")[0] in (
            tab.page.parts["status"] + tab.page.parts["ending"]
        )
    await tab.leave()


@pytest.mark.parametrize("happen", [happen for _, happen in COUNTDOWN_EVENTS])
async def test_the_end_of_a_countdown_reaches_every_tab(application, client_of, player, monkeypatch, happen):
    monkeypatch.setattr(consumers.TableConsumer, "REFRESH_EVERY", 60)
    start = tables.Start(negotiation(), countdown=tables.Countdown(60))
    places = [tables.Place(user=player), tables.Place()]
    match = await sync(tables.create, host=player, start=start, places=places, consent=True, visibility="open")
    watcher = await sync(make_person, "watcher")
    tabs = [await at(application, client_of, user, match) for user in (player, watcher)]
    for tab in tabs:
        assert 'data-of="60"' in tab.page.parts["waiting"]
    await sync(happen, match)
    for tab in tabs:
        fresh = Page(await tab.fetch())
        await tab.until(lambda tab=tab, fresh=fresh: tab.page.state() == fresh.state(), wait=5)
        assert 'data-of="60"' not in tab.page.parts["waiting"]
        await tab.leave()


async def test_a_tab_that_received_every_frame_shows_what_a_fresh_page_shows(application, client_of, player, ben):
    places = [tables.Place(user=player), tables.Place()]
    match = await sync(
        tables.create, host=player, start=tables.Start(negotiation()), places=places, consent=True, visibility="open"
    )
    watcher = await sync(make_person, "watcher")
    tabs = [await at(application, client_of, user, match) for user in (player, watcher)]
    for name, happen in events(ben):
        await sync(happen, match)
        if name == "waiting_room.answer_consent":
            tabs.append(await at(application, client_of, ben, match))
        for tab in tabs:
            fresh = Page(await tab.fetch())
            await tab.until(lambda tab=tab, fresh=fresh: tab.page.state() == fresh.state(), wait=5)
    assert all("The game is over" in tab.page.parts["status"] for tab in tabs)
    for tab in tabs:
        await tab.leave()


@pytest.mark.parametrize("end", [end for _, end in ENDINGS], ids=[name for name, _ in ENDINGS])
async def test_a_match_that_was_ended_says_so(application, client_of, player, two_people, end):
    tab = await at(application, client_of, player, two_people)
    await sync(end, two_people)
    await tab.until(lambda: "closed by the host" in tab.page.parts["ending"])
    assert tab.page.state() == Page(await tab.fetch()).state()
    await tab.leave()


def make_person(name):
    from webapp.accounts.models import User

    return User.objects.create(username=name, role="player")


# --- nothing is lost ---


def server_log(match_id, viewer):
    return list(
        ViewerRow.objects.filter(match_id=match_id, viewer=viewer).order_by("number").values_list("number", flat=True)
    )


async def flush_redis():
    import redis.asyncio
    from django.conf import settings

    async with redis.asyncio.Redis.from_url(settings.REDIS_URL) as client:
        await client.flushall()


@pytest.fixture
def chance(monkeypatch):
    """What drops 30 % of all hints, and says whose connection breaks."""
    drawn = random.Random(7)
    sent = hints._send_now

    def lossy(group_name, viewers):
        sent(group_name, tuple(viewer for viewer in viewers if drawn.random() > 0.3))

    monkeypatch.setattr(hints, "_send_now", lossy)
    return drawn


async def break_some(tabs, chance, count):
    for _ in range(count):
        tab = chance.choice(tabs)
        await tab.hear(0.0)
        await tab.leave()
        await tab.open()


async def hold_their_logs(match, tabs, viewers):
    for tab, viewer in zip(tabs, viewers, strict=True):
        expected = await sync(server_log, match.pk, viewer)
        await tab.until(lambda tab=tab, expected=expected: tab.page.last == expected[-1], wait=20)
        assert tab.page.numbers == expected
        await tab.leave()


@pytest.mark.parametrize(
    "watchers, drops", [(8, 40), pytest.param(50, 500, marks=[pytest.mark.slow, pytest.mark.process])]
)
async def test_nothing_is_lost_at_the_table(application, client_of, player, ben, monkeypatch, chance, watchers, drops):
    monkeypatch.setattr(consumers.TableConsumer, "REFRESH_EVERY", watchers / 20)
    places = [tables.Place(user=player), tables.Place(user=ben)]
    match = await sync(
        tables.create,
        host=player,
        start=tables.Start(negotiation(turn_limit=24)),
        places=places,
        consent=True,
        visibility="open",
    )
    await sync(waiting_room.answer_consent, match=match, user=ben, agreed=True)
    people = [player, ben, *[await sync(make_person, f"w{n}") for n in range(watchers - 2)]]
    tabs = [await at(application, client_of, user, match) for user in people]
    for turn in range(24):
        await sync(say, match, turn % 2, f"line {turn}")
        if turn == 12:
            await flush_redis()
        await break_some(tabs, chance, drops // 24 + 1)
    await hold_their_logs(match, tabs, [0, 1, *[-1] * (watchers - 2)])


async def test_nothing_is_lost_where_some_talk_in_private_and_all_move_at_once(application, client_of, db, chance):
    """A village of six, through its first night into its day, and one who watches."""
    match, people = await sync(seated, CASES["werewolf"][2].with_seed(1))
    users = [await sync(viewer_named, SPECTATOR, people), *people]
    tabs = [await at(application, client_of, user, match) for user in users]
    for step in range(4):
        await sync(play_on, match, await sync(moves_by_chance, match))
        if step == 2:
            await flush_redis()
        await break_some(tabs, chance, 6)
    viewers = [SPECTATOR, *range(6)]
    counts = {len(await sync(server_log, match.pk, viewer)) for viewer in viewers}
    assert len(counts) > 1, "some received more than others"
    await hold_their_logs(match, tabs, viewers)


# --- limits and revocation ---


async def test_a_message_that_is_too_large_closes_with_1009(application, client_of, player, two_people):
    tab = await at(application, client_of, player, two_people)
    await tab.play(**talk(0, "x" * 17_000))
    await tab.hear()
    assert tab.closed == 1009


async def test_a_flood_closes_with_1008(application, client_of, player, two_people):
    tab = await at(application, client_of, player, two_people)
    for _ in range(40):
        await tab.play(**talk(9, "x"))
    await tab.until(lambda: False, wait=30)
    assert tab.closed == 1008


@pytest.mark.parametrize(
    "text", ["{", "[]", "7", '{"last": -1}', '{"last": true}', '{"last": 1, "parts": []}', "[" * 9000]
)
async def test_a_malformed_message_is_explained(application, client_of, player, two_people, text):
    tab = await at(application, client_of, player, two_people)
    await tab.socket.say(text)
    await tab.until(lambda: tab.page.refusal)
    assert tab.closed is None
    await tab.leave()


async def test_a_client_that_does_not_read_is_dropped(monkeypatch):
    class Stuck(consumers.TableConsumer):
        SEND_WITHIN = 0.05
        closed_with = None

        async def send(self, text_data=None, bytes_data=None, close=False):
            await asyncio.sleep(60)

        async def close(self, code=None, reason=None):
            self.closed_with = code

    consumer = Stuck()
    await consumer.send_frame("frame")
    assert consumer.closed_with == 1008


async def test_strangers_do_not_get_in(application, client_of, annotator, two_people):
    from tests.websocket import Socket, browser_headers

    session = (await sync(client_of, annotator)).cookies["session"].value
    for match_id in (two_people.pk, 99999):
        socket = Socket(application, f"/ws/play/{match_id}/", browser_headers(session))
        assert not await socket.connect()


async def test_a_player_who_leaves_loses_the_socket(application, client_of, player, ben):
    """Else the old tab would show what the seat's next holder may see."""
    places = [tables.Place(user=player), tables.Place(user=ben)]
    match = await sync(tables.create, host=player, start=tables.Start(negotiation()), places=places, consent=True)
    await sync(match.seats.filter(seat=1).update, consent=None)
    ann = await at(application, client_of, player, match)
    await sync(waiting_room.leave, match=match, user=player)
    await ann.until(lambda: False)
    assert ann.closed == 1008


@pytest.mark.parametrize("how", ["logout", "password", "inactive"])
async def test_a_revoked_session_closes_the_socket(application, client_of, player, two_people, how):
    tab = await at(application, client_of, player, two_people)

    def revoke():
        if how == "logout":
            tab.client.logout()
        elif how == "password":
            player.set_password("another one 8")
            player.save()
        else:
            type(player).objects.filter(pk=player.pk).update(is_active=False)

    await sync(revoke)
    await tab.until(lambda: False, wait=5)
    assert tab.closed == 1008


async def test_a_lost_role_closes_the_socket(application, client_of, admin, two_people):
    tab = await at(application, client_of, admin, two_people)
    await tab.hear()
    await sync(type(admin).objects.filter(pk=admin.pk).update, role="player")
    await tab.until(lambda: False, wait=5)
    assert tab.closed == 1008


def test_versions_follow_content():
    assert fragments.version("a") == fragments.version("a") != fragments.version("b")


async def test_a_joint_step_reveals_nothing_to_the_others(application, client_of, player, ben):
    """Neither frames nor their number reveal whether the other seat has moved."""
    places = [tables.Place(user=player), tables.Place(user=ben)]
    match = await sync(
        tables.create, host=player, start=tables.Start(dialogue(order="simultaneous")), places=places, consent=True
    )
    await sync(waiting_room.answer_consent, match=match, user=ben, agreed=True)
    tab = await at(application, client_of, ben, match)
    await tab.hear()
    before, heard = tab.page.state(), len(tab.frames)
    await sync(services.submit, match_id=match.pk, seat=0, step=0, move=Move(action="speak", text="secretly"))
    await tab.hear(0.8)
    assert tab.page.state() == before
    assert len(tab.frames) == heard
    with contextlib.suppress(TimeoutError):
        await tab.leave()
    assert json.loads(tab.page.greeting())["last"] == before["last"]
