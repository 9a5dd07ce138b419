"""The trie of choices: what may come next, and a policy over it worked out by hand."""

import asyncio
from collections import Counter
from math import log

import numpy as np
import pytest

from training.engines.base import SampleRequest, Sampling
from training.engines.scripted import BigramEngine, ScriptedEngine
from training.engines.trie import Trie
from training.errors import EngineError

END = 3
CHOICES = ((0, END), (1, 0, END), (1, 2, END))
# Four tokens. After 2 the odds are 1 : 2 : 5 : 8, after 1 they are 3 : 1 : 1 : 5; after 0 nothing else is likely but 1.
TABLE = np.log(np.array([[1e-9, 1.0, 1e-9, 1e-9], [3.0, 1.0, 1.0, 5.0], [1.0, 2.0, 5.0, 8.0], [1.0, 1.0, 1.0, 1.0]]))
# From 2: 0 or 1, odds 1 : 2. After 1: 0 or 2, odds 3 : 1. The end is certain wherever it is the only continuation.
CHANCES = {(0, END): 1 / 3, (1, 0, END): 2 / 3 * 3 / 4, (1, 2, END): 2 / 3 * 1 / 4}


def ask(engine, seed=0, choices=CHOICES, **sampling):
    settings = Sampling(**{"max_tokens": 3, **sampling})
    return asyncio.run(engine.sample(SampleRequest([2], settings, seed, (END,), choices)))


def test_what_may_follow():
    trie = Trie(CHOICES)
    assert [trie.allowed(start) for start in ([], [1], [0], [1, 2])] == [(0, 1), (0, 2), (END,), (END,)]
    assert trie.allowed([1, 2, END]) == ()
    with pytest.raises(EngineError, match="token 2 continues none of the choices"):
        trie.allowed([2])


def test_what_was_allowed_along_a_reply():
    assert Trie(CHOICES).along((1, 0, END)) == [(0, 1), (0, 2), (END,)]
    with pytest.raises(EngineError, match="ends before any of the choices"):
        Trie(CHOICES).along((1, 0))
    with pytest.raises(EngineError, match="continues none"):
        Trie(CHOICES).along((1, 1, END))


def test_probabilities_by_hand():
    assert sum(CHANCES.values()) == pytest.approx(1)
    samples = [ask(BigramEngine(TABLE), seed) for seed in range(6000)]
    for sample in samples:
        assert sample.finish == "stop"
        assert sum(sample.logprobs) == pytest.approx(log(CHANCES[sample.tokens]))
        assert sample.logprobs[-1] == 0  # nothing but the end could follow, however unlikely it is
    counts = Counter(sample.tokens for sample in samples)
    for choice, chance in CHANCES.items():
        assert counts[choice] / 6000 == pytest.approx(chance, abs=0.026)  # four standard errors


def test_the_temperature_comes_before_the_renormalisation():
    """At T = 2 the odds are 1 : √2, then √3 : 1."""
    root, second = 2**0.5, 3**0.5
    expected = {(0, END): 1 / (1 + root), (1, 0, END): root / (1 + root) * second / (second + 1)}
    seen = {
        sample.tokens: sum(sample.logprobs)
        for sample in (ask(BigramEngine(TABLE), s, temperature=2.0) for s in range(40))
    }
    for choice, chance in expected.items():
        assert seen[choice] == pytest.approx(log(chance))


def test_a_script_must_keep_to_the_choices():
    assert ask(ScriptedEngine([(1, 2, END)])).tokens == (1, 2, END)
    with pytest.raises(EngineError, match="request 1 is none of the choices"):
        ask(ScriptedEngine([(1, 1, END)]))
