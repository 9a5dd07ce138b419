"""Records that an earlier version wrote still read."""

import json

import pytest

from training.errors import BadInput
from training.reading import split_seat_metrics
from training.records import Episode, Scenario, Trace, Turn

OLD = {
    "version": 1,
    "scenario": {"version": 1, "id": "s", "game": "negotiation", "settings": {}, "seats": ["Ada", "Ben"], "seed": 1},
    "moves": [],
    "turns": [],
    "traces": [],
    "returns": {"0": 0.5, "1": 0.25},
    "metrics": {"agreement": 1.0, "points_0": 18.0, "points_1": 9.0, "unread_0": 0.0, "turns": 7.0, "level_2": 3.0},
    "roles": [],
    "beliefs": [],
    "error": None,
}
"""An episode as release 0.1.0 wrote it."""

TURN = {"seat": 0, "reply": "hi", "move": {"action": "say"}, "passed": True}
TRACE = {"seat": 0, "tokens": [1, 2], "mask": [0, 1], "turn": [-1, 0], "logprobs": [0.0, -0.5]}


def test_an_old_episodes_numbers_go_to_their_seats():
    episode = Episode.from_dict(OLD)
    assert episode.metrics == {"agreement": 1.0, "turns": 7.0, "level_2": 3.0}  # there is no seat 2
    assert episode.seat_metrics == {0: {"points": 18.0, "unread": 0.0}, 1: {"points": 9.0}}


def test_they_go_there_once():
    """A number of the game that ends in a digit is its own once the seats have theirs."""
    written = Episode.from_dict(OLD).model_copy(update={"metrics": {"level_1": 2.0}}).to_dict()
    episode = Episode.from_dict(written)
    assert episode.metrics == {"level_1": 2.0}
    assert episode.seat_metrics == Episode.from_dict(OLD).seat_metrics
    assert episode.to_dict() == written


@pytest.mark.parametrize(
    "name, seat, number", [("won_2", 2, "won"), ("won_3", None, ""), ("agreement", None, ""), ("a_b_0", 0, "a_b")]
)
def test_which_seat_a_number_in_the_old_form_is_about(name, seat, number):
    expected = ({name: 1.0}, {}) if seat is None else ({}, {seat: {number: 1.0}})
    assert split_seat_metrics({name: 1.0}, 3) == expected


def test_fields_that_are_gone_are_left_out():
    assert Turn.from_dict({**TURN, "voice": "player", "reward": 0.0}) == Turn.from_dict(TURN)
    assert Trace.from_dict({**TRACE, "voice": "strategist"}) == Trace.from_dict(TRACE)
    assert "voice" not in Trace.from_dict({**TRACE, "voice": "player"}).to_dict()


def test_choices_of_a_trace_are_written_where_there_are_any():
    trace = Trace.from_dict({**TRACE, "choices": {"1": [2, 7]}})
    assert trace.choices == {1: (2, 7)}
    assert Trace.from_dict(json.loads(json.dumps(trace.to_dict()))) == trace
    assert "choices" not in Trace.from_dict(TRACE).to_dict()


@pytest.mark.parametrize("choices", [{"2": [2, 7]}, {"-1": [2]}, {"1": [7, 8]}, {"1": []}])
def test_choices_must_contain_the_token_at_their_position(choices):
    with pytest.raises(BadInput, match="has no token among"):
        Trace.from_dict({**TRACE, "choices": choices})


def test_other_unknown_fields_are_refused():
    with pytest.raises(BadInput) as caught:
        Trace.from_dict({**TRACE, "voice": "player", "choir": 1})
    assert caught.value.where == "choir"


def test_an_episode_without_seat_metrics_reads_and_seats_are_numbers_again():
    scenario = Scenario(id="s", game="werewolf", seats=("A", "B"))
    old = {"scenario": scenario.to_dict(), "turns": [{**TURN, "voice": "player"}], "traces": [TRACE]}
    assert Episode.from_dict(old).seat_metrics == {}
    episode = Episode(scenario=scenario, seat_metrics={1: {"eliminated": 1.0}})
    assert Episode.from_dict(json.loads(json.dumps(episode.to_dict()))) == episode


def belief_row(trace, span):
    return {"seat": 0, "after": 0, "question": "?", "probabilities": {"A": 1.0}, "trace": trace, "span": span}


@pytest.mark.parametrize(
    "prefix, belief, why",
    [
        ((0, 2), (1, (0, 2)), ""),
        ((0, 3), (1, (0, 2)), "traces.1: its prefix"),  # trace 0 has two tokens
        ((0, 0), (1, (0, 2)), "traces.1: its prefix"),
        ((1, 1), (1, (0, 2)), "traces.1: its prefix"),  # a prefix of a trace that has one itself
        ((2, 1), (1, (0, 2)), "traces.1: its prefix"),  # of another seat
        ((3, 1), (1, (0, 2)), "traces.1: its prefix"),
        ((0, 2), (1, (1, 3)), "beliefs.0: its span"),
        ((0, 2), (1, (1, 1)), "beliefs.0: its span"),
        ((0, 2), (3, (0, 1)), "beliefs.0: its span"),
    ],
)
def test_the_places_of_a_probe_are_in_the_episode(prefix, belief, why):
    row = {"mask": [0, 0], "turn": [-1, -1], "logprobs": [0.0, 0.0], "tokens": [5, 6]}
    traces = [{"seat": 0, **row}, {"seat": 0, **row, "prefix": prefix}, {"seat": 1, **row}]
    scenario = {"id": "s", "game": "negotiation", "seats": ["Ann", "Bob"]}
    data = {"scenario": scenario, "traces": traces, "beliefs": [belief_row(*belief)]}
    if not why:
        assert Episode.from_dict(data).traces[1].prefix == prefix
        return
    with pytest.raises(BadInput, match=why):
        Episode.from_dict(data)
