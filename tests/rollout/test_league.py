"""PFSP by hand: the weights of both forms, which results count at which step, and how often opponents are drawn."""

from collections import Counter

import pytest

from tests.evaluate import hidden_roles
from tests.table_talk import negotiation
from training.opponent_sections import Opponent
from training.records import LEARNER, Scenario
from training.rollout.league import WEIGHTINGS, Cell, Table, bounds, mean_result
from training.rollout.pool import Pool, column


@pytest.fixture(autouse=True)
def game(monkeypatch):
    from training.games import REGISTRY

    monkeypatch.setitem(REGISTRY, "hidden", hidden_roles.SPEC)


def cell(step, opponent, mean, *, low=0.0, high=1.0, after=None, learner="one"):
    return Cell(
        step=step, opponent=opponent, learner=learner, results=(mean,), others=(low + high - mean,), low=low, high=high,
        games=2, after=step if after is None else after, first=16384,
    )  # fmt: skip


def pool(*entries, pfsp="hard", cells=(), loaded=1, seed=1, lag=0):
    made = Pool(entries, seed, save_every=5, saved=3, loaded=loaded, pfsp=pfsp, lag=lag)
    made.table.add(cells)
    return made


def entry(source, weight=1.0, learner="one"):
    return Opponent(source=source, weight=weight, learner=learner)


def test_the_weights_of_both_forms():
    # (1 - p)^2 and p (1 - p) at p = 0, 1/4, 1/2, 1
    assert [WEIGHTINGS["hard"](p) for p in (0, 0.25, 0.5, 1)] == [1, 0.5625, 0.25, 0]
    assert [WEIGHTINGS["variance"](p) for p in (0, 0.25, 0.5, 1)] == [0, 0.1875, 0.25, 0]


def start(game, **settings):
    return Scenario(id=game, game=game, settings=settings, seats=("Ada", "Ben"))


def test_a_result_is_mapped_by_the_games_own_scale():
    assert cell(5, "nash", -1, low=-2, high=2).score == 0.25  # Kuhn poker: from -2 to 2
    kuhn, tic = start("kuhn_poker"), start("tic_tac_toe")
    assert bounds([kuhn, kuhn]) == (-2, 2)
    assert bounds([kuhn, tic]) == (0, 1)
    # a mixture's games are on one scale: -1 of Kuhn's -2 to 2, and 0 of tic-tac-toe's -1 to 1
    assert mean_result(kuhn, {0: -1, 1: 1}, (0,), (0, 1)) == 0.25
    assert mean_result(tic, {0: 0, 1: 0}, (1,), (0, 1)) == 0.5
    assert mean_result(kuhn, {0: -1, 1: 1}, (0,), (-2, 2)) == -1


def test_the_scale_is_that_of_the_scenarios_settings():
    mini, simple = start("hanabi", size="mini"), start("hanabi", size="simple")
    assert bounds([mini]) == (0, 4)  # two colours of two ranks
    assert bounds([simple]) == (0, 6)
    assert bounds([mini, simple]) == (0, 1)
    assert [mean_result(each, {0: 3, 1: 3}, (0,), (0, 1)) for each in (mini, simple)] == [0.75, 0.5]


CELLS = [
    cell(10, "past 0", 0.8), cell(10, "past 5", 0.5), cell(0, "past 10", 0.2, after=10),
    cell(5, "past 0", 0.1), cell(5, "scripted", 0.9), cell(10, "scripted", 0.4),
]  # fmt: skip


def test_the_weights_of_a_step():
    league = pool(entry("past", 2), entry("scripted"), cells=CELLS)
    # past 10 is met by no later checkpoint, and by the earlier ones alone, which do not count: p = 1/2
    assert league.weights(league.entries[0], 11) == [
        ("past 0", pytest.approx(2 * 0.04)), ("past 5", pytest.approx(2 * 0.25)), ("past 10", pytest.approx(2 * 0.25)),
    ]  # fmt: skip
    assert league.weights(league.entries[1], 11) == [("scripted", pytest.approx(0.36))]
    # step 10 is played before the evaluation after it: the results of step 5 count
    assert league.weights(league.entries[0], 10) == [("past 0", pytest.approx(2 * 0.81)), ("past 5", 2 * 0.25)]
    assert league.weights(league.entries[1], 10) == [("scripted", pytest.approx(0.01))]
    # before any evaluation every opponent has p = 1/2
    assert league.weights(league.entries[1], 5) == [("scripted", 0.25)]
    even = pool(entry("scripted"), pfsp="variance", cells=CELLS)
    assert even.weights(even.entries[0], 11) == [("scripted", pytest.approx(0.24))]


