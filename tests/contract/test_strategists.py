"""A seat with a strategist works in every registered game, and nobody but that seat reads its strategies."""

import asyncio
import re

import pytest

from training import players, samples
from training.games import REGISTRY, make, replay
from training.labels.codebooks import CODEBOOKS, SOTOPIA
from training.players.advised import AdvisedPlayer
from training.players.base import Reply
from training.players.react import NamingPlayer
from training.records import ALL, SPECTATOR
from training.rewards.judge import transcript_of, turns_of
from training.rewards.prompts import codebook_messages, critical_messages, goal_messages, quality_messages
from training.rollout import play
from training.run_sections import SpeakerSection

FORM = SpeakerSection(source="follower:70", words=200)
CANARY = re.compile(r"wombat (\d+)")
SCENARIOS = {f"{game}-{at}": scenario for game in REGISTRY for at, scenario in enumerate(samples.for_game(game)[::6])}
every_game = pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS)


def test_every_game_has_a_script_that_can_advise():
    assert not [name for name, spec in REGISTRY.items() if not spec.script]
    assert {scenario.game for scenario in SCENARIOS.values()} == set(REGISTRY)


@every_game
@pytest.mark.parametrize("percent", [100, 70])
def test_advised_seats_play_every_game_to_its_end(scenario, percent):
    def seated(seat):
        strategist = NamingPlayer(players.make("scripted", scenario, seat), FORM)
        return AdvisedPlayer(strategist, players.make(f"follower:{percent}", scenario, seat))

    episode = asyncio.run(play(scenario, [seated(seat) for seat in range(len(scenario.seats))]))
    assert episode.error is None
    assert not replay(scenario, episode.moves).to_act()
    assert all(turn.passed and turn.strategy for turn in episode.turns)
    if percent == 100:  # but for words that a strategy does not hold, the speaker made the moves that were named
        named = [turn.strategy.split()[0] == turn.move.action.split("_")[0] for turn in episode.turns]
        assert sum(named) > 0.9 * len(named)


class Canary:
    """A strategist whose strategies name its seat."""

    form = FORM

    def __init__(self, seat):
        self.seat, self.read = seat, []

    async def act(self, seat, observation, seed):
        self.read.append(observation.model_dump_json())
        return Reply(f"Strategy: wombat {self.seat}")

    def traces(self):
        return ()


class Recorded:
    """A speaker that keeps what it reads, and moves at random."""

    def __init__(self, scenario, seat):
        self.player, self.read = players.make("follower:100", scenario, seat), []

    async def act(self, seat, observation, seed):
        self.read.append(observation.model_dump_json())
        return await self.player.act(seat, observation, seed)

    def traces(self):
        return ()


def seats_named(texts):
    return {int(number) for text in texts for number in CANARY.findall(text)}


@every_game
def test_nobody_else_reads_a_strategy(scenario):
    seats = range(len(scenario.seats))
    strategists = [Canary(seat) for seat in seats]
    speakers = [Recorded(scenario, seat) for seat in seats]
    advised = [AdvisedPlayer(*pair) for pair in zip(strategists, speakers, strict=True)]
    episode = asyncio.run(play(scenario, advised))
    assert episode.error is None
    acted = {turn.seat for turn in episode.turns}
    for seat in seats:
        assert seats_named(speakers[seat].read) == ({seat} if seat in acted else set())
        assert not seats_named(strategists[seat].read)  # its own are in its context, not in what its seat is shown
    game = replay(scenario, episode.moves)
    shown = [game.observe(viewer).model_dump_json() for viewer in (*seats, scenario.tool_seat, SPECTATOR, ALL)]
    shown += [str(make(scenario).observe(ALL)), *(move.model_dump_json() for move in episode.moves)]
    assert not seats_named(shown)


@every_game
def test_no_judge_of_the_conversation_reads_a_strategy(scenario):
    seats = range(len(scenario.seats))
    advised = [AdvisedPlayer(Canary(seat), players.make("follower:100", scenario, seat)) for seat in seats]
    episode = asyncio.run(play(scenario, advised))
    whole, turns = transcript_of(scenario, episode.moves), turns_of(episode)
    sent = [goal_messages(whole)]
    for seat in sorted({turn.seat for turn in episode.turns}):
        numbers = [at for at, turn in enumerate(episode.turns) if turn.seat == seat]
        sent += [codebook_messages(codebook, whole, seat) for codebook in (SOTOPIA, *CODEBOOKS.values())]
        sent.append(quality_messages(turns, seat, numbers))
        of_seat = [episode.turns[at].strategy for at in numbers]
        asked = [message.content for message in critical_messages(turns, seat, of_seat, 0.5)]
        assert seats_named(asked) == {seat}
    assert not seats_named(message.content for messages in sent for message in messages)
