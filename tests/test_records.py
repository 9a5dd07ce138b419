"""Records that an earlier version wrote still read."""

import pytest

from training.records import Episode, split_seat_metrics

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
