"""Probes: known scores give known probabilities, and no probe affects the game."""

import asyncio
import math

import pytest

from tests.chat_tokenizers import tokenizer
from tests.table_talk import SAMPLING, dialogue, reply_tokens, say_anything
from training import players
from training.engines.scripted import ScriptedEngine
from training.errors import EngineError
from training.games import make
from training.players.model import ModelPlayer
from training.records import Probe
from training.rollout import RolloutPolicy, play
from training.text.template import ChatTokenizer

CHAT = ChatTokenizer(tokenizer("chatml"))
PROBE = Probe(question="Who is it?", choices=("Ann", "Bartholomew"), truth=("Ann",))
SCENARIO = dialogue(turn_limit=6)


class Scores(ScriptedEngine):
    """Says anything, and holds the first of two answers for three times as likely as the second."""

    def __init__(self, script=say_anything):
        super().__init__(script)
        self.scored, self.prompts = [], []

    async def sample(self, request):
        self.prompts.append(list(request.prompt))
        return await super().sample(request)

    async def score(self, prefix, continuations):
        self.scored.append((list(prefix), [list(c) for c in continuations]))
        return [-7 + math.log(3), -7.0]


def episode(monkeypatch, engine, *, probes=True, window=None, second=None):
    monkeypatch.setattr(type(make(SCENARIO)), "probes", lambda game: {0: PROBE, 1: PROBE})
    seated = [ModelPlayer(engine, CHAT, SAMPLING, seat=seat, names=SCENARIO.seats, window=window) for seat in range(2)]
    if second is not None:
        seated[1] = second
    return asyncio.run(play(SCENARIO, seated, rules=RolloutPolicy(seed=5, retries=1, probes=probes)))


def test_known_scores_give_known_probabilities(monkeypatch):
    played = episode(monkeypatch, Scores())
    assert played.error is None
    assert all(belief.probabilities == pytest.approx({"Ann": 0.75, "Bartholomew": 0.25}) for belief in played.beliefs)
    # before the first move and after every one, each of the two
    assert [(b.after, b.seat) for b in played.beliefs] == [
        (after, seat) for after in range(len(played.moves) + 1) for seat in range(2)
    ]
    assert {(b.question, b.truth) for b in played.beliefs} == {("Who is it?", ("Ann",))}
    assert played.metrics["probes"] == len(played.beliefs)


def test_whole_names_are_scored_behind_all_that_the_seat_saw(monkeypatch):
    engine = Scores()
    played = episode(monkeypatch, engine)
    for prefix, names in engine.scored:
        assert names == [reply_tokens("Ann"), reply_tokens("Bartholomew")]
        assert "Who is it?" in CHAT.decode(prefix)
    assert len({len(tokens) for tokens in names}) == 2  # names of unequal length, compared as a whole
    last = [trace for trace in played.traces if trace.seat == 1][-1]
    prefix = engine.scored[-1][0]
    shared = len(last.tokens)
    assert prefix[:shared] == list(last.tokens)  # the branch leaves the trace at its end


def test_probing_changes_no_token_of_the_game(monkeypatch):
    asked, plain = Scores(), Scores()
    with_probes, without = episode(monkeypatch, asked), episode(monkeypatch, plain, probes=False)
    assert with_probes.traces == without.traces
    assert with_probes.moves == without.moves
    assert asked.prompts == plain.prompts
    assert not plain.scored
    assert without.beliefs == ()
    assert not any("Who is it?" in CHAT.decode(trace.tokens) for trace in with_probes.traces)


def test_a_player_without_a_model_has_no_beliefs(monkeypatch):
    played = episode(monkeypatch, Scores(), second=players.make("scripted", SCENARIO, 1))
    assert {belief.seat for belief in played.beliefs} == {0}


def test_a_question_that_does_not_fit_the_window_is_not_asked(monkeypatch):
    engine = Scores()
    whole = episode(monkeypatch, engine)
    prefix, names = engine.scored[0]  # of seat 0, at the start
    window = len(prefix) + max(map(len, names))
    assert whole.beliefs
    player = ModelPlayer(engine, CHAT, SAMPLING, seat=0, names=SCENARIO.seats, window=window)
    seen = make(SCENARIO).observe(0)
    assert asyncio.run(player.believe(seen, PROBE)) is None
    roomy = ModelPlayer(engine, CHAT, SAMPLING, seat=0, names=SCENARIO.seats, window=window + 1)
    assert asyncio.run(roomy.believe(seen, PROBE)) is not None
    assert player.traces() == roomy.traces() == ()


def test_an_engine_that_cannot_score_ends_the_episode_as_data(monkeypatch):
    played = episode(monkeypatch, ScriptedEngine(say_anything))
    assert played.error is not None
    assert played.error.kind == EngineError.kind
    assert played.beliefs == ()
