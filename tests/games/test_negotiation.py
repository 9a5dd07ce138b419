"""The negotiation's rules, with points worked out by hand."""

from itertools import product

import pytest

from tests.games.cases.negotiation import items, price
from training.errors import BadInput, IllegalMove
from training.games import make
from training.games.base import FORFEIT
from training.games.negotiation.terms import terms
from training.records import ALL, SPECTATOR, Move
from training.text.parsing import parse


def say(game, seat, text):
    move, _ = parse(text, game.observe(seat))
    game.step({seat: move})


def last(game, viewer):
    return game.observe(viewer).messages[-1].text


def casino(**settings):
    """Three units each of three items; 36 points a side, 5 without a deal."""
    names = ("food", "water", "firewood")
    sides = [{"values": dict(zip(names, v, strict=True)), "walk_away": 5} for v in ((5, 4, 3), (3, 4, 5))]
    scenario = items(**settings)
    deal = {"kind": "items", "items": [{"name": n, "count": 3} for n in names], "sides": sides}
    return make(scenario.model_copy(update={"settings": {**scenario.settings, "deal": deal}}))


def test_a_deal_by_hand():
    game = casino()
    say(game, 0, "I need food.")
    say(game, 1, "And I firewood. <propose>food 1, water 1, firewood 3</propose>")
    assert game.returns() == {0: None, 1: None}
    assert game.metrics() == {}
    # Ada gets food 2, water 2: 2·5 + 2·4 = 18; Ben keeps 1·3 + 1·4 + 3·5 = 22.
    assert last(game, 0) == (
        "Ben proposes to keep food 1, water 1, firewood 3; you would get food 2, water 2, firewood 0. "
        "For you: 18 of 36 points. Accept, reject or walk away."
    )
    assert last(game, 1) == (
        "You propose to keep food 1, water 1, firewood 3; Ada would get food 2, water 2, firewood 0. "
        "For you: 22 of 36 points."
    )
    assert last(game, SPECTATOR) == (
        "Ben proposes to keep food 1, water 1, firewood 3; Ada would get food 2, water 2, firewood 0."
    )
    assert last(game, ALL) == last(game, SPECTATOR) + " Ada: 18 of 36 points. Ben: 22 of 36 points."
    say(game, 0, "<accept/>")
    assert not game.to_act()
    assert game.returns() == pytest.approx({0: 18 / 36, 1: 22 / 36})
    # The best joint split gives Ada all food, Ben all firewood, and water to either: 15 + 15 + 12 = 42.
    assert game.metrics() == pytest.approx(
        {
            "agreement": 1,
            "joint_points": 40,
            "efficiency": 40 / 42,
            "pareto": 0,  # Ben's food for one of Ada's water: 19 and 23
            "nash_product": (13 / 36) * (17 / 36),
            "turns": 3,
            "proposals": 1,
            "walk_away": 0,
            "forfeit": 0,
        }
    )
    assert game.seat_metrics() == {0: {"points": 18}, 1: {"points": 22}}
    assert last(game, 1) == (
        "Ada accepts. Deal: Ada gets food 2, water 2, firewood 0; Ben gets food 1, water 1, firewood 3. "
        "For you: 22 of 36 points."
    )


def test_after_a_proposal_only_an_answer_is_possible_and_a_rejecting_seat_speaks_next():
    game = casino()
    say(game, 0, "<propose>food 3, water 3, firewood 3</propose>")
    assert [action.name for action in game.observe(1).actions] == ["accept", "reject", "walk_away"]
    say(game, 1, "No way. <reject/>")
    assert game.to_act() == {1}
    assert [action.name for action in game.observe(1).actions] == ["talk", "propose", "walk_away"]
    assert last(game, 0) == "Ben rejects the proposal and speaks next."
    say(game, 1, "Be fair.")
    assert game.to_act() == {0}
    with pytest.raises(IllegalMove, match="'accept' is not possible now"):
        game.check(0, Move(action="accept"))


@pytest.mark.parametrize("prosocial", [0.0, 0.25, 1.0])
def test_returns_mix_both_sides_by_the_prosocial_weight(prosocial):
    game = casino(prosocial=prosocial)
    say(game, 0, "<propose>food 3, water 3, firewood 0</propose>")  # 27 against 15
    say(game, 1, "<accept/>")
    share, other = 27 / 36, 15 / 36
    assert game.returns()[0] == pytest.approx((1 - prosocial) * share + prosocial * other)
    assert game.returns()[1] == pytest.approx((1 - prosocial) * other + prosocial * share)
    explained = "25 % that of Ben" in game.observe(0).messages[0].text
    assert explained == (prosocial == 0.25)


