"""The negotiation's rules, with points worked out by hand."""

from itertools import product

import pytest

from tests.games.cases.negotiation import items, price
from training.errors import BadInput, IllegalMove
from training.games import make
from training.games.base import FORFEIT
from training.games.negotiation import table
from training.games.negotiation.terms import terms
from training.records import ALL, SPECTATOR, Move, Scenario
from training.seeding import rng
from training.text.parsing import parse


def say(game, seat, text):
    move, _ = parse(text, game.observe(seat))
    game.step({seat: move})


def last(game, viewer):
    return game.observe(viewer).messages[-1].text


def read(game, viewer):
    """What people read at a place, as (who, kind, text)."""
    return [(line.seat, line.kind, line.text) for message in game.observe(viewer).messages for line in message.lines]


def tray(game, viewer):
    (zone,) = game.show(viewer).zones
    return zone


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
    message = game.observe(1).messages[-2]
    assert (message.author, message.text) == (0, "<propose>food 1, water 1, firewood 1</propose>")


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


# --- for people ---


def test_people_see_the_items_with_what_they_are_worth_to_them():
    game = make(items(prosocial=0.25))
    view, zone = game.show(0), tray(game, 0)
    assert [(i.name, i.count, i.worth, i.reason, i.suggested) for i in zone.items] == [
        ("food", 3, 5, "I am hungry.", 2),
        ("tent pegs", 2, 4, "", 1),
        ("oil", 1, 3, "", 1),
    ]
    assert (zone.action, zone.most, zone.alone, zone.by, zone.worth) == ("propose", 26, 5, None, None)
    assert view.story == "Two campers meet at a trail head.\nAda and Ben divide food × 3, tent pegs × 2 and oil × 1."
    assert view.brief.title == "What things are worth to you"
    assert view.brief.text == (
        "food: 5 points each. I am hungry.",
        "tent pegs: 4 points each.",
        "oil: 3 points.",
        "Everything would be 26 points; no deal is 5.",
        "Your result is 75 % your own and 25 % that of Ben.",
    )
    assert (view.phase, view.ask) == ("Turn 1 of 14", "Say something, or propose a deal.")
    assert (game.show(1).ask, tray(game, 1).action, tray(game, 1).most) == ("", "", 17)
    for viewer in (SPECTATOR, ALL):
        assert {(i.worth, i.reason) for i in tray(game, viewer).items} == {(None, "")}
    assert game.show(SPECTATOR).brief is None
    assert game.show(ALL).brief.text == (
        (
            "Worth to Ada\nfood: 5 points each. I am hungry.\ntent pegs: 4 points each.\n"
            "oil: 3 points.\nNo deal: 5 points."
        ),
        "Worth to Ben\nfood: 2 points each.\ntent pegs: 1 point each.\noil: 9 points.\nNo deal: 0 points.",
    )


def test_a_proposal_lies_on_two_sides_with_its_worth_to_the_viewer():
    game = casino()
    say(game, 0, "I need food.")
    say(game, 1, "Here. <propose>food 1, water 1, firewood 3</propose>")
    for viewer, worth in ((0, 18), (1, 22), (SPECTATOR, None), (ALL, None)):
        zone = tray(game, viewer)
        assert [item.offered for item in zone.items] == [(2, 1), (2, 1), (0, 3)]
        assert (zone.by, zone.worth, zone.agreed, zone.action) == (1, worth, False, "")
    assert game.show(0).ask == "Answer Ben's proposal: accept it, reject it, or walk away."
    say(game, 0, "<reject/>")
    assert [item.offered for item in tray(game, 0).items] == [(), (), ()]
    assert [item.suggested for item in tray(game, 0).items] == [2, 2, 0]  # a counter-proposal begins with what Ben left
    assert [item.suggested for item in tray(game, 1).items] == [0, 0, 0]  # who cannot propose has nothing to begin with


