"""What watchers write beside a game: who reads it, and that no player of the game ever does; limits, moderation."""

import json
import re
import threading
from datetime import timedelta

import pytest
from channels.db import database_sync_to_async
from channels_redis.pubsub import RedisPubSubLoopLayer
from django.db import connection, transaction

from tests.webapp.arena.browser import Tab
from tests.webapp.arena.conftest import negotiation
from tests.webapp.arena.test_sockets import make_person
from tests.websocket import Socket, browser_headers
from training.errors import BadInput
from training.games.base import FORFEIT
from webapp.accounts.models import User
from webapp.arena import access, hints
from webapp.arena.models import Match
from webapp.arena.play import hosting, services
from webapp.arena.setup import links, tables
from webapp.arena.watching import consumers
from webapp.arena.watching import services as watching
from webapp.arena.watching.models import LONGEST, ChatMessage

pytestmark = pytest.mark.django_db
CANARY = "canary-of-the-watchers"


@pytest.fixture
def public(two_people):
    """A running game of `player`, who hosts it, and `ben`, that everybody may watch."""
    Match.objects.filter(pk=two_people.pk).update(visibility="public")
    two_people.refresh_from_db()
    return two_people


@pytest.fixture
def hosted(person, player, ben):
    """The same, hosted by somebody who does not play."""
    places = [tables.Place(user=player, consent=True), tables.Place(user=ben, consent=True)]
    host = person("player", "hanna")
    return tables.create(host=host, start=tables.Start(negotiation()), places=places, visibility="public")


def write(match, user, text=CANARY):
    return watching.write(match=match, user=user, text=text)


def finish(match):
    services.submit(match_id=match.pk, seat=0, step=0, move=FORFEIT)
    match.refresh_from_db()


def page(client, match, place=""):
    answer = client.get(f"/play/{match.pk}/{place}", follow=True)
    assert answer.status_code == 200
    return answer.content.decode()


# --- who reads it ---


def test_watchers_read_each_other(public, annotator, researcher, client_of):
    client_of(annotator).post(f"/play/{public.pk}/watchers/write/", {"text": f" <b>{CANARY}</b>\n "})
    shown = page(client_of(researcher), public)
    assert f"&lt;b&gt;{CANARY}&lt;/b&gt;" in shown
    assert annotator.username in shown
    assert "/js/watchers" in shown


def test_no_player_reads_it_anywhere_while_the_game_goes_on(public, player, ben, annotator, client_of):
    before = [re.sub(r'data-now="[^"]*"|value="\w{64}"|"X-CSRFToken": "\w+"', "", page(client_of(user), public))
              for user in (player, ben)]  # fmt: skip
    message = write(public, annotator)
    for user, earlier in zip((player, ben), before, strict=True):
        client = client_of(user)
        now = re.sub(r'data-now="[^"]*"|value="\w{64}"|"X-CSRFToken": "\w+"', "", page(client, public))
        assert now == earlier, "the page of a player is the same, byte for byte"
        for address in ("/play/", "/", "/play/matches/", f"/play/{public.pk}/replay/", f"/play/{public.pk}/result/"):
            assert CANARY not in client.get(address, follow=True).content.decode()
        assert client.post(f"/play/{public.pk}/watchers/write/", {"text": "hello"}).status_code == 404
        for action in ("delete", "mute"):
            assert client.post(f"/play/{public.pk}/watchers/{message.pk}/{action}/").status_code == 404
    assert ChatMessage.objects.get().deleted_at is None


def test_no_player_reads_it_afterwards_either(public, player, ben, annotator, researcher, client_of):
    write(public, annotator)
    finish(public)
    for user in (player, ben):
        for place in ("", "replay/", "result/"):
            assert CANARY not in page(client_of(user), public, place)
    assert CANARY in page(client_of(researcher), public, "replay/")
    assert CANARY not in page(client_of(researcher), public, "result/")


