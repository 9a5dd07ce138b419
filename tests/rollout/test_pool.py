"""Who sits where: shares, roles and saved steps, as a function of seed, step and number alone."""

from collections import Counter

import pytest

from tests.evaluate import hidden_roles
from tests.table_talk import negotiation
from training.errors import BadInput
from training.opponent_sections import Opponent
from training.records import LEARNER
from training.rollout.pool import Pool, title


@pytest.fixture(autouse=True)
def game(monkeypatch):
    from training.games import REGISTRY

    monkeypatch.setitem(REGISTRY, "hidden", hidden_roles.SPEC)


SIX = hidden_roles.scenarios(1)[0]


def pool(*entries, seed=1, **changes):
    return Pool(entries, seed, **{"save_every": 5, "saved": 3, "loaded": 1, **changes})


def entry(source, weight=1.0, learner="one"):
    return Opponent(source=source, weight=weight, learner=learner)


def test_without_a_pool_the_learner_sits_everywhere():
    assert pool().seats(SIX, 1, 0) == (LEARNER,) * 6
    assert pool(entry("mirror")).seats(SIX, 1, 0) == (LEARNER,) * 6


def test_games_are_shared_out_by_weight_and_seats_evenly():
    mixed = pool(entry("mirror", 1), entry("scripted", 3))
    assignments = [mixed.seats(SIX, step, number) for step in range(1, 101) for number in range(40)]
    alone = [seats for seats in assignments if LEARNER in seats and len(set(seats)) == 2]
    assert len(assignments) - len(alone) == sum(set(seats) == {LEARNER} for seats in assignments)
    # 4,000 draws at 3/4: the standard deviation is 27.4
    assert abs(len(alone) - 3000) < 4 * 27.4
    counts = Counter(seats.index(LEARNER) for seats in alone)
    assert all(seats.count(LEARNER) == 1 for seats in alone)
    # each seat gets a sixth of about 3,000: 500, standard deviation 20.4
    assert all(abs(count - len(alone) / 6) < 4.5 * 20.4 for count in counts.values())


def test_a_draw_depends_on_seed_step_and_number_only():
    mixed = [entry("mirror"), entry("scripted"), entry("past")]
    drawn = [pool(*mixed).seats(SIX, step, number) for step in range(1, 30) for number in range(4)]
    again = [pool(*mixed).seats(SIX, step, number) for step in range(1, 30) for number in range(4)]
    assert drawn == again
    assert drawn != [pool(*mixed, seed=2).seats(SIX, step, number) for step in range(1, 30) for number in range(4)]


def test_a_side_by_roles():
    wolves = pool(entry("scripted", learner=("werewolf",)))
    assert wolves.seats(SIX, 3, 4) == ("scripted", LEARNER, "scripted", "scripted", LEARNER, "scripted")
    village = pool(entry("scripted", learner=("villager", "seer")))
    assert [name == LEARNER for name in village.seats(SIX, 3, 4)] == [True, False, True, True, False, True]


def with_partner(source, partner, *roles):
    return Opponent(source=source, learner=roles, partner=partner)


def test_a_partner_holds_one_of_the_learners_seats():
    village = pool(with_partner("scripted", "start", "villager", "seer"))
    seatings = [village.seats(SIX, step, number) for step in range(1, 26) for number in range(40)]
    assert all([seats[1], seats[4]] == ["scripted", "scripted"] for seats in seatings)  # the wolves
    assert all([seats.count("start"), seats.count(LEARNER)] == [1, 3] for seats in seatings)
    # 1,000 draws among the four seats of the village: 250 each, standard deviation 13.7
    counts = Counter(seats.index("start") for seats in seatings)
    assert set(counts) == {0, 2, 3, 5}
    assert all(abs(count - 250) < 4 * 13.7 for count in counts.values())
    assert seatings == [village.seats(SIX, step, number) for step in range(1, 26) for number in range(40)]


def test_an_ally_holds_one_of_the_opponents_seats():
    village = pool(Opponent(source="scripted", learner=("werewolf",), ally="start"))
    seatings = [village.seats(SIX, step, number) for step in range(1, 26) for number in range(40)]
    assert all([seats[1], seats[4]] == [LEARNER, LEARNER] for seats in seatings)  # the wolves
    assert all([seats.count("start"), seats.count("scripted")] == [1, 3] for seats in seatings)
    # as above: 250 draws of each of the four seats
    counts = Counter(seats.index("start") for seats in seatings)
    assert set(counts) == {0, 2, 3, 5}
    assert all(abs(count - 250) < 4 * 13.7 for count in counts.values())
    assert village.sources == ("scripted", "start")
    beside = pool(Opponent(source="scripted", ally="start"))
    assert [*map(beside.seats(SIX, 1, 0).count, (LEARNER, "start", "scripted"))] == [1, 1, 4]


