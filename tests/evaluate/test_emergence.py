"""Emergence curves by hand, against scipy, and how often their bands cover the true share in simulations."""

from functools import partial

import numpy as np
import pytest
from scipy import stats

from training.errors import BadInput
from training.evaluate.agreement import krippendorff
from training.evaluate.behaviours import Checkpoint, JudgedGame
from training.evaluate.emergence import curve, curves
from training.labels.codebooks import Codebook, LabelType
from training.labels.prevalence import ErrorRates, Rate, error_rates, rate, true_prevalence
from training.records import Judgment, Label

CODEBOOK = Codebook(
    name="talk",
    version=1,
    title="Talk",
    labels=tuple(
        LabelType(name=name, title=name, definition=name, **{"kind": "yes_no", **more})
        for name, more in {
            "bluff": {"about": "turn"},
            "mood": {"about": "turn", "roles": ("werewolf",)},
            "won_by_talk": {"about": "game"},
            "loyal": {"about": "seat"},
            "quote": {"kind": "span", "about": "span"},
            "quality": {"kind": "scale", "about": "game", "low": 1.0, "high": 5.0},
        }.items()
    ),
)
ROLES = ("werewolf", "villager")


def judged(labels, author="m", seat=None, **more):
    return Judgment(
        **{"codebook": "talk", "codebook_version": 1, "episode": "e", **more}, author=author, seat=seat, labels=labels
    )


def marked(turns, author="m", name="bluff"):
    return judged(tuple(Label(label=name, value=True, turn=turn) for turn in turns), author)


def game(*judgments, turns=2):
    """A game of `turns` turns, which its seats take in turn."""
    return JudgedGame(ROLES, (None, None), judgments, {turn: turn % 2 for turn in range(turns)})


def answered(value, author="m", name="won_by_talk"):
    return judged((Label(label=name, value=value),), author)


def of(games, label="bluff", errors=None):
    [point] = curve([Checkpoint(0, games)], CODEBOOK, label, errors)
    return point


def test_the_share_of_turns_is_over_all_turns():
    # 1 of 2 and 3 of 4 turns: the share, and the effective number 0.7367, are worked out in test_prevalence.py
    point = of([game(marked([0])), game(marked([0, 1, 3]), turns=4)])
    assert (point.share, point.games, point.places) == (pytest.approx(2 / 3), 2, 6)
    positive = 2 / 3 * 0.7367
    assert point.low == pytest.approx(stats.beta.ppf(0.025, positive, 0.7367 - positive + 1), abs=1e-4)
    assert point.high == pytest.approx(stats.beta.ppf(0.975, positive + 1, 0.7367 - positive), abs=1e-4)
    assert (point.corrected, point.seen, point.agreement) == (False, None, None)


def test_the_share_of_games_has_scipys_exact_interval():
    point = of([game(answered(at < 3)) for at in range(10)], "won_by_talk")
    exact = stats.binomtest(3, 10).proportion_ci(0.95, "exact")
    assert (point.share, point.low, point.high) == pytest.approx((0.3, exact.low, exact.high))


def test_the_mean_of_two_authors_has_scipys_interval_of_the_mean():
    first, second = [1, 1, 0, 1, 0], [1, 0, 0, 1, 1]
    games = [
        game(answered(bool(a), "person:1"), answered(bool(b), "person:2")) for a, b in zip(first, second, strict=True)
    ]
    point = of(games, "won_by_talk")
    means = [1, 0.5, 0, 1, 0.5]
    low, high = stats.t.interval(0.95, 4, np.mean(means), stats.sem(means))
    assert (point.share, point.low) == pytest.approx((0.6, low))
    assert point.high == min(1.0, high) == 1.0
    # three of five units agree; 6 of the 10 values are yes, so that 48 of 90 ordered pairs of values differ
    assert point.agreement.value == pytest.approx(1 - (2 / 5) / (48 / 90))
    assert point.agreement.value == krippendorff([first, second])
    assert (point.agreement.units, point.agreement.clusters, point.agreement.raters) == (5, 5, 2)


def test_an_author_who_did_not_judge_a_game_says_nothing_of_it():
    games = [game(marked([0], "a"), marked([], "b")), game(marked([0, 1], "a")), game()]
    point = of(games)
    assert (point.share, point.games, point.places) == (pytest.approx((0.5 + 0 + 1 + 1) / 4), 2, 4)
    assert point.agreement.units == 2, "two turns have two answers"


def test_only_turns_of_the_roles_count():
    point = of([game(marked([0, 1], name="mood")), game(marked([1], name="mood"), turns=3)], "mood")
    assert (point.share, point.places) == (pytest.approx(1 / 3), 3)


