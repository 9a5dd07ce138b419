"""The head-to-head: seatings, cancelled advantages, counted and excluded conversations."""

import json
import random
from collections import Counter

import pytest

from tests.evaluate import biased, hidden_roles
from tests.labelled import labels
from tests.rewards.samples import dialogue, negotiation
from training.errors import BadInput, EngineError
from training.evaluate.behaviours import judged_game, report
from training.evaluate.head_to_head import Match, pairings, play
from training.evaluate.social import judge_all
from training.evaluate.summary import Summary, summarise
from training.labels.codebooks import BEHAVIOURS
from training.players import make as make_player
from training.players.base import Reply
from training.players.contestants import Contestant
from training.records import Episode, ErrorRecord, Judgment, Scenario
from training.rollout import RolloutPolicy


@pytest.fixture(autouse=True)
def game(monkeypatch):
    from training.games import REGISTRY

    monkeypatch.setitem(REGISTRY, "biased", biased.SPEC)


def side(title, number):
    return Contestant(title, lambda scenario, seat: biased.Says(number))


async def play_all(a, b, count=6, conversations=12, seed=0, **more):
    pairs = pairings(biased.scenarios(count), conversations, seed)
    return await play(pairs, a, b, lanes=4, rules=RolloutPolicy(seed=seed), **more)


def test_every_scenario_is_played_in_both_seatings():
    pairs = pairings(biased.scenarios(5), 10, 0)
    assert [(p.scenario.id, p.names) for p in pairs] == [
        (f"s{i}", n) for i in range(5) for n in (("a", "b"), ("b", "a"))
    ]
    assert [p.number for p in pairs] == list(range(10))
    assert {(p.seats_of("a"), p.seats_of("b")) for p in pairs[::2]} == {((0,), (1,))}
    assert {(p.seats_of("a"), p.seats_of("b")) for p in pairs[1::2]} == {((1,), (0,))}


@pytest.mark.parametrize("asked, expected", [(2, 2), (7, 8), (10, 10), (11, 20), (100, 100)])
def test_at_least_as_many_conversations_as_asked(asked, expected):
    pairs = pairings(biased.scenarios(5), asked, 3)
    assert len(pairs) == expected
    starts = Counter((p.scenario.id, p.scenario.seed, p.names) for p in pairs)
    assert set(starts.values()) == {1}  # nothing is played twice
    assert pairs == pairings(biased.scenarios(5), asked, 3)


def test_an_open_seed_is_drawn_and_any_other_is_kept():
    scenarios = [s if at else s.with_seed(77) for at, s in enumerate(biased.scenarios(4))]
    pairs = pairings(scenarios, 24, 3)  # three repetitions
    seeds = {(p.scenario.id, p.repeat, p.names[0]): p.scenario.seed for p in pairs}
    assert {seeds["s0", repeat, first] for repeat in range(3) for first in "ab"} == {77}
    drawn = [seeds[f"s{at}", repeat, "a"] for at in (1, 2, 3) for repeat in range(3)]
    assert drawn == [seeds[f"s{at}", repeat, "b"] for at in (1, 2, 3) for repeat in range(3)]
    assert len(set(drawn)) == 9
    assert 0 not in drawn
    assert not set(drawn) & {p.scenario.seed for p in pairings(scenarios, 24, 4) if p.scenario.id != "s0"}


def test_few_conversations_are_drawn_by_the_seed():
    drawn = [{p.scenario.id for p in pairings(biased.scenarios(40), 10, seed)} for seed in range(3)]
    assert all(len(ids) == 5 for ids in drawn)
    assert drawn[0] != drawn[1]


@pytest.mark.parametrize("scenarios", [[], [Scenario(id="x", game="biased", seats=("a",))]], ids=["none", "one seat"])
def test_what_cannot_be_swapped_is_refused(scenarios):
    with pytest.raises(BadInput):
        pairings(scenarios, 2, 0)