def test_walking_away_leaves_both_with_their_own_alternative():
    game = make(items())  # walk-away 5 of 26, and 0 of 17
    say(game, 0, "Bye. <walk_away/>")
    assert game.returns() == pytest.approx({0: 5 / 26, 1: 0})
    assert last(game, 0) == "Ada walks away. There is no deal. For you: 5 of 26 points."
    assert game.metrics()["agreement"] == 0
    assert game.metrics()["walk_away"] == 1


def test_a_seat_that_gives_up_gets_nothing_and_the_other_its_alternative():
    game = casino()
    game.step({0: FORFEIT})
    assert game.returns() == pytest.approx({0: 0, 1: 5 / 36})
    assert last(game, 0) == "Ada gives up the game. There is no deal. For you: 0 of 36 points."
    assert last(game, 1) == "Ada gives up the game. There is no deal. For you: 5 of 36 points."


@pytest.mark.parametrize("limit", [2, 5, 14])
def test_the_turn_limit_ends_without_a_deal_and_is_announced(limit):
    game = casino(turn_limit=limit)
    assert f"After {limit} turns" in game.observe(0).messages[0].text
    for turn in range(limit):
        assert game.to_act() == {turn % 2}
        say(game, turn % 2, "Let us talk.")
    assert not game.to_act()
    assert last(game, 1) == f"All {limit} turns are used up. There is no deal. For you: 5 of 36 points."
    lines = [m.text for m in game.observe(1).messages]
    assert lines.count("One turn remains.") == 1
    assert lines.count("Two turns remain.") == (limit > 2)


def test_a_proposal_in_the_last_turn_cannot_be_accepted():
    game = casino(turn_limit=2)
    say(game, 0, "Well?")
    say(game, 1, "<propose>food 0, water 0, firewood 0</propose>")
    assert not game.to_act()
    assert game.metrics()["agreement"] == 0


def test_rules_are_made_from_the_settings():
    text = make(items(first_seat=1, max_chars=77)).observe(0).messages[0].text
    for part in (
        "Two campers meet at a trail head.",
        "food 3, tent pegs 2, oil 1",
        "food: 5 points a unit. I am hungry.",
        "Everything together would be 26 points, no deal is 5 points.",
        "Ben begins",
        "at most 77 characters",
        "<propose>food 1, tent pegs 1, oil 0</propose>",
    ):
        assert part in text
    assert "9 points" not in text


def test_the_price_is_worth_one_at_the_own_target_and_nothing_at_the_others():
    values = terms(make(price()).settings.deal)  # 180 and 280
    for asked, buyer, seller in [(180, 1, 0), (280, 0, 1), (230, 0.5, 0.5), (205, 0.75, 0.25), (20, 1, 0), (600, 0, 1)]:
        for by in (0, 1):
            assert values.points(0, by, {"price": asked}) == pytest.approx(buyer)
            assert values.points(1, by, {"price": asked}) == pytest.approx(seller)


def test_a_price_bargain():
    game = make(price())
    rules = game.observe(0).messages[0].text
    assert "Hoped for: to pay 180. My savings end there." in rules
    assert "280" not in rules
    assert "Red canoe, listed at 300" in rules
    assert "(price 0 to 600)" in rules
    say(game, 0, "<propose>205</propose>")
    assert last(game, 1).endswith("a price of 205. It is short of your target. Accept, reject or walk away.")
    say(game, 1, "<reject/>")
    say(game, 1, "<propose>$180</propose>")
    assert last(game, 0) == ("Ben proposes a price of 180. It is your target or better. Accept, reject or walk away.")
    say(game, 0, "<accept/>")
    assert game.returns() == {0: 1.0, 1: 0.0}
    assert game.metrics()["efficiency"] == 1
    assert last(game, SPECTATOR) == "Ada accepts. Deal: Ada buys for 180."


