"""Strategic games agree with OpenSpiel state by state, say what their rules say, and refuse what would abort."""

import json
import subprocess
import sys
from itertools import permutations
from random import Random

import pyspiel
import pytest

from tests.games.cases.strategic import strategic
from tests.games.play import played, steps
from training.errors import BadInput, IllegalMove
from training.games import lookup, make
from training.games.base import FORFEIT
from training.games.openspiel import boards, decisions, equilibria, mcts, minimax
from training.games.openspiel import generic as spec
from training.games.openspiel.generic import refusal
from training.games.openspiel.hanabi import SIZES
from training.games.openspiel.hanabi_knowledge import Position
from training.records import ALL, SPECTATOR, Move, Scenario
from training.text.parsing import parse

NAMED = ["tic_tac_toe", "connect_four", "kuhn_poker", "leduc_poker", "hanabi"]
HANABI = {
    "mini": {"colors": 2, "hand_size": 3, "max_information_tokens": 3},
    "simple": {"colors": 3, "hand_size": 5, "max_information_tokens": 8},
}


def parameters(scenario):
    """OpenSpiel's parameters, written down a second time."""
    if scenario.game == "hanabi":
        size = HANABI[scenario.settings.get("size", "mini")]
        return {"players": 2, "ranks": 2, "max_life_tokens": 3, **size}
    return {"suit_isomorphism": True} if scenario.game == "leduc_poker" else {}


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("scenario", [*map(strategic, NAMED), strategic("hanabi", size="simple")], ids=lambda s: s.game)
def test_random_play_agrees_with_openspiel(scenario, seed):
    game = make(scenario.with_seed(seed + 1))
    theirs = pyspiel.load_game(scenario.game, parameters(scenario)).new_initial_state()
    for moves in steps(game, seed):
        for action in game.state.history()[len(theirs.history()) :]:
            theirs.apply_action(action)
        assert game.to_act() == {theirs.current_player()} == set(moves)
        seat = theirs.current_player()
        (offered,) = game.observe(seat).actions
        assert len(offered.args[0].choices) == len(theirs.legal_actions())
        index = offered.args[0].choices.index(moves[seat].args["choice"])
        theirs.apply_action(theirs.legal_actions()[index])
    for action in game.state.history()[len(theirs.history()) :]:
        theirs.apply_action(action)
    assert theirs.is_terminal()
    assert list(game.returns().values()) == theirs.returns()


def test_every_kuhn_and_leduc_deal_has_its_share():
    for game, deals in (("kuhn_poker", 6), ("leduc_poker", 9)):
        seen = [tuple(make(strategic(game).with_seed(seed)).state.history()[:2]) for seed in range(1, 1801)]
        counts = {deal: seen.count(deal) for deal in set(seen)}
        assert len(counts) == deals
        for deal, count in counts.items():
            chance = 1 / 6 if game == "kuhn_poker" else (1 / 3) * (0.2 if deal[0] == deal[1] else 0.4)
            assert abs(count / 1800 - chance) < 5 * (chance * (1 - chance) / 1800) ** 0.5