async def test_the_seats_advantage_cancels():
    matches = await play_all(side("skilled", lambda seat, seed: 3), side("other", lambda seat, seed: 1))
    summary = summarise(matches, {})
    # Level i is shared by both; the bias of 5 falls to each side once a scenario. So a - b = 3 - 1 everywhere.
    assert (
        summary.difference["return"].mean == summary.difference["return"].low == summary.difference["return"].high == 2
    )
    assert summary.a["points"].mean == pytest.approx(3 + 2.5 + 2.5)  # skill, mean level of 0..5, half the bias
    assert summary.b["points"].mean == pytest.approx(1 + 2.5 + 2.5)
    assert summary.shared["total"].mean == pytest.approx(3 + 1 + 2 * 2.5 + 5)
    assert (summary.conversations, summary.used, summary.scenarios) == (12, 12, 6)
    # Had seats not been swapped, the difference would have been the bias away.
    first = [m.episode.returns for m in matches if m.pairing.names == ("a", "b")]
    assert {r[0] - r[1] for r in first} == {2 + biased.BIAS}


async def test_a_model_against_itself_covers_zero():
    def noisy(seat, seed):
        return round(random.Random(seed).gauss(0, 3), 3)

    covered = 0
    for seed in range(20):
        matches = await play_all(side("one", noisy), side("same", noisy), count=30, conversations=60, seed=seed)
        interval = summarise(matches, {}).difference["return"]
        covered += interval.low <= 0 <= interval.high
        assert interval.low < interval.high
    assert covered >= 17  # of 20 at 95 %: 19 expected, 17 or more with probability 0.98


async def test_scripted_players_negotiate_and_the_games_own_numbers_come_out():
    scripted = Contestant("scripted", lambda scenario, seat: make_player("scripted", scenario, seat))
    chance = Contestant("random", lambda scenario, seat: make_player("random", scenario, seat))
    starts = [negotiation().model_copy(update={"id": f"n{i}", "seed": i}) for i in range(5)]
    pairs = pairings(starts, 20, 1)
    summary = summarise(await play(pairs, scripted, scripted, lanes=5, rules=RolloutPolicy()), {})
    assert summary.used == 20
    assert summary.scenarios == 5
    assert {"agreement", "efficiency", "turns"} <= summary.shared.keys()
    assert {"points", "return", "parse_rate", "legal_rate", "forfeits", "defaults"} <= summary.a.keys()
    assert summary.a["parse_rate"].mean == 1
    lead = summary.difference["return"]
    assert lead.low <= 0 <= lead.high
    mixed = summarise(await play(pairs, scripted, chance, lanes=5, rules=RolloutPolicy()), {})
    assert mixed.shared["agreement"].mean < summary.shared["agreement"].mean


async def test_unparsed_replies_and_forfeits_count_for_their_model():
    class Mumbles(biased.Says):
        async def act(self, seat, seen, seed):
            return Reply(text="")

    matches = await play(
        pairings(biased.scenarios(3), 6, 0),
        Contestant("mumbles", lambda scenario, seat: Mumbles(lambda seat, seed: 1)),
        side("speaks", lambda seat, seed: 1),
        lanes=2,
        rules=RolloutPolicy(retries=1, on_refused="forfeit"),
    )
    summary = summarise(matches, {})
    assert (summary.a["parse_rate"].mean, summary.b["parse_rate"].mean) == (0, 1)
    assert (summary.a["forfeits"].mean, summary.b["forfeits"].mean) == (1, 0)


def test_few_scenarios_are_a_caution():
    def summary(count):
        return summarise([match(p, {0: 1.0, 1: 0.0}) for p in pairings(biased.scenarios(count), 2 * count, 0)], {})

    assert summary(1).caution.startswith("1 scenario, fewer than 30")
    assert summary(29).caution.startswith("29 scenarios, fewer than 30")
    assert summary(30).caution == ""
    old = summary(30).to_dict()
    del old["caution"]  # files that were written before it was known
    assert Summary.from_dict(old) == summary(30)


async def test_a_failed_conversation_takes_its_partner_along():
    class Fails(biased.Says):
        async def act(self, seat, seen, seed):
            raise EngineError("out of memory")

    def player(scenario, seat):
        broken = scenario.id == "s2" and seat == 1
        return (Fails if broken else biased.Says)(lambda seat, seed: 3)

    matches = await play_all(Contestant("fails once", player), side("other", lambda seat, seed: 1))
    summary = summarise(matches, {})
    assert summary.errors == {"engine": 1}
    assert (summary.conversations, summary.used, summary.scenarios) == (12, 10, 5)
    assert summary.difference["return"].mean == 2


