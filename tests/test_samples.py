"""The shipped samples are enough, valid, distinct, and each can be played."""

from collections import Counter

import pytest

from training import samples
from training.errors import BadInput
from training.games import REGISTRY, make
from training.retrieval import corpus


@pytest.mark.parametrize("name", samples.names())
def test_there_are_enough_of_each_kind(name):
    assert len(samples.load(name)) >= 10


@pytest.mark.parametrize("game", REGISTRY)
def test_every_game_has_samples(game):
    assert samples.for_game(game)


def test_every_sample_belongs_to_a_game_that_names_its_file():
    counts = {name: len(samples.load(name)) for name in samples.names()}
    assert sum(len(samples.for_game(game)) for game in REGISTRY) == sum(counts.values())


def test_every_tool_of_a_sample_question_has_a_corpus_without_repeated_ids():
    shipped = {name: list(corpus.read(path)) for name, path in samples.corpora().items()}
    tools = {tool for start in samples.for_game("qa_society") for tool in start.settings["tools"]}
    assert set(shipped) == tools
    assert all(document.title and document.text for documents in shipped.values() for document in documents)


def repeated(values):
    """Those that occur more than once."""
    return [value for value, count in Counter(values).items() if count > 1]


def test_ids_of_all_samples_differ():
    assert repeated(scenario.id for name in samples.names() for scenario in samples.load(name)) == []


@pytest.mark.parametrize("game", REGISTRY)
def test_samples_are_distinct_and_playable(game):
    scenarios = samples.for_game(game)
    assert repeated(str(scenario.settings) for scenario in scenarios) == [], "samples with the same settings"
    for scenario in scenarios:
        assert make(scenario).to_act()
        assert REGISTRY[game].label(scenario)


def test_items_can_be_traded_to_the_good_of_both():
    """In every pool some split gives both more than half of their maximum: there is something to find."""
    for scenario in samples.load("items"):
        game = make(scenario)
        halves = [game.terms.maximum(seat) / 2 for seat in (0, 1)]
        assert any(a > halves[0] and b > halves[1] for a, b in game.terms.outcomes()), scenario.id


def test_dialogues_have_two_profiles_goals_and_secrets_and_every_relationship():
    scenarios = samples.load("dialogues")
    assert {scenario.settings["relationship"] for scenario in scenarios} == set(range(6))
    for scenario in scenarios:
        for participant in scenario.settings["participants"]:
            assert participant["goal"]
            assert participant["profile"]["secret"]
            assert participant["profile"]["public_info"]


def test_villages_have_six_and_nine_players_and_varied_rules():
    scenarios = samples.load("werewolf")
    assert [len(scenario.seats) for scenario in scenarios] == [6] * 8 + [9] * 4
    assert len({scenario.seats for scenario in scenarios}) == len(scenarios)
    roles = {role for scenario in scenarios for role in scenario.settings["roles"]}
    assert roles == {"villager", "werewolf", "seer", "witch", "hunter", "guard", "doctor"}


def test_ships_are_those_of_the_method_and_all_names_are_as_long():
    """1 by 3, 2 by 2 and 2 by 3 rooms, three to five tasks, four crewmates and one imposter; cooldown 6, and 5."""
    scenarios = samples.load("among_us")
    shapes = {(s.settings["width"], s.settings["height"]) for s in scenarios}
    assert shapes == {(1, 3), (2, 2), (2, 3)}
    assert {s.settings["tasks"] for s in scenarios} == {3, 4, 5}
    assert {s.settings["cooldown"] for s in scenarios} == {5, 6}
    assert {len(name) for s in scenarios for name in s.seats} == {3}
    assert {len(s.seats) for s in scenarios} == {5}


def test_unknown_samples_are_named():
    with pytest.raises(BadInput, match=f"there are: {', '.join(samples.names())}"):
        samples.load("riddles")
    with pytest.raises(BadInput, match="unknown game 'ludo'"):
        samples.for_game("ludo")
