"""NashConv of known policies has its known value; a model's policy is read off its scores of legal answers."""

import asyncio
import json
import math
import re

import numpy as np
import pytest

from tests.chat_tokenizers import tokenizer
from tests.engines.test_trie import CHOICES, TABLE
from training.cli import main
from training.engines.base import SampleRequest, Sampling
from training.engines.scripted import BigramEngine
from training.errors import BadInput
from training.evaluate.nashconv import (
    NAMES,
    constrained_probabilities,
    measure,
    model_policy,
    points,
    run,
    uniform,
)
from training.games.openspiel import equilibria
from training.text.messages import chat
from training.text.template import ChatTokenizer

CHAT = ChatTokenizer(tokenizer("chatml"))
LETTERS = {"PASS": "p", "BET": "b"}


class Engine:
    """Scores by a function of (prompt as text, answer as text) -> probability."""

    def __init__(self, probability):
        self.probability = probability
        self.prompts = []

    async def score(self, prefix, continuations):
        prompt = CHAT.decode(prefix)
        self.prompts.append(prompt)
        assert {continuation[-1] for continuation in continuations} == {CHAT.end_id}
        return [math.log(self.probability(prompt, CHAT.decode(answer))) for answer in continuations]


def asked(game, probability):
    engine = Engine(probability)
    return asyncio.run(model_policy(points(game), engine, CHAT)), engine


def equilibrium(prompt, answer):
    """Kuhn's equilibrium by what a prompt says of card and moves, times a constant that the legal answers share."""
    turn = prompt.rpartition("Information of Turn-")[2]
    card = "JQK".index(re.search(r"your card is \w+ \((\w)\)", turn).group(1))
    moves = "".join(LETTERS[word] for word in re.findall(r"\b(PASS|BET)\b", turn.partition("LEGAL ACTIONS")[0]))
    chosen = equilibria.kuhn_equilibrium()[f"{card}{moves}"][int("BET" in answer)]
    return 1e-5 * max(chosen, 1e-300)


@pytest.mark.parametrize("game, states", [("kuhn_poker", 12), ("leduc_poker", 288)])
def test_there_is_a_point_for_every_information_state(game, states):
    decisions = points(game)
    assert len(decisions) == states
    for point in decisions.values():
        assert len(point.answers()) == len(point.actions)
        assert point.observation.messages[-1].text.startswith("Information of Turn-")


def test_random_kuhn_has_nash_conv_eleven_twelfths():
    assert run("kuhn_poker", "random", engine="", device="", dtype="", on_progress=None) == {
        "game": "kuhn_poker",
        "policy": "random",
        "states": 12,
        "nash_conv": pytest.approx(11 / 12),
        "exploitability": pytest.approx(11 / 24),
        "value": pytest.approx(1 / 8),
    }


def test_the_equilibrium_has_nash_conv_zero_and_its_value():
    result = run("kuhn_poker", "nash", engine="", device="", dtype="", on_progress=None)
    assert result["nash_conv"] == pytest.approx(0, abs=1e-12)
    assert result["value"] == pytest.approx(-1 / 18)


def test_a_model_that_does_not_care_is_random():
    policy, engine = asked("kuhn_poker", lambda prompt, answer: 0.01)
    assert policy == {where: pytest.approx(choices) for where, choices in uniform(points("kuhn_poker")).items()}
    assert len(engine.prompts) == len(policy) == 12


def test_progress_is_reported_for_every_state():
    progress = []
    engine = Engine(lambda prompt, answer: 0.5)
    asyncio.run(model_policy(points("kuhn_poker"), engine, CHAT, lambda done, of: progress.append((done, of))))
    assert progress == [(done, 12) for done in range(1, 13)]


def test_a_model_that_plays_the_equilibrium_has_nash_conv_zero():
    policy, _ = asked("kuhn_poker", equilibrium)
    assert measure("kuhn_poker", policy)["nash_conv"] == pytest.approx(0, abs=1e-9)