def match(pairing, returns, error=None):
    episode = Episode(scenario=pairing.scenario, returns=returns, error=error)
    return Match(pairing, episode)


def test_repetitions_are_averaged_inside_their_scenario():
    pairs = pairings(biased.scenarios(2), 6, 0)  # 2 scenarios, 2 repetitions
    assert len(pairs) == 8
    gains = {("s0", 0): 1.0, ("s0", 1): 3.0, ("s1", 0): 10.0, ("s1", 1): 10.0}
    matches = []
    for p in pairs:
        gain = gains[p.scenario.id, p.repeat]
        matches.append(match(p, {p.names.index("a"): gain, p.names.index("b"): 0.0}))
    outcome = summarise(matches, {}).difference["return"]
    assert (outcome.mean, outcome.n) == (6.0, 2)  # (2 + 10) / 2: scenarios weigh the same
    matches[-1] = match(pairs[-1], {}, ErrorRecord(kind="engine", message="x"))
    summary = summarise(matches, {})
    assert summary.difference["return"].mean == 6.0
    assert summary.used == 6


def judged(number, seat, **values):
    return Judgment(
        codebook="sotopia",
        codebook_version=1,
        episode=str(number),
        seat=seat,
        author="j",
        labels=labels(seat, values) or None,
        reason="",
    )


def test_what_could_not_be_scored_is_counted_and_left_out():
    pairs = pairings(biased.scenarios(3), 6, 0)
    matches = [match(p, {0: 0.0, 1: 0.0}) for p in pairs]
    judgments = {}
    for p in pairs:
        scores = {p.names.index("a"): 8.0, p.names.index("b"): 6.0}
        judgments[p.number] = [judged(p.number, seat, goal=value) for seat, value in scores.items()]
    judgments[0][1] = judged(0, 1)  # one seat of the first scenario's first seating
    summary = summarise(matches, judgments)
    assert summary.difference["sotopia.goal"].mean == 2
    assert summary.difference["sotopia.goal"].n == 2  # s0 is left out, not counted as zero
    assert summary.a["sotopia.mean"].mean == 8
    assert (summary.scored, summary.unscored) == ({"sotopia": 11}, {"sotopia": 1})


def test_a_judged_number_has_the_interval_of_its_own_scale():
    """Secrets are scored from -10 to 0: two scenarios without any differ from others by up to 10, not by up to 1."""
    pairs = pairings(biased.scenarios(2), 4, 0)
    judgments = {p.number: [judged(p.number, seat, secret=0.0) for seat in (0, 1)] for p in pairs}
    summary = summarise([match(p, {0: 0.0, 1: 0.0}) for p in pairs], judgments)
    unseen = 1 - 0.025**0.5
    secret = summary.a["sotopia.secret"]
    assert (secret.low, secret.high) == pytest.approx((-10 * unseen, 0))
    assert summary.difference["sotopia.secret"].high == pytest.approx(10 * unseen)


async def test_the_judge_reads_every_seat_under_both_codebooks_without_the_players_names():
    from training.engines.base import ChatReply
    from training.rewards.judge import Judge

    asked = []

    class Middle:
        async def reply(self, messages, sampling, seed=None):
            asked.append(messages)
            form = json.loads(messages[0].content.splitlines()[-1])
            form["values"] = {name: {"value": 0} for name in form["values"]}
            return ChatReply(json.dumps(form))

    chance = Contestant("secret-model-name", lambda scenario, seat: make_player("random", scenario, seat))
    matches = await play(pairings([dialogue()], 2, 0), chance, chance, lanes=2, rules=RolloutPolicy())
    judgments = await judge_all(matches, Judge(Middle(), "j"), 0)
    assert [len(of_match) for of_match in judgments.values()] == [4, 4]  # two seats, two codebooks
    assert "secret-model-name" not in str(asked)
    summary = summarise(matches, judgments)
    assert {"sotopia.goal", "sotopia.mean", "fine-grained.empathy_expression"} <= summary.a.keys()
    assert "return" not in summary.a  # a judged game has none of its own