def test_a_turn_with_a_span_has_it_once():
    spans = judged(tuple(Label(label="quote", turn=0, start=at, end=at + 2) for at in (0, 5)))
    assert of([game(spans), game(marked([]))], "quote").share == 0.25


def test_seats_that_were_not_scored_do_not_count():
    scored = judged((Label(label="loyal", value=True, seat=0),), seat=0)
    point = of([game(scored, judged(None, seat=1)), game()], "loyal")
    assert (point.share, point.games, point.places) == (1.0, 1, 1)


def test_another_version_does_not_count():
    point = of([game(answered(True), judged((Label(label="won_by_talk", value=False),), "x", codebook_version=2))] * 4,
               "won_by_talk")  # fmt: skip
    assert (point.share, point.low, point.agreement) == (1.0, pytest.approx(0.025 ** (1 / 4)), None)


def test_a_checkpoint_without_answers_has_a_point_without_a_share():
    points = curve(
        [Checkpoint(0, []), Checkpoint(10, [game()]), Checkpoint(20, [game(marked([0]))])], CODEBOOK, "bluff"
    )
    assert [(point.step, point.share, point.low, point.high) for point in points] == [
        (0, None, None, None),
        (10, None, None, None),
        (20, 0.5, 0.0, 1.0),  # a single game says nothing of others
    ]


def test_the_errors_of_a_classifier_are_corrected():
    known = partial(Rate, low=0.0, high=1.0)
    errors = ErrorRates(sensitivity=known(share=0.9, n=50), specificity=known(share=0.9, n=100))
    games = [game(marked([0, 1] if at < 3 else [])) for at in range(10)]
    point = of(games, errors=errors)
    assert (point.seen, point.share, point.corrected) == (pytest.approx(0.3), pytest.approx(0.25), True)
    # whole games differ: as many effective turns as games but one, 9, times (t with 19 over t with 9 degrees)²
    effective = 9 * (stats.t.ppf(0.975, 19) / stats.t.ppf(0.975, 9)) ** 2
    expected = true_prevalence(known(share=0.3, n=effective), errors)
    assert (point.low, point.high) == pytest.approx((expected.low, expected.high))
    assert point.high - point.low > of(games).high - of(games).low
    assert of(games[:1], errors=errors).low == 0.0
    assert of(games[:1], errors=errors).high == 1.0


def test_errors_are_of_one_classifier():
    errors = error_rates([True, False] * 2, [True, False] * 2, [1, 1, 2, 2])
    with pytest.raises(BadInput, match="one author, and 2 labelled"):
        of([game(marked([0], "a"), marked([0], "b"))] * 2, errors=errors)


def test_curves_are_of_what_is_yes_or_no():
    every = curves([Checkpoint(0, [game(marked([0]))] * 3)], CODEBOOK)
    assert list(every) == ["bluff", "mood", "won_by_talk", "loyal", "quote"]
    assert every["bluff"] == curve([Checkpoint(0, [game(marked([0]))] * 3)], CODEBOOK, "bluff")
    with pytest.raises(BadInput, match="not a yes-or-no label type"):
        of([game()], "quality")
    with pytest.raises(BadInput, match="no label of this name"):
        of([game()], "other")


def clustered(rng, games, share):
    """Flags of eight turns of each game; games differ in their share by a beta distribution with α + β = 4."""
    return rng.random((games, 8)) < rng.beta(share * 4, (1 - share) * 4, (games, 1))


def test_bands_cover_the_true_prevalence_of_games_that_differ():
    """Corrected by errors that were measured in other games, and not corrected where there are none."""
    rng, share, covered = np.random.default_rng(2), 0.25, np.zeros(2)
    for _ in range(400):
        true, other = clustered(rng, 40, share), clustered(rng, 60, share)
        seen, judged_seen = (
            np.where(flags, rng.random(flags.shape) < 0.75, rng.random(flags.shape) < 0.1) for flags in (true, other)
        )
        errors = error_rates(judged_seen.ravel(), other.ravel(), np.repeat(np.arange(60), 8))
        for at, (flags, of_classifier) in enumerate(((true, None), (seen, errors))):
            point = of([game(marked(np.flatnonzero(row).tolist()), turns=8) for row in flags], errors=of_classifier)
            covered[at] += point.low <= share <= point.high
    # of 400 bands at 95 % fewer than 372 cover with a chance of about 4 %, and the simulation has one seed
    assert (covered >= 372).all(), covered
    assert rate([(2, 8), (2, 8)]).n == 16, "turns that are independent count in full"
