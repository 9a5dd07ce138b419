"""The numbers of a suite's rows, worked by hand: deals as units, normalised values by seat, errors apart."""

import pytest

from training.evaluate.suite.rows import Results, ends_of, estimates
from training.records import Episode, ErrorRecord, Move, Scenario, SeatMove, Turn
from training.suites import Scale

T_1 = 12.706204736
"""Student's t at 97.5 % with one degree of freedom."""
KUHN = Scale(low=(-1 / 6, -1 / 9), high=(-1 / 18, 1 / 18))


def game(seed, returns, game="kuhn_poker", error=None, refused=0, settings=None):
    scenario = Scenario(id="start", game=game, settings=settings or {}, seats=("Ada", "Ben"), seed=seed)
    turns = [Turn(seat=0, reply="?", error="no", passed=False)] * refused
    turns.append(Turn(seat=0, reply="<BET>", move=Move(action="answer", args={"choice": "<BET>"}), passed=True))
    moves = (SeatMove(seat=0, move=turns[-1].move),)
    numbers = {0: {"unread": float(refused)}, 1: {}}
    return Episode(
        scenario=scenario, moves=moves, turns=tuple(turns), returns=dict(enumerate(returns)), error=error,
        seat_metrics=numbers,
    )  # fmt: skip


def results(seat, *episodes):
    made = Results()
    for episode in episodes:
        made.add(episode, (seat,))
    return made


def test_a_row_of_one_seat_is_moved_to_the_scale_of_the_seat():
    first = results(0, game(1, (1.0, -1.0)), game(2, (-2.0, 2.0)))
    row = estimates(KUHN, {0: first})
    half = T_1 * 3 / 2  # |1 - (-2)| / sqrt(2), over sqrt(2) deals
    assert (row["raw"].mean, row["raw"].n) == (-0.5, 2)
    assert (row["raw"].low, row["raw"].high) == pytest.approx((-0.5 - half, -0.5 + half))
    # 100 (x + 1/6) / (1/9) = 900 x + 150
    assert row["normalised"].mean == pytest.approx(-300)
    assert row["normalised"].high == pytest.approx(900 * (-0.5 + half) + 150)


def test_both_sides_are_reported_where_there_are_opponents():
    """Seat 0 gets 0.6 and 0.2 against 0.4 and 0.8, seat 1 0.5 against 0.1: means over deals, then over seats."""
    first, second, one_side, mirror = Results(), Results(), Results(), Results()
    first.add(game(1, (0.6, 0.4), "negotiation"), (0,), opposite=[1])
    first.add(game(2, (0.2, 0.8), "negotiation"), (0,), opposite=[1])
    second.add(game(1, (0.1, 0.5), "negotiation"), (1,), opposite=[0])
    row = estimates(None, {0: first})
    means = [row[name].mean for name in ("raw", "opposite", "joint")]
    assert means == pytest.approx([0.4, 0.6, 0.5])
    row = estimates(None, {0: first, 1: second})  # the deal 1 alone has a result at both seats
    means = [row[name].mean for name in ("raw", "opposite", "joint")]
    assert means == pytest.approx([(0.6 + 0.5) / 2, (0.4 + 0.1) / 2, (0.5 + 0.3) / 2])
    one_side.add(game(1, (0.6, 0.4), "negotiation"), (0, 1))
    assert (estimates(None, {0: one_side})["opposite"], estimates(None, {0: one_side})["joint"]) == (None, None)
    mirror.add(game(1, (0.6, 0.2), "negotiation"), (0, 1), opposite=[])
    of_seat = estimates(None, {0: mirror})
    assert (of_seat["opposite"], of_seat["raw"].mean, of_seat["joint"].mean) == (None, 0.6, pytest.approx(0.4))


def test_the_range_of_a_judged_game_is_that_of_the_value_for_the_goal():
    assert ends_of(game(1, (3.0, 9.0), "dialogue")) == (0, 10)
    assert ends_of(game(1, (1.0, -1.0))) == (-2, 2)