def test_what_people_read_of_a_deal():
    game = casino()
    say(game, 0, "I need food.")
    say(game, 1, "Here. <propose>food 1, water 1, firewood 3</propose>")
    say(game, 0, "<reject/>")
    say(game, 0, "<propose>food 3, water 3, firewood 3</propose>")
    say(game, 1, "Never! <reject/>")
    say(game, 1, "<propose>food 0, water 1, firewood 3</propose>")
    say(game, 0, "Good. <accept/>")
    rest = "food × 1, water × 1 and firewood × 3"
    offers = {
        0: (
            f"offers you food × 2 and water × 2, and keeps {rest} (18 of 36 points for you)",
            "You offer Ben nothing, and keep everything (36 of 36 points for you)",
            "offers you food × 3 and water × 2, and keeps water × 1 and firewood × 3 (23 of 36 points for you)",
        ),
        1: (
            f"You offer Ada food × 2 and water × 2, and keep {rest} (22 of 36 points for you)",
            "offers you nothing, and keeps everything (0 of 36 points for you)",
            "You offer Ada food × 3 and water × 2, and keep water × 1 and firewood × 3 (19 of 36 points for you)",
        ),
        SPECTATOR: (
            f"offers Ada food × 2 and water × 2, and keeps {rest}",
            "offers Ben nothing, and keeps everything",
            "offers Ada food × 3 and water × 2, and keeps water × 1 and firewood × 3",
        ),
        ALL: (
            f"offers Ada food × 2 and water × 2, and keeps {rest} (18 for Ada, 22 for Ben)",
            "offers Ben nothing, and keeps everything (36 for Ada, 0 for Ben)",
            "offers Ada food × 3 and water × 2, and keeps water × 1 and firewood × 3 (23 for Ada, 19 for Ben)",
        ),
    }
    headlines = {
        0: "Deal: you get 23 of 36 points.",
        1: "Deal: you get 19 of 36 points.",
        SPECTATOR: "Deal: Ada gets food × 3 and water × 2, and Ben gets water × 1 and firewood × 3.",
        ALL: "Deal: Ada gets 23 of 36 points, and Ben 19 of 36 points.",
    }
    moment = "Ada accepted Ben's proposal in turn 7."
    for viewer, (first, second, third) in offers.items():
        assert read(game, viewer) == [
            (None, "news", "Ada begins."),
            (0, "speech", "I need food."),
            (1, "speech", "Here."),
            (None if viewer == 1 else 1, "deed", first),
            (0, "deed", "rejects the proposal"),
            (None if viewer == 0 else 0, "deed", second),
            (1, "speech", "Never!"),
            (1, "deed", "rejects the proposal"),
            (None if viewer == 1 else 1, "deed", third),
            (0, "speech", "Good."),
            (None, "news", f"{moment} {headlines[viewer]}"),
        ]
        view = game.show(viewer)
        assert (view.headline, view.moment, view.mood, view.phase) == (headlines[viewer], moment, "over", "")
        assert [item.offered for item in tray(game, viewer).items] == [(3, 0), (2, 1), (0, 3)]
        assert tray(game, viewer).agreed


@pytest.mark.parametrize(
    "moves, headlines, moment",
    [
        (
            [(0, "Bye. <walk_away/>")],
            ("No deal: you keep 5 of 26 points.", "No deal: you keep 0 of 17 points.", "No deal."),
            "Ada walked away in turn 1.",
        ),
        (
            [(0, "Well?"), (1, "<propose>food 0, tent pegs 0, oil 0</propose>")],
            ("No deal: you keep 5 of 26 points.", "No deal: you keep 0 of 17 points.", "No deal."),
            "All 2 turns were used.",
        ),
        (
            [(0, None)],
            ("You gave up: no deal, and no points for you.", "No deal: you keep 0 of 17 points.", "No deal."),
            "Ada gave up in turn 1.",
        ),
    ],
)
def test_how_people_read_that_there_is_no_deal(moves, headlines, moment):
    game = make(items(turn_limit=2))
    for seat, text in moves:
        if text is None:
            game.step({seat: FORFEIT})
        else:
            say(game, seat, text)
    for viewer, headline in zip((0, 1, SPECTATOR), headlines, strict=True):
        assert (game.show(viewer).headline, game.show(viewer).moment) == (headline, moment)
        assert read(game, viewer)[-1] == (None, "news", f"{moment} {headline}")
        assert tray(game, viewer).by is None
    points = 0 if "gave up" in moment else 5
    assert game.show(ALL).headline == f"No deal: Ada gets {points} of 26 points, and Ben 0 of 17 points."


