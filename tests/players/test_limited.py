"""A player that is limited to legal actions: their probabilities by enumeration, its requests and its replies."""

import asyncio
from collections import Counter
from itertools import product

import numpy as np
import pytest
import torch
from scipy.stats import chisquare

from tests.chat_tokenizers import tokenizer
from tests.toy_models import write_random_llama
from training import engines, games
from training.engines.base import Sampling
from training.engines.scripted import BigramEngine, ScriptedEngine
from training.errors import EngineError
from training.games.qa_society import alone
from training.players.limited import ActionScorer, LimitedPlayer, opening, probabilities
from training.records import Action, Argument, Scenario
from training.rollout import RolloutPolicy, play
from training.text.parsing import parse
from training.text.template import ChatTokenizer

SCENARIO = alone(
    Scenario(
        id="paws", game="qa_society", settings={"question": "Who holds paws?", "answers": ["otter"]}, seats=("Ann",)
    ),
    "animals",
)
SEARCH = Action(name="search", text="private")
ANSWER = Action(name="answer", text="private", args=(Argument(name="answer", kind="text"),))
CHAT = ChatTokenizer(tokenizer("chatml"))


class Six:
    """A vocabulary of six tokens, in which actions share their first token and differ in length."""

    def encode(self, text):
        return {"<search/>": [1, 2], "<answer>": [1, 3], "<hedge>": [1, 4, 5]}[text]


def test_an_actions_probability_is_its_share_of_all_sequences_that_begin_with_an_action():
    table = np.random.default_rng(0).normal(0, 2, (6, 6))
    hedge = ANSWER.model_copy(update={"name": "hedge"})
    logprobs = asyncio.run(ActionScorer(BigramEngine(table), Six())([0], [SEARCH, ANSWER, hedge]))
    policy = np.exp(table) / np.exp(table).sum(1, keepdims=True)
    mass = Counter()
    for sequence in product(range(6), repeat=4):
        chance = np.prod([policy[last, token] for last, token in zip((0, *sequence), sequence, strict=False)])
        for name, head in (("search", (1, 2)), ("answer", (1, 3)), ("hedge", (1, 4, 5))):
            mass[name] += chance * (sequence[: len(head)] == head)
    assert {name: np.exp(value) for name, value in logprobs.items()} == pytest.approx(dict(mass))
    assert probabilities(logprobs) == pytest.approx({name: each / mass.total() for name, each in mass.items()})


@pytest.mark.parametrize("name", ["transformers", pytest.param("vllm", marks=pytest.mark.vllm)])
def test_every_engine_scores_actions_as_a_forward_pass_over_their_texts_does(name, tmp_path):
    if name == "vllm":
        pytest.importorskip("vllm", reason="vLLM is not installed: neither its CPU nor its GPU build")
    from transformers import AutoModelForCausalLM

    folder = write_random_llama(tmp_path / "model", window=2048)
    from training.engines.local.loading import load_tokenizer

    chat = ChatTokenizer(load_tokenizer(folder))
    actions = games.make(SCENARIO).observe(0).actions
    prompts = [chat.encode(f"Question {number}: {'why ' * number}") for number in range(5)]
    engine = engines.make(name, folder, cache_gib=0.05)

    async def score():
        scorer = ActionScorer(engine, chat)
        try:
            return await asyncio.gather(*(scorer(prompt, actions) for prompt in prompts))
        finally:
            await engine.close()

    model = AutoModelForCausalLM.from_pretrained(folder)
    for prompt, logprobs in zip(prompts, asyncio.run(score()), strict=True):
        for action in actions:
            head = chat.encode(opening(action))
            with torch.no_grad():
                table = model(torch.tensor([[*prompt, *head]])).logits[0].double().log_softmax(-1)
            expected = sum(float(table[len(prompt) - 1 + at, token]) for at, token in enumerate(head))
            assert logprobs[action.name] == pytest.approx(expected, abs=1e-3)


def test_probabilities_at_a_temperature_are_a_softmax_and_greedy_is_certain():
    logprobs = {"a": np.log(0.1), "b": np.log(0.3)}
    assert probabilities(logprobs) == pytest.approx({"a": 0.25, "b": 0.75})
    assert probabilities(logprobs, 0.5) == pytest.approx({"a": 0.1, "b": 0.9})
    assert probabilities(logprobs, 0) == {"a": 0.0, "b": 1.0}
    assert probabilities({"a": -1000.0, "b": -2000.0}) == pytest.approx({"a": 1, "b": 0})


