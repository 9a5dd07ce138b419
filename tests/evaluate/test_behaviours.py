"""The behaviour table against counts made by hand, its intervals against theory and a second computation."""

import random

import numpy as np
import pytest

from tests.labelled import labels
from training.errors import BadInput
from training.evaluate.behaviours import JudgedGame, judged_game, report
from training.evaluate.intervals import difference, paired
from training.labels.codebooks import BEHAVIOURS, SOTOPIA
from training.players import make as player
from training.records import Episode, Judgment, Scenario
from training.rollout import Job, RolloutPolicy, collect

ROLES = ("werewolf", "werewolf", "seer", "villager")


def judged(seat, author="person:1", codebook=BEHAVIOURS, **values):
    return Judgment(
        codebook=codebook.name, codebook_version=codebook.version, episode="e", seat=seat, author=author,
        labels=labels(seat, {name: bool(value) for name, value in values.items()}) or None,
        reason="" if values else "too short",
    )  # fmt: skip


def rows(table):
    return {row.behaviour: row for row in table.rows}


GAMES = [
    # Wolf 0 lived and concealed; wolf 1 died, and two people disagree about it. The seer lived, the villager died.
    JudgedGame(ROLES, (True, False, True, False), (
        judged(0, identity_concealment=1, voting_manipulation=1, team_collaboration=0),
        judged(1, identity_concealment=1, voting_manipulation=0, team_collaboration=0),
        judged(1, "person:2", identity_concealment=0, voting_manipulation=0, team_collaboration=0),
        judged(2, protecting_power_roles=1, recognising_deception=0),
        judged(3, protecting_power_roles=0, recognising_deception=0),
    )),
    # Both wolves died. One of them, and the seer, could not be scored.
    JudgedGame(ROLES, (False, False, True, True), (
        judged(0, identity_concealment=0, voting_manipulation=1, team_collaboration=1),
        judged(1), judged(2),
        judged(3, protecting_power_roles=0, recognising_deception=1),
    )),
    # Both wolves lived, the village died: nobody has looked at it.
    JudgedGame(ROLES, (True, True, False, False), ()),
]  # fmt: skip


def test_shares_and_coverage_by_hand():
    summary = report(GAMES, BEHAVIOURS)
    assert (summary.codebook, summary.version, summary.games) == ("werewolf-behaviours", 1, 3)
    [table] = summary.tables
    assert (table.by, table.games) == ("people", 2)
    shares = {
        name: (row.surviving.share, row.eliminated.share, row.difference.mean) for name, row in rows(table).items()
    }
    assert shares == {
        # one wolf lived and was scored, two that died were: (1/2 + 0) / 2, (0 + 1) / 2, (0 + 1) / 2
        "identity_concealment": (1.0, 0.25, 0.75),
        "voting_manipulation": (1.0, 0.5, 0.5),
        "team_collaboration": (0.0, 0.5, -0.5),
        # two of the village lived and were scored, one that died was
        "protecting_power_roles": (0.5, 0.0, 0.5),
        "recognising_deception": (0.5, 0.0, 0.5),
    }
    wolves, village = rows(table)["identity_concealment"], rows(table)["recognising_deception"]
    assert [(share.scored, share.asked) for share in (wolves.surviving, wolves.eliminated)] == [(1, 3), (2, 3)]
    assert [(share.scored, share.asked) for share in (village.surviving, village.eliminated)] == [(2, 3), (1, 3)]
    assert wolves.difference.n == 2


def test_people_and_models_have_a_table_each_and_one_together():
    game = JudgedGame(ROLES, (True, False, True, True), (
        judged(0, identity_concealment=1), judged(0, "model:far", identity_concealment=0),
        judged(1, "model:far", identity_concealment=1),
        judged(1, "model:far", SOTOPIA, goal=3),
        judged(1, "model:far", BEHAVIOURS.model_copy(update={"version": 2}), identity_concealment=0),
    ))  # fmt: skip
    summary = report([game], BEHAVIOURS)
    shares = {}
    for table in summary.tables:
        row = rows(table)["identity_concealment"]
        shares[table.by] = (row.surviving.share, row.eliminated.share, row.difference and row.difference.mean)
    assert shares == {"people": (1.0, None, None), "models": (0.0, 1.0, -1.0), "both": (0.5, 1.0, -0.5)}


def test_without_a_judgment_there_is_no_table():
    assert report(GAMES[2:], BEHAVIOURS).tables == ()
    assert report([], BEHAVIOURS).games == 0
    assert report(GAMES, SOTOPIA).tables == (), "no question of that codebook is one of yes or no"