@pytest.mark.parametrize("size, deck, most", [("mini", "RRRRYYYY", 4), ("simple", "RRRRYYYYGGGG", 6)])
def test_hanabi_has_the_sizes_that_are_published(size, deck, most):
    game = make(strategic("hanabi", size=size))
    assert game.view.deck().total() == len(deck) == SIZES[size].cards
    assert sorted(game.view.deck().values()) == sorted([3, 1] * (most // 2))
    assert game.view.load().max_utility() == most
    assert f"({most} points)" in game.observe(0).messages[0].text


def hanabi(replies, **settings):
    game = make(strategic("hanabi", **settings))
    for reply in replies:
        (seat,) = game.to_act()
        game.step({seat: parse(f"<answer><{reply}></answer>", game.observe(seat))[0]})
    return game


def test_a_draw_is_a_win_of_nobody():
    game = make(strategic("tic_tac_toe", opening=[0, 1, 2, 4, 3, 5, 7, 6]))
    game.step({0: game.default(0)})
    assert game.metrics()["even"] == 1
    assert game.seat_metrics() == {0: {"win": 0}, 1: {"win": 0}}


@pytest.mark.parametrize("name", ["A\nb", "", "<b>", "ANN"])
def test_names_stand_on_one_line_and_apart(name):
    with pytest.raises(BadInput, match="seats"):
        make(strategic("tic_tac_toe").model_copy(update={"seats": ("Ann", name)}))


def test_points_of_hanabi_come_as_they_are_played_and_go_with_the_last_life():
    for turns, points in ((1, 1.0), (2, 2.0)):
        assert hanabi(["Play card 0"] * turns, fixed=[0, 1, 3, 2, 0, 2]).state.returns() == [points, points]
    wrong = {"size": "simple", "fixed": [0, 3, 1, 0, 2, 5, 0, 4, 4, 4]}
    for turns, points in ((1, 1.0), (2, 1.0), (3, 1.0), (4, 0.0)):
        assert hanabi(["Play card 0"] * turns, **wrong).state.returns() == [points, points]
    assert hanabi(["Play card 0"] * 4, **wrong).returns() == {0: 0.0, 1: 0.0}
    assert [hanabi(["Play card 0"] * turns, **wrong).in_reach()[0] for turns in range(5)] == [0, 1, 1, 1, 0]


def test_a_finished_stack_brings_back_an_information_token():
    game = hanabi(["Reveal player +1 rank 1", "Play card 0", "Play card 0"], fixed=[1, 0, 0, 0, 2, 3])
    assert "R2" in game.observe(SPECTATOR).messages[-1].text
    assert "Information tokens: 3." in game.observe(SPECTATOR).messages[-1].text


def test_each_player_has_one_more_turn_after_the_last_card():
    drawn = hanabi(["Play card 0", "Play card 0"], fixed=[0, 0, 0, 2, 2, 2])
    assert "draw pile: 0" in drawn.observe(0).messages[-1].text
    assert [hanabi(["Play card 0"] * turns, fixed=[0, 0, 0, 2, 2, 2]).show(0).phase for turns in range(3)] == [
        "",
        "",
        "Last turns",
    ]
    left = [
        len(list(steps(hanabi(["Play card 0", "Play card 0"], fixed=[0, 0, 0, 2, 2, 2]), seed))) for seed in range(20)
    ]
    assert max(left) == 2


@pytest.mark.parametrize("cards", list(permutations(range(3), 2)))
@pytest.mark.parametrize("moves, pot", [("pp", 1), ("bb", 2), ("pbb", 2), ("bp", None), ("pbp", None)])
def test_kuhn_pays_the_higher_card_or_the_unanswered_bet(cards, moves, pot):
    game = make(strategic("kuhn_poker", fixed=cards))
    for letter in moves:
        (seat,) = game.to_act()
        game.step({seat: Move(action="answer", args={"choice": {"p": "PASS", "b": "BET"}[letter]})})
    winner = (len(moves) - 2) % 2 if pot is None else int(cards[1] > cards[0])
    assert game.returns() == {winner: pot or 1, 1 - winner: -(pot or 1)}
    assert ("shows" in game.observe(SPECTATOR).messages[-1].text) == (pot is not None)


@pytest.mark.parametrize(
    "game, settings, moves, loss",
    [
        ("tic_tac_toe", {}, [], 1),
        ("connect_four", {}, ["X(0)"], 1),
        ("kuhn_poker", {}, [], 1),
        ("kuhn_poker", {}, ["PASS", "BET"], 1),
        ("leduc_poker", {}, ["RAISE", "RAISE"], 3),
        ("hanabi", {}, [], 0),
        ("openspiel:liars_dice", {}, [], 1),
    ],
)
def test_giving_up_loses_the_stake(game, settings, moves, loss):
    made = make(strategic(game, **settings))
    for choice in moves:
        (seat,) = made.to_act()
        made.step({seat: Move(action="answer", args={"choice": choice})})
    (seat,) = made.to_act()
    made.step({seat: FORFEIT})
    assert not made.to_act()
    assert made.returns() == {seat: -loss, 1 - seat: loss if game != "hanabi" else 0}


def test_in_a_larger_game_a_seat_that_gives_up_plays_defaults_and_is_not_asked_again():
    seats = ("Ada", "Ben", "Cleo", "Dan")
    game = make(Scenario(id="x", game="openspiel:euchre", seats=seats, seed=1))
    theirs = pyspiel.load_game("euchre").new_initial_state()
    (gone,) = game.to_act()
    game.step({gone: FORFEIT})
    asked = set()
    while game.to_act():
        (seat,) = game.to_act()
        asked.add(seat)
        game.step({seat: game.default(seat)})
    assert asked == {0, 1, 2, 3} - {gone}
    assert game.returns() == dict(enumerate(game.state.returns()))
    assert game.metrics()["forfeit"] == 1
    for action in game.state.history():  # what was played for the seat: OpenSpiel's first legal action, every time
        assert theirs.current_player() != gone or action == theirs.legal_actions()[0]
        theirs.apply_action(action)
    assert f"{seats[gone]} gives up the game." in [m.text for m in game.observe(SPECTATOR).messages]


@pytest.mark.parametrize(
    "game, settings, where",
    [
        ("tic_tac_toe", {"opening": [0, 0]}, "settings.opening.1"),
        ("tic_tac_toe", {"opening": [0, 3, 1, 4, 2]}, "settings.opening"),
        ("tic_tac_toe", {"fixed": [1]}, "settings.fixed"),
        ("connect_four", {"opening": [7]}, "settings.opening.0"),
        ("kuhn_poker", {"fixed": [1, 1]}, "settings.fixed"),
        ("kuhn_poker", {"fixed": [0, 1, 2]}, "settings.fixed"),
        ("leduc_poker", {"fixed": [0, 0, 0]}, "settings.fixed"),
        ("leduc_poker", {"fixed": [3]}, "settings.fixed"),
        ("hanabi", {"fixed": [4]}, "settings.fixed"),
        ("hanabi", {"fixed": [1, 1]}, "settings.fixed"),
        ("hanabi", {"size": "huge"}, "settings.size"),
        ("openspiel:liars_dice", {"fixed": [9]}, "settings.fixed"),
        ("openspiel:liars_dice", {"fixed": [0, 0, 0]}, "settings.fixed"),
        ("openspiel:hex", {"opening": [500]}, "settings.opening.0"),
    ],
)
def test_impossible_starts_are_refused_before_openspiel_sees_them(game, settings, where):
    with pytest.raises(BadInput) as refused:
        make(strategic(game, **settings))
    assert refused.value.where == where


def test_stated_outcomes_are_dealt_and_the_rest_is_drawn():
    game = make(strategic("leduc_poker", fixed=[2]))
    assert game.state.private_card(0) == 2
    drawn = {make(strategic("leduc_poker", fixed=[2]).with_seed(s)).state.private_card(1) for s in range(1, 40)}
    assert drawn == {0, 1, 2}


# --- what is declared and what lies on the table ---


@pytest.mark.parametrize("scenario", [*map(strategic, NAMED), strategic("hanabi", size="simple")], ids=lambda s: s.game)
def test_marks_are_all_that_is_ever_offered(scenario):
    offered = set()
    for seed in range(1, 30):
        game = make(scenario.with_seed(seed))
        for moves in steps(game, seed):
            (seat,) = moves
            offered |= set(game.observe(seat).actions[0].args[0].choices)
    declared = set(lookup(scenario.game).marks)
    assert offered <= declared
    if scenario.game != "hanabi" or scenario.settings:
        assert offered == declared


@pytest.mark.parametrize("name", ["tic_tac_toe", "connect_four"])
def test_squares_and_columns_are_the_legal_choices_of_the_seat_to_move(name):
    game = make(strategic(name))
    for moves in steps(game, 2):
        (seat,) = moves
        history = game.state.history()
        for viewer in (0, 1, SPECTATOR, ALL):
            (board,) = game.show(viewer).zones
            squares = [square for row in board.rows for square in row]
            legal = game.observe(seat).actions[0].args[0].choices if viewer == seat else ()
            assert sorted(game.show(viewer).choices()) == sorted(legal)
            assert all(square.seat is None for square in squares if square.choice)
            pieces = [sum(square.seat == owner for square in squares) for owner in (0, 1)]
            assert pieces == [(len(history) + 1) // 2, len(history) // 2]
            assert [square.seat for square in squares if square.last] == [(len(history) - 1) % 2] * bool(history)
            assert not board.lines
            assert len(board.columns) == (7 if name == "connect_four" else 0)


def placed(game, moves):
    """The game after OpenSpiel's `moves`, chosen by the seats in turn."""
    for move in moves:
        (seat,) = game.to_act()
        (offered,) = game.observe(seat).actions
        choice = offered.args[0].choices[game.state.legal_actions().index(move)]
        game.step({seat: Move(action="answer", args={"choice": choice}, text=f"<answer><{choice}></answer>")})
    return game


def lines(game, viewer=SPECTATOR):
    """What people read of a game, with the names of who does it."""
    read = [line for message in game.observe(viewer).messages for line in message.lines]
    return [line.text if line.seat is None else f"{game.names[line.seat]} {line.text}" for line in read]


@pytest.mark.parametrize(
    "moves, where, ends, last",
    [
        ([6, 0, 7, 1, 8], "in the bottom row", ((2, 0), (2, 2)), "in the bottom right corner"),
        ([2, 0, 5, 1, 8], "in the right column", ((0, 2), (2, 2)), "in the bottom right corner"),
        ([2, 0, 6, 1, 4], "on a diagonal", ((0, 2), (2, 0)), "in the middle"),
        ([0, 1, 8, 2, 4], "on a diagonal", ((0, 0), (2, 2)), "in the middle"),
    ],
)
def test_tic_tac_toe_ends_with_its_line_and_the_move_that_made_it(moves, where, ends, last):
    game = placed(make(strategic("tic_tac_toe")), moves)
    views = [game.show(viewer) for viewer in (0, 1, SPECTATOR)]
    assert [view.headline for view in views] == [
        f"You win: three {where}.",
        f"You lose: Ada has three {where}.",
        f"Ada wins: three {where}.",
    ]
    assert {view.moment for view in views} == {f"Ada's cross {last} completed the line in move 5."}
    (board,) = views[0].zones
    assert board.lines == (ends,)
    middle = tuple((a + b) // 2 for a, b in zip(*ends, strict=True))
    won = [(row, at) for row, squares in enumerate(board.rows) for at, square in enumerate(squares) if square.won]
    assert won == sorted([*ends, middle])


@pytest.mark.parametrize(
    "game, opening, begins",
    [
        ("tic_tac_toe", [1], "a cross at the top"),
        ("tic_tac_toe", [0, 4], "a cross in the top left corner and a nought in the middle"),
        ("connect_four", [3, 3], "a full disc in column 4 and a ring in column 4"),
    ],
)
def test_the_card_says_with_which_pieces_the_board_begins(game, opening, begins):
    first, second = (make(strategic(game, opening=opening)).show(seat).brief.text for seat in (0, 1))
    assert first[1:] == second[1:] == (f"The board begins with {begins}.",)
    assert len(make(strategic(game)).show(0).brief.text) == 1, "an empty board needs no words"


def test_moves_are_counted_from_the_first_one_at_the_table():
    game = placed(make(strategic("tic_tac_toe", opening=[1])), [4, 0, 2, 8, 6])
    assert game.show(0).moment == "Ben's nought in the bottom left corner completed the line in move 5."


def test_two_lines_at_once_are_both_drawn():
    game = placed(make(strategic("tic_tac_toe")), [1, 3, 2, 5, 4, 6, 8, 7, 0])
    (board,) = game.show(1).zones
    assert board.lines == (((0, 0), (0, 2)), ((0, 0), (2, 2))), "the top row and a diagonal"
    assert game.show(0).headline == "You win: three in two lines at once."


@pytest.mark.parametrize(
    "moves, line, ends",
    [
        ([3, 0, 3, 0, 3, 0, 3], "four on top of each other", ((2, 3), (5, 3))),
        ([0, 0, 1, 1, 2, 2, 3], "four side by side", ((5, 0), (5, 3))),
        ([0, 0, 1, 1, 2, 2, 4, 4, 5, 5, 3], "six side by side", ((5, 0), (5, 5))),
        ([0, 1, 1, 2, 2, 3, 2, 3, 3, 6, 3], "four on a diagonal", ((2, 3), (5, 0))),
    ],
)
def test_connect_four_ends_with_its_line(moves, line, ends):
    game = placed(make(strategic("connect_four")), moves)
    view = game.show(1)
    assert view.headline == f"You lose: Ada has {line}."
    assert view.moment == f"Ada's full disc in column {moves[-1] + 1} completed the line in move {len(moves)}."
    (board,) = view.zones
    assert board.lines == (ends,)
    assert not list(view.choices())


def test_moves_on_boards_are_told_in_plain_words():
    assert lines(placed(make(strategic("tic_tac_toe")), [4, 0, 1, 7, 3])) == [
        "Ada puts a cross in the middle",
        "Ben puts a nought in the top left corner",
        "Ada puts a cross at the top",
        "Ben puts a nought at the bottom",
        "Ada puts a cross on the left",
    ]
    assert lines(placed(make(strategic("connect_four")), [3, 6])) == [
        "Ada drops a full disc into column 4",
        "Ben drops a ring into column 7",
    ]


def test_a_draw_and_giving_up_are_told_as_such():
    full = placed(make(strategic("tic_tac_toe")), [0, 1, 2, 4, 3, 5, 7, 6, 8])
    assert (full.show(0).headline, full.show(0).moment) == (
        "Nobody wins: a draw.",
        "The board is full, and nobody has a line.",
    )
    game = placed(make(strategic("connect_four")), [3])
    game.step({1: FORFEIT})
    assert [game.show(v).headline for v in (0, 1, SPECTATOR)] == ["You win.", "You lose. Ada wins.", "Ada wins."]
    assert game.show(0).moment == "Ben gave up."
    assert lines(game)[1:] == ["Ben gives up the game.", "Ada wins."]


def faces(view):
    """The cards of each hand by its title: colour and face, `?` face down."""
    hands = [zone for zone in view.zones if zone.kind == "hand" and not zone.small]
    return {hand.title: " ".join(f"{card.suit} {card.face or '?'}".strip() for card in hand.cards) for hand in hands}


def test_hands_lie_as_each_viewer_may_see_them():
    game = make(strategic("hanabi", fixed=[0, 1, 2, 3, 0, 2]))
    ada, ben = "red 1 red 2 yellow 1", "yellow 2 red 1 yellow 1"
    assert faces(game.show(0)) == {"Ben's hand": ben, "Your hand": "? ? ?"}
    assert faces(game.show(1)) == {"Ada's hand": ada, "Your hand": "? ? ?"}
    assert faces(game.show(SPECTATOR)) == {"Ada's hand": "? ? ?", "Ben's hand": "? ? ?"}
    assert faces(game.show(ALL)) == {"Ada's hand": ada, "Ben's hand": ben}
    leduc = make(strategic("leduc_poker", fixed=[2, 0]))
    seen = {viewer: faces(leduc.show(viewer)) for viewer in (0, 1, SPECTATOR, ALL)}
    assert seen[0] == {"Ben's card": "?", "Public card": "?", "Your card": "K"}
    assert seen[1] == {"Ada's card": "?", "Public card": "?", "Your card": "J"}
    assert seen[SPECTATOR] == {"Ada's card": "?", "Public card": "?", "Ben's card": "?"}
    assert seen[ALL] == {"Ada's card": "K", "Public card": "?", "Ben's card": "J"}
    assert own_hand(leduc.show(0)).cards[0].label == "King"
    assert leduc.show(0).brief.title == "You hold a King"
    assert leduc.show(SPECTATOR).brief is None


def zone(view, kind):
    """The only zone of a kind."""
    (match,) = (zone for zone in view.zones if zone.kind == kind)
    return match


def own_hand(view):
    """The zone of the viewer's hand."""
    (hand,) = (zone for zone in view.zones if zone.kind == "hand" and zone.title.startswith("Your"))
    return hand


def buttons(options):
    """Labels and choices of buttons."""
    return [(option.label, option.choice) for option in options]


def test_kuhn_is_bet_called_and_shown():
    game = make(strategic("kuhn_poker", fixed=[2, 0]))
    assert (game.show(0).ask, game.show(1).ask) == ("Bet 1 more chip, or check.", "")
    assert buttons(own_hand(game.show(0)).options) == [("Check", "PASS"), ("Bet 1 more chip", "BET")]
    placed(game, [0, 1])
    assert game.show(0).ask == "Call Ben's bet for 1 more chip, or fold."
    assert buttons(own_hand(game.show(0)).options) == [("Fold", "PASS"), ("Call: pay 1 more chip", "BET")]
    pot = zone(game.show(1), "counters")
    assert (pot.title, [(pile.seat, pile.value) for pile in pot.piles]) == ("The pot: 3 chips", [(0, 1), (1, 2)])
    placed(game, [1])
    shown = "The cards were shown: Ada had a King, Ben a Jack."
    assert lines(game) == ["Ada checks", "Ben bets 1 more chip", "Ada calls", shown, "Ada wins 2 chips."]
    assert faces(game.show(SPECTATOR)) == {"Ada's card": "K", "Ben's card": "J"}
    assert [game.show(v).headline for v in (0, 1, SPECTATOR)] == [
        "You win 2 chips.",
        "You lose 2 chips.",
        "Ada wins 2 chips.",
    ]


def test_a_fold_shows_no_card():
    game = placed(make(strategic("kuhn_poker", fixed=[2, 0])), [1, 0])
    assert lines(game)[-2:] == ["Ben folded, and no card was shown.", "Ada wins 1 chip."]
    assert faces(game.show(0))["Ben's card"] == faces(game.show(SPECTATOR))["Ben's card"] == "?"


def test_leduc_is_raised_twice_and_no_more():
    game = make(strategic("leduc_poker", fixed=[0, 2, 0]))
    assert game.show(0).ask == "Check or raise."
    assert buttons(own_hand(game.show(0)).options) == [("Check", "CALL"), ("Raise: pay 2 chips", "RAISE")]
    placed(game, [2])
    assert game.show(1).ask == "Call for 2 chips, raise or fold."
    assert buttons(own_hand(game.show(1)).options)[-1] == ("Raise: pay 4 chips", "RAISE")
    placed(game, [2])
    assert game.show(0).ask == "Call for 2 chips or fold."
    assert game.show(SPECTATOR).phase == "First round"
    placed(game, [1])
    assert game.show(SPECTATOR).phase == "Second round"
    assert faces(game.show(1))["Public card"] == "J"
    assert zone(game.show(1), "counters").title == "The pot: 10 chips"
    placed(game, [2, 1])
    assert lines(game) == [
        "Ada raises to 3 chips",
        "Ben raises to 5 chips",
        "Ada calls for 2 chips",
        "Ada raises to 9 chips",
        "Ben calls for 4 chips",
        "Ada's Jack makes a pair with the public card; Ben had a King.",
        "Ada wins 9 chips.",
    ]


@pytest.mark.parametrize("seed", range(20))
def test_chips_in_leducs_pot_are_those_that_left_the_purses(seed):
    """OpenSpiel gives 100 chips each; at the end the purses hold the pot, and the loser has lost what it paid."""
    game = make(strategic("leduc_poker").with_seed(seed + 1))
    for _ in steps(game, seed):
        paid = [pile.value for pile in zone(game.show(SPECTATOR), "counters").piles]
        assert paid == [100 - chips for chips in game.state.money()]
    paid = [pile.value for pile in zone(game.show(SPECTATOR), "counters").piles]
    if min(game.returns().values()) < 0:
        loser = min(game.returns(), key=game.returns().get)
        assert paid[loser] == -game.returns()[loser]
    else:
        assert paid[0] == paid[1]


def test_equal_cards_share_the_pot():
    game = placed(make(strategic("leduc_poker", fixed=[1, 1, 0])), [1, 1, 1, 1])
    assert game.show(0).headline == "The pot is shared: nobody wins or loses a chip."
    moment = "The cards were shown: Ada had a Queen, Ben a Queen. The public card was a Jack."
    assert game.show(0).moment == moment


def test_hanabi_marks_on_each_card_what_its_holder_was_told():
    game = make(strategic("hanabi", fixed=[0, 1, 2, 3, 0, 2]))
    mine, theirs = own_hand(game.show(0)), game.show(0).zones[0]
    assert not any(card.known for card in (*mine.cards, *theirs.cards))
    assert [buttons(card.options) for card in mine.cards] == [
        [("Play", f"Play card {place}"), ("Discard", "")] for place in range(3)
    ]
    assert game.show(0).ask == "Play a card, or give a hint."
    assert buttons(theirs.options) == [
        ("Point out red", "Reveal player +1 color R"),
        ("Point out yellow", "Reveal player +1 color Y"),
        ("Point out 1s", "Reveal player +1 rank 1"),
        ("Point out 2s", "Reveal player +1 rank 2"),
    ]
    hanabi_step(game, "Reveal player +1 rank 1")
    assert [card.known for card in own_hand(game.show(1)).cards] == [("2",), ("1",), ("1",)]
    assert [card.known for card in game.show(0).zones[0].cards] == [("2",), ("1",), ("1",)]
    assert [card.label for card in own_hand(game.show(1)).cards][:2] == ["face down; 2", "face down; 1"]
    assert buttons(own_hand(game.show(1)).cards[0].options) == [("Play", "Play card 0"), ("Discard", "Discard card 0")]
    assert zone(game.show(SPECTATOR), "counters").piles[2].name == "cards to draw"
    hanabi_step(game, "Play card 1")
    assert lines(game) == ["Ada tells Ben which cards are of rank 1", "Ben plays the red 1, which fits"]
    assert [(stack.suit, stack.height) for stack in zone(game.show(SPECTATOR), "stacks").stacks] == [
        ("red", 1),
        ("yellow", 0),
    ]
    piles = zone(game.show(SPECTATOR), "counters").piles
    assert [(pile.value, pile.name) for pile in piles] == [(2, "hint tokens"), (3, "lives"), (1, "card to draw")]


def hanabi_step(game, choice):
    """Play one choice."""
    (seat,) = game.to_act()
    game.step({seat: parse(f"<answer><{choice}></answer>", game.observe(seat))[0]})


def test_in_the_larger_hanabi_a_colour_can_be_excluded():
    game = hanabi(["Reveal player +1 color R"], size="simple", fixed=[4, 4, 4, 5, 2, 0, 2, 0, 2, 1])
    known = [card.known for card in own_hand(game.show(1)).cards]
    assert known == [("red",), ("not red",), ("red",), ("not red",), ("red",)]
    assert lines(game) == ["Ada tells Ben which cards are red"]


def test_hanabi_ends_with_the_points_of_both():
    wrong = hanabi(["Play card 0"] * 4, size="simple", fixed=[0, 3, 1, 0, 2, 5, 0, 4, 4, 4])
    assert wrong.show(0).headline == "You score 0 of 6 points together."
    assert wrong.show(0).moment == "The last life was lost, and with it all points."
    assert lines(wrong)[:2] == [
        "Ada plays the red 1, which fits",
        "Ben plays the green 2, which does not fit: a life is lost",
    ]


@pytest.mark.parametrize("name", [*NAMED, "openspiel:hex"])
def test_the_rules_for_people_are_short(name):
    rules = make(strategic(name)).show(SPECTATOR).rules
    assert 3 <= len(rules) <= 7
    assert all(len(paragraph) <= 120 for paragraph in rules)


# --- any other game ---


@pytest.mark.parametrize(
    "name, why",
    [
        ("ludo", "OpenSpiel has no game 'ludo'"),
        ("", "OpenSpiel has no game ''"),
        ("kuhn_poker(players=9)", "has no game"),
        ("goofspiel", "one player moves at a time"),
        ("mfg_garnet", "one player moves at a time"),
        ("turn_based_simultaneous_game", "needs parameters"),
        ("efg_game", "needs parameters"),
        ("tarok", "draws its own chance"),
        ("2048", "for one player"),
    ],
)
def test_games_that_cannot_be_played_are_refused_by_name(name, why):
    with pytest.raises(BadInput) as refused:
        lookup(f"openspiel:{name}")
    assert why in refused.value.why
    assert refused.value.where == f"game openspiel:{name}"


PLAY = """
import json, sys
from tests.games.play import played
from training.games import lookup
from training.records import Scenario
for name in json.loads(sys.argv[1]):
    declared = lookup("openspiel:" + name)
    seats = tuple(f"P{n}" for n in range(declared.players[0]))
    game, flat = played(Scenario(id="x", game="openspiel:" + name, seats=seats), 1)
    values = list(game.returns().values())
    assert not game.to_act() and all(declared.low <= v <= declared.high for v in values), (name, values)
    assert not declared.zero_sum or abs(sum(values)) < 1e-6, (name, values)
    assert not declared.cooperative or len(set(values)) == 1, (name, values)
    print(json.dumps([name, len(flat)]), flush=True)
"""


def played_elsewhere(names):
    """Play each game in a process of its own making, which OpenSpiel may abort; return the names that ended."""
    done = subprocess.run([sys.executable, "-c", PLAY, json.dumps(names)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, (done.stdout.splitlines()[-1:], done.stderr[-2000:])
    return [json.loads(line)[0] for line in done.stdout.splitlines()]


def playable():
    """Return the games of a fresh process: importing OpenSpiel's algorithms registers its Python games, too."""
    listing = "import json, pyspiel; print(json.dumps(pyspiel.registered_names()))"
    done = subprocess.run([sys.executable, "-c", listing], capture_output=True, text=True, check=True)
    return [name for name in json.loads(done.stdout) if not refusal(name)]


def test_some_other_games_play_to_their_end():
    names = ["liars_dice", "othello", "battleship", "backgammon", "chess", "euchre", "nine_mens_morris"]
    assert played_elsewhere(names) == names


@pytest.mark.slow
def test_every_game_that_is_not_refused_plays_to_its_end():
    names = playable()
    assert len(names) > 60
    assert played_elsewhere(names) == names


def test_another_game_is_shown_in_its_own_words_with_columns_that_line_up():
    game = make(strategic("openspiel:breakthrough"))
    (passages,) = game.show(SPECTATOR).zones
    (passage,) = passages.passages
    assert passage.aligned
    assert passage.text == str(game.state).strip()
    assert game.show(0).ask == "Choose your move."


def test_hidden_moves_reach_only_their_seat():
    game, _ = played(strategic("openspiel:dark_hex"), 4)
    heard = {viewer: [m.author for m in game.observe(viewer).messages] for viewer in (0, 1, SPECTATOR, ALL)}
    assert 1 not in heard[0]
    assert 0 not in heard[1]
    assert set(heard[SPECTATOR]) == {None}
    assert {0, 1} <= set(heard[ALL])


def test_how_often_the_other_tried_is_hidden_where_openspiel_hides_it():
    """In phantom tic-tac-toe a mark on a taken cell does not count, and its player tries again."""

    def after(cells):
        game = make(strategic("openspiel:phantom_ttt"))
        for cell in cells:
            (seat,) = game.to_act()
            offered = game.observe(seat).actions[0].args[0].choices
            choice = next(choice for choice in offered if choice.endswith(cell))
            assert game.acting(1 - seat) == game.acting(SPECTATOR) == frozenset()
            game.step({seat: Move(action="answer", args={"choice": choice})})
        return game

    missed, hit = after(["(0,0)", "(0,0)", "(1,1)"]), after(["(0,0)", "(1,1)"])
    for viewer in (0, SPECTATOR):
        assert missed.observe(viewer) == hit.observe(viewer)
    assert missed.observe(1) != hit.observe(1)


def test_choices_that_differ_only_in_case_stay_apart():
    game = make(strategic("openspiel:chess"))
    for _ in range(200):
        if not game.to_act():
            break
        (seat,) = game.to_act()
        choices = game.observe(seat).actions[0].args[0].choices
        assert len({choice.lower() for choice in choices}) == len(choices)
        game.step({seat: Move(action="answer", args={"choice": choices[len(choices) // 2]})})


def test_another_game_declares_what_openspiel_says_of_it():
    declared = spec("openspiel:liars_dice")
    assert (declared.players, declared.low, declared.high) == ((2, 2), -1.0, 1.0)
    assert (declared.zero_sum, declared.cooperative) == (True, False)
    assert spec("openspiel:tiny_hanabi").cooperative
    assert declared.hidden
    assert not spec("openspiel:hex").hidden
    with pytest.raises(IllegalMove):
        make(Scenario(id="x", game="openspiel:hex", seats=("A", "B"))).step({0: Move(action="answer")})


# --- the moves against a solver ---


def test_tic_tac_toe_is_solved():
    """It is a draw, and has 5478 positions that can be reached."""
    minimax._VALUES.clear()
    assert minimax.value(pyspiel.load_game("tic_tac_toe").new_initial_state()) == 0
    assert len(minimax._VALUES) == 5478


def moves_of(name, *actions):
    """The moves of a game of OpenSpiel, one by one."""
    state = pyspiel.load_game(name).new_initial_state()
    for action in actions:
        state.apply_action(action)
    return list(decisions.decisions(state))


def test_the_answer_to_the_centre_is_a_corner():
    """On an edge the second player loses to perfect play; in a corner it keeps the draw."""
    centre, edge, corner, block = map(minimax.judged, moves_of("tic_tac_toe", 4, 1, 0, 8))
    assert (centre.decision.seat, centre.before.result, centre.after.result) == (0, 0, 0)
    assert (edge.decision.seat, edge.before.result, edge.after.result, edge.best) == (1, 0, -1, (0, 2, 6, 8))
    assert (corner.before.result, corner.after.result) == (1, 1)
    assert (block.before.result, block.after.result) == (-1, -1)


def test_afterwards_the_moves_are_reviewed():
    game = make(strategic("tic_tac_toe", opening=[4]))
    for row, column in ((0, 1), (0, 0), (2, 2), (1, 0), (0, 2), (2, 0)):
        (seat,) = game.to_act()
        assert game.analysis() == ()
        game.step({seat: Move(action="answer", args={"choice": f"{'XO'[seat]}({row},{column})"})})
    assert game.show(0).headline.startswith("You win")
    (review,) = game.analysis()
    first, second = review.moves[:2]
    assert (first.step, first.seat, first.text, first.mark) == (1, 1, "puts a nought at the top", "blunder")
    corners = [f"in the {place} corner" for place in ("top left", "top right", "bottom left", "bottom right")]
    assert first.detail == ("a loss, before it a draw", f"better: {', '.join(corners[:3])} or {corners[3]}")
    assert (second.mark, second.detail) == ("", ("a win",))
    assert [move.value for move in review.moves] == [1] * 6
    assert [(row.label, row.cells) for row in review.tallies][2] == ("blunders", ("0", "1"))
    assert "6 of 6 moves are judged with certainty" in review.method


# --- Connect Four against an engine ---


def position(*columns):
    state = pyspiel.load_game("connect_four").new_initial_state()
    for column in columns:
        state.apply_action(column)
    return state


@pytest.mark.parametrize(
    "columns, result, best",
    [
        ((0, 0, 1, 1, 2, 2), 1.0, {3}),  # three side by side: the fourth place wins
        ((2, 2, 3, 3), 1.0, {1, 4}),  # two side by side, free on both sides: the third makes two places that win
        ((2, 2, 3, 3, 4), -1.0, set(range(7))),  # both of them cannot be closed
        ((3, 0, 3, 0, 3), None, {3}),  # three on top of each other: only the place above saves
    ],
)
def test_the_engine_knows_what_wins_and_what_must_be_blocked(columns, result, best):
    evaluation, move = mcts.search(position(*columns))
    assert move in best
    assert evaluation.proven == (result is not None)
    assert result is None or evaluation.result == result


def test_a_move_that_does_not_block_is_a_blunder_and_the_block_is_none():
    for column, proven, mark in ((6, True, "blunder"), (3, False, "")):
        (last,) = mcts.judged(decisions.decisions(position(3, 0, 3, 0, 3, column), opening=5))
        assert last.after.proven == proven
        assert (last.after.result == -1) == proven
        assert last.best == (3,)
        assert boards._mark(last) == mark


def exhaustive(state, low=-1, high=1):
    """The result of who moves, by alpha-beta over all positions."""
    if state.is_terminal():
        return state.returns()[len(state.history()) % 2]
    for action in state.legal_actions():
        low = max(low, -exhaustive(state.child(action), -high, -low))
        if low >= high:
            break
    return low


def late_position(seed):
    """A position of a random game in which nobody has won yet, after at most 31 moves."""
    chance, state = Random(seed), position()
    while len(state.history()) < 31:
        quiet = [action for action in state.legal_actions() if not state.child(action).is_terminal()]
        if not quiet:
            break
        state.apply_action(chance.choice(quiet))
    return state


def test_what_the_engine_has_proved_is_so():
    proofs = []
    for state in map(late_position, range(20)):
        evaluation, best = mcts.search(state)
        if evaluation.proven:
            proofs.append(evaluation.result)
            assert evaluation.result == exhaustive(state) == -exhaustive(state.child(best))
    assert len(proofs) > 15
    assert {-1, 1} <= set(proofs)


def test_a_review_of_connect_four_says_what_is_certain():
    game = make(strategic("connect_four", opening=[3, 0, 3, 0, 3]))
    for column in (6, 3):
        (seat,) = game.to_act()
        game.step({seat: Move(action="answer", args={"choice": f"{'XO'[seat]}({column})"})})
    (review,) = game.analysis()
    first, last = review.moves
    assert (first.mark, first.detail[1:]) == ("blunder", ("better: in column 4",))
    assert first.detail[0].startswith("a loss, before it ")
    assert first.detail[0].endswith("% of the points")
    assert (last.text, last.mark, last.detail, last.value) == ("drops a full disc into column 4", "", ("a win",), 1.0)
    assert "3,000 simulations" in review.method
    assert "1 of 2 moves are judged with certainty" in review.method
    assert game.analysis() == (review,), "a game is always judged alike"


# --- poker against an equilibrium ---


def kuhn_values(deal, *moves):
    """The values of the actions of who moves in Kuhn poker after a deal and moves: 0 to pass, 1 to bet."""
    state = pyspiel.load_game("kuhn_poker").new_initial_state()
    for action in (*deal, *moves):
        state.apply_action(action)
    return equilibria.kuhn().at(state, state.current_player())


def test_kuhn_poker_is_worth_an_eighteenth_to_the_second_player():
    assert equilibria.kuhn().value == pytest.approx(-1 / 18)


@pytest.mark.parametrize(
    "deal, moves, probability, expected",
    [
        # The first player's Jack: passing loses 1; a bet wins 1 from a Queen that folds (2/3), and loses 2 otherwise:
        # ((2/3)(1) + (1/3)(-2) - 2) / 2 = -1.
        ((0, 2), (), 1 / 6, (-1, -1)),
        # Its Queen: a bet is called by the King alone (-2), and the Jack folds (+1). Passing: the Jack bluffs in 1 of 3
        # cases, the King always bets, and a call wins 2 or loses 2, as much as folding: (1/2)(2/3)(1) + 2/3 of -1.
        ((1, 2), (), 0, (-1 / 3, -1 / 2)),
        # Its King: a bet is called by a Queen in 1 of 3 cases: ((1/3)(2) + (2/3)(1) + 1) / 2 = 7/6.
        ((2, 0), (), 1 / 2, (7 / 6, 7 / 6)),
        # The second player's Jack against a bet: folding loses 1, calling 2.
        ((1, 0), (1,), 0, (-1, -2)),
        # Its King: folding loses 1, calling wins 2.
        ((1, 2), (1,), 1, (-1, 2)),
        # Its Queen: one bet in four comes from a Jack (1/6 against 1/2): (1/4)(2) + (3/4)(-2) = -1.
        ((2, 1), (1,), 1 / 3, (-1, -1)),
    ],
)
def test_actions_in_kuhn_poker_have_the_values_of_theory(deal, moves, probability, expected):
    values = kuhn_values(deal, *moves)
    assert values.probabilities[1] == pytest.approx(probability)
    assert [values.expected[action] for action in (0, 1)] == pytest.approx(expected)
    assert values.reached


def test_the_review_of_kuhn_poker_goes_by_what_the_player_knew():
    """To call with a Jack loses a chip, whatever the other holds; a bluff in the right place loses none."""
    reviews = []
    for other in (1, 2):
        game = make(strategic("kuhn_poker", fixed=[other, 0]))
        for choice in ("BET", "BET"):
            (seat,) = game.to_act()
            game.step({seat: Move(action="answer", args={"choice": choice})})
        (review,) = game.analysis()
        reviews.append(review.moves[1])
    assert reviews[0] == reviews[1]
    assert (reviews[0].step, reviews[0].seat, reviews[0].text, reviews[0].mark) == (2, 1, "calls", "blunder")
    assert reviews[0].detail == (
        "with a Jack",
        "the equilibrium does it in 0% of such cases",
        "expects to lose 1.00 chips by it",
        "better: folds",
    )
    assert review.tallies[0].cells == ("0.00", "1.00"), "a King may be bet"


def test_leduc_poker_is_solved_and_its_values_hang_together():
    """Its value is known: about -0.0856 to the first player. What is played is worth as much as the best."""
    solution = equilibria.leduc()
    assert solution.value == pytest.approx(-0.0856, abs=0.001)
    game = equilibria.leduc_game()
    states = []

    def walk(state):
        if state.is_terminal():
            return
        if not state.is_chance_node():
            states.append((state, solution.at(state, state.current_player())))
        for action in state.legal_actions():
            walk(state.child(action))

    walk(game.new_initial_state())
    often = [
        (state, values, action)
        for state, values in states
        for action, probability in values.probabilities.items()
        if probability > 0.2 and len(state.history()) < 5
    ]
    assert len(often) > 50
    assert max(values.lost(action) for _, values, action in often) < 0.05
    king = next(values for state, values in states if state.history() == [1, 2, 2])
    assert king.lost(0) > 1, "to give up a King after a raise loses chips"


# --- Hanabi: what was certain ---

EITHER = frozenset({("R", 1), ("R", 2), ("Y", 1), ("Y", 2)})
DECK = {("R", 1): 3, ("R", 2): 1, ("Y", 1): 3, ("Y", 2): 1}


def hanabi_position(allowed, others, red=0, yellow=0, discards=()):
    """A position in which seat 0 holds one card, which its hints allow to be any of `allowed`, and seat 1 `others`."""
    mine = [(next(iter(allowed)), frozenset(allowed))]
    return Position(DECK, {"R": red, "Y": yellow}, discards, [mine, [(card, EITHER) for card in others]])


def test_cards_in_sight_say_what_a_card_is_not():
    assert hanabi_position(EITHER, [("R", 2), ("Y", 2)]).possible(0) == ({("R", 1), ("Y", 1)},)
    assert hanabi_position(EITHER, [], red=2, discards=[("R", 1), ("R", 1)]).possible(0) == ({("Y", 1), ("Y", 2)},)


def test_a_card_is_certain_to_fit_or_to_fail_if_all_that_it_can_be_do():
    rank_ones = {("R", 1), ("Y", 1)}
    assert hanabi_position(rank_ones, []).certain_plays(0) == (0,)
    assert hanabi_position(rank_ones, [], red=1).certain_plays(0) == ()
    assert not hanabi_position(rank_ones, [], red=1).sure_to_fail(0, 0)
    assert hanabi_position(rank_ones, [], red=1, yellow=1).sure_to_fail(0, 0)
    assert hanabi_position({("R", 1), ("R", 2)}, [("R", 2)]).certain_plays(0) == (0,), "the other holds the only 2"


def test_a_card_is_needed_if_its_firework_can_have_no_other():
    two = {("R", 2)}
    assert hanabi_position(two, []).known_to_be_needed(0, 0)
    assert not hanabi_position(two, [], discards=[("R", 1)] * 3).known_to_be_needed(0, 0), "no 1 is left to put it on"
    assert not hanabi_position({("R", 1)}, []).known_to_be_needed(0, 0), "there are two more"
    assert hanabi_position({("R", 1)}, [], discards=[("R", 1)] * 2).known_to_be_needed(0, 0)
    assert not hanabi_position({("R", 2), ("Y", 1)}, []).known_to_be_needed(0, 0), "it may be the other"


def test_the_review_of_hanabi_says_what_was_certain():
    """Ada holds red 1, 2, 1 and Ben yellow 1, 1, 2; a red 1 and a yellow 1 are left to draw."""
    game = make(strategic("hanabi", size="mini", fixed=[0, 1, 0, 2, 2, 3, 0, 2]))
    choices = (
        "Reveal player +1 rank 2",  # so Ben's other cards are ones
        "Reveal player +1 color R",
        "Reveal player +1 rank 1",  # which Ben knows
        "Discard card 2",  # the yellow 2: Ben sees the red one
        "Play card 0",
    )
    for choice in choices:
        (seat,) = game.to_act()
        game.step({seat: Move(action="answer", args={"choice": choice})})
    (seat,) = game.to_act()
    game.step({seat: FORFEIT})
    (review,) = game.analysis()
    both = "the first and second cards were certain to fit"
    assert [(move.mark, move.detail) for move in review.moves] == [
        ("", ()),
        ("", (both,)),
        ("inaccuracy", ("told Ben nothing new",)),
        ("mistake", ("was certain to discard the last copy of a card that a firework needs", both)),
        ("", ()),
    ]
    assert {row.label: row.cells for row in review.tallies} == {
        "plays that were certain to fit": ("0", "0"),
        "plays that were certain to fail": ("0", "0"),
        "discards of cards known to be needed": ("0", "1"),
        "discards and other plays while a card was certain to fit": ("0", "1"),
        "hints while a card was certain to fit": ("0", "1"),
        "hints that told nothing new": ("1", "0"),
    }


@pytest.mark.parametrize("size", HANABI)
def test_what_is_certain_in_hanabi_happens(size):
    """Whatever was certain to fit did so, and whatever was certain to fail cost a life."""
    games = (played(strategic("hanabi", size=size), seed)[0] for seed in range(14))
    moves = [move for game in games for review in game.analysis() for move in review.moves]
    for certain, result in (("was certain to fit", "which fits"), ("was certain to fail", "does not fit")):
        texts = [move.text for move in moves if certain in move.detail]
        assert texts, f"no random game has a card that {certain}"
        assert all(result in text for text in texts)