def test_what_there_is_to_do_in_the_last_turn():
    game = make(items(turn_limit=3))
    assert game.show(0).ask == "Say something, or propose a deal."
    say(game, 0, "Well?")
    say(game, 1, "<propose>food 0, tent pegs 0, oil 0</propose>")
    assert game.show(0).ask == "Answer Ben's proposal: accept it, or there is no deal."
    game = make(items(turn_limit=2))
    say(game, 0, "Well?")
    assert (game.show(1).phase, game.show(1).ask) == ("Turn 2 of 2", "Say a last word: it is too late for a deal.")


def test_people_see_a_price_between_the_listing_and_their_target():
    """The buyer hopes for 180, the seller for 280; the scale ends at twice the listing price."""
    game = make(price())
    scale = tray(game, 0)
    assert (scale.title, scale.about) == ("Red canoe, listed at 300", "Dry.\nHardly used.")
    assert (scale.low, scale.listing, scale.high, scale.target) == (0, 300, 600, 180)
    assert (scale.listing, scale.high, scale.offer, scale.rejected) == (300, 600, None, ())
    assert (scale.action, scale.suggested) == ("propose", 300)
    assert (tray(game, 1).action, tray(game, 1).suggested, tray(game, 1).target) == ("", None, 280)
    assert [tray(game, viewer).target for viewer in (SPECTATOR, ALL)] == [None, None]
    view = game.show(0)
    assert view.story == "Ada may buy from Ben: Red canoe, listed at 300."
    assert view.brief.title == "You hope to buy for 180"
    assert view.brief.text == (
        "My savings end there.",
        "A deal at that price is worth 1 to you, at the price Ben hopes for 0; no deal is 0.",
    )
    assert game.show(1).brief.title == "You hope to sell for 280"
    both = ("Ada hopes to buy for 180. My savings end there.", "Ben hopes to sell for 280.")
    assert (game.show(SPECTATOR).brief, game.show(ALL).brief.text) == (None, both)
    say(game, 0, "<propose>150</propose>")
    scale = tray(game, 1)
    assert (scale.offer, scale.by, scale.agreed, scale.rejected) == (150, 0, False, ())
    worth = ["better than your target by 30", "short of your target by 130", "", ""]
    assert [tray(game, viewer).worth for viewer in (0, 1, SPECTATOR, ALL)] == worth
    say(game, 1, "<reject/>")
    assert (tray(game, 1).offer, tray(game, 1).suggested) == (None, 150)
    assert [tray(game, viewer).rejected for viewer in (0, 1, SPECTATOR)] == [((0, 150),)] * 3
    say(game, 1, "<propose>280</propose>")
    assert (tray(game, 0).offer, tray(game, 0).rejected) == (280, ((0, 150),))


def test_a_single_unit_reads_well_whatever_number_its_name_is_in():
    deal = {
        "kind": "items",
        "items": [{"name": "nets", "count": 1}, {"name": "book", "count": 2}],
        "sides": [{"values": {"nets": 1, "book": 1}, "walk_away": 1}, {"values": {"nets": 3, "book": 0}}],
    }
    scenario = items(first_seat=0)
    game = make(scenario.model_copy(update={"settings": {**scenario.settings, "deal": deal}}))
    assert game.show(SPECTATOR).story.endswith("Ada and Ben divide nets × 1 and book × 2.")
    assert "Everything would be 3 points; no deal is 1." in game.show(0).brief.text
    assert "No deal: 1 point." in game.show(ALL).brief.text[0]
    say(game, 0, "<propose>nets 0, book 1</propose>")
    assert read(game, SPECTATOR)[-1] == (0, "deed", "offers Ben nets × 1 and book × 1, and keeps book × 1")