async def test_the_judge_of_a_village_says_too_what_each_role_did():
    from training.engines.base import ChatReply
    from training.rewards.judge import Judge

    class Yes:
        async def reply(self, messages, sampling, seed=None):
            form = json.loads(messages[0].content.splitlines()[-1])
            form["values"] = {name: {"value": 0 if name == "voting_manipulation" else 1} for name in form["values"]}
            form["values"] |= {name: {"value": 0} for name in ("secret", "social_rules") if name in form["values"]}
            return ChatReply(json.dumps(form))

    chance = Contestant("random", lambda scenario, seat: make_player("random", scenario, seat))
    start = Scenario(id="v", game="werewolf", seats=("Ann", "Bob", "Cleo", "Dan", "Eva", "Finn"))
    matches = await play(
        pairings([start], 2, 0, ("werewolf",), "each_other"), chance, chance, lanes=2, rules=RolloutPolicy()
    )
    judgments = await judge_all(matches, Judge(Yes(), "j"), 0)
    assert [len(of_match) for of_match in judgments.values()] == [18, 18]  # six seats, three codebooks
    games = [judged_game(match.episode, judgments[match.pairing.number]) for match in matches]
    rows = {row.behaviour: row for row in report(games, BEHAVIOURS).tables[0].rows}
    assert rows["identity_concealment"].eliminated.scored + rows["identity_concealment"].surviving.scored == 4
    assert rows["recognising_deception"].eliminated.scored + rows["recognising_deception"].surviving.scored == 8
    summary = summarise(matches, judgments)
    assert summary.a["werewolf-behaviours.voting_manipulation/werewolf"].mean == 0
    assert summary.a["werewolf-behaviours.identity_concealment/werewolf"].mean == 1
    assert "werewolf-behaviours.identity_concealment/seer" not in summary.a


@pytest.fixture
def hidden(monkeypatch):
    from training.games import REGISTRY

    monkeypatch.setitem(REGISTRY, "hidden", hidden_roles.SPEC)


def test_a_side_holds_its_roles_and_then_all_others(hidden):
    first, second, *_ = pairings(hidden_roles.scenarios(2), 4, 0, ("werewolf",), "each_other")
    assert (first.seats_of("a"), first.seats_of("b")) == ((1, 4), (0, 2, 3, 5))
    assert (second.seats_of("a"), second.seats_of("b")) == ((0, 2, 3, 5), (1, 4))
    for side in (("mayor",), ("werewolf", "seer", "villager")):
        with pytest.raises(BadInput, match="seer, villager, werewolf"):
            pairings(hidden_roles.scenarios(1), 2, 0, side)
    with pytest.raises(BadInput, match="biased has no roles"):
        pairings(biased.scenarios(1), 2, 0, ("werewolf",))
    with pytest.raises(BadInput, match="may be swapped"):
        pairings(hidden_roles.scenarios(1), 2, 0)


def test_without_sides_each_holds_half_and_the_half_moves_on(monkeypatch):
    from dataclasses import replace

    from training.games import REGISTRY

    monkeypatch.setitem(REGISTRY, "hidden", replace(hidden_roles.SPEC, symmetric=True))
    pairs = pairings(hidden_roles.scenarios(6), 12, 0)
    assert [p.seats_of("a") for p in pairs[:4]] == [(0, 1, 2), (3, 4, 5), (1, 2, 3), (0, 4, 5)]
    counts = Counter(seat for p in pairs for seat in p.seats_of("a"))
    assert set(counts.values()) == {6}  # everybody's seat as often


