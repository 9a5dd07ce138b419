"""Searching, exact and solved players: as strong as they should be, and blind to what their seat may not know."""

import asyncio
import json
from itertools import permutations

import pyspiel
import pytest

from tests.games.cases.negotiation import items
from tests.games.cases.strategic import strategic
from tests.players.test_scripted import game_of
from training import players
from training.errors import BadInput
from training.games import make
from training.games.openspiel import equilibria
from training.games.openspiel.script.hanabi import read_turn
from training.players import table
from training.players.strategic import poker_state
from training.records import Move, Observation
from training.seeding import derive
from training.text.refusals import Refusal, with_refusals

UNIFORM_KUHN = 11 / 12
"""The known NashConv of uniformly random play."""


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("PARLEY_HOME", str(tmp_path))
    monkeypatch.setattr(table, "ITERATIONS", 50)
    table.leduc.cache_clear()
    yield tmp_path
    table.leduc.cache_clear()


def tabular(policy):
    return pyspiel.TabularPolicy({state: list(choices.items()) for state, choices in policy.items()})


def nash_conv(game, policy):
    return pyspiel.nash_conv(game, tabular(policy))


def mean(values):
    return sum(values) / len(values)


def returns(scenario, names, games):
    return [game_of(scenario.with_seed(seed), names, seed).returns()[0] for seed in range(1, games + 1)]


@pytest.mark.parametrize("names", [("mcts:1000", "random"), ("random", "mcts:1000")])
def test_search_never_loses_tic_tac_toe_to_chance(names):
    sign = 1 if names[0].startswith("mcts") else -1
    assert min(sign * value for value in returns(strategic("tic_tac_toe"), names, 10)) >= 0


def test_two_deep_searches_draw():
    assert returns(strategic("tic_tac_toe"), ("mcts:1000", "mcts:1000"), 3) == [0, 0, 0]


def test_search_takes_a_win_and_stops_one_in_other_games_too():
    game = make(strategic("connect_four", opening=[3, 0, 3, 0, 3]))
    reply = asyncio.run(players.make("mcts:200", game.scenario, 1).act(1, game.observe(1), 5))
    assert reply.text == "<answer><O(3)></answer>"
    scenario = strategic("openspiel:nim")
    assert game_of(scenario, ("mcts:50", "random")).metrics()


@pytest.mark.parametrize("alpha", [0, 1 / 6, 1 / 3])
def test_the_kuhn_equilibrium_is_one_and_has_its_value(alpha):
    game = pyspiel.load_game("kuhn_poker")
    policy = equilibria.kuhn_equilibrium(alpha)
    assert nash_conv(game, policy) == pytest.approx(0, abs=1e-12)
    value = pyspiel.expected_returns(game.new_initial_state(), tabular(policy), -1, True)
    assert value == pytest.approx([-1 / 18, 1 / 18])
    assert pyspiel.nash_conv(game, pyspiel.UniformRandomPolicy(game)) == pytest.approx(UNIFORM_KUHN)


@pytest.mark.parametrize("cards", list(permutations(range(3), 2)))
@pytest.mark.parametrize("moves", ["", "p", "b", "pb"])
def test_a_poker_seat_rebuilds_its_own_information_state(cards, moves):
    game = make(strategic("kuhn_poker", fixed=cards))
    for letter in moves:
        (seat,) = game.to_act()
        game.step({seat: Move(action="answer", args={"choice": {"p": "PASS", "b": "BET"}[letter]})})
    (seat,) = game.to_act()
    state = poker_state(game.scenario, seat, game.observe(seat))
    assert state.information_state_string(seat) == f"{cards[seat]}{moves}"


@pytest.mark.parametrize("seed", range(20))
def test_leduc_is_rebuilt_at_every_turn_also_after_defaults(seed):
    game = make(strategic("leduc_poker", opening=[1] if seed % 2 else []).with_seed(seed + 1))
    turn = 0
    while game.to_act():
        (seat,) = game.to_act()
        state = poker_state(game.scenario, seat, game.observe(seat))
        assert state.information_state_string(seat) == game.state.information_state_string(seat)
        choices = game.observe(seat).actions[0].args[0].choices
        choice = choices[derive(seed, turn) % len(choices)]
        silent = derive(seed, "silent", turn) % 3 == 0
        game.step({seat: game.default(seat) if silent else Move(action="answer", args={"choice": choice})})
        turn += 1


def test_refused_attempts_are_not_taken_for_moves():
    game = make(strategic("tic_tac_toe", opening=[4]))
    refused = Refusal(1, len(game.observe(1).messages), "<answer><O(1,1)></answer>", "not possible")
    seen = with_refusals(game.observe(1), [refused])
    assert any(message.author == 1 for message in seen.messages)
    replies = {
        asyncio.run(players.make(name, game.scenario, 1).act(1, seen, 3)).text for name in ("mcts:100", "scripted")
    }
    assert all("O(1,1)" not in text for text in replies)