def test_best_joint_split_and_pareto_agree_with_brute_force():
    """Every deal of a small pool, against a direct enumeration written another way."""
    counts, a, b = (3, 2, 1), (5, 4, 3), (2, 1, 9)
    all_splits = list(product(*(range(n + 1) for n in counts)))

    def worth(kept):
        return (
            sum(k * v for k, v in zip(kept, a, strict=True)),
            sum((n - k) * v for n, k, v in zip(counts, kept, b, strict=True)),
        )

    best = sum(n * max(x, y) for n, x, y in zip(counts, a, b, strict=True))
    for kept in all_splits:
        game = make(items())
        names = ("food", "tent pegs", "oil")
        args = dict(zip(names, kept, strict=True))
        game.step({0: Move(action="propose", args=args)})
        game.step({1: Move(action="accept")})
        mine, theirs = worth(kept)
        dominated = any(
            x >= mine and y >= theirs and (x, y) != (mine, theirs) for x, y in (worth(other) for other in all_splits)
        )
        metrics = game.metrics()
        assert game.seat_metrics() == {0: {"points": mine}, 1: {"points": theirs}}
        assert metrics["efficiency"] == pytest.approx((mine + theirs) / best)
        assert metrics["pareto"] == (not dominated)


def test_buttons_without_text_read_as_their_tag():
    game = casino()
    game.step({0: Move(action="propose", args={"food": 1, "water": 1, "firewood": 1})})
    said = game.observe(1).messages[-2]
    assert (said.author, said.text) == (0, "<propose>food 1, water 1, firewood 1</propose>")


def test_the_first_seat_is_drawn_from_the_seed():
    first = {seed: make(items(first_seat=None).with_seed(seed)).to_act() for seed in range(20)}
    assert set(first.values()) == {frozenset({0}), frozenset({1})}
    assert make(items(first_seat=1)).to_act() == {1}


def test_deal_or_no_deal_settings():
    side = [{"values": {"book": 1, "hat": 3, "ball": 1}}, {"values": {"book": 1, "hat": 0, "ball": 2}}]
    deal = {"kind": "items", "items": [{"name": n, "count": c} for n, c in (("book", 4), ("hat", 1), ("ball", 3))]}
    scenario = items().model_copy(update={"settings": {"deal": {**deal, "sides": side}}})
    game = make(scenario)
    assert "Everything together would be 10 points, no deal is 0 points." in game.observe(0).messages[0].text
    say(game, 0, "<propose>book 4, hat 1, ball 0</propose>")
    say(game, 1, "<accept/>")
    assert game.returns() == pytest.approx({0: 0.7, 1: 0.6})


SIDE = {"values": {"food": 5, "tent pegs": 4, "oil": 3}}


@pytest.mark.parametrize(
    "scenario, where",
    [
        (items([SIDE, {"values": {"food": 1}}]), "sides.1.values must name exactly"),
        (items([SIDE, {**SIDE, "walk_away": 40}]), "sides.1.walk_away"),
        (items([SIDE, {**SIDE, "reasons": {"wood": "x"}}]), "unknown items: wood"),
        (items([SIDE, {"values": {"food": 0, "tent pegs": 0, "oil": 0}}]), "nothing in the pool is worth"),
        (items([SIDE, {"values": {"food": -1, "tent pegs": 4, "oil": 0}}]), "must not be negative"),
        (items([SIDE, {"values": {"food": 1, "tent pegs": 10**7, "oil": 0}}]), "sides.1.values.tent pegs"),
        (items([SIDE]), "settings.deal"),
        (items(turn_limit=1), "settings.turn_limit"),
        (items(prosocial=1.5), "settings.prosocial"),
        (price([{"target": 300}, {"target": 200}]), "must be below the seller's"),
        (price([{"target": 300}, {"target": 700}]), "above the highest price"),
    ],
)
def test_wrong_settings_say_what_is_wrong(scenario, where):
    with pytest.raises(BadInput, match=where.replace("(", r"\(")):
        make(scenario)


@pytest.mark.parametrize("name", ["2 food", "fo,od", "<b>", "", "x" * 41, "food: x"])
def test_item_names_can_be_written_as_arguments(name):
    deal = {"kind": "items", "items": [{"name": name, "count": 1}], "sides": [{"values": {name: 1}}] * 2}
    with pytest.raises(BadInput, match=r"items\.0\.name"):
        make(items().model_copy(update={"settings": {"deal": deal}}))


def test_a_pool_that_could_not_be_enumerated_is_refused():
    names = "abcdef"
    deal = {
        "kind": "items",
        "items": [{"name": n, "count": 9} for n in names],
        "sides": [{"values": dict.fromkeys(names, 1)}] * 2,
    }
    with pytest.raises(BadInput, match="100000 ways"):
        make(items().model_copy(update={"settings": {"deal": deal}}))
