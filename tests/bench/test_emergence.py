"""What the rules of the measurement of emergence read, by hand, and the lines of its page."""

import pytest

from bench import emergence, emergence_page, werewolf_setup
from bench.emergence_runs import Played
from tests.toy_models import write_random_llama
from training.records import Episode, Move, Scenario, SeatMove

ROLES = ("werewolf", "werewolf", "seer", "villager", "villager", "villager")
NAMES = ("Ada", "Ben", "Cleo", "Dan", "Eva", "Finn")


def said(seat, text, action="speak"):
    return SeatMove(seat=seat, move=Move(action=action, text=text))


@pytest.mark.parametrize(
    "text, words",
    [
        ("Would this be fair? <propose>food 2, water 1</propose>", "Would this be fair?"),
        ("<accept/>", ""),
        ("Good. <accept/>", "Good."),
    ],
)
def test_words_are_without_tags(text, words):
    assert emergence._words(text) == words


def test_turns_without_words_cannot_be_marked():
    scenario = Scenario(id="n", game="negotiation", seats=("A", "B"))
    moves = (said(0, "Hi!", "talk"), said(1, "<accept/>", "accept"), said(0, "...", "talk"))
    assert emergence._spoken(Episode(scenario=scenario, moves=moves)) == {0: (0, "Hi!")}


def test_keywords_tell_three_strategies():
    scenario = Scenario(id="n", game="negotiation", seats=("A", "B"))
    texts = ("I can spare wood. How about you?", "What do you need most?", "Would this be fair to you?", "Good.")
    episode = Episode(scenario=scenario, moves=tuple(said(at % 2, text, "talk") for at, text in enumerate(texts)))
    assert [(label.label, label.turn) for label in emergence._by_keywords(episode)] == [
        ("elicit_preference", 0),
        ("no_need", 0),
        ("elicit_preference", 1),
        ("vouch_fairness", 2),
    ]


def test_an_accusation_is_of_whom_its_sentence_names():
    episode = Episode(scenario=Scenario(id="w", game="werewolf", seats=NAMES), roles=ROLES)
    assert emergence._accused(episode, "I trust Dan. I suspect Ada. Too quiet, Eva.") == {0}
    assert emergence._accused(episode, "Dan is nice.") == set()


def test_who_earned_more():
    scenario = Scenario(id="n", game="negotiation", seats=("A", "B"))
    points = [(9, 5), (5, 9), (5, 5)]
    episodes = [
        Episode(scenario=scenario, seat_metrics={seat: {"points": float(each)} for seat, each in enumerate(pair)})
        for pair in points
    ]
    assert [emergence._earned_more(each) for each in episodes] == [[True, False], [False, True], [None, None]]


def test_the_lines_of_the_page():
    point = {"share": 0.25, "low": 0.1, "high": 0.5}
    run = {
        "seed": 0,
        "rule": {"asks": [point, {**point, "share": None}]},
        "classifier": {},
        "by_outcome": [{"p": 0.01, "q": 0.2}, {"p": 0.6, "q": 0.6}],
    }
    lines = list(emergence_page.page({"negotiation": {"runs": [run]}, "werewolf": {"runs": []}}))
    assert lines == [
        "| negotiation | 0 | asks | rule | 0.25 (0.10 to 0.50) | no turn |",
        "| negotiation | 0 | 2 | 1 | 0 |",
    ]


def test_a_classifier_sees_what_wolves_say_in_games_like_those_it_learned_from(tmp_path, monkeypatch):
    monkeypatch.setattr(emergence, "SCRIPTED", 60)
    listener = emergence._listener(str(write_random_llama(tmp_path / "model", layers=1)))
    games = werewolf_setup.scripted(40, 1)
    row = emergence._werewolf(Played(0, {"result": "succeeded", "why": ""}, {0: games}), listener)
    assert row["steps"]["0"]["games"] == 40
    assert set(row["rule"]) == set(row["classifier"]) == {"false_role", "accuses", "asks"}
    [rule], [model] = row["rule"]["accuses"], row["classifier"]["accuses"]
    wolves = [
        (seat, words)
        for game in games
        for seat, words in emergence._spoken(game).values()
        if game.roles[seat] == "werewolf"
    ]
    accusing = [
        words for _, words in wolves if any(word in words for word in ("suspect", "accuse", "distrust", "vote for"))
    ]
    assert rule["share"] == pytest.approx(len(accusing) / len(wolves))
    assert (model["places"], model["corrected"], rule["corrected"]) == (len(wolves), True, False)
    assert model["low"] <= rule["share"] <= model["high"], "the same script speaks"
    alone = emergence._werewolf(Played(0, {"result": "succeeded", "why": ""}, {0: games}), None)
    assert alone["classifier"]["accuses"] == []
    assert alone["rule"] == row["rule"]