def test_an_administrator_who_plays_is_a_player(person, ben, annotator, client_of):
    admin = person("admin")
    places = [tables.Place(user=admin, consent=True), tables.Place(user=ben, consent=True)]
    start = tables.Start(negotiation())
    match = tables.create(host=admin, start=start, places=places, visibility="public", consent=True)
    message = write(match, annotator)
    assert CANARY not in page(client_of(admin), match)
    assert client_of(admin).post(f"/play/{match.pk}/watchers/{message.pk}/delete/").status_code == 404


def test_who_was_sent_away_or_has_a_stand_in_stays_a_player(hosted, player, ben, annotator, client_of):
    hosting.replace(match=hosted, number=0)
    hosting.kick(match=hosted, number=1)
    assert not hosted.seats.filter(user=ben).exists()
    write(hosted, annotator)
    for user in (player, ben):
        assert not access.may_read_chat(hosted, user)
        assert CANARY not in page(client_of(user), hosted)
    assert access.may_read_chat(hosted, annotator)


def test_a_guest_reads_none(hosted, client_of, person, player, annotator):
    places = [tables.Place(user=player, consent=True), tables.Place()]
    start = tables.Start(negotiation())
    match = tables.create(host=player, start=start, places=places, visibility="public", consent=True)
    client = client_of(None)
    client.post(f"/play/join/{links.open_link(match=match)}/", {"shown_name": "Zoe"})
    client.post(f"/play/{match.pk}/consent/", {"consent": "yes"})
    match.refresh_from_db()
    write(match, annotator)
    assert match.state == Match.State.RUNNING
    assert CANARY not in page(client, match)
    guest = User.objects.get(first_name="Zoe")
    assert not access.may_read_chat(match, guest)
    assert not access.may_read_chat(hosted, guest)


@pytest.mark.parametrize(
    "fields", [{"shown_as": "person"}, {"task": "x"}, {"state": "open"}, {"visibility": "private"}]
)
def test_other_matches_have_none(public, annotator, client_of, fields):
    Match.objects.filter(pk=public.pk).update(**fields)
    public.refresh_from_db()
    assert not access.may_read_chat(public, annotator)
    assert client_of(annotator).post(f"/play/{public.pk}/watchers/write/", {"text": "x"}).status_code == 404


def test_no_model_and_no_export_reads_it(public, player, annotator, researcher, client_of):
    write(public, annotator)
    finish(public)
    assert CANARY not in json.dumps(services.fold(public).game.observe(0).to_dict())
    assert not public.rows.filter(message__text__contains=CANARY).exists()
    client = client_of(researcher)
    for address in (f"/api/v1/matches/{public.pk}", f"/api/v1/matches/{public.pk}/episode"):
        assert CANARY not in client.get(address).content.decode()


# --- limits ---


@pytest.mark.parametrize("text, why", [("  \n", "write something first"), ("x" * (LONGEST + 1), "at most 300")])
def test_a_line_that_is_empty_or_too_long_is_refused_in_place(public, annotator, client_of, text, why):
    answer = client_of(annotator).post(
        f"/play/{public.pk}/watchers/write/", {"text": text}, headers={"HX-Request": "true"}
    )
    assert "<html" not in answer.content.decode()
    assert why in answer.content.decode()
    assert 'role="alert"' in answer.content.decode()
    assert client_of(annotator).post(f"/play/{public.pk}/watchers/write/", {"text": text}).status_code == 400
    assert not ChatMessage.objects.exists()


def test_nobody_writes_too_fast(public, annotator, researcher, monkeypatch):
    real = services.database_now
    for _ in range(watching.BURST):
        write(public, annotator)
    with pytest.raises(BadInput, match="too fast"):
        write(public, annotator)
    write(public, researcher)
    monkeypatch.setattr(services, "database_now", lambda: real() + watching.WITHIN + timedelta(seconds=1))
    write(public, annotator)


