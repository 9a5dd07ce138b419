"""Tables of two on a clock of their own, and all that one of the two receives besides what is said.

The observer sits at seat 1; at seat 0 sits a person, a model or a scripted player, who all say things drawn from the
same words. Times are the simulated clock's: people take a log-normal time, models some time to answer and to start.
"""

import heapq
import itertools
import re
from collections import Counter
from datetime import UTC, datetime, timedelta
from statistics import fmean
from types import SimpleNamespace

from django.test import Client

from tests.webapp.arena.conftest import negotiation
from training.games.actions import tag, write
from training.players.base import Reply
from webapp.arena import clock as steps
from webapp.arena.live.feed import ClientVersions, MatchFeed
from webapp.arena.models import Match
from webapp.arena.play import human_moves, services
from webapp.arena.setup import tables, waiting_room
from webapp.core import queue
from webapp.serving.models import Deployment
from worker import play as worker

START = datetime(2026, 1, 5, 9, tzinfo=UTC)
WORDS = ("we", "could", "share", "the", "food", "if", "you", "leave", "me", "some", "water", "it", "is", "cold")
MOVES = 6
SAID = re.compile(r'<span class="utterance">(.*?)</span></li>', re.DOTALL)
MASKED = re.compile(
    rf'{SAID.pattern}|csrfmiddlewaretoken" value="\w+"|"X-CSRFToken": "\w+"|data-part="\w+"|datetime="[^"]*"', re.DOTALL
)
"""Excluded from the classifier's features: speech, tokens, and hashes and times that differ at every table."""
PERSON, MODEL, SCRIPT = "person", "model", "scripted"


class Clock:
    """Simulated time, for the site and for the worker; `pending` are the workers' seats and when they are called."""

    def __init__(self, monkeypatch):
        self.seconds = 0.0
        self.pending, self.order = [], itertools.count()
        monkeypatch.setattr(services, "database_now", self.now)
        monkeypatch.setattr("django.utils.timezone.now", self.now)
        monkeypatch.setattr(worker, "time", SimpleNamespace(monotonic=lambda: self.seconds, sleep=self.wait))
        monkeypatch.setattr(queue, "send", self.send)

    def now(self):
        return START + timedelta(seconds=self.seconds)

    def wait(self, seconds):
        self.seconds += seconds

    def send(self, task, due_id, delay=0.0):
        heapq.heappush(self.pending, (self.seconds + delay, next(self.order), due_id))


def person_takes(chance):
    """Seconds a person takes for a move: log-normal, median 9."""
    return 9 * chance.lognormvariate(0, 0.5)


def words(chance, seen):
    """A move without a seat: (action, arguments, speech)."""
    speech = " ".join(chance.choices(WORDS, k=chance.randint(3, 12)))
    names = {action.name: action for action in seen.actions}
    if "reject" in names:
        return names["reject"], {}, speech
    if chance.random() < 0.5:
        return names["propose"], {name: chance.randint(0, 3) for name in ("food", "water", "firewood")}, speech
    return names["talk"], {}, speech


class Script:
    """A player without a model who says such things."""

    def __init__(self, chance):
        self.chance = chance

    async def act(self, seat, seen, seed):
        return Reply(text=write(*words(self.chance, seen)))


