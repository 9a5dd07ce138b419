"""Ratings against closed forms, theorems of the model, and logs made with known strengths."""

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import brentq

from training.evaluate import ratings
from training.evaluate.ratings import LEAST_GAMES, MEAN, POINTS, RatedGame, RatedSeat, comparisons, digest, fit

BARE = 1e-6
"""A prior so light that the fit is the one of highest likelihood."""


def sigmoid(x):
    return 1 / (1 + math.exp(-x))


def duel(number, first, second, value, other=None):
    """A match of two: `value` is the first seat's result, the second has the rest of 1 unless it is given."""
    return RatedGame(
        id=number,
        seats=(RatedSeat(who=first, value=value), RatedSeat(who=second, value=1 - value if other is None else other)),
    )


def both_ways(won, lost, drawn=0):
    """Ann and Ben, each result once from either seat, so that the seat says nothing."""
    results = [1.0] * won + [0.0] * lost + [0.5] * drawn
    first = [duel(n, "ann", "ben", value) for n, value in enumerate(results)]
    return first + [duel(n, "ben", "ann", 1 - value) for n, value in enumerate(results, len(results))]


def points(ladder):
    return {rating.who: rating.points.mean for rating in ladder.ratings if rating.points}


def why(ladder):
    return {rating.who: rating.why for rating in ladder.ratings if rating.why}


@pytest.mark.parametrize("won, lost, drawn", [(3, 1, 0), (7, 3, 2), (5, 5, 0)])
def test_two_players_differ_by_the_log_odds_of_the_win_share(won, lost, drawn):
    rated = points(fit(both_ways(won, lost, drawn), prior=BARE))
    odds = (won + drawn / 2) / (lost + drawn / 2)
    assert rated["ann"] - rated["ben"] == pytest.approx(400 * math.log10(odds), abs=0.05)
    assert rated["ann"] + rated["ben"] == pytest.approx(2 * MEAN, abs=0.02)


def test_the_prior_is_a_drawn_game_of_each_against_the_average():
    """With d the difference in log-odds, the gradient of likelihood and drawn games vanishes at one d."""
    games = 20
    expected = brentq(lambda d: games * (1 - sigmoid(d)) - (sigmoid(d / 2) - 0.5), 0, 20)
    rated = points(fit(both_ways(10, 0)))
    assert (rated["ann"] - rated["ben"]) / POINTS == pytest.approx(expected, abs=1e-4)


def test_a_player_who_won_all_games_has_an_interval_with_width():
    ladder = fit(both_ways(5, 0))
    best = ladder.ratings[0]
    assert best.who == "ann"
    assert best.points.high - best.points.low > 100
    assert best.points.low < best.points.mean < best.points.high


def test_the_interval_is_students_t_of_the_changes():
    # squared changes add up to 3² + 4² = 5²; 5 games: t with four degrees of freedom is 2.776445
    estimate = ratings._interval(1010.0, np.array([3.0, -4.0]), 5)
    assert (estimate.mean, estimate.low, estimate.high) == pytest.approx((1010, 1010 - 13.88, 1010 + 13.88), abs=0.01)


def test_the_changes_are_those_of_fits_without_each_match_and_without_each_drawn_game():
    """One Newton step from the optimum, beside fits that leave a unit out. Matches of three have three comparisons."""
    rng = np.random.default_rng(4)
    log = [
        RatedGame(
            id=n,
            seats=tuple(
                RatedSeat(who=who, role=role, value=value)
                for who, role, value in zip(
                    rng.permutation(list("abcd"))[:3], "xyx", rng.permutation(3) * 1.0, strict=True
                )
            ),
        )
        for n in range(60)
    ]
    design = ratings._Design.of(log)
    whole = design.solve(1.0)
    changes = design.changes(whole, 1.0)
    assert changes.shape == (60 + len(design.columns), len(design.columns))
    for left_out in (0, 17, 59):
        fewer = ratings._Design.of(log[:left_out] + log[left_out + 1 :])
        assert fewer.columns == design.columns
        assert whole - fewer.solve(1.0) == pytest.approx(changes[left_out], abs=0.01)
    a = design.columns.index(("who", "a"))
    pull = 1 / (1 + math.exp(-whole[a])) - 0.5  # the drawn game's, against the player's own strength
    assert np.sign(changes[60 + a][a]) == -np.sign(pull)


@pytest.mark.parametrize("games, odds", [(6, 2.0), (12, 4.0), (40, 1.2), (40, 16.0)])
def test_the_interval_covers_the_true_rating_of_two_players(games, odds):
    """The chances of all numbers of wins add up; the seats alternate, and which of the games are won is drawn."""
    chance = odds / (1 + odds)
    true, covered = MEAN + POINTS * math.log(odds) / 2, 0.0
    for won in range(games + 1):
        wins = np.random.default_rng(won).permutation([1.0] * won + [0.0] * (games - won))
        log = [duel(n, *("ann", "ben")[:: 1 - 2 * (n % 2)], abs(n % 2 - win)) for n, win in enumerate(wins)]
        rating = next((rating.points for rating in fit(log).ratings if rating.who == "ann"), None)
        assert rating is not None
        covered += (
            math.comb(games, won) * chance**won * (1 - chance) ** (games - won) * (rating.low <= true <= rating.high)
        )
    assert covered >= 0.93