def test_nobody_writes_more_than_their_quota(public, annotator, settings, monkeypatch):
    settings.QUOTAS = {**settings.QUOTAS, "chat_messages_per_hour": {"annotator": 2}}
    write(public, annotator)
    write(public, annotator)
    with pytest.raises(BadInput, match="limit of 2 messages"):
        write(public, annotator)


@pytest.mark.django_db(transaction=True)
def test_messages_appear_in_the_order_of_their_numbers(public, annotator, researcher):
    started = threading.Event()

    def write_meanwhile():
        started.set()
        try:
            write(public, researcher, "second")
        finally:
            connection.close()

    other = threading.Thread(target=write_meanwhile)
    with transaction.atomic():
        write(public, annotator, "first")
        other.start()
        assert started.wait(5)
        other.join(0.5)
        assert other.is_alive(), "its message would be visible before the first, which has a lower number"
    other.join(10)
    assert [message.text for message in watching.messages(public)] == ["first", "second"]


def test_nobody_writes_when_the_game_is_over(public, annotator):
    finish(public)
    with pytest.raises(BadInput, match="the game is over"):
        write(public, annotator)


# --- moderation ---


def test_a_host_who_does_not_play_and_administrators_moderate(hosted, annotator, researcher, person, client_of):
    message, other = write(hosted, annotator), write(hosted, researcher, "well said")
    address = f"/play/{hosted.pk}/watchers/{message.pk}"
    assert client_of(researcher).post(f"{address}/delete/").status_code == 404
    assert ">Delete<" not in page(client_of(researcher), hosted)
    assert ">Delete<" in page(client_of(hosted.host), hosted)
    client_of(hosted.host).post(f"{address}/delete/")
    message.refresh_from_db()
    assert message.deleted_by == hosted.host
    for user in (researcher, hosted.host):
        assert CANARY not in page(client_of(user), hosted)
        assert "deleted by a moderator" in page(client_of(user), hosted)
    client_of(person("admin")).post(f"/play/{hosted.pk}/watchers/{other.pk}/mute/")
    with pytest.raises(BadInput, match="muted you"):
        write(hosted, researcher)
    assert "A moderator has muted you" in page(client_of(researcher), hosted)
    write(hosted, annotator)


def test_a_reader_reports_a_message_and_a_moderator_decides(hosted, annotator, researcher, person, client_of):
    message, other = write(hosted, annotator), write(hosted, annotator, "well played")
    address = f"/play/{hosted.pk}/watchers/{message.pk}"
    host, reader, admin = client_of(hosted.host), client_of(researcher), client_of(person("admin"))
    assert f"{address}/report/" in page(reader, hosted)
    assert f"{address}/report/" not in page(client_of(annotator), hosted), "nobody reports their own"
    for _ in range(2):
        reader.post(f"{address}/report/")
    assert CANARY not in page(reader, hosted)
    assert "You reported this message." in page(reader, hosted)
    assert "well played" in page(reader, hosted)
    for moderator in (host, admin):
        assert "reported by 1<" in page(moderator, hosted)
        assert CANARY in moderator.get("/play/reports/").content.decode()
    assert CANARY in page(client_of(annotator), hosted)
    assert CANARY not in reader.get("/play/reports/").content.decode()
    host.post(f"{address}/dismiss/", {"back": "reports"})
    assert CANARY not in host.get("/play/reports/").content.decode()
    assert CANARY in page(host, hosted)
    assert CANARY not in page(reader, hosted), "it stays hidden from whoever reported it"
    with pytest.raises(BadInput, match="your own"):
        watching.report(match=hosted, message_id=other.pk, by=annotator)
    watching.report(match=hosted, message_id=other.pk, by=researcher)
    answer = host.post(f"/play/{hosted.pk}/watchers/{other.pk}/delete/", {"back": "reports"}, follow=True)
    assert "There are no open reports." in answer.content.decode()