def test_only_an_episode_with_roles_and_survivors_counts_as_a_game():
    scenario = Scenario(id="v", game="werewolf", seats=("A", "B"))
    metrics = {0: {"survived": 1.0}, 1: {"survived": 0.0}}
    game = judged_game(Episode(scenario=scenario, roles=("seer", "werewolf"), seat_metrics=metrics), ())
    assert (game.roles, game.survived) == (("seer", "werewolf"), [True, False])
    for changed in ({"seat_metrics": {0: {"survived": 1.0}}}, {"roles": ()}):
        fields = {"scenario": scenario, "roles": ("seer", "werewolf"), "seat_metrics": metrics, **changed}
        with pytest.raises(BadInput, match="'v' does not report"):
            judged_game(Episode(**fields), ())


async def test_played_games_of_a_known_truth():
    """A judge who says yes of exactly those who lived finds a difference of 1, and one who tosses a coin none."""

    def chance(scenario, seat):
        return player("random", scenario, seat)

    scenario = Scenario(id="v", game="werewolf", seats=("Ann", "Bob", "Cleo", "Dan", "Eva", "Finn"))
    jobs = [Job(number, scenario.with_seed(number + 1), ("random",) * 6) for number in range(40)]
    draw, games = random.Random(0), []
    for episode in await collect(jobs, {"random": chance}, lanes=8, rules=RolloutPolicy()):
        judgments = []
        for seat, role in enumerate(episode.roles):
            first, *others = [label_type.name for label_type in BEHAVIOURS.of(role).labels]
            lived = episode.seat_metrics[seat]["survived"]
            judgments.append(
                judged(seat, "model:m", **{first: lived}, **{name: draw.random() < 0.5 for name in others})
            )
        games.append(judged_game(episode, judgments))
    by_behaviour = rows(report(games, BEHAVIOURS).tables[0])
    for name in ("identity_concealment", "protecting_power_roles"):
        difference = by_behaviour[name].difference
        assert difference.mean == difference.high == 1
        assert 0.6 < difference.low < 1  # all of some forty games say so
    for name in ("voting_manipulation", "team_collaboration", "recognising_deception"):
        assert by_behaviour[name].difference.low < 0 < by_behaviour[name].difference.high
    lived = sum(
        sum(game.survived[seat] for seat, role in enumerate(game.roles) if role == "werewolf") for game in games
    )
    wolves = by_behaviour["identity_concealment"]
    assert (wolves.surviving.asked, wolves.eliminated.asked) == (lived, 80 - lived)


def test_with_one_value_of_each_kind_a_game_it_is_the_paired_interval():
    values = np.random.default_rng(5).normal([1.0, 0.4], 1.0, (40, 2))
    pooled = difference([((a,), (b,)) for a, b in values])
    pairs = paired(*values.T)
    assert (pooled.mean, pooled.low, pooled.high) == pytest.approx((pairs.mean, pairs.low, pairs.high))


def test_the_difference_covers_the_truth_although_players_of_a_game_depend_on_each_other():
    """Games differ in their own level, and in how many of their players live; the true difference is 0.2."""
    generator = np.random.default_rng(8)
    covered = 0
    for _ in range(1000):
        games = []
        for lived, level in zip(generator.integers(0, 5, 30), generator.uniform(0.1, 0.7, 30), strict=True):
            games.append((list(generator.random(lived) < level + 0.2), list(generator.random(4 - lived) < level)))
        estimate = difference(games)
        covered += estimate.low <= 0.2 <= estimate.high
    assert 925 <= covered <= 975  # 950 expected, with a standard error of 7; drawing players, not games, covers less


def test_shares_that_never_vary_have_the_exact_bounds_of_each():
    games = [((1.0, 1.0), (0.0,))] * 8 + [((1.0,), ())] * 4
    estimate = difference(games)
    # Clopper-Pearson: 12 of 12 games from 0.025 ** (1 / 12) up, 0 of 8 games up to 1 - 0.025 ** (1 / 8)
    low = 0.025 ** (1 / 12) - (1 - 0.025 ** (1 / 8))
    assert (estimate.mean, estimate.low, estimate.high) == pytest.approx((1, low, 1))


def test_a_difference_needs_both_kinds():
    for games in ([], [((1.0,), ())], [((), (0.0,)), ((), ())]):
        with pytest.raises(BadInput, match="no difference"):
            difference(games)
    only = difference([((1.0, 0.0), (0.0,))])
    assert (only.low, only.mean, only.high, only.n) == (-1, 0.5, 1, 1)  # one game says nothing of others
    with pytest.raises(BadInput, match="one game only"):
        difference([((5.0, 0.0), (0.0,))])