async def test_the_wolves_win_rate_by_their_player(hidden):
    # A says 2 everywhere, B says 1: whoever is A wins, so wolves win when A holds them, and only then.
    matches = await play(
        pairings(hidden_roles.scenarios(4), 8, 0, ("werewolf",), "each_other"),
        side("strong", lambda seat, seed: 2),
        side("weak", lambda seat, seed: 1),
        lanes=4,
        rules=RolloutPolicy(),
    )
    summary = summarise(matches, {})
    assert (summary.a["won/werewolf"].mean, summary.b["won/werewolf"].mean) == (1, 0)
    assert (summary.a["won/seer"].mean, summary.b["won/seer"].mean) == (1, 0)
    assert summary.difference["won/werewolf"].mean == 1
    assert summary.difference["won/werewolf"].low == pytest.approx(1 - 2 * (1 - 0.025**0.25))  # exact, four scenarios
    assert (summary.a["won"].mean, summary.a["return"].mean) == (1, 1)
    assert summary.shared["wolves_win"].mean == 0.5
    assert summary.a["won/werewolf"].n == 4


async def test_the_interval_of_the_wolves_rate_is_over_scenarios(hidden):
    def noisy(seat, seed):
        return random.Random(seed).random()

    matches = await play(
        pairings(hidden_roles.scenarios(40), 80, 0, ("werewolf",), "each_other"),
        side("one", noisy),
        side("same", noisy),
        lanes=8,
        rules=RolloutPolicy(seed=3),
    )
    summary = summarise(matches, {})
    won = [m.episode.returns[1] for m in matches if m.pairing.names[1] == "a"]
    assert summary.a["won/werewolf"].mean == pytest.approx(sum(won) / 40)
    lead = summary.difference["won/werewolf"]
    assert lead.low < 0 < lead.high
    assert lead.n == 40


def test_both_models_hold_the_side_against_a_common_opponent(hidden):
    first, second, third, _ = pairings(hidden_roles.scenarios(2), 4, 0, ("werewolf",))
    assert (first.seats_of("a"), first.seats_of("common"), first.seats_of("b")) == ((1, 4), (0, 2, 3, 5), ())
    assert (second.seats_of("b"), second.seats_of("common"), second.seats_of("a")) == ((1, 4), (0, 2, 3, 5), ())
    assert first.scenario == second.scenario != third.scenario
    with pytest.raises(BadInput, match="seer, villager, werewolf"):
        pairings(hidden_roles.scenarios(1), 2, 0, ("mayor",))


@pytest.mark.parametrize("opposition, lead", [("common", 0.0), ("each_other", 1.0)])
async def test_a_stronger_village_does_not_leak_into_the_wolves_difference(hidden, opposition, lead):
    """A's and B's wolves both say 2. A's village says 3, B's says 1, the common one says 1.

    The wolves win if their mean is above the village's. Against each other A's wolves always meet B's weak village and
    win, and B's wolves meet A's strong village and lose, although both models' wolves are the same.
    """

    def model(village):
        return Contestant(
            f"village {village}",
            lambda scenario, seat: biased.Says(
                lambda seat, seed: 2 if hidden_roles.ROLES[seat] == "werewolf" else village
            ),
        )

    matches = await play(
        pairings(hidden_roles.scenarios(40), 80, 0, ("werewolf",), opposition),
        model(3),
        model(1),
        common=model(1),
        lanes=8,
        rules=RolloutPolicy(seed=3),
    )
    summary = summarise(matches, {})
    assert summary.difference["won/werewolf"].mean == lead
    assert summary.used == 80
    assert "won/seer" in summary.a if opposition == "each_other" else "won/seer" not in summary.a


async def test_the_difference_against_a_common_opponent_is_paired_over_starts(hidden):
    """A's wolves win with every start, B's with none: 1 and 0, and exactly 1 apart with every start."""
    matches = await play(
        pairings(hidden_roles.scenarios(6), 24, 0, ("werewolf",)),
        side("strong", lambda seat, seed: 2),
        side("weak", lambda seat, seed: 0),
        common=side("village", lambda seat, seed: 1),
        lanes=4,
        rules=RolloutPolicy(),
    )
    summary = summarise(matches, {})
    assert (summary.a["won/werewolf"].mean, summary.b["won/werewolf"].mean) == (1, 0)
    assert (summary.difference["won/werewolf"].mean, summary.difference["won/werewolf"].n) == (1, 6)
    assert summary.difference["return"].mean == 1  # of a model's own seats, not of the village's
    assert (summary.conversations, summary.used, summary.scenarios) == (24, 24, 6)
    assert summary.shared["wolves_win"].mean == 0.5
