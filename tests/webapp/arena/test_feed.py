"""Looks that sockets share: as few as can be, and never one that began before it was asked for."""

import asyncio
import contextlib
import threading
import time
from datetime import timedelta

import pytest

from tests.webapp.arena.conftest import negotiation
from training.records import SPECTATOR, Move
from webapp.arena.live import client_state, fragments
from webapp.arena.live.feed import AccessLost, ClientVersions, MatchFeed
from webapp.arena.models import Match
from webapp.arena.play import hosting, services
from webapp.arena.setup import tables

pytestmark = pytest.mark.django_db(transaction=True)


class Slow(MatchFeed):
    """A place whose looks take as long as the test wants, numbered in the order in which they began."""

    def __init__(self):
        super().__init__(0, SPECTATOR)
        self.count, self.go_on, self.began = 0, threading.Semaphore(0), threading.Event()

    def _see(self):
        self.count += 1
        number = self.count
        self.began.set()
        assert self.go_on.acquire(timeout=10)
        self._snapshot = Number(number)
        return self._snapshot


class Number(int):
    """What a slow look saw; long ago."""

    at = -1e9


async def test_concurrent_requests_share_a_snapshot():
    feed = Slow()
    asking = [asyncio.create_task(feed.refresh()) for _ in range(9)]
    feed.go_on.release()
    assert set(await asyncio.gather(*asking)) == {1}


async def test_a_request_during_a_snapshot_gets_the_next_one():
    feed = Slow()
    first = asyncio.create_task(feed.refresh())
    assert await asyncio.to_thread(feed.began.wait, 5)
    later = [asyncio.create_task(feed.refresh()) for _ in range(9)]
    await asyncio.sleep(0.01)
    feed.go_on.release(2)
    assert await first == 1
    assert set(await asyncio.gather(*later)) == {2}


async def test_a_look_that_was_broken_off_is_made_anew_for_the_others():
    feed = Slow()
    first = asyncio.create_task(feed.refresh())
    assert await asyncio.to_thread(feed.began.wait, 5)
    other = asyncio.create_task(feed.refresh())
    await asyncio.sleep(0.01)
    first.cancel()
    feed.go_on.release(2)
    with contextlib.suppress(asyncio.CancelledError):
        await first
    assert await other == 2


async def test_an_earlier_snapshot_is_reused_on_request(monkeypatch):
    feed = Slow()
    feed.go_on.release(2)
    seen = await feed.refresh()
    monkeypatch.setattr(Number, "at", time.monotonic())
    assert await feed.refresh(since=time.monotonic() - 60) is seen
    assert await feed.refresh() == 2


def test_state_that_is_kept_between_snapshots_changes_nothing(monkeypatch, ben, two_people):
    now = services.database_now()
    monkeypatch.setattr(services, "database_now", lambda: now)
    kept = MatchFeed(two_people.pk, 1)
    for step, text in enumerate(["one", "two", "three"]):
        kept.see()
        services.submit(match_id=two_people.pk, seat=step % 2, step=step, move=Move(action="talk", text=text))
        fresh = MatchFeed(two_people.pk, 1)
        assert kept.see().frame_for(ben, ClientVersions(0)) == fresh.see().frame_for(ben, ClientVersions(0))


def test_nothing_new_makes_no_frame(ben, two_people):
    feed = MatchFeed(two_people.pk, 1)
    _, versions = feed.see().frame_for(ben, ClientVersions(0))
    assert feed.see().frame_for(ben, versions) == ("", versions)


def test_nobody_reads_another_seats_viewpoint(player, two_people):
    snapshot = MatchFeed(two_people.pk, 1).see()
    with pytest.raises(AccessLost):
        snapshot.frame_for(player, ClientVersions(0))
    feed = MatchFeed(two_people.pk, 1)
    two_people.delete()
    with pytest.raises(AccessLost):
        feed.see()


# --- who seems to be away ---


def status(match, user):
    return fragments.contents(client_state.read(Match.objects.get(pk=match.pk), 0, user))["status"]


def gone_for(match, seconds):
    match.seats.filter(seat=1).update(seen_at=services.database_now() - timedelta(seconds=seconds))


def test_an_absent_person_has_a_countdown(player, two_people):
    Match.objects.update(deadline_s=200)
    gone_for(two_people, 20)
    assert "seems to be away" not in status(two_people, player), "a reload takes no half a minute"
    gone_for(two_people, 50)
    assert "Ben seems to be away; a stand-in takes over" in status(two_people, player)
    (chair,) = client_state.read(Match.objects.get(pk=two_people.pk), 0, player).away
    left = (chair.back_by - services.database_now()).total_seconds()
    assert 145 < left <= 150, "200 seconds after they were last there"
    hosting.pause(match=two_people)
    assert "seems to be away" not in status(two_people, player)


def test_the_countdown_ends_when_the_stand_in_comes(player, two_people):
    """For a move of ten seconds it is a minute, as for every shorter one."""
    Match.objects.update(deadline_s=10)
    for seconds, comes in ((55, False), (61, True)):
        gone_for(two_people, seconds)
        (chair,) = client_state.read(Match.objects.get(pk=two_people.pk), 0, player).away
        assert (chair.back_by < services.database_now()) is comes
        assert (hosting.away(limit=9) == [(two_people.pk, 1)]) is comes
    hosting.stand_in(match_id=two_people.pk, number=1)
    assert "seems to be away" not in status(two_people, player)


def test_a_socket_learns_of_it_without_a_hint(player, two_people):
    feed = MatchFeed(two_people.pk, 0)
    _, versions = feed.see().frame_for(player, ClientVersions(0))
    gone_for(two_people, 50)
    html, _ = feed.see().frame_for(player, versions)
    assert "seems to be away" in html


def test_nobody_is_counted_down_before_the_game(player, ben):
    places = [tables.Place(user=player), tables.Place(user=ben)]
    match = tables.create(host=player, start=tables.Start(negotiation()), places=places, consent=True)
    gone_for(match, 500)
    assert client_state.read(match, 0, player).away == []
