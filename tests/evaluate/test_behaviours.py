"""The behaviour table against counts made by hand, its intervals against theory and a second computation."""

import random

import numpy as np
import pytest
from scipy import stats

from tests.labelled import labels
from training.errors import BadInput
from training.evaluate.behaviours import Checkpoint, JudgedGame, by_outcome, judged_game, report
from training.evaluate.intervals import difference, difference_p, paired
from training.labels.codebooks import BEHAVIOURS, SOTOPIA, Codebook, LabelType
from training.players import make as player
from training.records import Episode, Judgment, Label, Scenario
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
    assert (game.roles, game.outcomes) == (("seer", "werewolf"), [True, False])
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
        sum(game.outcomes[seat] for seat, role in enumerate(game.roles) if role == "werewolf") for game in games
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


TALK = Codebook(
    name="talk", version=1, title="Talk",
    labels=[
        LabelType(name="bluff", title="Bluff", kind="yes_no", about="turn", definition="?"),
        LabelType(name="loyal", title="Loyal", kind="yes_no", about="seat", roles=("werewolf",), definition="?"),
        LabelType(name="calm", title="Calm", kind="yes_no", about="game", definition="?"),
        LabelType(name="note", title="Note", kind="text", about="game", definition="?"),
    ],
)  # fmt: skip


def labelled(outcomes, turns, marked=(), loyal=(), calm=None, of_game=None):
    """A game of a wolf and two villagers; `turns` are the seats that speak, `marked` the turns that bluff."""
    labels = [Label(label="bluff", value=True, turn=turn) for turn in marked]
    labels += [Label(label="loyal", value=True, seat=seat) for seat in loyal]
    labels += [] if calm is None else [Label(label="calm", value=calm)]
    judgment = Judgment(codebook="talk", codebook_version=1, episode="e", author="m", labels=tuple(labels))
    return JudgedGame(ROLES_OF_THREE, outcomes, (judgment,), dict(enumerate(turns)), of_game)


ROLES_OF_THREE = ("werewolf", "villager", "villager")
TALKS = [
    # the wolf, which won, bluffs once in two turns; a villager without an outcome bluffs, too
    labelled((True, False, None), (0, 0, 1, 2), marked=(1, 3), loyal=(0,), calm=True, of_game=True),
    labelled((True, False, False), (0, 1, 2), marked=(0,), calm=False, of_game=False),
    labelled((False, True, True), (0, 1, 2, 2), marked=(1,), calm=False, of_game=False),
]


def test_turns_seats_and_games_by_outcome_and_role_by_hand():
    table = {(row.behaviour, row.role): row for row in by_outcome([Checkpoint(5, TALKS)], TALK)}
    assert list(table) == [
        ("bluff", ""),
        ("bluff", "villager"),
        ("bluff", "werewolf"),
        ("loyal", "werewolf"),
        ("calm", ""),
    ]
    shares = {
        key: [(each.share, each.scored, each.asked) for each in (row.with_outcome, row.without_outcome)]
        for key, row in table.items()
    }
    assert shares == {
        ("bluff", ""): [(3 / 6, 6, 6), (0, 4, 4)],
        ("bluff", "villager"): [(1 / 3, 3, 3), (0, 3, 3)],
        ("bluff", "werewolf"): [(2 / 3, 3, 3), (0, 1, 1)],
        ("loyal", "werewolf"): [(1.0, 1, 2), (None, 0, 1)],  # nobody said of the others whether they are
        ("calm", ""): [(1.0, 1, 1), (0.0, 2, 2)],
    }
    assert {row.step for row in table.values()} == {5}
    loyal = table["loyal", "werewolf"]
    assert (loyal.difference, loyal.p, loyal.q) == (None, None, None)
    assert table["bluff", ""].difference == difference([((0, 1), (0,)), ((1,), (0, 0)), ((1, 0, 0), (0,))])
    assert table["bluff", "werewolf"].p == 1.0  # one game has a wolf that lost
    calm = table["calm", ""]
    assert (calm.difference.mean, calm.p) == (1.0, pytest.approx(by_roots(1, 2)))


def by_roots(first, second):
    """Solve x ** (1 / first) + x ** (1 / second) = 1 by a grid, for p = 2 x."""
    grid = np.linspace(0, 0.5, 2_000_001)
    return 2 * grid[np.argmin(np.abs(grid ** (1 / first) + grid ** (1 / second) - 1))]


def test_the_p_of_paired_values_is_scipys():
    values = np.random.default_rng(5).normal([1.0, 0.6], 1.0, (40, 2))
    expected = stats.ttest_rel(*values.T).pvalue
    assert difference_p([((a,), (b,)) for a, b in values]) == pytest.approx(expected)


