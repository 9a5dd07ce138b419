"""The measurement of probes: its credit, its replies and its share, by hand."""

import asyncio
from dataclasses import replace

import pytest

from bench.probes import Led, Listening, shares
from tests.methods.episodes import scored, trace
from training.engines.base import SampleRequest, Sampling
from training.engines.scripted import ScriptedEngine
from training.records import Belief


def test_the_share_is_what_probes_add_to_a_step():
    # steps of 10 s without and 12.5 s with probes, then of 10 s and 10 s, then of 12 s and 16 s
    rounds = {"a": {"rates": [360, 360, 300]}, "b": {"rates": [288, 360, 225]}}
    assert shares(rounds) == {"share": pytest.approx(0.2), "shares": [0.2, 0.0, 0.25]}


def test_every_sampled_token_and_every_right_answer_has_credit():
    belief = Belief(seat=0, after=0, question="?", probabilities={"A": 1.0}, truth=("A",), trace=1, span=(1, 3))
    probed = scored([trace("..00"), trace("....", prefix=(0, 3))], {0: -0.5})
    probed = replace(probed, episode=probed.episode.model_copy(update={"beliefs": (belief,)}))
    [credit] = Listening().credit([probed])
    assert credit.traces[0].ppo.tolist() == [0, 0, -0.5, -0.5]
    assert credit.traces[0].value_mask["turn"].tolist() == [False, True, False, False]
    assert credit.traces[1].nll.tolist() == [0, 1, 1, 0]
    assert credit.traces[1].ppo is None


def test_a_led_reply_has_the_scripts_tokens_and_takes_as_long():
    inner = ScriptedEngine(lambda request: [5] * 50)
    led = Led(inner)
    led.reply = (7, 8, 9)
    sample = asyncio.run(led.sample(SampleRequest([1], Sampling(max_tokens=40), 0, (5,))))
    assert (sample.tokens, len(sample.logprobs), sample.finish) == ((7, 8, 9), 3, "stop")
