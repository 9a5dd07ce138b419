"""The players whose games a strategic miniature's start is pretrained on."""

import asyncio
import re
from dataclasses import replace

import pyspiel
import pytest
from open_spiel.python.algorithms import exploitability
from open_spiel.python.policy import tabular_policy_from_callable

from bench.starts import BY_CARD, ByCard, play
from bench.strategic import TASKS
from training.games import make
from training.records import Move


def test_the_player_by_card_is_as_far_from_equilibrium_as_its_docstring_says():
    """Kuhn poker's cards are 0, 1, 2 and its actions 0 (pass) and 1 (bet) in OpenSpiel."""

    def bets_by_card(state):
        bet = BY_CARD[int(state.information_state_string()[0])]
        return {0: 1 - bet, 1: bet}

    game = pyspiel.load_game("kuhn_poker")
    assert exploitability.nash_conv(game, tabular_policy_from_callable(game, bets_by_card)) == pytest.approx(
        0.637, abs=5e-4
    )


@pytest.mark.parametrize("opening", [(), ("PASS",), ("BET",), ("PASS", "BET")], ids=" ".join)
@pytest.mark.parametrize("card", range(3))
def test_it_bets_by_its_card_whatever_was_played(card, opening):
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
    player = ByCard(scenario, seat)
    replies = [asyncio.run(player.act(seat, game.observe(seat), seed)).text for seed in range(1000)]
    # three standard errors of a share of 1000 are at most 0.048
    assert sum("BET" in reply for reply in replies) / 1000 == pytest.approx(BY_CARD[card], abs=0.048)


def test_a_start_reads_whole_games_in_which_choices_stand_alone():
    start = replace(TASKS["tictactoe"].start, games=6)
    episodes = play(start)
    assert len({episode.scenario.seed for episode in episodes}) == 6
    for episode in episodes:
        assert episode.scenario.id == start.sample
        assert None not in episode.returns.values()
        assert all(re.fullmatch(r"<answer>\S*</answer>", turn.reply) for turn in episode.turns)
    assert play(start) == episodes