def test_a_model_that_always_bets_loses_to_betting_the_king_and_passing_the_jack():
    """Against it a Jack loses 1, a Queen that calls wins and loses 2 as often, a King wins 2: 1/3 for each seat."""
    policy, _ = asked("kuhn_poker", lambda prompt, answer: 1 - 1e-15 if "BET" in answer else 1e-15)
    assert measure("kuhn_poker", policy)["nash_conv"] == pytest.approx(2 / 3)


@pytest.mark.parametrize("temperature", [1.0, 2.0])
def test_the_policy_of_constrained_decoding_by_hand(temperature):
    """From 2 the odds of 0 and 1 are 1 : 2; after 1 those of 0 and 2 are 3 : 1; then only the end can follow."""
    first, second = 2 ** (1 / temperature), 3 ** (1 / temperature)
    expected = [1 / (1 + first), first / (1 + first) * second / (second + 1), first / (1 + first) / (second + 1)]
    probabilities = asyncio.run(constrained_probabilities(BigramEngine(TABLE), [2], CHOICES, temperature))
    assert probabilities == pytest.approx(expected)
    assert asyncio.run(constrained_probabilities(BigramEngine(TABLE), [2], CHOICES[:1], temperature)) == [1.0]


def test_the_measured_policy_is_the_one_that_is_sampled():
    """A random table over the tokenizer's vocabulary: each state's answers, drawn until both have come up."""
    table_of_logits = np.random.default_rng(1).normal(0, 1, (len(CHAT.tokenizer), len(CHAT.tokenizer)))
    engine, temperature = BigramEngine(table_of_logits), 0.6
    states = points("kuhn_poker")
    policy = asyncio.run(model_policy(states, engine, CHAT, constrained=temperature))
    free = asyncio.run(model_policy(states, engine, CHAT))
    for where, point in list(states.items())[:3]:
        prompt = CHAT.prompt(chat(point.observation, point.seat, NAMES))
        replies = [(*CHAT.encode(answer), CHAT.end_id) for answer in point.answers()]
        drawn = {}
        for seed in range(200):
            sampling = Sampling(temperature=temperature, max_tokens=60)
            request = SampleRequest(prompt, sampling, seed, (CHAT.end_id,), tuple(replies))
            sample = asyncio.run(engine.sample(request))
            drawn[sample.tokens] = math.exp(sum(sample.logprobs))
        assert policy[where] == {
            action: pytest.approx(drawn[reply]) for action, reply in zip(point.actions, replies, strict=True)
        }
        assert policy[where] != pytest.approx(free[where], abs=0.01)


def test_a_prompt_is_what_the_seat_would_be_asked_in_a_game():
    policy, engine = asked("kuhn_poker", lambda prompt, answer: 0.5)
    point = points("kuhn_poker")["2pb"]
    assert CHAT.decode(CHAT.prompt(chat(point.observation, 0, NAMES))) == engine.prompts[list(policy).index("2pb")]
    assert point.answers() == ["<answer><PASS></answer>", "<answer><BET></answer>"]


@pytest.mark.parametrize(
    "game, policy, where",
    [("hanabi", "random", "game"), ("kuhn_poker", "cfr", "policy"), ("kuhn_poker", "no such model", "model")],
)
def test_wrong_arguments_are_reported_with_their_place(game, policy, where, capsys):
    with pytest.raises(BadInput) as refused:
        run(game, policy, engine="auto", device="cpu", dtype="float32", on_progress=None)
    assert refused.value.where == where
    assert main(["nashconv", game, policy, "--json"]) == 2
    assert json.loads(capsys.readouterr().out)["error"]["where"] == where


@pytest.mark.parametrize("wrong", ["0", "nan", "6", "warm"])
def test_the_temperature_of_constrained_decoding_is_checked(wrong, capsys):
    assert main(["nashconv", "kuhn_poker", "random", "--constrained", wrong, "--json"]) == 2
    assert json.loads(capsys.readouterr().out)["error"]["where"] == "--constrained"


def test_the_command_prints_one_object_or_a_few_lines(capsys):
    assert main(["nashconv", "kuhn_poker", "random", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["nash_conv"] == pytest.approx(11 / 12)
    assert main(["nashconv", "kuhn_poker", "nash"]) == 0
    assert "NashConv: 0.000000" in capsys.readouterr().out