def test_an_ally_leaves_the_opponent_a_seat():
    with pytest.raises(BadInput, match="has 1 seat for the opponent: an ally needs two") as caught:
        pool(Opponent(source="scripted", learner=("villager", "werewolf"), ally="start")).seats(SIX, 1, 0)
    assert caught.value.where == "opponents.ally"


@pytest.mark.parametrize(
    "entry, why",
    [
        ({"source": "mirror", "ally": "start"}, "there is no opponent that could have an ally"),
        ({"source": "past", "ally": "mirror"}, "cannot be the learner itself"),
    ],
)
def test_an_ally_that_cannot_be_is_refused(entry, why):
    with pytest.raises(BadInput, match=why) as caught:
        Opponent.from_dict(entry)
    assert caught.value.where == "ally"


def test_a_partner_may_be_a_past_self():
    village = pool(with_partner("start", "past", "villager"), loaded=2)
    assert village.uses_past
    assert village.sources == ("start",)
    drawn = {policy for number in range(40) for policy in village.seats(SIX, 11, number)}
    assert drawn == {LEARNER, "start", *(f"past {step}" for step in village.past(11))}
    assert len(village.past(11)) == 2


def test_a_partner_leaves_the_learner_a_seat():
    with pytest.raises(BadInput, match=r"one seat of the learner \(seer\), which the partner would take"):
        pool(with_partner("scripted", "start", "seer")).seats(SIX, 1, 0)


@pytest.mark.parametrize(
    "entry, why",
    [
        ({"source": "past", "partner": "start"}, "the learner plays one seat"),
        ({"source": "mirror", "learner": ["seer"], "partner": "start"}, "with source mirror"),
        ({"source": "past", "learner": ["seer"], "partner": "mirror"}, "cannot be the learner itself"),
    ],
)
def test_a_partner_that_cannot_be_is_refused(entry, why):
    with pytest.raises(BadInput, match=why) as caught:
        Opponent.from_dict(entry)
    assert caught.value.where == "partner"


def test_an_entry_without_its_roles_does_not_fit_a_game():
    either = pool(entry("scripted", learner=("werewolf",)), entry("mirror"))
    assert {either.seats(negotiation(), 1, number) for number in range(20)} == {(LEARNER, LEARNER)}
    with pytest.raises(BadInput, match="nobody there has the learner's roles; it has none"):
        pool(entry("scripted", learner=("werewolf",))).seats(negotiation(), 1, 0)


def test_past_selves_are_those_of_the_newest_saved_steps():
    past = pool(entry("past"))
    assert [past.saved(step) for step in (1, 5, 6, 11, 16, 17)] == [
        (0,), (0,), (0, 5), (0, 5, 10), (5, 10, 15), (5, 10, 15),
    ]  # fmt: skip
    assert pool(entry("scripted")).saved(100) == ()
    for step in range(1, 40):
        [drawn] = past.past(step)
        assert drawn in past.saved(step)
        assert set(past.seats(SIX, step, 0)) == {LEARNER, f"past {drawn}"}
    assert {past.past(step) for step in range(16, 21)} > {(10,)}
    two = pool(entry("past"), loaded=2)
    assert [len(two.past(step)) for step in (5, 6, 11)] == [1, 2, 2]
    games = {name for number in range(30) for name in two.seats(SIX, 11, number)} - {LEARNER}
    assert games == {f"past {step}" for step in two.past(11)}


@pytest.mark.parametrize(
    "policy, shown",
    [
        ("past 10", "past"),
        ("scripted", "scripted"),
        ("a folder/with a space", "a folder/with a space"),
        ("https://h.example/v1 big-model BIG_API_KEY", "big-model"),
    ],
)
def test_names_in_numbers(policy, shown):
    assert title(policy) == shown


def test_with_a_lag_past_selves_are_as_old_as_the_weights_that_play():
    """Saved after 0, 5, 10, 15: with a lag of 2, step 13 plays the weights after step 10, which may meet themselves."""
    behind = pool(entry("past"), lag=2)
    assert [behind.saved(step) for step in (1, 2, 7, 8, 12, 13, 18)] == [
        (0,), (0,), (0,), (0, 5), (0, 5), (0, 5, 10), (5, 10, 15),
    ]  # fmt: skip