def test_nobody_reports_more_than_their_quota(hosted, annotator, researcher, settings):
    settings.QUOTAS = {**settings.QUOTAS, "chat_reports_per_hour": {"researcher": 2}}
    messages = [write(hosted, annotator, f"message {n}") for n in range(3)]
    for message in [*messages[:2], messages[1]]:  # a report that there is already uses nothing up
        watching.report(match=hosted, message_id=message.pk, by=researcher)
    with pytest.raises(BadInput, match="limit of 2 messages that you reported"):
        watching.report(match=hosted, message_id=messages[2].pk, by=researcher)


def test_a_moderator_does_not_dismiss_reports_of_their_own_message(hosted, researcher, person, client_of):
    """Else the host of a table could hide from administrators what they wrote there."""
    message, admin = write(hosted, hosted.host), client_of(person("admin"))
    watching.report(match=hosted, message_id=message.pk, by=researcher)
    host, address = client_of(hosted.host), f"/play/{hosted.pk}/watchers/{message.pk}/dismiss/"
    assert address not in page(host, hosted)
    assert address not in host.get("/play/reports/").content.decode()
    host.post(address)
    assert CANARY in admin.get("/play/reports/").content.decode()
    assert address in page(admin, hosted)
    admin.post(address)
    assert "There are no open reports." in admin.get("/play/reports/").content.decode()


def test_reports_that_a_moderator_may_not_read_hide_no_others(
    public, hosted, annotator, researcher, person, monkeypatch
):
    """An administrator plays in one of the games: its reports, however many, are for others to read."""
    monkeypatch.setattr(watching, "SHOWN", 1)
    admin = person("admin")
    public.seats.filter(seat=0).update(user=admin)
    for match in (public, hosted):
        watching.report(match=match, message_id=write(match, annotator).pk, by=researcher)
    assert [message.match for message in watching.reported(admin)] == [hosted]


def test_a_host_who_plays_reads_no_report(public, player, annotator, researcher, client_of):
    message = write(public, annotator)
    watching.report(match=public, message_id=message.pk, by=researcher)
    assert CANARY not in client_of(player).get("/play/reports/").content.decode()
    assert client_of(player).post(f"/play/{public.pk}/watchers/{message.pk}/report/").status_code == 404


def test_a_moderator_is_not_muted_by_another(hosted, person):
    message = write(hosted, hosted.host)
    with pytest.raises(BadInput, match="is a moderator"):
        watching.mute(match=hosted, message_id=message.pk, by=person("admin"))


def test_a_line_of_another_match_is_not_reached(hosted, public, annotator, client_of):
    message = write(public, annotator)
    client_of(hosted.host).post(f"/play/{hosted.pk}/watchers/{message.pk}/delete/")
    assert ChatMessage.objects.get().deleted_at is None


# --- the socket ---

sync = database_sync_to_async


@pytest.fixture
def application(monkeypatch):
    from webapp.asgi import application

    monkeypatch.setattr(consumers.WatchersConsumer, "REFRESH_EVERY", 60)
    return application


async def opened(application, client, match_id, last=0):
    socket = Socket(application, f"/ws/watchers/{match_id}/", browser_headers(client.cookies["session"].value))
    if not await socket.connect():
        return None
    await socket.say(json.dumps({"last": last}))
    return socket


@pytest.mark.django_db(transaction=True)
async def test_a_line_and_its_deletion_reach_other_watchers_by_hint(application, hosted, client_of):
    reader, host = await sync(make_person)("reader"), await sync(lambda: hosted.host)()
    writer = await sync(make_person)("writer")
    old = await sync(write)(hosted, writer, "earlier")
    socket = await opened(application, await sync(client_of)(reader), hosted.pk, last=old.pk)
    message = await sync(write)(hosted, writer, "<i>now</i>")
    frame = (await socket.hear())["text"]
    assert 'hx-swap-oob="beforeend:#chat-messages"' in frame
    assert "&lt;i&gt;now&lt;/i&gt;" in frame
    assert "earlier" not in frame
    assert ">Delete<" not in frame
    await sync(watching.delete)(match=hosted, message_id=message.pk, by=host)
    frame = (await socket.hear())["text"]
    assert f'<li id="chat-message-{message.pk}" class="row-line" hx-swap-oob="true">' in frame
    assert "now" not in frame
    await socket.leave()


