"""Episodes of many seats: roles, recipients of messages, every viewpoint step by step, and beliefs over time."""

import html
import re

import pytest
from django.urls import reverse

from tests.games.play import steps
from tests.webapp.runs.making import RECORD, make_episode, make_run, village
from training.games import make, replay
from training.records import ALL, SPECTATOR, Scenario, SeatMove
from webapp.runs.episodes import beliefs, replaying
from webapp.runs.episodes.beliefs import BeliefPoint

NAMES = ("Ada", "Ben", "Cleo", "Dan")
PAYLOAD = "<img src=x onerror=alert(1)>"
QUESTION = "Whom would you vote for now?"


def belief(seat, after, truth=("Ada", "Ben"), **probabilities):
    return {"seat": seat, "after": after, "question": QUESTION, "probabilities": probabilities, "truth": list(truth)}


def test_the_right_choices_are_taken_together():
    """By hand: 0.5 + 0.25 on two right ones of four; an even guess gives 2 / 4."""
    point = BeliefPoint(1, 2, QUESTION, {"Ada": 0.5, "Ben": 0.25, "Dan": 0.125, "Eve": 0.125}, ("Ada", "Ben"))
    assert point.shares == (0.75, 0.5)
    assert BeliefPoint(1, 0, QUESTION, {"Dan": 1.0, "Eve": 0.0}).shares == (None, None)


def test_a_step_shows_the_newest_probe_up_to_it():
    points = [
        BeliefPoint(2, 3, QUESTION, {"Ada": 0.4, "Ben": 0.6}, ("Ada",)),
        BeliefPoint(2, 0, QUESTION, {"Ben": 0.3, "Dan": 0.7}),
        BeliefPoint(5, 3, QUESTION, {"Ada": 1.0, "Ben": 0.0}, ("Ada",)),
    ]
    assert beliefs.at_step(points, NAMES, 1) == []
    (early,) = beliefs.at_step(points, NAMES, 4)
    assert (early.step, early.names) == (2, ["Ada", "Dan"])
    assert early.rows == [
        ("Ada", True, [None, 0.4]),
        ("Ben", False, [0.3, 0.6]),
        ("Dan", False, [0.7, None]),
    ]
    (late,) = beliefs.at_step(points, NAMES, 9)
    assert (late.step, late.names) == (5, ["Dan"])


def test_over_time_is_by_seat_and_in_order():
    points = [
        BeliefPoint(7, 3, QUESTION, {"Ada": 1.0, "Ben": 0.0}, ("Ada",)),
        BeliefPoint(2, 3, QUESTION, {"Ada": 0.4}),
    ]
    points.append(BeliefPoint(2, 0, QUESTION, {"Ben": 1.0}))
    wolf, other = beliefs.over_time(points, NAMES, ["werewolf", "seer", "witch", "villager"])
    assert (wolf.name, wolf.role, wolf.scored) == ("Ada", "werewolf", False)
    assert (other.name, other.scored, [point.step for point in other.points]) == ("Dan", True, [2, 7])


def test_a_course_has_the_steps_phases_and_channels_of_its_game():
    episode = village()["episode"]
    course = replaying.course(episode)
    game = make(Scenario.from_dict(episode["scenario"]))
    ends, phases = [0], []
    for moves in steps(game, seed=3):  # the same game, played again
        phases += [game.show(ALL).phase] * len(moves)
        ends.append(ends[-1] + len(moves))
    assert course.ends == ends
    assert [course.phases[place] for place in range(len(phases))] == phases
    said = [line for line in game.observe(ALL).messages if line.author is not None]
    apart = [line.channel for line in said if line.channel != "public"]
    assert "wolves only" in course.channels.values()
    assert len(course.channels) == len(apart)
    assert [course.step_of(moves) for moves in (0, ends[1], ends[2], ends[-1])] == [0, 1, 2, course.steps]


def test_a_conversation_ends_with_what_the_game_says(page, researcher):
    episode = village()["episode"]
    closing = replaying.course(episode).closing
    assert [line.text for line in make_again(episode).observe(ALL).messages][-len(closing) :] == list(closing)
    assert any("win" in line for line in closing)
    assert replaying.course({**episode, "moves": episode["moves"][:6]}).closing == ()
    shown = text(page(make_episode(make_run(researcher), record=village()), "conversation"))
    assert shown.index(html.escape(closing[-1])) > shown.rindex('class="utterance"')


def test_a_game_without_a_word_does_not_end_with_its_rules():
    game = make(Scenario.from_dict(village()["episode"]["scenario"]))
    moves = []
    while game.to_act():
        step = {seat: game.default(seat) for seat in sorted(game.to_act())}
        game.step(step)
        moves += [SeatMove(seat=seat, move=move).to_dict() for seat, move in step.items()]
    closing = replaying.course({"scenario": game.scenario.to_dict(), "moves": moves}).closing
    assert "win" in closing[-1]
    assert len(closing) < 15


def make_again(episode):
    return replay(Scenario.from_dict(episode["scenario"]), [SeatMove.from_dict(move) for move in episode["moves"]])