def test_over_all_seats_each_deal_counts_once_with_both_scales():
    first = results(0, game(1, (1.0, -1.0)), game(2, (-2.0, 2.0)))
    second = results(1, game(1, (2.0, -2.0)), game(2, (-1.0, 1.0)))
    row = estimates(KUHN, {0: first, 1: second})
    assert (row["raw"].mean, row["raw"].n) == (-0.5, 2)  # deals: (1 - 2) / 2, (-2 + 1) / 2
    # seat 1: 100 (x + 1/9) / (1/6) = 600 x + 200/3; deals: (1050 - 3400/3) / 2, (-1650 + 2000/3) / 2
    deals = (1050 - 3400 / 3) / 2, (-1650 + 2000 / 3) / 2
    assert row["normalised"].mean == pytest.approx(sum(deals) / 2)
    assert row["normalised"].high == pytest.approx(sum(deals) / 2 + T_1 * (deals[0] - deals[1]) / 2)


def test_a_range_moves_the_interval_of_all_seats():
    first = results(0, game(1, (1.0, -1.0), "tic_tac_toe"), game(2, (0.0, 0.0), "tic_tac_toe"))
    second = results(1, game(1, (1.0, -1.0), "tic_tac_toe"), game(2, (0.0, 0.0), "tic_tac_toe"))
    row = estimates(Scale(low=(-1.0,), high=(1.0,)), {0: first, 1: second})
    raw, normalised = row["raw"], row["normalised"]
    assert (raw.mean, normalised.mean) == (0.0, 50.0)  # 50 (x + 1)
    assert (normalised.low, normalised.high) == pytest.approx((50 * (raw.low + 1), 50 * (raw.high + 1)))


def test_repeated_games_of_one_deal_are_one_value():
    again = results(0, game(1, (1.0, -1.0)), game(1, (0.0, 0.0)), game(2, (-1.0, 1.0)))
    raw = estimates(None, {0: again})["raw"]
    assert (raw.mean, raw.n) == (-0.25, 2)  # (1/2 - 1) / 2


def test_an_error_is_counted_and_enters_no_mean():
    broken = game(2, (None, None), error=ErrorRecord(kind="engine", message="gone"))
    first = results(0, game(1, (2.0, -2.0)), broken)
    second = results(1, game(1, (1.0, -1.0)), game(2, (2.0, -2.0)))
    assert (first.games, first.played, first.errors) == (2, 1, {"engine": 1})
    assert estimates(None, {0: first})["raw"].mean == 2.0
    both = estimates(None, {0: first, 1: second})["raw"]
    assert (both.mean, both.n) == (0.5, 1)  # only the first deal has both seats
    nothing = estimates(KUHN, {0: results(0, broken)})
    assert set(nothing.values()) == {None}


def test_shares_of_replies_are_over_deals():
    made = results(0, game(1, (1.0, -1.0)), game(2, (1.0, -1.0), refused=1))
    row = estimates(None, {0: made})
    assert (row["parse_rate"].mean, row["legal_rate"].mean) == (0.75, 0.75)  # 1 and 1 of 2


def test_a_seat_that_was_never_asked_has_no_share():
    made = Results()
    made.add(game(1, (1.0, -1.0), refused=1), (0, 1))
    assert estimates(None, {1: made})["legal_rate"] is None
    assert estimates(None, {0: made, 1: made})["legal_rate"].mean == 0.5


def test_equal_results_have_an_interval_from_the_games_range():
    made = results(0, *(game(seed, (1.0, -1.0), "tic_tac_toe") for seed in range(1, 31)))
    raw = estimates(None, {0: made})["raw"]
    assert (raw.mean, raw.high) == (1.0, 1.0)
    assert raw.low == pytest.approx(1 - 2 * (1 - 0.025 ** (1 / 30)))  # Clopper-Pearson of 0 among 30


def test_the_range_is_that_of_the_settings():
    made = [game(seed, (4.0, 4.0), "hanabi", settings={"size": "mini"}) for seed in range(1, 31)]
    raw = estimates(None, {0: results(0, *made)})["raw"]
    assert (raw.mean, raw.high) == (4.0, 4.0)
    assert raw.low == pytest.approx(4 - 4 * (1 - 0.025 ** (1 / 30)))  # as above: two colours of two ranks are 4 points
    simple = game(31, (6.0, 6.0), "hanabi", settings={"size": "simple"})
    assert results(0, *made, simple).ends == {(0, 4), (0, 6)}
