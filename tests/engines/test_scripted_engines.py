"""Engines without a model: scripts are said as written, tables are sampled with exact log-probabilities."""

import asyncio
from collections import Counter
from math import exp, log

import numpy as np
import pytest
from safetensors.numpy import save_file

from training.engines.base import SampleRequest, Sampling
from training.engines.scripted import BigramEngine, ScriptedEngine
from training.errors import EngineError

# Rows: the last token; from 0 the odds are 1 : 2 : 5, from 1 they are 1 : 1 : 2, from 2 always 0 (odds 1 : 0 : 0).
ODDS = np.array([[1.0, 2.0, 5.0], [1.0, 1.0, 2.0], [1.0, 1e-300, 1e-300]])
TABLE = np.log(ODDS)


def ask(engine, prompt=(0,), seed=0, stop=(), **sampling):
    request = SampleRequest(list(prompt), Sampling(**{"max_tokens": 1, **sampling}), seed, tuple(stop))
    return asyncio.run(engine.sample(request))


def test_a_script_is_said_in_order_and_runs_out():
    engine = ScriptedEngine([[5, 6], [7]])
    first = ask(engine, max_tokens=9)
    assert (first.tokens, first.logprobs, first.finish) == ((5, 6), (0.0, 0.0), "length")
    assert ask(engine, max_tokens=9).tokens == (7,)
    with pytest.raises(EngineError, match="no reply to request 3"):
        ask(engine)


def test_a_scripted_reply_is_cut_at_its_stop_or_its_length():
    engine = ScriptedEngine(lambda request: [5, 6, 7, 8])
    assert ask(engine, max_tokens=9, stop=[7]).tokens == (5, 6, 7)
    assert ask(engine, max_tokens=9, stop=[7]).finish == "stop"
    assert ask(engine, max_tokens=2, stop=[7]).tokens == (5, 6)
    assert ask(engine, max_tokens=2, stop=[7]).finish == "length"
    with pytest.raises(EngineError, match="cannot score"):
        asyncio.run(engine.score([1], [[2]]))


def test_samples_follow_the_table_and_carry_its_logprobs():
    engine = BigramEngine(TABLE)
    samples = [ask(engine, seed=seed) for seed in range(8000)]
    counts = Counter(sample.tokens[0] for sample in samples)
    for token, odds in enumerate((1, 2, 5)):
        assert counts[token] / 8000 == pytest.approx(odds / 8, abs=0.02)  # four standard errors
    assert {s.tokens[0]: round(s.logprobs[0], 9) for s in samples} == {
        token: round(log(odds / 8), 9) for token, odds in enumerate((1, 2, 5))
    }


def test_temperature_is_part_of_the_logprob():
    """At T = 2 the odds from 1 are 1 : 1 : √2."""
    sample = ask(BigramEngine(TABLE), prompt=[1], temperature=2.0)
    odds = (1.0, 1.0, 2**0.5)[sample.tokens[0]]
    assert exp(sample.logprobs[0]) == pytest.approx(odds / (2 + 2**0.5))
    greedy = ask(BigramEngine(TABLE), prompt=[1], temperature=0.0)
    assert (greedy.tokens, greedy.logprobs) == ((2,), (0.0,))


@pytest.mark.parametrize(
    "cut, kept, discarded",
    [
        ({"top_k": 1}, {2}, 3 / 8),
        ({"top_k": 2}, {1, 2}, 1 / 8),
        ({"top_p": 0.6}, {2}, 3 / 8),
        ({"top_p": 0.63}, {1, 2}, 1 / 8),
        ({"top_p": 0.01}, {2}, 3 / 8),
        ({}, {0, 1, 2}, 0.0),
    ],
)
def test_cuts_discard_mass_but_do_not_change_the_logprobs(cut, kept, discarded):
    """The policy stays softmax over the whole vocabulary; odds from 0 are 1 : 2 : 5."""
    samples = [ask(BigramEngine(TABLE), seed=seed, **cut) for seed in range(200)]
    assert {sample.tokens[0] for sample in samples} == kept
    for sample in samples:
        assert sample.discarded == pytest.approx(discarded)
        assert exp(sample.logprobs[0]) == pytest.approx((1, 2, 5)[sample.tokens[0]] / 8)


def test_sampling_continues_to_a_stop_token_or_the_length():
    engine = BigramEngine(TABLE)
    sample = ask(engine, prompt=[2], max_tokens=50, stop=[0])
    assert (sample.tokens, sample.finish) == ((0,), "stop")
    long = ask(engine, max_tokens=50)
    assert (len(long.tokens), long.finish) == (50, "length")
    assert long == ask(engine, max_tokens=50)
    assert long != ask(engine, max_tokens=50, seed=1)


def test_scores_are_sums_of_logprobs():
    scores = asyncio.run(BigramEngine(TABLE).score([2, 0], [[2], [1, 2], []]))
    assert scores == pytest.approx([log(5 / 8), log(2 / 8) + log(2 / 4), 0.0])


def test_weights_replace_the_table(tmp_path):
    engine = BigramEngine(np.zeros((3, 3)))
    asyncio.run(engine.load_weights(iter([("logits", TABLE)])))
    assert asyncio.run(engine.score([0], [[2]])) == pytest.approx([log(5 / 8)])
    save_file({"logits": np.zeros((3, 3))}, tmp_path / "model.safetensors")
    asyncio.run(engine.load_weights(tmp_path))
    assert asyncio.run(engine.score([0], [[2]])) == pytest.approx([log(1 / 3)])
    with pytest.raises(EngineError, match="no tensor named logits among bias"):
        asyncio.run(engine.load_weights([("bias", TABLE)]))
    with pytest.raises(EngineError, match="square"):
        asyncio.run(engine.load_weights([("logits", TABLE[:2])]))


@pytest.mark.parametrize("prompt", [[], [3], [-1]])
def test_a_prompt_outside_the_table_is_an_error(prompt):
    with pytest.raises(EngineError, match=r"in \[0, 3\)"):
        ask(BigramEngine(TABLE), prompt=prompt)
