"""The information-provision game against hand computation and OpenSpiel's NashConv of every pure profile."""

import random
from fractions import Fraction
from itertools import product
from statistics import fmean

import numpy as np
import pyspiel
import pytest

from training.errors import BadInput
from training.evaluate.provision import ProvisionGame, equilibria, exact

CASES = 1000


def names(*game):
    return ["".join(profile) for profile in equilibria(*game)]


# --- by hand ---------------------------------------------------------------------------------------------------------


def test_payoffs_of_two_players_are_those_of_the_papers_table():
    game = ProvisionGame.read(["0.7", "0.5"], "0.45", "0.02")
    rows = {profile: [float(payoff) for payoff in game.payoffs(profile)] for profile in ("SS", "SG", "GS", "GG")}
    assert rows == {"SS": [0.58, 0.58], "SG": [0.68, 0.7], "GS": [0.5, 0.48], "GG": [0.45, 0.45]}
    # from SS: player 1 would give up .1 and save .02, player 2 leaves the better answer to player 1
    assert [float(gain) for gain in game.gains("SS")] == [-0.08, 0.12]
    assert [float(gain) for gain in game.gains("GG")] == [0.23, 0.03]


@pytest.mark.parametrize(
    "accuracies, guess, cost, expected",
    [
        (["0.7", "0.5", "0.4"], "0.45", "0.02", ["SGG"]),
        (["0.4", "0.5", "0.7"], "0.45", "0.02", ["GGS"]),
        (["0.7", "0.5"], "0.45", "0.02", ["SG"]),  # .7 − .5 > .04
        (["0.7", "0.68"], "0.45", "0.02", ["SG", "GS"]),  # .02 ≤ .04, and .68 − .02 ≥ .45
        (["0.7", "0.46"], "0.45", "0.2", ["SG"]),  # .24 ≤ .4, but .46 − .2 < .45
        (["0.46", "0.3"], "0.45", "0.02", ["GG"]),  # .44 < .45
        (["0.7", "0.69", "0.68"], "0.5", "0.01", ["SGG", "GSG", "GGS"]),  # .02 ≤ .02: a tie
        (["0.7", "0.69", "0.68"], "0.5", "0.009", ["SGG", "GSG"]),  # .01 ≤ .018 < .02
        (["0", "0"], "0", "0.1", ["GG"]),
        (["1", "1"], "1", "0", ["SS", "SG", "GS", "GG"]),
    ],
)
def test_equilibria_by_hand(accuracies, guess, cost, expected):
    assert names(accuracies, guess, cost) == expected


def test_ties_give_weak_equilibria():
    # .5 − .05 = .45: searching is worth exactly its cost, so searching and guessing are both best responses
    assert names(["0.5", "0.3"], "0.45", "0.05") == ["SG", "GG"]
    assert names(["0.5", "0.5"], "0.45", "0.05") == ["SG", "GS", "GG"]
    # .6 − .5 = 2 · .05: player 1 may answer as well or leave it to player 2
    assert names(["0.6", "0.5"], "0.2", "0.05") == ["SG", "GS"]


def test_several_search_only_at_no_cost_and_with_the_highest_accuracy():
    assert names(["0.6", "0.6", "0.5"], "0.2", "0") == ["SSG", "SGG", "GSG"]
    assert names(["0.6", "0.6", "0.6"], "0.2", "0") == ["SSS", "SSG", "SGS", "SGG", "GSS", "GSG", "GGS"]
    assert names(["0.6", "0.6"], "0.2", "0.000001") == ["SG", "GS"]
    # no search beats a guess, but where both search neither can make the group guess
    assert names(["0.3", "0.3"], "0.9", "0") == ["SS", "GG"]


def test_ties_are_exact():
    # in binary floating point .7 − .5 < 2 · .1, and .3 − .1 < .2
    assert names([0.7, 0.5], 0.1, 0.1) == ["SG", "GS"]
    assert names([0.3, 0.1], 0.2, 0.1) == ["SG", "GG"]
    assert exact(0.1, "cost") == Fraction(1, 10)
    assert exact("1e-3", "cost") == Fraction(1, 1000)
    assert exact(Fraction(1, 3), "guess", 1) == Fraction(1, 3)


def test_guesses_of_each_player_count_with_their_mean():
    assert ProvisionGame.read([0.7, 0.5], ["0.2", "0.7"], 0.02).guess == Fraction(45, 100)
    assert ProvisionGame.read([0.7, 0.5], "0.2", 0.02).guess == Fraction(2, 10)
    assert names([0.5, 0.3], [0.4, 0.5], 0.05) == ["SG", "GG"]


def test_verdicts_by_hand():
    assert ProvisionGame.read([0.5, 0.7], 0.4, 0.02).verdict() == "Unique: player 2, the best searcher, searches alone."
    assert ProvisionGame.read([0.5, 0.7], 0.7, 0.02).verdict() == (
        "Unique: nobody searches, because no search is worth its cost."
    )
    assert ProvisionGame.read([0.7, 0.69, 0.68], 0.4, 0.02).verdict() == (
        "Not unique: players 2, 3 could search instead."
    )
    assert ProvisionGame.read([0.5, 0.3], 0.45, 0.05).verdict() == (
        "Not unique: the best search is worth exactly its cost."
    )
    assert ProvisionGame.read([0.3, 0.3], 0.9, 0).verdict() == "Not unique: several search equally well at no cost."