def test_what_people_read_of_a_price():
    game = make(price())
    for seat, text in [
        (0, "<propose>150</propose>"),
        (1, "<reject/>"),
        (1, "<propose>180</propose>"),
        (0, "<accept/>"),
    ]:
        say(game, seat, text)
    worth = {
        0: ("You offer to buy for 150 (better than your target by 30)", "offers to sell for 180 (your target)"),
        1: (
            "offers to buy for 150 (short of your target by 130)",
            "You offer to sell for 180 (short of your target by 100)",
        ),
        SPECTATOR: ("offers to buy for 150", "offers to sell for 180"),
        ALL: ("offers to buy for 150 (1 for Ada, 0 for Ben)", "offers to sell for 180 (1 for Ada, 0 for Ben)"),
    }
    headlines = {
        0: "Deal at 180: your target.",
        1: "Deal at 180: short of your target by 100.",
        SPECTATOR: "Deal: Ada buys for 180.",
        ALL: "Deal at 180: Ada hoped for 180, and Ben for 280.",
    }
    for viewer, offers in worth.items():
        deeds = [text for _, kind, text in read(game, viewer) if kind == "deed"]
        assert deeds == [offers[0], "rejects the proposal", offers[1]]
        assert game.show(viewer).headline == headlines[viewer]
        assert (tray(game, viewer).agreed, tray(game, viewer).offer) == (True, 180)
    game = make(price())
    say(game, 0, "Too much. <walk_away/>")
    assert [game.show(viewer).headline for viewer in (0, 1, SPECTATOR)] == ["No deal."] * 3
    assert game.show(ALL).headline == "No deal: Ada hoped for 180, and Ben for 280."


@pytest.mark.parametrize("scenario", [items(first_seat=1, turn_limit=6), price(first_seat=1, turn_limit=6)])
def test_people_read_rules_in_short_paragraphs(scenario):
    rules = make(scenario).show(SPECTATOR).rules
    assert 3 <= len(rules) <= 7
    assert max(map(len, rules)) <= 140
    assert "Ben begins" in rules[0]
    assert "6 turns" in rules[2]


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


def better_for_one(other, outcome):
    return other != outcome and all(theirs >= ours for theirs, ours in zip(other, outcome, strict=True))


@pytest.mark.parametrize("seed", range(20))
def test_the_frontier_is_what_nothing_else_improves(seed):
    """Against the definition, by comparing every pair."""
    chance = rng(seed, "outcomes")
    outcomes = {(float(chance.randrange(8)), float(chance.randrange(8))) for _ in range(20)}
    expected = sorted(seen for seen in outcomes if not any(better_for_one(other, seen) for other in outcomes))
    assert list(table.efficient(outcomes)) == expected


def test_afterwards_the_all_seeing_view_has_the_proposals_among_all_deals():
    """Two pens, worth 1 each to Ada and 3 each to Ben: three deals, and none is better for both than another."""
    game = make(
        Scenario(
            id="pens",
            game="negotiation",
            seats=("Ada", "Ben"),
            settings={
                "deal": {
                    "kind": "items",
                    "items": [{"name": "pen", "count": 2}],
                    "sides": [{"values": {"pen": 1}, "walk_away": 0.5}, {"values": {"pen": 3}}],
                }
            },
        )
    )
    propose = Move(action="propose", args={"pen": 2})
    for move in (
        propose,
        Move(action="reject"),
        propose.model_copy(update={"args": {"pen": 1}}),
        Move(action="accept"),
    ):
        assert game.analysis() == ()
        game.step({next(iter(game.to_act())): move})
    (frontier,) = game.analysis()
    assert frontier.outcomes == frontier.efficient == ((0, 6), (1, 3), (2, 0))
    assert [(proposal.by, proposal.points) for proposal in frontier.proposals] == [(0, (2, 0)), (1, (1, 3))]
    assert (frontier.alone, frontier.most, frontier.agreed) == ((0.5, 0), (2, 6), True)