def test_more_games_make_the_interval_narrower():
    """Its width falls with the root of the number of games: nine times as many, a third of it."""
    widths = [(top := fit(both_ways(20 * times, 10 * times)).ratings[0].points).high - top.low for times in (1, 9)]
    assert widths[0] / widths[1] == pytest.approx(3, rel=0.25)


def made(games, strength, *, seat=0.0, seed=0):
    """Matches between players of known strengths (log-odds), the first seat being worth `seat`."""
    rng = np.random.default_rng(seed)
    log = []
    for number in range(games):
        a, b = rng.permutation(sorted(strength))[:2]
        won = rng.random() < sigmoid(strength[a] - strength[b] + seat)
        log.append(duel(number, str(a), str(b), float(won)))
    return log


def test_strengths_and_the_worth_of_a_seat_are_recovered():
    strength = {"ann": 1.0, "ben": 0.3, "cleo": -0.3, "dan": -1.0}
    ladder = fit(made(3000, strength, seat=0.6))
    for rating in ladder.ratings:
        true = MEAN + POINTS * strength[rating.who]
        assert rating.points.mean == pytest.approx(true, abs=35)
        assert rating.points.low - 20 < true < rating.points.high + 20
    first, second = ladder.seats.values()
    assert first.mean == pytest.approx(POINTS * 0.3, abs=10)
    assert second.mean == -first.mean


def test_a_seats_worth_stands_under_its_own_number():
    """At the second of three seats somebody sits who is not rated."""
    seats = [
        (RatedSeat(who=a, value=1.0), RatedSeat(value=0.0), RatedSeat(who=b, value=0.0))
        for a, b in (("ann", "ben"), ("ben", "ann"))
    ]
    worth = fit([RatedGame(id=n, seats=seats[n % 2]) for n in range(20)]).seats
    assert set(worth) == {0, 2}
    assert worth[0].mean > 100 > -100 > worth[2].mean


def test_a_player_who_always_had_the_better_seat_is_not_overrated():
    """Equal players; the first seat wins three of four games, and Ann sits there always, the others in turn."""
    log, number = [], itertools.count()
    for _ in range(40):
        for value in (1.0, 1.0, 1.0, 0.0):
            log.append(duel(next(number), "ann", "ben", value))
            log.append(duel(next(number), "ann", "cleo", value))
            log.append(duel(next(number), "ben", "cleo", value))
            log.append(duel(next(number), "cleo", "ben", value))
    rated = points(fit(log))
    assert rated["ann"] == pytest.approx(MEAN, abs=8)
    share = sum(comparison.seats[0].value for comparison in log if comparison.seats[0].who == "ann") / 320
    assert share == 0.75, "a plain win rate would put Ann 190 points above the others"


def test_a_player_who_always_had_the_strong_role_is_not_overrated():
    """Three seats a match, one wolf, who beats both others in three of four matches; Ann is always the wolf."""
    log, number = [], itertools.count()
    names = ("ann", "ben", "cleo", "dan")
    for _ in range(20):
        for wolf, others in [("ann", pair) for pair in itertools.combinations(names[1:], 2)] + [
            (name, tuple(other for other in names[1:] if other != name)) for name in names[1:]
        ]:
            for place, won in itertools.product(range(3), (True, True, True, False)):
                seats = [RatedSeat(who=other, role="villager", value=float(not won)) for other in others]
                seats.insert(place, RatedSeat(who=wolf, role="wolf", value=float(won)))
                log.append(RatedGame(id=next(number), seats=tuple(seats)))
    ladder = fit(log)
    assert points(ladder)["ann"] == pytest.approx(MEAN, abs=8)
    worth = ladder.roles["wolf"].mean - ladder.roles["villager"].mean
    assert worth == pytest.approx(400 * math.log10(3), abs=8)


def test_a_second_account_that_plays_nobody_else_carries_at_most_half_a_win():
    """However often it loses: at the optimum its own gradient is 0, so the push it gives is what its drawn game takes,
    at most half a game. Half a game over 40 even ones is 0.5 / (40 / 4) in log-odds.
    """
    honest = both_ways(10, 10)
    bought = [duel(1000 + n, "ann", "puppet", 1.0) for n in range(50)]
    bought += [duel(2000 + n, "puppet", "ann", 0.0) for n in range(50)]
    before, after = (points(fit(log)) for log in (honest, honest + bought))
    gained = (after["ann"] - after["ben"]) - (before["ann"] - before["ben"])
    assert 0 < gained <= POINTS * 0.05 * 1.1
    assert after["puppet"] < after["ben"] - 500