@pytest.mark.parametrize(
    "games",
    [
        [((1.0, 0.0), (0.0,)), ((1.0,), (0.0, 0.0)), ((1.0,), (1.0,))],
        [((1.0, 1.0), (0.0,))] * 8 + [((1.0,), ())] * 4,
        [((1.0, 0.0), (0.0,))] * 9,
    ],
)
def test_the_interval_of_level_1_minus_p_ends_at_0(games):
    p = difference_p(games)
    assert 0 < p < 1
    assert difference(games, 1 - p).low == pytest.approx(0, abs=1e-9)


def test_the_p_of_shares_that_never_vary_by_hand():
    # all of n games against none of n: x ** (1 / n) = 1 / 2, which is the sign test's 2 · 0.5 ** n
    assert difference_p([((1.0,), (0.0,))] * 6) == pytest.approx(2 * 0.5**6)
    # half in each of n games against none: others are at most a third, since (2/3) · 0.5 = 1/3, so 2 · (2/3) ** n
    assert difference_p([((1.0, 0.0), (0.0,))] * 9) == pytest.approx(2 * (2 / 3) ** 9)
    assert difference_p([((1.0,), (1.0,))] * 6) == 1.0
    assert difference_p([((1.0,), (0.0,))]) == 1.0
    assert difference_p([((5.0, 1.0), (2.0,))] * 3) == 0.0  # no shares: the values do not vary at all
    with pytest.raises(BadInput, match="one game only"):
        difference_p([((5.0, 0.0), (0.0,))])


def test_a_difference_of_shares_that_does_not_vary_allows_for_other_games():
    estimate = difference([((1.0, 0.0), (0.0,))] * 10)
    others = 1 - 0.025 ** (1 / 10)  # Clopper-Pearson: none of ten games differs
    assert (estimate.mean, estimate.low, estimate.high) == pytest.approx((0.5, 0.5 - 1.5 * others, 0.5 + 0.5 * others))


def test_q_is_benjamini_and_hochbergs_by_hand():
    rows = by_outcome([Checkpoint(step, TALKS) for step in (0, 10)], TALK)
    known = [row for row in rows if row.p is not None]
    ranked = sorted(row.p for row in known)
    for row in known:
        # the least of p · n / rank over this rank and those above
        expected = min(min(1.0, p * len(ranked) / (at + 1)) for at, p in enumerate(ranked) if p >= row.p)
        assert row.q == pytest.approx(expected)
    assert [row.step for row in rows] == [0] * 5 + [10] * 5
    assert by_outcome([Checkpoint(0, [])], TALK)[0].q is None


def many(names):
    return Codebook(
        name="talk", version=1, title="Talk",
        labels=[LabelType(name=name, title=name, kind="yes_no", about="turn", definition="?") for name in names],
    )  # fmt: skip


def simulated(rng, codebook, effects, games=30):
    """Games of four seats with two turns each; games differ in their level, and winners show a label more often."""
    every = []
    for _ in range(games):
        outcomes, level = (
            tuple(bool(flag) for flag in rng.permutation([True, True, False, False])),
            rng.uniform(0.1, 0.5),
        )
        turns = {turn: turn % 4 for turn in range(8)}
        won = np.array([outcomes[seat] for seat in turns.values()])
        labels, marked = np.nonzero(rng.random((len(effects), 8)) < level + np.outer(effects, won))
        drawn_labels = tuple(
            Label(label=codebook.labels[at].name, value=True, turn=turn)
            for at, turn in zip(labels, marked, strict=True)
        )
        judgment = Judgment(codebook="talk", codebook_version=1, episode="e", author="m", labels=drawn_labels)
        every.append(JudgedGame(("",) * 4, outcomes, (judgment,), turns))
    return every


def test_false_discoveries_stay_below_their_level():
    """Without any effect a table has a discovery at q = 0.05 in 5 % of cases, and at p = 0.05 in nearly half."""
    rng, codebook = np.random.default_rng(4), many([f"l{at}" for at in range(12)])
    discovered = np.zeros(2)
    for _ in range(60):
        rows = by_outcome([Checkpoint(0, simulated(rng, codebook, [0.0] * 12))], codebook)
        discovered += any(row.q <= 0.05 for row in rows), any(row.p <= 0.05 for row in rows)
    assert discovered[0] <= 8, "of 60 tables 3 are expected, and more than 8 with a chance of 0.3 %"
    assert discovered[1] >= 15, "12 independent rows: 28 are expected"


def test_effects_are_discovered_with_few_false_ones():
    rng, codebook = np.random.default_rng(6), many([f"l{at}" for at in range(12)])
    shares, power = [], []
    for _ in range(25):
        rows = by_outcome([Checkpoint(0, simulated(rng, codebook, [0.3] * 4 + [0.0] * 8))], codebook)
        hits = [row.q <= 0.05 for row in rows]
        shares.append(sum(hits[4:]) / max(1, sum(hits)))
        power.append(sum(hits[:4]) / 4)
    assert np.mean(shares) <= 0.07, "at most 0.05 · 8 / 12 = 0.033 is expected, with a standard error of about 0.017"
    assert np.mean(power) > 0.7
