"""Scripts reach deals, listen, and are the same for the same seed."""

import asyncio

import pytest

from tests.games.cases.dialogue import dialogue
from tests.games.cases.negotiation import items, price
from tests.games.play import reply
from training import samples
from training.errors import BadInput
from training.games import REGISTRY, make
from training.games.dialogue.script import wish
from training.players import make as player
from training.players.scripted import do
from training.records import Action, Argument, Message, Observation, Scenario
from training.seeding import derive
from training.text.parsing import parse


def game_of(scenario, names=("scripted", "scripted"), seed=0):
    game, players = make(scenario), [player(name, scenario, seat) for seat, name in enumerate(names)]
    while game.to_act():
        moves = {}
        for seat in game.to_act():
            seen = game.observe(seat)
            answer = asyncio.run(players[seat].act(seat, seen, derive(seed, seat, len(seen.messages))))
            moves[seat], _ = parse(answer.text, seen)
            game.check(seat, moves[seat])
        game.step(moves)
    return game


def test_every_game_has_a_script():
    assert all(spec.script for spec in REGISTRY.values())


def mean(games, name):
    return sum(game.metrics()[name] for game in games) / len(games)


def test_item_scripts_reach_good_deals_on_the_samples():
    games = [game_of(s.with_seed(k), seed=k) for s in samples.load("items") for k in range(3)]
    assert mean(games, "agreement") >= 0.95
    assert mean(games, "efficiency") >= 0.9
    for game in games:
        for seat in (0, 1):
            assert game.seat_metrics()[seat]["points"] >= game.terms.walk_away(seat)


def test_item_scripts_find_the_trade_that_equal_shares_miss():
    """Opposite wishes: everything to who wants it is worth 27 and 27; equal halves would be 18 and 18 at most."""
    names = ("food", "water")
    sides = [{"values": dict(zip(names, v, strict=True))} for v in ((9, 3), (3, 9))]
    deal = {"kind": "items", "items": [{"name": n, "count": 3} for n in names], "sides": sides}
    game = game_of(items().model_copy(update={"settings": {"deal": deal}}))
    assert game.seat_metrics() == {0: {"points": 27}, 1: {"points": 27}}


def test_price_scripts_meet_between_the_targets():
    games = [game_of(s.with_seed(k), seed=k) for s in samples.load("prices") for k in range(3)]
    assert mean(games, "agreement") == 1
    assert 0.3 < sum(game.seat_metrics()[0]["points"] for game in games) / len(games) < 0.7
    assert mean(games, "efficiency") == pytest.approx(1)


def test_dialogue_scripts_say_their_goal_and_leave():
    for scenario in samples.load("dialogues")[::4]:
        game = game_of(scenario)
        assert game.metrics()["end_leave"] == 1
        assert 6 <= game.metrics()["turns"] <= 20


@pytest.mark.parametrize("opponent", ["random", "scripted"])
@pytest.mark.parametrize("scenario", [items(), items(turn_limit=2), price(), price(turn_limit=3), dialogue()])
def test_scripts_make_only_legal_moves(scenario, opponent):
    for seed in range(20):
        for names in (("scripted", opponent), (opponent, "scripted")):
            assert game_of(scenario.with_seed(seed), names, seed).metrics()
    tight = {**scenario.settings, "max_chars": 20}
    assert game_of(scenario.model_copy(update={"settings": tight})).metrics()


@pytest.mark.parametrize(
    "max_chars, written",
    [
        (0, "Good day to you. <gesture>waves a hand</gesture>"),  # no bound
        (19, "Good <gesture>waves a hand</gesture>"),  # 12 characters of the argument leave 7
        (8, "<gesture>waves a</gesture>"),
    ],
)
def test_scripts_keep_the_bound_of_free_text(max_chars, written):
    gesture = Action(name="gesture", args=(Argument(name="what", kind="text"),))
    seen = Observation(messages=(), actions=(gesture,), max_chars=max_chars)
    assert do(seen, "gesture", "Good day to you.", what="waves a hand") == written


def test_the_same_seed_gives_the_same_game():
    for scenario in (items(), price(), dialogue()):
        views = [game_of(scenario, seed=5).observe(-2) for _ in range(2)]
        assert views[0] == views[1]


def test_a_script_listens_to_what_the_other_needs():
    """After `I need oil` the script offers the oil; after `I need food` it offers food."""
    offers = {}
    for need in ("oil", "food"):
        scenario = items(
            [{"values": {"food": 4, "tent pegs": 4, "oil": 4}}, {"values": {"food": 1, "tent pegs": 1, "oil": 1}}]
        )
        game = make(scenario)
        game.step({0: parse(reply(scenario, 0, game.observe(0), 1, "scripted"), game.observe(0))[0]})
        game.step({1: parse(f"I need {need} more than anything, I don't need the tent pegs.", game.observe(1))[0]})
        move, _ = parse(reply(scenario, 0, game.observe(0), 2, "scripted"), game.observe(0))
        offers[need] = move.args
    assert offers["oil"]["oil"] == 0
    assert offers["food"]["oil"] == 1
    assert offers["food"]["food"] < 3


@pytest.mark.parametrize(
    "goal, expected",
    [
        ("Convince your friend to lend you the car (<b>)", "I would like you to lend me the car."),
        ("Persuade Mia Davis to share her recipe. More.", "I would like you to share your recipe."),
        ("Politely decline the offer", "I would like to politely decline the offer."),
        ("Keep the late hours for your pupils", "I would like to keep the late hours for my pupils."),
        ("Say what you need", "I would like to say what I need."),
    ],
)
def test_goals_become_wishes(goal, expected):
    assert wish(goal) == expected


def test_unknown_players_and_games_are_named():
    with pytest.raises(BadInput, match="known: cfr, follower:N, mcts:N, nash, random, scripted"):
        player("oracle", items(), 0)
    with pytest.raises(BadInput, match="unknown game 'ludo'"):
        player("scripted", Scenario(id="x", game="ludo", seats=("A",)), 0)
    with pytest.raises(BadInput, match="no script plays 'openspiel:othello'; there is one for: among_us, "):
        player("scripted", Scenario(id="x", game="openspiel:othello", seats=("A", "B")), 0)
    for name in ("random", "scripted"):
        with pytest.raises(BadInput, match="no action is possible"):
            reply(items(), 0, Observation(messages=()), 0, name)


def test_random_players_use_every_action_and_argument():
    action = Action(name="vote", text="none")
    seen = Observation(messages=(Message(author=None, text="x"),), actions=(action, *make(items()).observe(0).actions))
    replies = {reply(items(), 0, seen, seed) for seed in range(200)}
    assert {parse(text, seen)[0].action for text in replies} == {"vote", "talk", "propose", "walk_away"}
    assert len({text for text in replies if text.startswith("<propose>")}) > 10