def test_a_team_is_not_compared_within_itself_and_a_match_weighs_one_game_to_each_seat():
    values = (1.0, 1.0, 0.0, 0.75)
    played = RatedGame(id=0, seats=tuple(RatedSeat(who=str(n), value=value) for n, value in enumerate(values)))
    weights = {
        (comparison.i, comparison.j): (comparison.share, comparison.weight) for comparison in comparisons(played)
    }
    third = pytest.approx(1 / 3)
    assert weights == {
        (0, 2): (1, third),
        (0, 3): (1, third),
        (1, 2): (1, third),
        (1, 3): (1, third),
        (2, 3): (0, third),
    }


def test_two_seats_with_equal_results_have_drawn():
    (comparison,) = comparisons(duel(0, "ann", "ben", 0.5))
    assert (comparison.share, comparison.weight) == (0.5, 1)


def test_a_guest_and_a_seat_without_a_result_are_not_compared():
    seats = (RatedSeat(who="ann", value=1), RatedSeat(value=0), RatedSeat(who="ben", value=0), RatedSeat(who="cleo"))
    (comparison,) = comparisons(RatedGame(id=0, seats=seats))
    assert (comparison.i, comparison.j, comparison.weight) == (0, 2, 1)
    assert RatedGame(id=0, seats=seats).games() == {"ann", "ben"}


def test_too_few_games_are_said_instead_of_a_number():
    log = both_ways(4, 2) + [duel(100 + n, "cleo", "ann", 1.0) for n in range(LEAST_GAMES - 1)]
    assert why(fit(log)) == {"cleo": "few"}
    assert why(fit([*log, duel(200, "cleo", "ann", 1.0)])) == {}


def test_an_unconnected_player_has_no_rating_until_the_groups_are_connected():
    apart = [duel(100 + n, "cleo", "dan", float(n % 2)) for n in range(6)]
    assert why(fit(both_ways(4, 2) + apart)) == {"cleo": "apart", "dan": "apart"}
    assert why(fit([*both_ways(4, 2), *apart, duel(200, "cleo", "ann", 1.0)])) == {}


@pytest.mark.parametrize("ties", [0, 40])
def test_a_player_with_only_shared_results_is_unconnected(ties):
    team = [
        RatedGame(
            id=500 + n, seats=tuple(RatedSeat(who=who, role="villager", value=1.0) for who in ("xan", "yve", "zoe"))
        )
        for n in range(12)
    ]
    tied = [
        RatedGame(id=600 + n, seats=tuple(RatedSeat(who=who, value=0.0) for who in ("pia", "ann", "ben")))
        for n in range(ties)
    ]
    ladder = fit([*both_ways(4, 2), *team, *tied])
    shared = {"xan", "yve", "zoe", *({"pia"} if ties else ())}
    assert why(ladder) == dict.fromkeys(shared, "apart")
    assert {rating.who for rating in ladder.ratings if rating.points} == {"ann", "ben"}


def test_a_log_without_a_winner_rates_nobody():
    assert why(fit(both_ways(0, 0, 5))) == {"ann": "level", "ben": "level"}


@pytest.mark.parametrize("log", [[], [RatedGame(id=1, seats=(RatedSeat(who="ann"), RatedSeat(who="ben")))]])
def test_a_log_without_results_rates_nobody(log):
    ladder = fit(log)
    assert points(ladder) == {}
    assert why(ladder) == {seat.who: "few" for played in log for seat in played.seats}


def test_a_model_against_itself_measures_only_the_seat():
    itself = [duel(100 + n, "ann", "ann", 1.0) for n in range(40)]
    before, after = fit(both_ways(6, 3)), fit(both_ways(6, 3) + itself)
    assert after.seats[0].mean > before.seats[0].mean + 100
    assert {rating.who: rating.games for rating in after.ratings} == {"ann": 18, "ben": 18}
    assert points(after)["ann"] > points(after)["ben"]


def test_the_same_log_in_any_order_gives_the_same_bits():
    log = made(60, {"ann": 0.5, "ben": 0.0, "cleo": -0.5})
    shuffled = [log[n] for n in np.random.default_rng(3).permutation(len(log))]
    assert fit(log).model_dump_json() == fit(shuffled).model_dump_json()


def test_the_digest_is_of_all_that_the_fit_reads(monkeypatch):
    log = both_ways(2, 1)
    changed = [*log[:-1], duel(log[-1].id, "ben", "ann", 0.25)]
    other_number = [*log[:-1], log[-1].model_copy(update={"id": 99})]
    digests = {digest(log), digest(log[:-1]), digest(changed), digest(other_number)}
    assert digest(log[::-1]) == digest(log) == fit(log).digest
    monkeypatch.setattr(ratings, "METHOD", "another")
    assert len(digests | {digest(log)}) == 5