def test_rivals_by_hand():
    rivals = ProvisionGame.read([0.4, 0.7, 0.68, 0.5, 0.66], 0.45, 0.05).rivals()
    assert [(rival.player, rival.trails, rival.guesses) for rival in rivals] == [
        (0, True, True),  # .3 > .1, .35 < .45
        (2, False, False),  # .02 ≤ .1, .63 ≥ .45
        (3, True, False),  # .2 > .1, .45 = .45
        (4, False, False),
    ]


# --- against OpenSpiel -----------------------------------------------------------------------------------------------


def random_game(rng):
    """2 to 4 players on a grid coarse enough for ties; a third of the games have no cost."""
    players = rng.choice([2, 3, 4])
    steps = rng.choice([4, 10, 20, 1000])
    accuracies = [Fraction(rng.randint(0, steps), steps) for _ in range(players)]
    if rng.random() < 0.3:
        accuracies[-1] = accuracies[0]
    guess = Fraction(rng.randint(0, steps), steps)
    cost = rng.choice([Fraction(0), Fraction(rng.randint(0, steps), 8 * steps), Fraction(1, 2 * steps)])
    if rng.random() < 0.2:
        guess = max(max(accuracies) - cost, Fraction(0))  # the best search is worth exactly its cost
    return accuracies, guess, cost


def turn_based(accuracies, guess, cost):
    """The game for OpenSpiel, in floats, and who moves at each of its information states; action 0 is to search."""
    players = len(accuracies)
    payoffs = np.zeros((players,) + (2,) * players)
    for moves in product((0, 1), repeat=players):
        searching = [float(accuracy) for accuracy, move in zip(accuracies, moves, strict=True) if move == 0]
        shared = fmean(searching) if searching else float(guess)
        for player, move in enumerate(moves):
            payoffs[(player, *moves)] = shared - float(cost) * (move == 0)
    game = pyspiel.convert_to_turn_based(pyspiel.create_tensor_game(list(payoffs)))
    state, movers = game.new_initial_state(), {}
    for player in range(players):  # nobody sees the moves before its own: one information state per player
        movers[state.information_state_string()] = player
        state.apply_action(0)
    assert len(movers) == players
    return game, movers


def nash_conv(game, movers, moves):
    table = {where: [(0, float(moves[mover] == 0)), (1, float(moves[mover] == 1))] for where, mover in movers.items()}
    return pyspiel.nash_conv(game, pyspiel.TabularPolicy(table))


def test_exactly_the_listed_profiles_have_no_nash_conv():
    rng = random.Random(0)
    counts = []
    for _ in range(CASES):
        case = random_game(rng)
        openspiel, movers = turn_based(*case)
        listed = equilibria(*case)
        stable = [
            tuple("SG"[move] for move in moves)
            for moves in product((0, 1), repeat=len(case[0]))
            if nash_conv(openspiel, movers, moves) < 1e-9
        ]
        assert listed == stable, case
        counts.append(len(listed))
        game = ProvisionGame.read(*case)
        alone = tuple("S" if player == game.best else "G" for player in range(len(case[0])))
        assert game.best_searcher_is_unique() == (listed == [alone]), case
        assert game.guessing_is_unique() == (listed == [("G",) * len(case[0])]), case
        assert game.verdict().startswith("Unique") == (len(listed) == 1), case
    assert min(counts) >= 1
    assert 0.2 < counts.count(1) / CASES < 0.8
    assert max(counts) > 4, "several searchers at no cost"


def test_gains_are_what_nash_conv_sums():
    rng = random.Random(1)
    for _ in range(50):
        case = random_game(rng)
        openspiel, movers = turn_based(*case)
        game = ProvisionGame.read(*case)
        for moves in product((0, 1), repeat=len(case[0])):
            gains = game.gains(tuple("SG"[move] for move in moves))
            total = sum(max(float(gain), 0.0) for gain in gains)
            assert nash_conv(openspiel, movers, moves) == pytest.approx(total, abs=1e-12)


# --- what is refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "accuracies, guess, cost, where, why",
    [
        (["0.7", "1.01"], "0.5", "0", "accuracies", "1.01 is not between 0 and 1"),
        (["-0.1", "0.5"], "0.5", "0", "accuracies", "-0.1 is not between 0 and 1"),
        (["0.7", ""], "0.5", "0", "accuracies", "'' is not a number"),
        (["0.7", "nan"], "0.5", "0", "accuracies", "'nan' is not a number"),
        (["0.7"], "0.5", "0", "accuracies", "give 2 to 12 players, not 1"),
        (["0.7"] * 13, "0.5", "0", "accuracies", "give 2 to 12 players, not 13"),
        (["0.7", "0.6"], "half", "0", "guess", "'half' is not a number"),
        (["0.7", "0.6"], ["0.5", "2"], "0", "guess", "2 is not between 0 and 1"),
        (["0.7", "0.6"], ["0.5"] * 3, "0", "guess", "give one number, or one for each of 2 players, not 3"),
        (["0.7", "0.6"], "0.5", "-0.01", "cost", "-0.01 is negative"),
        (["0.7", "0.6"], "0.5", "inf", "cost", "'inf' is not a number"),
        (["0.7", "0.6"], "0.5", "1e-999999999", "cost", "'1e-999999999' has too many digits"),
        (["0.7", "0.6"], "0.5", "1e999999999", "cost", "'1e999999999' has too many digits"),
    ],
)
def test_wrong_numbers_are_refused_with_their_place(accuracies, guess, cost, where, why):
    with pytest.raises(BadInput) as refused:
        equilibria(accuracies, guess, cost)
    assert (refused.value.where, refused.value.why) == (where, why)


def test_twelve_equal_players_at_no_cost():
    # every group of at least one searcher: 2^12 − 1
    assert len(equilibria([0.5] * 12, 0.2, 0)) == 4095