def test_what_cannot_be_folded_has_no_course():
    episode = village()["episode"]
    assert replaying.course({**episode, "scenario": {**episode["scenario"], "game": "no such game"}}) is None
    assert replaying.course({**episode, "moves": episode["moves"][1:]}) is None
    assert replaying.course({**episode, "moves": [{"seat": "x"}]}) is None
    assert replaying.course({**episode, "beliefs": [{"seat": 0}]}) is None


@pytest.fixture
def page(researcher, client_of):
    client = client_of(researcher)

    def get(episode, name="replay", **query):
        address = reverse(f"runs:{name}", args=[episode.run_id, episode.step, episode.number])
        return client.get(address, query)

    return get


def text(response):
    assert response.status_code == 200
    return response.content.decode()


@pytest.mark.django_db
def test_every_viewpoint_shows_its_own_log_step_by_step(page, researcher):
    record = village()
    episode = make_episode(make_run(researcher), record=record)
    scenario = Scenario.from_dict(record["episode"]["scenario"])
    course = replaying.course(record["episode"])
    for viewer in (ALL, SPECTATOR, 0, 5):
        for step in (0, 3, course.steps):
            shown = text(page(episode, viewer=viewer, step=step))
            moves = [SeatMove.from_dict(move) for move in record["episode"]["moves"][: course.ends[step]]]
            game = replay(scenario, moves)
            assert shown.count('class="row-line') == len(game.observe(viewer).messages)
            phase = game.show(viewer).phase
            assert re.findall(r'<p class="phase">(.*?)</p>', shown) == ([phase] if phase else [])
            revealed = viewer == ALL or step == course.steps
            assert re.findall(r'<span class="role">(\w+)</span>', shown) == (list(game.roles()) if revealed else [])
    wolves = "wolves only</span>"
    assert wolves in text(page(episode, viewer=0))
    assert wolves not in text(page(episode, viewer=2))
    for wrong in ({"viewer": 6}, {"viewer": "x"}, {"step": course.steps + 1}, {"step": -1}):
        assert page(episode, **wrong).status_code == 404


@pytest.mark.django_db
def test_a_dialogue_says_roles_phases_and_channels(page, researcher):
    shown = text(page(make_episode(make_run(researcher), record=village()), "conversation"))
    assert '<strong>Ada</strong> <span class="role">werewolf</span> <span class="channel">wolves only</span>' in shown
    assert '<li class="phase">Night 1' in shown
    assert "Step by step" in shown
    assert "<h2>Beliefs</h2>" not in shown


@pytest.mark.django_db
def test_beliefs_are_shown_with_their_numbers(page, researcher):
    course = replaying.course(village()["episode"])
    first, second = course.ends[3], course.ends[5]
    beliefs = [
        belief(2, first, Ada=0.5, Ben=0.25, Dan=0.125, Eve=0.125),
        belief(0, first, truth=(), Cleo=0.9, Dan=0.1),
        belief(2, second, Ada=0.0625, Ben=0.0, Dan=0.9375),
        belief(9, second, Ada=1.0, Ben=0.0),  # nobody sits there
    ]
    episode = make_episode(make_run(researcher), record=village(beliefs=beliefs))
    shown = text(page(episode, step=4))
    assert "asked after game step 3" in shown
    assert '<tr><th scope="row">Ada <span class="right-answer">right</span></th><td class="number">—</td>' in shown
    assert '<td class="number">0.90</td><td class="number">—</td>' in shown, "Cleo, whom only Ada can name"
    curve = re.findall(r'data-value="([^"]*)"', shown)
    assert curve == ["3", "0.7500", "0.5000", "5", "0.0625", "0.6667"]
    assert "No answer is right for this seat." in shown
    assert re.findall(r'data-value="([^"]*)"', text(page(episode, "conversation"))) == curve
    seat_page = text(page(episode, viewer=0, step=4))
    assert "data-value" not in seat_page, "the seat of viewpoint 0 was asked something without a right answer"
    assert "0.90" in seat_page
    assert "Spectators are not probed." in text(page(episode, viewer=SPECTATOR))


@pytest.mark.django_db
def test_nothing_of_a_game_of_many_seats_is_markup(page, researcher):
    names = ('Ben & "Co"', "Ada", "Cleo", "Dan", "Eve", "Finn")
    beliefs = [belief(2, 0, truth=(PAYLOAD,), **{PAYLOAD: 0.5, names[0]: 0.5}) | {"question": PAYLOAD}]
    record = village(names, beliefs=beliefs, roles=[PAYLOAD] * 6)
    for turn in record["episode"]["turns"]:
        turn["reply"] = turn["private"] = PAYLOAD
    spoken = next(move["move"] for move in record["episode"]["moves"] if move["move"]["action"] == "speak")
    spoken["text"] = PAYLOAD
    episode = make_episode(make_run(researcher), record=record)
    for name in ("conversation", "replay"):
        shown = text(page(episode, name))
        assert "<img src=x" not in shown
        assert "&lt;img src=x onerror=alert(1)&gt;" in shown
        assert "Ben &amp; &quot;Co&quot;" in shown


@pytest.mark.django_db
def test_a_record_that_cannot_be_folded_is_still_a_dialogue(page, researcher):
    episode = make_episode(make_run(researcher), record=RECORD)
    shown = text(page(episode, "conversation"))
    assert "hello" in shown
    assert "Step by step" not in shown
    assert page(episode).status_code == 404
