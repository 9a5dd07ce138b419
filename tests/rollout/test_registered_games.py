"""Every registered game, on the project's samples: what a model seat is given is what its observation says, no more."""

import asyncio

import pytest

from tests.chat_tokenizers import tokenizer, turn_start
from tests.table_talk import reply_tokens
from training import players, samples
from training.engines.base import Sampling
from training.engines.scripted import ScriptedEngine
from training.games import REGISTRY, make
from training.players.model import ModelPlayer
from training.rollout import Job, RolloutPolicy, collect
from training.seeding import rng
from training.text.messages import chat
from training.text.parsing import parse
from training.text.template import ChatTokenizer

CHAT = ChatTokenizer(tokenizer("chatml"))
SCENARIOS = {f"{game}-{at}": scenario for game in REGISTRY for at, scenario in enumerate(samples.for_game(game)[::5])}


class Ventriloquist(ModelPlayer):
    """A model seat whose engine says what a random player would; a reply in five is refused."""

    def __init__(self, scenario, seat, log):
        self.words, self.log, self.names = "", log, scenario.seats
        self.player = players.make("random", scenario, seat)
        engine = ScriptedEngine(lambda request: log.append((list(request.prompt), None)) or reply_tokens(self.words))
        super().__init__(engine, CHAT, Sampling(max_tokens=500), seat=seat, names=scenario.seats)

    async def act(self, seat, seen, seed):
        self.words = (await self.player.act(seat, seen, seed)).text
        if rng(seed, "refused").random() < 0.2:
            self.words = "<accept/> <reject/>"
        messages = chat(seen, seat, self.names)
        reply = await super().act(seat, seen, seed)
        self.log[-1] = (self.log[-1][0], messages)
        return reply


@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS)
def test_a_seats_trace_is_its_observation(scenario):
    logs = [[] for _ in scenario.seats]
    jobs = [Job(0, scenario, ("me",) * len(scenario.seats))]
    policies = {"me": lambda scenario, seat: Ventriloquist(scenario, seat, logs[seat])}
    (episode,) = asyncio.run(collect(jobs, policies, lanes=1, rules=RolloutPolicy(retries=1)))
    assert episode.error is None
    assert episode.metrics["branches"] == 0
    assert sum(len(log) for log in logs) == len(episode.turns)
    for prompt, messages in (entry for log in logs for entry in log):
        assert prompt == CHAT.prompt(messages)
        assert prompt.count(turn_start("chatml")) == len(messages) + 1


@pytest.mark.parametrize("game", REGISTRY)
def test_a_seat_hears_its_own_move_before_anything_else(game):
    """Traces rely on it: the first own message after a move stands for what was sampled."""
    for scenario in samples.for_game(game)[:6]:
        state, chance = make(scenario), 0
        while acting := sorted(state.to_act()):
            before = {seat: len(state.observe(seat).messages) for seat in acting}
            moves = {}
            for seat in acting:
                if seat == scenario.tool_seat:
                    moves[seat] = state.default(seat)
                    continue
                chance += 1
                reply = asyncio.run(players.make("random", scenario, seat).act(seat, state.observe(seat), chance))
                moves[seat] = parse(reply.text, state.observe(seat))[0]
            state.step(moves)
            for seat, move in moves.items():
                if move.origin == "seat":
                    heard = state.observe(seat).messages[before[seat] :]
                    assert heard[0].author == seat
                    assert [message.author for message in heard].count(seat) == 1