class Meeting:
    """One table from its first page to the rating: `received` is what the observer got, as (seconds, page or frame)."""

    def __init__(self, clock, chance, kind, people, deployment, stub, monkeypatch):
        self.clock, self.chance, self.kind, self.away = clock, chance, kind, False
        self.host, self.other, self.observer = people
        self.stub, self.deployment = stub, deployment
        monkeypatch.setattr(worker.players, "make", lambda *_: Script(chance))
        place = {PERSON: tables.Place(user=self.other), MODEL: tables.Place(deployment=deployment)}
        start = tables.Start(negotiation(seed=chance.getrandbits(60), turn_limit=20))
        places = [place.get(kind, tables.Place(scripted="scripted")), tables.Place()]
        self.match = tables.create(host=self.host, start=start, places=places, deadline_s=90)
        self.received = []
        self.client = Client()
        self.client.force_login(self.observer)

    def live(self):
        self.before_the_game()
        while self.match.step < MOVES or self.match.due.get().seat != 1:
            self.one_move()
        human_moves.play(match_id=self.match.pk, user=self.observer, data={"turn": self.turn(1), "action": "forfeit"})
        self.look()
        self.match.refresh_from_db()
        for page in (
            "result/",
            "replay/?viewer=-2",
            "replay/?viewer=-1&step=3",
            "replay/?viewer=0",
            "replay/?viewer=1",
        ):
            self.page(f"/play/{self.match.pk}/{page}")
        for page in ("/", "/play/", "/play/matches/?of=me"):
            self.page(page)
        return self.received

    def before_the_game(self):
        """Who sits there comes first, and the observer by a link, when the other has long read what may be stored."""
        if self.kind == MODEL:
            Deployment.objects.filter(pk=self.deployment.pk).update(state=Deployment.State.COLD)
        self.clock.wait(200)
        Deployment.objects.update(state=Deployment.State.READY)
        if self.kind == PERSON:
            waiting_room.answer_consent(match=self.match, user=self.other, agreed=True)
        waiting_room.take_seat(match=self.match, user=self.observer)
        self.page(f"/play/{self.match.pk}/consent/")
        self.clock.wait(20)
        waiting_room.answer_consent(match=self.match, user=self.observer, agreed=True)
        self.match.refresh_from_db()
        assert self.match.state == Match.State.RUNNING
        self.feed, self.versions = MatchFeed(self.match.pk, 1), ClientVersions(0)
        self.page(f"/play/{self.match.pk}/")
        self.look()

    def one_move(self):
        seat = self.match.due.get().seat
        if seat == 0 and self.turn(0) == "1" and not self.away:
            self.away = True
            self.go_away()
        if (seat == 0 and self.kind != PERSON) or self.match.seats.get(seat=seat).stand_in:
            self.work()
        else:
            self.person_moves(seat)
        self.match.refresh_from_db()
        self.look()

    def person_moves(self, seat):
        self.clock.wait(person_takes(self.chance))
        user = (self.other, self.observer)[seat]
        action, args, speech = words(self.chance, services.fold(self.match).game.observe(seat))
        fields = {f"{action.name}.{name}": str(value) for name, value in args.items()}
        data = {"turn": self.turn(seat), "action": action.name, "text": speech, **fields}
        human_moves.play(match_id=self.match.pk, user=user, data=data)

    def turn(self, seat):
        return str(services.fold(self.match).turns[seat])

    def work(self):
        """Have the worker make the move that is due; a model answers after a while, its tag before its words."""
        at, _, due_id = heapq.heappop(self.clock.pending)
        self.clock.seconds = max(self.clock.seconds, at)

        action, args, speech = words(self.chance, services.fold(self.match).game.observe(0))

        def answer(_body):
            self.clock.wait(self.chance.uniform(0.3, 1.8))
            return speech if action.bare else f"{tag(action, args)} {speech}"

        self.stub.answer = answer
        worker.play(due_id)

    def go_away(self):
        """The person at seat 0 is absent until a stand-in moves; then the clock runs."""
        for seconds in (40, 400):
            self.match.seats.filter(seat=0, kind=PERSON).update(seen_at=self.clock.now() - timedelta(seconds=seconds))
            steps.stand_in()
            self.look()

    def look(self):
        """What a socket would send now."""
        frame, self.versions = self.feed.see().frame_for(self.observer, self.versions)
        if frame:
            self.received.append((self.clock.seconds, frame))

    def page(self, address):
        answer = self.client.get(address)
        self.received.append((self.clock.seconds, f"{address} {answer.status_code} {answer.content.decode()}"))


def facts(received):
    """The classifier's features: counts of all markup and words outside of speech; times and sizes."""
    counts = Counter()
    waits, theirs, sizes = [], [], []
    for (before, _), (at, sent) in itertools.pairwise([(received[0][0], ""), *received]):
        text = MASKED.sub("", sent)
        counts.update(f"text {piece}" for piece in re.split(r"[<>\n]", re.sub(r"\d+", "0", text)) if piece.strip())
        counts.update(f"form {re.sub(r'[^<>]+', 'words', speech)}" for speech in SAID.findall(sent))
        if sent.startswith("<"):
            waits.append(at - before)
            sizes.append(len(text))
            if 'Ann</span> <span class="utterance"' in sent:
                theirs.append(at - before)
    numbers = {"frames": len(sizes), "bytes": sum(sizes), "largest": max(sizes)}
    times = {"whole": sum(waits), "slowest": max(waits), "moves": len(theirs)}
    mine = {"mean": fmean(theirs), "quickest": min(theirs), "first": theirs[0]} if theirs else {}
    return {**counts, **numbers, **times, **mine}