def test_results_count_for_their_own_seats_alone():
    wolves = entry("scripted", learner=("werewolf",))
    league = pool(
        wolves, entry("scripted"), cells=[cell(5, "scripted", 0.9), cell(5, "scripted", 0.0, learner="werewolf")]
    )
    assert league.weights(wolves, 6) == [("scripted", 1.0)]
    assert league.weights(league.entries[1], 6) == [("scripted", pytest.approx(0.01))]


def test_shares_leave_the_mirror_its_part():
    league = pool(entry("mirror", 3), entry("past"), entry("scripted"), cells=CELLS)
    # the weights are 0.04 + 0.25 + 0.25 = 0.54 and 0.36; the part of both is 2 of 5
    assert league.shares(league.entries, 11) == pytest.approx([3, 2 * 0.54 / 0.9, 2 * 0.36 / 0.9])


def test_where_everybody_is_beaten_for_certain_all_are_drawn_alike():
    league = pool(entry("random"), entry("scripted", 3), cells=[cell(5, "random", 1.0), cell(5, "scripted", 1.0)])
    assert league.shares(league.entries, 6) == pytest.approx([1, 3])
    past = pool(entry("past"), cells=[cell(10, f"past {step}", 1.0) for step in (0, 5)])
    drawn = Counter(past.past(step)[0] for step in range(11, 15))
    assert drawn == {10: 4}  # the newest is not beaten: p = 1/2


@pytest.mark.parametrize("loaded", [1, 2])
def test_opponents_are_drawn_as_often_as_the_weights_say(loaded):
    """Over many seeds, since a step loads few of the past selves: 4,000 games with shares of 4, 25, 25 and 36 of 90."""
    drawn = Counter()
    for seed in range(1000):
        league = pool(entry("past"), entry("scripted"), cells=CELLS, loaded=loaded, seed=seed)
        assert len(league.past(11)) <= loaded
        for number in range(4):
            [other] = {*league.seats(negotiation(), 11, number)} - {LEARNER}
            drawn[other] += 1
    expected = {"past 0": 4 / 90, "past 5": 25 / 90, "past 10": 25 / 90, "scripted": 36 / 90}
    # the four games of a seed share their past self: at most 1,000 independent draws, a standard deviation below 1/60
    assert {name: drawn[name] / 4000 for name in expected} == pytest.approx(expected, abs=4 / 60)
    assert sum(drawn.values()) == 4000


def test_without_results_the_draws_are_those_of_a_pool():
    entries = (entry("mirror"), entry("past"), entry("scripted"))
    plain = Pool(entries, 7, save_every=5, saved=3, loaded=2)
    league = pool(*entries, pfsp="none", cells=CELLS, loaded=2, seed=7)
    seats = [[p.seats(negotiation(), step, n) for step in range(1, 30) for n in range(8)] for p in (plain, league)]
    assert seats[0] == seats[1]


def test_a_table_keeps_the_newest_result_of_a_pair():
    table = Table(CELLS)
    table.add([cell(10, "past 0", 0.3)])
    assert len(list(table)) == len(CELLS)
    assert [each.score for each in table if (each.step, each.opponent) == (10, "past 0")] == [0.3]
    assert [each.to_dict() for each in Table.from_list(table.to_list())] == table.to_list()


def test_columns_name_opponents_without_addresses_and_paths():
    assert column("past 10") == "past 10"
    assert column("mcts:100") == "mcts:100"
    assert column("https://host.example/v1 model SECRET_KEY") == "model"
    assert column("/srv/files/checkpoints/run-3-step-40") == "run-3-step-40"


def test_with_a_lag_results_count_when_the_weights_that_play_are_those_after_them():
    """A defeat after step 10 (unplayed: 1/2) counts from step 11; with a lag of 2 from 13, which plays step 10's."""
    cells = [cell(10, "scripted", 0.0)]
    for lag, first in ((0, 11), (2, 13)):
        drawn = pool(entry("scripted"), cells=cells, lag=lag)
        weights = [drawn.weights(drawn.entries[0], step) for step in (first - 1, first)]
        assert weights == [[("scripted", 0.25)], [("scripted", 1.0)]], lag
