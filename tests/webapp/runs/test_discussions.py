"""What messages changed: who is counted, how it is drawn, and where pages show it."""

import html
import re

import pytest
from django.urls import reverse

from tests.webapp.runs.making import make_episode, make_run, ship
from training.methods.listen_speak.messages import belief_changes
from training.records import ALL, Episode
from webapp.runs.episodes import replaying
from webapp.runs.episodes.beliefs import BeliefPoint
from webapp.runs.episodes.discussions import SpokenMove, discussions

NAMES = ("Ada", "Ben", "Cia")
ROLES = ("crewmate", "imposter", "crewmate")
ADA, BEN, CIA = range(3)
BELIEFS = {ADA: (0.2, 0.5, 0.4), CIA: (0.3, 0.4, 0.1)}
"""What the crew thinks of Ben, the imposter, before and after a message of Ada's and one of Ben's."""


def points(beliefs=BELIEFS, first=4, truth=("Ben",)):
    return [
        BeliefPoint(first + at, seat, "?", {"Ben": p, NAMES[2 - seat]: 1 - p}, truth)
        for seat, row in beliefs.items()
        for at, p in enumerate(row)
    ]


SPOKEN = [SpokenMove(5, ADA, "Ben was there"), SpokenMove(6, BEN, "")]


def test_every_message_has_the_changes_of_its_listeners():
    (one,) = discussions(points(), SPOKEN, NAMES, ROLES)
    assert [(line.name, line.role, line.first) for line in one.lines] == [
        ("Ada", "crewmate", 0.2),
        ("Cia", "crewmate", 0.3),
    ]
    first, second = one.messages
    assert (first.speaker, first.role, first.step) == ("Ada", "crewmate", 5)
    assert [(cell.before, cell.after, cell.by_speaker) for cell in first.cells] == [(0.2, 0.5, True), (0.3, 0.4, False)]
    assert (first.total, second.total) == (pytest.approx(0.4), pytest.approx(-0.4))
    # by hand: +.3 and -.3 are more than a quarter, .1 is less
    assert [cell.css for cell in first.cells] == ["tk up-2", "tk up-1"]
    assert [cell.css for cell in second.cells] == ["tk down-1", "tk down-2"]


def test_who_turns_to_somebody_else_is_said_with_a_message():
    (one,) = discussions(points({ADA: (0.2, 0.7, 0.5), CIA: (0.3, 0.6, 0.1)}), SPOKEN, NAMES, ROLES)
    first, second = one.messages
    assert [cell.turned_to for cell in first.cells] == ["Ben", "Ben"]
    assert [cell.turned_to for cell in second.cells] == ["", "Ada"], "two that are equally likely are no turn"


def test_a_chart_has_a_place_for_every_answer():
    (one,) = discussions(points(), SPOKEN, NAMES, ROLES)
    assert (one.width, one.guess) == (200, 50.0)  # two messages; one of two choices is right
    assert [line.path for line in one.lines] == ["0,80 100,50 200,60", "0,70 100,60 200,90"]
    assert len({line.dash for line in one.lines}) == 2


def test_who_is_not_asked_twice_has_no_change():
    some = [point for point in points() if (point.seat, point.step) != (CIA, 6)]
    (one,) = discussions(some, SPOKEN, NAMES, ROLES)
    assert one.messages[1].cells[1] is None
    assert one.messages[1].total == pytest.approx(-0.1)
    assert one.lines[1].path == "0,70 100,60"
    late = [point for point in points() if (point.seat, point.step) != (ADA, 4)]
    assert discussions(late, SPOKEN, NAMES, ROLES)[0].lines[0].first is None


def test_messages_apart_are_discussions_of_their_own():
    answers = [*points(), *points(first=9)]
    spoken = [SpokenMove(11, CIA, "?"), *SPOKEN, SpokenMove(8, ADA, "nobody is asked after it")]
    assert [[message.speaker for message in one.messages] for one in discussions(answers, spoken, NAMES, ())] == [
        ["Ada", "Ben"],
        ["Cia"],
    ]
    assert discussions(points(truth=()), SPOKEN, NAMES, ROLES) == []
    assert discussions(points(), [SpokenMove(5, 3, "a tool's")], NAMES, ROLES) == []


def tenths(after, seat):
    """A probability that every message changes."""
    return ((7 * after + 3 * seat) % 10) / 10


@pytest.fixture
def record():
    return ship(tenths)


def of_record(record):
    course = replaying.course(record["episode"])
    return discussions(course.believed, course.spoken, course.scenario.seats, record["episode"]["roles"])


def test_the_sums_are_what_a_method_pays_for(record):
    """`belief_changes` counts the imposter's messages negative."""
    paid = belief_changes(Episode.from_dict(record["episode"]))
    course = replaying.course(record["episode"])
    shown = [message for one in of_record(record) for message in one.messages]
    assert len(shown) >= 5, "a whole discussion"
    sums = {course.ends[m.step] - 1: -m.total if m.role == "imposter" else m.total for m in shown}
    assert sums == pytest.approx(paid)


@pytest.fixture
def page(researcher, client_of):
    client = client_of(researcher)

    def get(episode, name="replay", **query):
        address = reverse(f"runs:{name}", args=[episode.run_id, episode.step, episode.number])
        return client.get(address, query).content.decode()

    return get


@pytest.mark.django_db
def test_pages_show_what_messages_changed(page, researcher, record):
    episode = make_episode(make_run(researcher), record=record)
    first = of_record(record)[0].messages[0]
    replayed, read = page(episode, viewer=ALL), page(episode, "conversation")
    for shown in (replayed, read):
        assert shown.count('<section class="discussion"') == len(of_record(record))
        assert html.escape(first.text) in shown.partition("What messages changed")[2]
        cells = re.findall(r"<small>([+-]?0\.\d\d)(?: <span|</small>)", shown)
        wanted = [
            cell.change for one in of_record(record) for message in one.messages for cell in message.cells if cell
        ]
        assert [float(cell) for cell in cells] == pytest.approx(wanted, abs=0.005)
    assert f'href="?viewer={ALL}&amp;step={first.step}"' in replayed, "its step of the replay"
    assert "What messages changed" not in page(episode, viewer=0), "a seat sees its own beliefs only"


@pytest.mark.django_db
def test_nothing_that_was_said_is_markup(page, researcher, record):
    payload = "<img src=x onerror=alert(1)>"
    for entry in record["episode"]["moves"]:
        if entry["move"]["action"] == "talk":
            entry["move"]["text"] = payload
    episode = make_episode(make_run(researcher), record=record)
    for name in ("conversation", "replay"):
        shown = page(episode, name).partition("What messages changed")[2]
        assert "<img src=x" not in shown
        assert "&lt;img src=x onerror=alert(1)&gt;" in shown
