"""The players whose games a strategic miniature's start is pretrained on."""

import asyncio
import re
from dataclasses import replace

import pyspiel
import pytest
from open_spiel.python.algorithms import exploitability
from open_spiel.python.policy import tabular_policy_from_callable

from bench.excerpts import decisions, turn
from bench.starts import BETS, Arbitrary, play
from bench.strategic import TASKS
from training.games import make
from training.learn.tiny import pretrain
from training.players.base import Reply
from training.records import Move
from training.text.choices import replies
from training.text.template import ChatTokenizer


def test_the_arbitrary_player_is_as_far_from_equilibrium_as_its_docstring_says():
    """Kuhn poker's cards are 0, 1, 2 and its actions 0 (pass) and 1 (bet) in OpenSpiel."""

    def bets(state):
        card, *played = state.information_state_string()
        bet = BETS["".join(played)][int(card)]
        return {0: 1 - bet, 1: bet}

    game = pyspiel.load_game("kuhn_poker")
    assert exploitability.nash_conv(game, tabular_policy_from_callable(game, bets)) == pytest.approx(0.660, abs=5e-4)


@pytest.mark.parametrize("opening", [(), ("PASS",), ("BET",), ("PASS", "BET")], ids=" ".join)
@pytest.mark.parametrize("card", range(3))
def test_it_bets_by_its_card_and_what_was_played(card, opening):
    scenario = next(
        scenario
        for seed in range(1, 100)
        if make(scenario := TASKS["kuhn"].start.scenario.with_seed(seed)).state.history()[len(opening) % 2] == card
    )
    game = make(scenario)
    for choice in opening:
        (seat,) = game.to_act()
        (action,) = game.observe(seat).actions
        game.step({seat: Move(action=action.name, args={"choice": choice})})
    (seat,) = game.to_act()
    player = Arbitrary(scenario, seat)
    replies = [asyncio.run(player.act(seat, game.observe(seat), seed)).text for seed in range(1000)]
    played = "".join({"PASS": "p", "BET": "b"}[choice] for choice in opening)
    # three standard errors of a share of 1000 are at most 0.048
    assert sum("BET" in reply for reply in replies) / 1000 == pytest.approx(BETS[played][card], abs=0.048)


def test_a_start_reads_whole_games_in_which_choices_stand_alone():
    start = replace(TASKS["tictactoe"].start, games=6)
    episodes = play(start)
    assert len({episode.scenario.seed for episode in episodes}) == 6
    for episode in episodes:
        assert episode.scenario.id == start.sample
        assert None not in episode.returns.values()
        assert all(re.fullmatch(r"<answer>\S*</answer>", turn.reply) for turn in episode.turns)
    assert play(start) == episodes


def test_a_decision_comes_after_the_newest_message_and_only_what_was_free_is_a_target():
    episodes = play(replace(TASKS["tictactoe"].start, games=2))
    chat = ChatTokenizer(pretrain.make_tokenizer(iter(["GAME STATE"]), pretrain.Recipe(vocabulary=300)))
    pieces = decisions(episodes[0], chat, window=None)
    turns = episodes[0].turns
    several = [each for number, each in enumerate(turns) if number < 8]  # of the last cell there is no choice
    assert [piece.seat for piece in pieces] == [each.seat for each in several]
    for number, (piece, played) in enumerate(zip(pieces, several, strict=True)):
        prompt, reply = chat.decode(piece.tokens[: piece.turn.index(0)]), played.reply
        assert prompt.count("GAME STATE") == 1
        assert prompt.count("(") == 9 - number + (number > 0)  # the legal cells, and the other's last move
        free = "".join(chat.decode([token]) for token, aimed in zip(piece.tokens, piece.mask, strict=True) if aimed)
        row, column = re.search(r"\((\d),(\d)\)", reply).groups()
        assert free in (row + column, row, column)


def test_a_teacher_decides_in_every_position_after_as_many_messages_as_are_drawn():
    episode = play(replace(TASKS["tictactoe"].start, games=1, seats=("random",)))[0]
    chat = ChatTokenizer(pretrain.make_tokenizer(iter(["GAME STATE"]), pretrain.Recipe(vocabulary=300)))

    class First:
        """Chooses the first legal cell."""

        async def act(self, seat, observation, seed):
            return Reply(next(replies(observation.actions)))

    for lengths, boards in (((1,), lambda turn: 1), ((0,), lambda turn: turn), ((2,), lambda turn: 1)):
        pieces = decisions(episode, chat, window=None, lengths=lengths, teacher=lambda scenario, seat: First())
        for number, piece in enumerate(pieces):
            begin = piece.turn.index(0)
            prompt, reply = chat.decode(piece.tokens[:begin]), chat.decode(piece.tokens[begin:])
            assert prompt.count("GAME STATE") == boards(1 + number // 2)
            legal = re.findall(r"<[XO]\(\d,\d\)>", prompt.rsplit("LEGAL ACTIONS", 1)[1])
            assert legal[0] in reply


def test_where_another_choice_continues_differently_is_a_target():
    chat = ChatTokenizer(pretrain.make_tokenizer(iter([]), pretrain.Recipe(vocabulary=259)))  # a token per byte
    piece = turn(0, chat, [{"role": "user", "content": "go on"}], ["<a>", "<ab>", "<b>"], 1)
    aimed = [at for at, target in enumerate(piece.mask) if target]
    begin = piece.turn.index(0)
    assert [at - begin for at in aimed] == [1, 2]  # "a" or "b", then ">" or "b"
    assert sum(turn(0, chat, [{"role": "user", "content": "go on"}], ["<a>"], 0, whole=True).mask) == 4