@pytest.mark.django_db(transaction=True)
async def test_a_report_reaches_moderators_and_hides_the_message_from_its_reporter(application, hosted, client_of):
    writer, reader = await sync(make_person)("writer"), await sync(make_person)("reader")
    people = [await sync(lambda: hosted.host)(), reader, writer]
    message = await sync(write)(hosted, writer)
    sockets = [await opened(application, await sync(client_of)(user), hosted.pk, message.pk) for user in people]
    await sync(watching.report)(match=hosted, message_id=message.pk, by=reader)
    host_frame, reader_frame = [(await socket.hear())["text"] for socket in sockets[:2]]
    assert "reported by 1<" in host_frame
    assert "You reported this message." in reader_frame
    assert CANARY not in reader_frame
    assert await sockets[2].receive_nothing(0.5), "its author does not learn of it"
    for socket in sockets:
        await socket.leave()


@pytest.mark.django_db(transaction=True)
async def test_no_player_gets_the_socket_nor_hears_of_it_on_their_own(application, public, player, ben, client_of):
    writer = await sync(make_person)("writer")
    for user in (player, ben):
        client = await sync(client_of)(user)
        assert await opened(application, client, public.pk) is None
    tab = await (await Tab(application, await sync(client_of)(ben), public.pk).load()).open()
    await tab.hear()
    heard = len(tab.frames)
    await sync(write)(public, writer)
    await tab.hear(1.0)
    assert len(tab.frames) == heard
    await tab.leave()


@pytest.mark.django_db(transaction=True)
async def test_the_socket_closes_when_the_match_is_not_theirs_to_watch_any_more(
    application, hosted, client_of, monkeypatch
):
    monkeypatch.setattr(consumers.WatchersConsumer, "REFRESH_EVERY", 0.1)
    reader = await sync(make_person)("reader")
    socket = await opened(application, await sync(client_of)(reader), hosted.pk)
    await sync(Match.objects.filter(pk=hosted.pk).update)(visibility="private")
    assert await socket.hear() == {"type": "websocket.close", "code": consumers.POLICY_VIOLATION}


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("text", ["hello", "[]", '{"last": "1"}', '{"last": -1}', '{"last": 1e99}', "x" * 300])
async def test_anything_but_a_greeting_closes_the_socket(application, hosted, client_of, text):
    reader = await sync(make_person)("reader")
    client = await sync(client_of)(reader)
    socket = Socket(application, f"/ws/watchers/{hosted.pk}/", browser_headers(client.cookies["session"].value))
    assert await socket.connect()
    await socket.say(text)
    assert (await socket.hear())["type"] == "websocket.close"


@pytest.mark.django_db(transaction=True)
async def test_a_second_greeting_closes_the_socket_and_subscribes_to_nothing(
    application, hosted, client_of, monkeypatch
):
    groups, subscribe = [], RedisPubSubLoopLayer.group_add

    async def group_add(self, group, channel):
        groups.append(group)
        await subscribe(self, group, channel)

    monkeypatch.setattr(RedisPubSubLoopLayer, "group_add", group_add)
    reader, writer = await sync(make_person)("reader"), await sync(make_person)("writer")
    socket = await opened(application, await sync(client_of)(reader), hosted.pk)
    await sync(write)(hosted, writer)
    assert CANARY in (await socket.hear())["text"]
    await socket.say(json.dumps({"last": 0}))
    assert await socket.hear() == {"type": "websocket.close", "code": consumers.POLICY_VIOLATION}
    await sync(write)(hosted, writer, "afterwards")
    assert await socket.receive_nothing(0.5)
    assert groups == [hints.watchers(hosted.pk)]
