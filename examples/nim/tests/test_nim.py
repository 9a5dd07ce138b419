"""The rules by hand, and the scripted player against a theorem."""

import asyncio
from functools import cache
from itertools import product

import pytest
from parley_nim.script import GreedyPlayer, PerfectPlayer, perfect

from training.errors import IllegalMove
from training.games import make
from training.games.base import FORFEIT
from training.records import ALL, SPECTATOR, Move, Scenario
from training.text.parsing import parse


def nim(heaps, first=0):
    return make(Scenario(id="n", game="nim", settings={"heaps": heaps, "first_seat": first}, seats=("Ada", "Ben")))


def take(game, sticks):
    (seat,) = game.to_act()
    game.step({seat: Move(action="take", args={"sticks": sticks}, text=f"<take>{sticks}</take>")})


def test_who_takes_the_last_stick_wins():
    game = nim([2, 1])
    take(game, "1 from B")
    assert game.to_act() == {1}
    with pytest.raises(IllegalMove):
        take(game, "1 from B")
    take(game, "2 from A")
    assert game.returns() == {0: -1, 1: 1}
    assert game.seat_metrics() == {0: {"win": 0, "turns": 1}, 1: {"win": 1, "turns": 1}}


def test_what_only_one_reader_is_told_is_a_paragraph_of_its_own():
    game = nim([2, 1])
    rules, seat = (game.observe(viewer).messages[0].text.split("\n\n") for viewer in (SPECTATOR, 0))
    assert [paragraph for paragraph in seat if paragraph not in rules] == ["You are Ada; you play against Ben."]
    assert [paragraph for paragraph in seat if paragraph in rules] == rules


def test_a_stick_takes_itself_and_all_to_its_right():
    game = nim([3, 1])
    (heaps,) = game.show(0).zones
    assert [[cell.text for cell in row] for row in heaps.rows] == [["A", "|", "|", "|"], ["B", "|"]]
    assert [[cell.choice for cell in row] for row in heaps.rows] == [
        ["", "3 from A", "2 from A", "1 from A"],
        ["", "1 from B"],
    ]
    assert heaps.rows[0][1].label == "take 3 sticks from heap A"
    for viewer in (1, SPECTATOR, ALL):
        assert not list(game.show(viewer).choices())
        assert not game.show(viewer).ask


def test_people_read_the_moves_and_the_end_in_plain_words():
    game = nim([2, 1])
    take(game, "1 from B")
    take(game, "2 from A")
    lines = [(line.kind, line.seat, line.text) for message in game.observe(0).messages for line in message.lines]
    assert lines == [
        ("deed", 0, "takes 1 stick from heap B"),
        ("deed", 1, "takes 2 sticks from heap A"),
        ("news", None, "Ben takes the last stick and wins."),
    ]
    assert [game.show(v).headline for v in (0, 1, SPECTATOR)] == ["You lose. Ben wins.", "You win.", "Ben wins."]
    assert game.show(ALL).moment == "Ben takes 2 sticks from heap A, and no stick is left."


def test_who_gives_up_ends_the_game():
    game = nim([2, 1])
    game.step({0: FORFEIT})
    assert (game.show(1).headline, game.show(1).moment) == ("You win.", "Ada gave up.")


@cache
def wins(heaps):
    """Whether who is to move wins, by trying everything."""
    after = [
        tuple(sorted((*heaps[:at], size - count, *heaps[at + 1 :])))
        for at, size in enumerate(heaps)
        for count in range(1, size + 1)
    ]
    return any(not wins(left) for left in after)


def test_a_winning_move_is_found_exactly_where_there_is_one():
    for heaps in product(range(5), repeat=3):
        sizes = {heap: size for heap, size in enumerate(heaps) if size}
        if not sizes:
            continue
        move = perfect(sizes)
        assert (move is not None) == wins(tuple(sorted(heaps)))
        if move is not None:
            left = [size - move[0] * (heap == move[1]) for heap, size in enumerate(heaps)]
            assert min(left) >= 0
            assert not wins(tuple(sorted(left)))


@pytest.mark.parametrize("heaps", [[3, 4, 5], [1, 2, 4]])
def test_the_script_beats_the_greedy_player_from_a_won_start(heaps):
    game = nim(heaps)
    players = [PerfectPlayer(game.scenario, 0), GreedyPlayer(game.scenario, 1)]
    while game.to_act():
        (seat,) = game.to_act()
        seen = game.observe(seat)
        move, _ = parse(asyncio.run(players[seat].act(seat, seen, 1)).text, seen)
        game.step({seat: move})
    assert game.returns()[0] == 1
