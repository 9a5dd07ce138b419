"""Trust 4 and 5 for every game: what a tab holds after its frames is a fresh page, and nothing of its log is lost.

Tabs without a browser get the frames that their sockets would send; only viewers that were notified are read again.
"""

import json
import random
from datetime import timedelta

import pytest

from tests.games.worlds import CASES
from tests.trust.seated import moves_by_chance, people_of, seated, somebody, viewer_named
from tests.webapp.arena.browser import Page
from tests.webapp.arena.telling import WITHIN, telling
from training.games import REGISTRY
from training.games.base import FORFEIT
from training.records import SPECTATOR
from webapp.arena import clock, hints
from webapp.arena.live.feed import AccessLost, ClientVersions, MatchFeed
from webapp.arena.models import Match
from webapp.arena.play import hosting, human_moves, services
from webapp.arena.setup import links, tables, waiting_room

pytestmark = pytest.mark.django_db(transaction=True)
STEPS = 3
ELSEWHERE = {
    "countdowns.finish",
    "countdowns.end_early",
    "countdowns.stop",
    "clock.start_clocks",
    "model_seats.answer",
    "services.abort",
    "links.invite",
    "links.claim",
    "waiting_room.take_seat",
}
"""Of models, of countdowns, or of open seats one by one: their cases stand in `tests.webapp.arena.test_sockets`."""


class Tab:
    """One tab at a match: the page as it was loaded, and every frame that came since."""

    def __init__(self, match, viewer, user, client):
        self.match, self.viewer, self.user, self.client = match, viewer, user, client
        self.watch = MatchFeed(match.pk, viewer)
        self.page = self.fresh()

    def fresh(self):
        answer = self.client.get(f"/play/{self.match.pk}/")
        assert answer.status_code == 200
        return Page(answer.content.decode())

    def hear(self):
        """Get the frame that the socket would send now, as a tab that has just opened it; say whether there was one."""
        versions = ClientVersions(self.page.last, json.loads(self.page.greeting())["parts"])
        frame, _ = self.watch.see().frame_for(self.user, versions)
        self.page.apply(frame)
        return bool(frame)


@pytest.fixture
def notified(monkeypatch):
    """The viewers that were notified since the set was last emptied."""
    notified_viewers = set()
    monkeypatch.setattr(hints, "send", lambda match_id, viewers: notified_viewers.update(viewers))
    return notified_viewers


def away(match):
    match.seats.filter(seat=0).update(seen_at=services.database_now() - timedelta(hours=1))
    assert clock.stand_in() == 1


def pause_ends(match):
    Match.objects.filter(pk=match.pk).update(paused_at=services.database_now() - timedelta(hours=1))
    assert clock.go_on() == 1


def late(match):
    match.due.update(deadline=services.database_now())
    clock.time_out()


def give_up(match):
    """Somebody who is to move resigns; nobody is any more where the game was short."""
    people = {seat.seat: seat.user for seat in match.seats.exclude(user=None).exclude(stand_in=True)}
    turns = services.fold(match).turns
    for seat in sorted(set(match.due.values_list("seat", flat=True)) & people.keys())[:1]:
        human_moves.play(
            match_id=match.pk, user=people[seat], data={"turn": str(turns[seat]), "action": FORFEIT.action}
        )


def before(comer):
    """What happens before the game: a seat is taken, left and taken again, its holder sent away, bots fill it."""
    joins = lambda match: links.join(token=links.open_link(match=match), user=comer, shown_name="")
    return [
        ("links.join", joins),
        ("waiting_room.leave", lambda match: waiting_room.leave(match=match, user=comer)),
        ("links.join", joins),
        (
            "waiting_room.answer_consent",
            lambda match: waiting_room.answer_consent(match=match, user=match.host, agreed=False),
        ),
        ("waiting_room.say_ready", lambda match: waiting_room.say_ready(match=match, user=match.host)),
        ("hosting.kick", lambda match: hosting.kick(match=match, number=len(match.scenario["seats"]) - 1)),
        ("waiting_room.fill", lambda match: waiting_room.fill(match=match)),
    ]