@pytest.mark.parametrize(
    "game, names",
    [
        ("kuhn_poker", ("scripted", "nash")),
        ("leduc_poker", ("scripted",)),
        ("hanabi", ("scripted",)),
        ("connect_four", ("scripted",)),
    ],
)
def test_after_a_refusal_players_still_find_what_they_were_asked(game, names):
    start = make(strategic(game))
    (seat,) = start.to_act()
    seen = start.observe(seat)
    refused = Refusal(seat, len(seen.messages), "<answer><nothing></answer>", "not possible")
    for name in names:
        player = players.make(name, start.scenario, seat)
        calm, again = (asyncio.run(player.act(seat, s, 3)).text for s in (seen, with_refusals(seen, [refused])))
        assert calm == again


def test_leduc_is_solved_once_and_kept(home):
    scenario = strategic("leduc_poker")
    assert game_of(scenario, ("cfr", "cfr")).metrics()
    (kept,) = (home / "cache").iterdir()
    data = json.loads(kept.read_text())
    assert data["exploitability"] == pytest.approx(
        nash_conv(equilibria.leduc_game(), table.leduc().policy) / 2, abs=1e-9
    )
    assert data["exploitability"] < 0.05
    assert len(data["policy"]) == 288
    before = kept.stat().st_mtime_ns
    table.leduc.cache_clear()
    players.make("cfr", scenario, 0)
    assert kept.stat().st_mtime_ns == before
    assert players.facts("cfr") == {"kind": "cfr", "exploitability": data["exploitability"]}


def test_the_exact_player_wins_from_a_random_one_what_its_policy_does():
    game, policy = pyspiel.load_game("kuhn_poker"), equilibria.kuhn_equilibrium()
    mixed = {state: {0: 0.5, 1: 0.5} if len(state) == 2 else choices for state, choices in policy.items()}
    value = pyspiel.expected_returns(game.new_initial_state(), tabular(mixed), -1, True)[0]
    assert value > -1 / 18
    scores = returns(strategic("kuhn_poker"), ("nash", "random"), 1500)
    deviation = (mean([(x - value) ** 2 for x in scores]) / len(scores)) ** 0.5
    assert mean(scores) == pytest.approx(value, abs=4 * deviation)


@pytest.mark.parametrize(
    "name, scenario",
    [
        ("mcts:10", strategic("kuhn_poker")),
        ("mcts:10", strategic("openspiel:backgammon")),
        ("mcts:10", items()),
        ("nash", strategic("leduc_poker")),
        ("cfr", strategic("kuhn_poker")),
        ("scripted", strategic("openspiel:hex")),
    ],
)
def test_players_refuse_games_that_they_do_not_play(name, scenario):
    with pytest.raises(BadInput) as refused:
        players.make(name, scenario, 0)
    assert refused.value.where == "players"


@pytest.mark.parametrize(
    "name", ["mcts", "mcts:", "mcts:0", "mcts:-1", "mcts:x", "mcts:N", "mcts:1e3", "mcts:999999999999", "nash:1"]
)
def test_names_that_are_no_player(name):
    assert not players.known(name)
    with pytest.raises(BadInput, match="unknown player"):
        players.make(name, strategic("tic_tac_toe"), 0)


def test_players_are_known_by_name():
    assert all(map(players.known, ("scripted", "random", "nash", "cfr", "mcts:1", "mcts:100000")))
    with pytest.raises(BadInput, match="no action is possible"):
        asyncio.run(players.make("nash", strategic("kuhn_poker"), 0).act(0, Observation(messages=()), 0))


# --- scripts ---


@pytest.mark.parametrize("game, least", [("tic_tac_toe", 0.7), ("connect_four", 0.8), ("leduc_poker", 0.4)])
def test_scripts_beat_chance_from_both_seats(game, least):
    assert mean(returns(strategic(game), ("scripted", "random"), 60)) > least
    assert mean(returns(strategic(game), ("random", "scripted"), 60)) < -least


@pytest.mark.parametrize("size", ["mini", "simple"])
def test_hanabi_scripts_score_more_than_chance(size):
    scenario = strategic("hanabi", size=size)
    assert mean(returns(scenario, ("scripted", "scripted"), 60)) > 1.4 * mean(
        returns(scenario, ("random", "random"), 60)
    )


def test_scripts_give_their_reasons_which_nobody_else_reads():
    for game in ("tic_tac_toe", "connect_four", "kuhn_poker", "leduc_poker", "hanabi"):
        made = make(strategic(game))
        reply = asyncio.run(players.make("scripted", made.scenario, 0).act(0, made.observe(0), 1)).text
        reason, _, answer = reply.partition(" <answer>")
        assert len(reason.split()) >= 5
        made.step({0: Move(action="answer", args={"choice": answer.split(">")[0].lstrip("<")})})
        assert reason not in str(made.observe(1))


def test_the_hanabi_script_reads_both_hands():
    seen = make(strategic("hanabi", fixed=[0, 1, 2, 3, 0, 2])).observe(0)
    theirs, mine, stacks = read_turn(seen.messages[-1].text)
    assert [card.face for card in theirs] == ["Y2", "R1", "Y1"]
    assert [(card.place, card.colours, card.ranks) for card in mine] == [(n, ("R", "Y"), ("1", "2")) for n in range(3)]
    assert stacks == ["R0", "Y0"]