class Weighted(ScriptedEngine):
    """Writes one text, and scores the beginnings of actions with these probabilities."""

    def __init__(self, text="otter</answer>", **weights):
        super().__init__(lambda request: self.write(request, text))
        self.weights, self.asked, self.scored = weights, [], []

    def write(self, request, text):
        self.asked.append(request)
        tokens = CHAT.encode(text)
        for end in range(1, len(tokens)):
            if any(stop in CHAT.decode(tokens[:end]) for stop in request.sampling.stop):
                return tokens[:end]
        return tokens

    async def score(self, prefix, continuations):
        self.scored.append(tuple(prefix))
        names = [CHAT.decode(tokens).strip("</>") for tokens in continuations]
        return [float(np.log(self.weights[name])) for name in names]


def player(engine, **options):
    sampling = options.pop("sampling", Sampling(max_tokens=64))
    return LimitedPlayer(engine, CHAT, sampling, seat=0, names=SCENARIO.seats, **options)


def reply(engine, seed=0, **options):
    return asyncio.run(player(engine, **options).act(0, games.make(SCENARIO).observe(0), seed)).text


def test_the_text_of_the_drawn_action_is_sampled_after_its_opening_tag():
    engine = Weighted(search=1e-9, answer=1.0, hedge=1e-9)
    assert reply(engine) == "<answer>otter</answer>"
    [asked] = engine.asked
    assert CHAT.decode(asked.prompt).endswith("assistant\n<answer>")
    assert asked.sampling.stop == ("</answer>",)


def test_an_action_without_text_costs_no_sample():
    engine = Weighted(search=1.0, answer=1e-9, hedge=1e-9)
    assert reply(engine) == "<search/>"
    assert engine.asked == []


@pytest.mark.parametrize(
    "text, finish", [("otter", "length"), ("otter<|im_end|>", "stop"), ("otter</answer> and more", "stop")]
)
def test_the_tag_is_closed_where_the_model_does_not_close_it(text, finish):
    engine = Weighted(text, search=1e-9, answer=1.0, hedge=1e-9)
    seat = player(engine)
    observation = games.make(SCENARIO).observe(0)
    written = asyncio.run(seat.act(0, observation, 0)).text
    move, private = parse(written, observation)
    assert (move.action, move.args, private) == ("answer", {"answer": "otter"}, "")
    [trace] = seat.traces()
    assert len(trace.tokens) == len(trace.logprobs) == len(trace.mask)
    assert trace.tokens[-1] == CHAT.end_id or text.startswith("otter</answer>")


def test_actions_are_drawn_by_their_probabilities_at_the_sampling_temperature():
    weights = {"search": 0.02, "answer": 0.05, "hedge": 0.03}
    for temperature, expected in ((1.0, [0.2, 0.5, 0.3]), (0.5, [4 / 38, 25 / 38, 9 / 38])):
        engine = Weighted("otter", **weights)
        sampling = Sampling(max_tokens=64, temperature=temperature)
        names = Counter(reply(engine, seed, sampling=sampling)[1:4] for seed in range(600))
        counts = [names["sea"], names["ans"], names["hed"]]
        assert chisquare(counts, [600 * share for share in expected]).pvalue > 1e-3


def test_an_order_limits_each_reply_and_leaves_the_measured_probabilities_whole():
    measured = []
    engine = Weighted("otter</answer>", search=0.1, answer=0.9, hedge=1e-12)
    seat = player(engine, order=(("search",), ("answer", "hedge")), on_first=measured.append)

    async def nothing(game):
        return game.default(game.scenario.tool_seat)

    episode = asyncio.run(play(SCENARIO, [seat], rules=RolloutPolicy(seed=1), tool=nothing))
    assert [entry.move.action for entry in episode.moves] == ["search", "nothing", "answer"]
    assert episode.metrics["f1"] == 1
    assert [{name: np.exp(value) for name, value in each.items()} for each in measured] == [
        pytest.approx({"search": 0.1, "answer": 0.9, "hedge": 1e-12})
    ]


def test_an_order_of_which_nothing_is_offered_limits_nothing():
    assert reply(Weighted(search=1.0, answer=1e-9, hedge=1e-9), order=(("ask",),)) == "<search/>"


def test_players_that_share_a_scorer_ask_for_a_prompt_once():
    engine = Weighted(search=1e-9, answer=1.0, hedge=1e-9)
    scorer = ActionScorer(engine, CHAT)

    async def both():
        observation = games.make(SCENARIO).observe(0)
        seats = [player(engine, scorer=scorer) for _ in range(2)]
        return await asyncio.gather(*(seat.act(0, observation, 0) for seat in seats))

    assert len(asyncio.run(both())) == 2
    assert len(engine.scored) == 1


def test_a_reply_needs_room_for_its_tags():
    with pytest.raises(EngineError, match="leaves no room between <answer> and </answer>"):
        reply(Weighted(search=1e-9, answer=1.0, hedge=1e-9), sampling=Sampling(max_tokens=8))
