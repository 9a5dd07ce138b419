"""What every engine must do, over the registry, a split engine, a pool of two and the table engine; log-probs against a
second implementation.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
import torch
from peft import PeftModel
from transformers import AutoModelForCausalLM

from tests.toy_models import write_adapter, write_random_llama
from training import engines
from training.cli.parser import build
from training.cluster import processes
from training.cluster.supervisor import ProcessOptions
from training.engines.base import Engine, SampleRequest, Sampling
from training.engines.choice import REGISTRY, choose
from training.engines.pool import EnginePool
from training.engines.scripted import BigramEngine
from training.errors import BadInput, EngineError
from training.run_sections import EngineSection

GAP = 1e-3
"""The bar between engine and trainer in float32 (nats)."""
STOP = 2
SPLIT = "vllm, split"
MODELS = [pytest.param(n, marks=pytest.mark.vllm) if n.startswith("vllm") else n for n in (*REGISTRY, SPLIT)]
POOL = pytest.param("pool", marks=pytest.mark.process)


@dataclasses.dataclass
class Case:
    """An engine with a second implementation of its policy: `logits(tokens)` [n, V] predict what follows each."""

    make: Callable[..., Engine]
    logits: Callable[[Sequence[int]], np.ndarray]
    changed: Callable[[], list[tuple[str, Any]]]
    logits_changed: Callable[[Sequence[int]], np.ndarray]
    folder: Path | None = None
    adapted: Callable[[Path], Callable[[Sequence[int]], np.ndarray]] | None = None

    @cached_property
    def engine(self):
        """The engine of all tests; a test that deletes it leaves the next one another."""
        return self.make()

    def logprobs(self, prompt, tokens, temperature=1.0, *, changed=False):
        rows = (self.logits_changed if changed else self.logits)([*prompt, *tokens])
        scaled = rows.astype(np.float64) / temperature
        scaled -= scaled.max(-1, keepdims=True)
        logprobs = scaled - np.log(np.exp(scaled).sum(-1, keepdims=True))
        return np.array([logprobs[len(prompt) - 1 + at, token] for at, token in enumerate(tokens)])


def model_case(name, folder):

    plain = AutoModelForCausalLM.from_pretrained(folder)
    other = AutoModelForCausalLM.from_pretrained(folder)
    with torch.no_grad():
        for parameter in other.parameters():
            parameter.mul_(1.3)

    def forward(model):
        @torch.no_grad()
        def logits(tokens):
            return model(torch.tensor([list(tokens)])).logits[0].numpy()

        return logits

    def make(**more):
        options = {"max_running": 8, "cache_gib": 0.05, "choices": True, **more}
        if name == "pool":
            return EnginePool("transformers", folder, ProcessOptions(count=2, threads=1), **options)
        if name == SPLIT:
            return engines.make("vllm", folder, tensor_parallel=2, **options)
        return engines.make(name, folder, **options)

    def adapted(adapter):
        return forward(
            PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained(folder), adapter).merge_and_unload()
        )

    changed = list(other.named_parameters())
    return Case(make, forward(plain), lambda: changed, forward(other), folder, adapted)


def table_case():
    table = np.random.default_rng(0).normal(0, 2, (40, 40))

    def make():
        return BigramEngine(table)

    return Case(make, lambda t: table[list(t)], lambda: [("logits", table * 1.3)], lambda t: 1.3 * table[list(t)])


@pytest.mark.parametrize("name", ["auto", *REGISTRY])
def test_the_command_of_questions_offers_every_engine(name):
    parsed = build().parse_args(["questions", "a.jsonl", "--model", "tiny", "--dir", "out", "--engine", name])
    assert parsed.engine == name


@pytest.fixture(scope="module", params=[*MODELS, POOL, "bigram"])
def case(request, tmp_path_factory):
    name = request.param
    if name == "bigram":
        built = table_case()
    else:
        if name == "pool":
            cluster = processes.start()
        if name != "pool":
            package = REGISTRY[name.partition(",")[0]].package
            pytest.importorskip(package, reason=f"{package} is not installed")
        built = model_case(name, write_random_llama(tmp_path_factory.mktemp("toy") / "model"))
    yield built
    if "engine" in vars(built):
        asyncio.run(built.engine.close())
    if name == "pool":
        cluster.stop()


def ask(index=0, **sampling):
    length = 3 + 5 * index
    prompt = [3 + (index + 7 * at) % 37 for at in range(length)]
    return SampleRequest(prompt, Sampling(**{"max_tokens": 12 + index, **sampling}), seed=index, stop_token_ids=(STOP,))


async def sample_all(engine, requests):
    return await asyncio.gather(*(engine.sample(request) for request in requests))


async def test_samples_have_the_promised_shape(case):
    requests = [ask(i) for i in range(10)]
    for request, sample in zip(requests, await sample_all(case.engine, requests), strict=True):
        assert 1 <= len(sample.tokens) == len(sample.logprobs) <= request.sampling.max_tokens
        assert (sample.finish == "stop") == (sample.tokens[-1] == STOP)
        assert STOP not in sample.tokens[:-1]
        assert sample.finish == "stop" or len(sample.tokens) == request.sampling.max_tokens
        assert max(sample.logprobs) <= 0
        assert sample.discarded == pytest.approx(0, abs=1e-9)


async def test_stop_tokens_end_a_sample_and_belong_to_it(case):
    free = await case.engine.sample(dataclasses.replace(ask(1), stop_token_ids=()))
    stop = free.tokens[5]
    first = free.tokens.index(stop)
    sample = await case.engine.sample(dataclasses.replace(ask(1), stop_token_ids=(stop,)))
    assert sample.tokens == free.tokens[: first + 1]
    assert sample.finish == "stop"


@pytest.mark.parametrize("temperature", [1.0, 0.6])
async def test_logprobs_are_those_of_the_sampling_distribution(case, temperature):
    requests = [ask(i, temperature=temperature) for i in range(12)]
    for request, sample in zip(requests, await sample_all(case.engine, requests), strict=True):
        expected = case.logprobs(request.prompt, sample.tokens, temperature)
        assert np.abs(expected - sample.logprobs).max() <= GAP


async def test_logprobs_stay_whole_under_top_p_and_top_k_and_the_cut_mass_is_reported(case):
    request = ask(2, temperature=0.8, top_k=5, top_p=0.8, max_tokens=20)
    sample = await case.engine.sample(request)
    assert np.abs(case.logprobs(request.prompt, sample.tokens, 0.8) - sample.logprobs).max() <= GAP
    assert 0.02 < sample.discarded < 0.98
    likeliest = await case.engine.sample(ask(2, temperature=0.8, top_k=1, max_tokens=5))
    greedy = await case.engine.sample(ask(2, temperature=0.0, max_tokens=5))
    assert likeliest.tokens == greedy.tokens
    assert greedy.logprobs == (0.0,) * len(greedy.tokens)
    masses = 1 - np.exp(case.logprobs(ask(2).prompt, likeliest.tokens, 0.8))
    assert likeliest.discarded == pytest.approx(masses.mean(), abs=GAP)


async def test_seeds_decide_whatever_the_company_and_the_order(case):
    requests = [ask(i) for i in range(20)]
    together = await sample_all(case.engine, requests)
    alone = [await case.engine.sample(request) for request in requests[:6]]
    backwards = await sample_all(case.engine, requests[::-1])
    assert [s.tokens for s in together[:6]] == [s.tokens for s in alone]
    assert [s.tokens for s in together] == [s.tokens for s in backwards[::-1]]
    other = await sample_all(case.engine, [dataclasses.replace(r, seed=r.seed + 1000) for r in requests])
    assert [s.tokens for s in together] != [s.tokens for s in other]


async def test_samples_follow_the_distribution(case):
    """First tokens of 600 seeds against the exact probabilities: chi-square over the likeliest tokens."""
    requests = [dataclasses.replace(ask(0, max_tokens=1), seed=seed) for seed in range(600)]
    firsts = [sample.tokens[0] for sample in await sample_all(case.engine, requests)]
    probs = np.exp([case.logprobs(ask(0).prompt, [t])[0] for t in range(len(case.logits([3])[0]))])
    top = np.argsort(-probs)[:6]
    expected = np.array([*(600 * probs[top]), 600 * (1 - probs[top].sum())])
    counts = [firsts.count(int(t)) for t in top]
    counts.append(600 - sum(counts))
    statistic = float((((np.array(counts) - expected) ** 2) / np.maximum(expected, 1e-9)).sum())
    assert statistic < 24.3  # 0.05 % quantile of chi-square with 6 degrees of freedom


CHOICES = ((5, STOP), (5, 6, STOP), (7, 8, 9, STOP), (7, 8, 5, STOP), (11, 8, STOP))


def limited(index=0, seed=0, **sampling):
    """A request that may be answered by `CHOICES` only."""
    return dataclasses.replace(ask(index, **sampling), choices=CHOICES, seed=seed)


def chances(case, prompt, temperature):
    """Log-probability of every token of every choice: softmax over the tokens that continue any, from plain logits."""
    rows = {}
    for choice in CHOICES:
        rows[choice] = []
        for at, token in enumerate(choice):
            allowed = {other[at] for other in CHOICES if other[:at] == choice[:at] and len(other) > at}
            logits = case.logits([*prompt, *choice[:at]])[-1].astype(np.float64) / temperature
            rows[choice].append(logits[token] - np.log(sum(np.exp(logits[other]) for other in allowed)))
    return rows


@pytest.mark.parametrize("temperature", [1.0, 0.6])
async def test_choices_are_sampled_from_the_policy_renormalised_over_what_continues_them(case, temperature):
    request = limited(temperature=temperature)
    rows = chances(case, request.prompt, temperature)
    assert sum(np.exp(sum(row)) for row in rows.values()) == pytest.approx(1)
    requests = [dataclasses.replace(request, seed=seed) for seed in range(400)]
    samples = await sample_all(case.engine, requests)
    for sample in samples:
        assert sample.finish == "stop"
        assert np.abs(np.array(rows[sample.tokens]) - sample.logprobs).max() <= GAP
    expected = np.array([400 * np.exp(sum(rows[choice])) for choice in CHOICES])
    counts = np.array([sum(sample.tokens == choice for sample in samples) for choice in CHOICES])
    assert float(((counts - expected) ** 2 / expected).sum()) < 20  # 0.05 % quantile of chi-square, 4 degrees


async def test_what_shapes_free_replies_does_not_touch_choices(case):
    plain = [limited(seed=seed) for seed in range(20)]
    shaped = [limited(seed=seed, top_k=1, top_p=0.1, stop=("a", "e", "i")) for seed in range(20)]
    samples = await sample_all(case.engine, shaped)
    assert [s.tokens for s in samples] == [s.tokens for s in await sample_all(case.engine, plain)]
    assert len({s.tokens for s in samples}) > 1
    assert [s.discarded for s in samples] == [pytest.approx(0, abs=1e-9)] * 20
    rows = chances(case, plain[0].prompt, 1.0)
    greedy = await case.engine.sample(limited(temperature=0.0))
    firsts = {choice[0]: row[0] for choice, row in rows.items()}
    assert greedy.tokens[0] == max(firsts, key=firsts.__getitem__)
    assert greedy.logprobs == (0.0,) * len(greedy.tokens)


async def test_free_replies_beside_choices_stay_what_they_are(case):
    free = [ask(i) for i in range(6)]
    alone = await sample_all(case.engine, free)
    mixed = await sample_all(case.engine, [r for i in range(6) for r in (free[i], limited(i, seed=i))])
    assert [s.tokens for s in mixed[::2]] == [s.tokens for s in alone]
    assert {s.tokens for s in mixed[1::2]} <= set(CHOICES)


@pytest.mark.parametrize(
    "choices, why",
    [
        (((5, 6),), "stop token at its end"),
        (((5, STOP, 6, STOP),), "and there alone"),
        (((),), "stop token at its end"),
        (((5,) * 30 + (STOP,),), "31 tokens is longer than max_tokens, 12"),
    ],
)
async def test_choices_that_are_no_whole_replies_are_refused(case, choices, why):
    with pytest.raises(EngineError, match=why):
        await case.engine.sample(dataclasses.replace(ask(), choices=choices))


async def test_a_growing_conversation_keeps_its_logprobs(case):
    """Later turns start from cached keys and values; they must not show."""
    prompts = [list(ask(i).prompt) for i in range(6)]
    for turn in range(4):
        requests = [
            SampleRequest(prompt, Sampling(max_tokens=6 + i), seed=100 * turn + i) for i, prompt in enumerate(prompts)
        ]
        for prompt, sample in zip(prompts, await sample_all(case.engine, requests), strict=True):
            assert np.abs(case.logprobs(prompt, sample.tokens) - sample.logprobs).max() <= GAP
            prompt += [*sample.tokens, 5, 6, 7]


async def test_scores_are_summed_logprobs_at_temperature_one(case):
    prefix = list(ask(2).prompt)
    continuations = [[4, 5, 6], [7], [], [8, 9, 10, 11, 12]]
    scores = await case.engine.score(prefix, continuations)
    expected = [case.logprobs(prefix, c).sum() if c else 0.0 for c in continuations]
    assert scores == pytest.approx(expected, abs=5 * GAP)
    assert await case.engine.score(prefix, []) == []


async def test_scores_are_the_same_whatever_was_read_before(case):
    """The prefix has been read, and more than it: continuations that other prompts contained are scored, too."""
    prefix = [3 + 7 * at % 37 for at in range(380)]
    common = [4, 5, 6, 4, 5, 6]  # up to token 386: whole blocks of 16 to 128 tokens end at token 384
    continuations = [[*common, 7, 8], [*common, 9], common[:4], [30, 4]]
    expected = [case.logprobs(prefix, tokens).sum() for tokens in continuations]
    fresh = await case.engine.score(prefix, continuations)
    prompts = [prefix, [*prefix, *continuations[0], 5, 5], [*prefix, *continuations[3]]]
    await sample_all(case.engine, [SampleRequest(prompt, Sampling(max_tokens=4), seed=1) for prompt in prompts])
    again = await case.engine.score(prefix, continuations)
    together = await asyncio.gather(*(case.engine.score(prefix, [tokens]) for tokens in continuations))
    shorter = await case.engine.score(prefix[:374], [[*prefix[374:], *continuations[1]]])
    assert fresh == pytest.approx(expected, abs=5 * GAP)
    assert again == pytest.approx(expected, abs=5 * GAP)
    assert [score for [score] in together] == pytest.approx(expected, abs=5 * GAP)
    assert shorter == pytest.approx([case.logprobs(prefix[:374], [*prefix[374:], *continuations[1]]).sum()], abs=0.02)


async def test_requests_that_cannot_be_answered_raise_and_harm_nobody(case):
    bad = dataclasses.replace(ask(0), prompt=[])
    results = await asyncio.gather(case.engine.sample(bad), case.engine.sample(ask(1)), return_exceptions=True)
    assert isinstance(results[0], EngineError)
    assert len(results[1].tokens) > 0
    with pytest.raises(EngineError):
        await case.engine.score([], [[1]])


async def test_a_full_window_ends_a_sample_and_a_prompt_beyond_it_is_an_error(case):
    window = getattr(case.engine, "window", None)
    if window is None:
        pytest.skip("a table has no window")
    sample = await case.engine.sample(SampleRequest([5] * (window - 3), Sampling(max_tokens=50), seed=1))
    assert len(sample.tokens) == 3
    assert sample.finish == "length"
    with pytest.raises(EngineError, match="window"):
        await case.engine.sample(SampleRequest([5] * window, Sampling(max_tokens=50), seed=1))
    with pytest.raises(EngineError, match="window"):  # the longest choice would not fit
        await case.engine.sample(dataclasses.replace(limited(), prompt=[5] * (window - 3)))


async def test_stop_strings_end_a_sample(case):
    if not hasattr(case.engine, "window"):
        pytest.skip("a table has no text")
    request = SampleRequest([5, 6, 7], Sampling(max_tokens=300, stop=("a",)), seed=4)
    sample = await case.engine.sample(request)
    free = await case.engine.sample(dataclasses.replace(request, sampling=Sampling(max_tokens=300)))
    letter = 3 + sorted({*range(33, 127), *range(161, 173), *range(174, 256), *range(256, 324)}).index(ord("a"))
    assert sample.finish == "stop"
    assert sample.tokens == free.tokens[: free.tokens.index(letter) + 1]


async def test_a_cancelled_request_leaves_the_others_alone(case):
    requests = [ask(i, max_tokens=60) for i in range(5)]
    expected = await sample_all(case.engine, requests)
    tasks = [asyncio.create_task(case.engine.sample(request)) for request in requests]
    await asyncio.sleep(0)
    tasks[2].cancel()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert isinstance(results[2], asyncio.CancelledError)
    for index in (0, 1, 3, 4):
        assert results[index].tokens == expected[index].tokens


async def test_adapters_are_policies_beside_the_weights_that_do_not_mix(case, tmp_path):
    """Of interleaved requests each has the log-probabilities of the model into which its adapter is merged."""
    if case.folder is None:
        pytest.skip("a table has no adapters")
    folders = {f"a{rank}": write_adapter(case.folder, tmp_path / f"a{rank}", rank, seed=rank) for rank in (2, 4, 8)}
    policies = {"": case.logits, **{name: case.adapted(folder) for name, folder in folders.items()}}
    engine = case.make(adapters=2, adapter_rank=8)

    async def check(*names):
        greedy = [dataclasses.replace(ask(i, temperature=0.0), adapter=name) for i in range(3) for name in names]
        warm = [dataclasses.replace(ask(i), adapter=name) for i in range(3) for name in names]
        samples = await sample_all(engine, [*greedy, *warm])
        for request, sample in zip([*greedy, *warm], samples, strict=True):
            rows = policies[request.adapter]([*request.prompt, *sample.tokens])[len(request.prompt) - 1 : -1]
            if not request.sampling.temperature:
                assert rows.argmax(-1).tolist() == list(sample.tokens)
            else:
                logprobs = rows - np.log(np.exp(rows).sum(-1, keepdims=True))
                expected = [row[token] for row, token in zip(logprobs, sample.tokens, strict=True)]
                assert np.abs(np.array(expected) - sample.logprobs).max() <= GAP
        assert len({sample.tokens for sample in samples[: len(names)]}) == len(names), "the policies differ"
        for name in names:
            rows = policies[name]([*ask(2).prompt, 4, 5])[len(ask(2).prompt) - 1 : -1]
            logprobs = rows - np.log(np.exp(rows).sum(-1, keepdims=True))
            [score] = await engine.score(ask(2).prompt, [[4, 5]], name)
            assert score == pytest.approx(logprobs[0][4] + logprobs[1][5], abs=5 * GAP)

    try:
        with pytest.raises(BadInput, match="this engine has no adapter 'a2'"):
            await engine.sample(dataclasses.replace(ask(0), adapter="a2"))
        await engine.load_adapters({name: folders[name] for name in ("a2", "a8")})
        await check("", "a2", "a8")
        await engine.load_adapters({"a2": folders["a4"], "a8": folders["a8"]})  # another one by a known name
        policies["a2"] = policies["a4"]
        await check("", "a2", "a8")
        with pytest.raises(BadInput, match="this engine has no adapter 'a4'"):
            await engine.sample(dataclasses.replace(ask(0), adapter="a4"))
        with pytest.raises(BadInput, match="3 adapters are more than the engine was made for: 2"):
            await engine.load_adapters(folders)
        with pytest.raises(BadInput, match="no plain LoRA adapter"):
            await engine.load_adapters({"model": case.folder})
        with pytest.raises(EngineError, match="keeps its weights"):
            await engine.load_weights(case.changed())
    finally:
        await engine.close()


async def test_new_weights_wait_for_samples_and_change_the_distribution_until_the_engine_is_closed(case):
    engine = case.engine
    try:
        request = ask(3, max_tokens=40)
        before = await engine.sample(request)
        running = [asyncio.create_task(engine.sample(ask(i, max_tokens=40))) for i in range(4)]
        await asyncio.sleep(0)
        load = asyncio.create_task(engine.load_weights(case.changed(), 7))
        await asyncio.sleep(0)
        later = asyncio.create_task(engine.sample(ask(5)))
        await load
        for index, task in enumerate(running):
            earlier = await task
            expected = case.logprobs(ask(index).prompt, earlier.tokens, changed=earlier.version == 7)
            assert np.abs(expected - earlier.logprobs).max() <= GAP  # of one policy or the other, never a mixture
        after = await engine.sample(request)
        assert before.version is None
        for asked, sample in ((ask(5), await later), (request, after)):
            assert sample.version == 7
            expected = case.logprobs(asked.prompt, sample.tokens, changed=True)
            assert np.abs(expected - sample.logprobs).max() <= GAP
        assert np.abs(case.logprobs(request.prompt, before.tokens, changed=True) - before.logprobs).max() > 10 * GAP
        with pytest.raises(EngineError, match=r"nonsense|named logits"):
            await engine.load_weights([("nonsense", torch.zeros(2, 2))])
    finally:
        del case.engine
        await engine.close()
    await engine.close()
    if hasattr(engine, "window"):
        with pytest.raises(EngineError, match="closed"):
            await engine.sample(ask(0))


def test_unknown_engines_and_models_are_bad_input(tmp_path):
    with pytest.raises(BadInput, match=r"unknown engine 'nope'; known: auto, vllm"):
        engines.make("nope", tmp_path)
    with pytest.raises(BadInput, match=r"config\.json"):
        engines.make("transformers", tmp_path)
    assert choose("auto") in REGISTRY


def test_a_configuration_can_name_every_engine():
    assert get_args(EngineSection.model_fields["name"].annotation) == ("auto", *REGISTRY)