def hosted():
    """What happens to the table while nobody moves: at the start, which is at night where a game has nights."""
    return [
        ("hosting.pause", lambda match: hosting.pause(match=match)),
        ("hosting.resume", lambda match: hosting.resume(match=match)),
        ("hosting.pause", lambda match: hosting.pause(match=match)),
        ("hosting.end_pause", pause_ends),
        ("hosting.replace", lambda match: hosting.replace(match=match, number=0)),
        ("hosting.take_back", lambda match: hosting.take_back(match=match, user=match.host)),
        ("hosting.stand_in", away),
        ("hosting.take_back", lambda match: hosting.take_back(match=match, user=match.host)),
        ("hosting.kick", lambda match: hosting.kick(match=match, number=1)),
    ]


def played(match):
    """Moves by chance, one after the other, then a deadline that everybody misses, one who gives up, and the end."""
    for _ in range(STEPS):
        match.refresh_from_db()
        for seat, move in moves_by_chance(match).items():
            step = match.step
            yield (
                "services.submit",
                lambda match, seat=seat, step=step, move=move: services.submit(
                    match_id=match.pk, seat=seat, step=step, move=move
                ),
            )
    yield "clock.time_out", late
    yield "services.submit", give_up
    yield "waiting_room.close", lambda match: waiting_room.close(match=match)


def open_table(scenario):
    """A table of two seats or more whose last one is empty; everybody else has answered, but the host."""
    people = people_of(scenario)[:-1]
    places = [*(tables.Place(user=user) for user in people), tables.Place()]
    match = tables.create(host=people[0], start=tables.Start(scenario), places=places, consent=True, visibility="open")
    for user in people[1:]:
        waiting_room.answer_consent(match=match, user=user, agreed=True)
    return match, people


@pytest.mark.parametrize("game", [game for game in REGISTRY if len(CASES[game][0].seats) > 1])
def test_a_tab_that_received_every_frame_shows_what_a_fresh_page_shows(game, notified, client_of, db):
    match, people = open_table(CASES[game][0].with_seed(4))
    users = {SPECTATOR: somebody("watcher")} | dict(enumerate(people[:3]))
    tabs = [Tab(match, viewer, user, client_of(user)) for viewer, user in users.items()]
    happened = set()

    def happens(name, happen):
        notified.clear()
        happen(match)
        happened.add(name)
        for tab in list(tabs):
            try:
                heard = tab.hear()
            except AccessLost:
                assert name == "hosting.kick"
                assert tab.viewer in notified
                tabs.remove(tab)
                continue
            assert tab.viewer in notified or not heard, f"{tab.viewer} was not notified after {name}"
            assert tab.page.state() == tab.fresh().state(), f"{tab.viewer} after {name}"

    for event in (*before(somebody("comer")), *hosted(), *played(match)):
        happens(*event)
    assert len(tabs) >= 2
    assert all("The game" in tab.page.parts["status"] for tab in tabs)
    assert telling() - WITHIN - ELSEWHERE - {"services.time_out", "waiting_room.begin_with_models"} <= happened


@pytest.mark.parametrize("game", REGISTRY)
def test_what_a_tab_holds_is_its_viewers_log_without_a_gap(game, client_of, db):
    """Hints are lost and tabs reloaded at random, within steps as well; every viewer has its own row numbers."""
    chance = random.Random(game)
    match, people = seated(CASES[game][0].with_seed(4))
    viewers = [SPECTATOR, *range(len(people))]
    users = {viewer: viewer_named(viewer, people) for viewer in viewers}
    tabs = [Tab(match, viewer, user, client_of(user)) for viewer, user in users.items()]
    for _ in range(2 * STEPS):
        match.refresh_from_db()
        for seat, move in moves_by_chance(match).items():
            services.submit(match_id=match.pk, seat=seat, step=match.step, move=move)
            for tab in tabs:
                if chance.random() < 0.1:
                    tab.page = tab.fresh()
                elif chance.random() < 0.4:
                    tab.hear()
    shown = services.fold(match).game
    for tab in tabs:
        tab.hear()
        stored = list(match.rows.filter(viewer=tab.viewer).order_by("number").values_list("number", "message"))
        assert [message for _, message in stored] == [line.to_dict() for line in shown.observe(tab.viewer).messages]
        assert tab.page.numbers == [number for number, _ in stored] == list(range(1, len(stored) + 1))
        assert tab.page.rows == tab.fresh().rows
        assert not tab.hear(), "what was heard is not sent again"
