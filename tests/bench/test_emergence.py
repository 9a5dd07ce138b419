"""What the rules of the measurement of emergence read, by hand, and the lines of its page."""

import pytest

from bench import emergence, emergence_page, emergence_runs, werewolf_setup
from bench.emergence_runs import Played
from tests.toy_models import write_random_llama
from training import samples
from training.dataset import Conversation, DatasetLine
from training.records import Episode, Label, Move, Scenario, SeatMove

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
        "agreement": {"0": 0.5, "10": 0.25},
        "steps": {"0": {"turns": 9}, "10": {"turns": 0}},
        "rule": {"asks": [point, {**point, "share": None}]},
        "classifier": {},
        "compared": {
            "asks": {
                "all": {
                    "kappa": 0.5, "low": 0.25, "high": 0.75, "turns": 9, "by_rule": 4, "by_classifier": 3, "by_both": 2
                }
            }
        },
        "by_outcome": [{"p": 0.01, "q": 0.2}, {"p": 0.6, "q": 0.6}],
    }  # fmt: skip
    errors = {"asks": {"sensitivity": {"share": 0.75}, "specificity": {"share": 0.9}}}
    lines = list(emergence_page.page({"negotiation": {"classifier": {"errors": errors}, "runs": [run]}}))
    assert [line for line in lines if line and not line.startswith("|---")] == [
        "## Negotiation",
        "| seed | held-out games | step 0 | step 10 |",
        "| 0 | share with an agreement | 0.50 | 0.25 |",
        "| 0 | turns that could be labelled | 9 | 0 |",
        "The classifier's sensitivity and specificity: `asks` 0.75 and 0.90.",
        "| seed | label | by | step 0 | step 10 |",
        "| 0 | asks | rule | 0.25 (0.10 to 0.50) | no turn |",
        emergence_page.COMPARED,
        "| seed | label | κ | turns | by rule | by classifier | by both |",
        "| 0 | asks | 0.50 (0.25 to 0.75) | 9 | 4 | 3 | 2 |",
        emergence_page.BY_OUTCOME,
        "| seed | rows | p up to 0.05 | q up to 0.05 |",
        "| 0 | 2 | 1 | 0 |",
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
    agreed = row["compared"]["accuses"]["0"]
    assert (agreed["turns"], agreed["by_rule"]) == (len(wolves), len(accusing))
    assert agreed["by_both"] <= min(agreed["by_rule"], agreed["by_classifier"])
    assert agreed["low"] <= agreed["kappa"] <= agreed["high"]
    assert row["compared"]["accuses"]["all"] == agreed, "there is one checkpoint"
    assert (model["places"], model["corrected"], rule["corrected"]) == (len(wolves), True, False)
    assert model["low"] <= rule["share"] <= model["high"], "the same script speaks"
    alone = emergence._werewolf(Played(0, {"result": "succeeded", "why": ""}, {0: games}), None)
    assert alone["classifier"]["accuses"] == []
    assert alone["compared"] == {}
    assert alone["rule"] == row["rule"]


def test_rule_and_classifier_are_compared_turn_by_turn():
    """Both label turn 0, the rule alone turn 1, neither turns 2 and 3: po = 3/4, pe = 2/4·1/4 + 2/4·3/4, κ = 1/2."""
    scenario = samples.load("items")[0]
    moves = tuple(said(at % 2, "Good.", "talk") for at in range(4))
    step = emergence._read(Played(0, {}, {7: [Episode(scenario=scenario, moves=moves)]}))[0]

    def labelled(*turns):
        labels = [Label(label="no_need", value=True, turn=turn) for turn in turns]
        return [step.checkpoint(emergence.NEGOTIATION, lambda *_: labels, lambda _: [None, None])]

    codebook = emergence._only(emergence.NEGOTIATION, ["no_need"])
    row = emergence._compared(labelled(0, 1), labelled(0), codebook)
    assert row["no_need"]["7"] == {
        "kappa": pytest.approx(0.5), "low": None, "high": None, "turns": 4, "games": 1,
        "by_rule": 2, "by_classifier": 1, "by_both": 1,
    }  # fmt: skip


def test_plain_starts_keep_the_points():
    items = [{"name": "food", "count": 3}]
    sides = [{"values": {"food": 5}, "reasons": {"food": "hunger"}, "walk_away": 5}] * 2
    deal = {"kind": "items", "story": "Two campers.", "items": items, "sides": sides}
    scenario = Scenario(id="n", game="negotiation", seats=("A", "B"), settings={"deal": deal, "first_seat": 0})
    spoken = Conversation(source="people", episode=Episode(scenario=scenario, moves=(said(0, "Hi!", "talk"),)))
    plain = emergence_runs._plain(DatasetLine(scenario=scenario, conversations=(spoken,)))
    assert plain.scenario.settings["first_seat"] == 0
    assert plain.scenario.settings["deal"] == {
        **deal, "story": "", "sides": [{"values": {"food": 5}, "reasons": {}, "walk_away": 5}] * 2
    }  # fmt: skip
    assert plain.conversations[0].episode.scenario == plain.scenario
    assert plain.conversations[0].episode.moves == spoken.episode.moves
