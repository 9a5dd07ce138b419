"""The Transformers engine's own parts: drawing by hand, the prefix store, joining batches, the same bits twice."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest
import torch
from transformers import LlamaConfig, MistralConfig, Phi3Config, Qwen2Config, Qwen3MoeConfig

from tests.toy_models import write_random_llama
from training import engines
from training.engines.base import EngineOptions, SampleRequest, Sampling
from training.engines.local.draw import Settings, draw
from training.engines.local.kv import BLOCK, PrefixStore, RowCache, Shape
from training.engines.local.loading import load_merged
from training.engines.local.transformers import READ_TOKENS, TransformersEngine, alike, check_attention
from training.errors import BadInput, EngineError

LOGITS = torch.tensor([0.4, 0.3, 0.2, 0.1]).log().unsqueeze(0)


def drawn(uniform, temperature=1.0, top_k=0, top_p=1.0):
    settings = Settings(torch.tensor([temperature]), torch.tensor([top_k]), torch.tensor([top_p], dtype=torch.float64))
    token, logprob, discarded = draw(LOGITS, settings, torch.tensor([uniform], dtype=torch.float64))
    return int(token), float(logprob.exp()), float(discarded)


@pytest.mark.parametrize("uniform,token", [(0.0, 0), (0.39, 0), (0.41, 1), (0.69, 1), (0.71, 2), (0.95, 3)])
def test_a_token_is_where_the_uniform_number_falls(uniform, token):
    assert drawn(uniform) == pytest.approx((token, [0.4, 0.3, 0.2, 0.1][token], 0.0), abs=1e-6)


def test_temperature_two_takes_square_roots():
    roots = torch.tensor([0.4, 0.3, 0.2, 0.1]).sqrt()
    assert drawn(0.0, temperature=2.0)[1] == pytest.approx(float(roots[0] / roots.sum()), abs=1e-6)


@pytest.mark.parametrize(
    "top_k,top_p,last,cut",
    [(2, 1.0, 1, 0.3), (0, 0.5, 1, 0.3), (0, 0.39, 0, 0.6), (3, 0.5, 1, 0.3), (1, 1.0, 0, 0.6), (0, 0.95, 3, 0.0)],
)
def test_tokens_that_are_cut_are_never_drawn_and_their_mass_is_reported(top_k, top_p, last, cut):
    token, logprob, discarded = drawn(0.999999, top_k=top_k, top_p=top_p)
    assert token == last
    assert logprob == pytest.approx([0.4, 0.3, 0.2, 0.1][last], abs=1e-6)  # whole, not renormalised
    assert discarded == pytest.approx(cut, abs=1e-6)


def test_greedy_takes_the_likeliest_with_certainty():
    assert drawn(0.99, temperature=0.0) == (0, 1.0, 0.0)


def test_rows_do_not_mix():
    logits = torch.randn(5, 50, generator=torch.Generator().manual_seed(0))
    settings = Settings(
        torch.tensor([1.0, 0.5, 0.0, 2.0, 1.0]),
        torch.tensor([0, 3, 0, 10, 0]),
        torch.tensor([1.0, 0.9, 1.0, 1.0, 0.3], dtype=torch.float64),
    )
    uniform = torch.rand(5, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    together = draw(logits, settings, uniform)
    for row in range(5):
        part = slice(row, row + 1)
        alone = draw(logits[part], Settings(*(values[part] for values in settings)), uniform[part])
        assert torch.equal(together.tokens[part], alone.tokens)
        assert torch.equal(together.logprobs[part], alone.logprobs)
        torch.testing.assert_close(together.discarded[part], alone.discarded, rtol=0, atol=1e-6)


def entry(tokens):
    """Keys and values that tell the tokens they belong to: [1, 2, 1, tokens, 8], 64 bytes a token."""
    return torch.tensor(tokens, dtype=torch.float32).reshape(1, 1, 1, -1, 1).expand(1, 2, 1, -1, 8).clone()


def known(store, tokens):
    """What the store knows of `tokens`, as tokens."""
    cached = store.find(tokens)
    return [] if cached is None else cached[0, 0, 0, :, 0].int().tolist()


def test_the_store_finds_the_longest_start_and_forgets_the_oldest():
    rules = list(range(BLOCK + 1))
    store = PrefixStore(capacity=64 * (3 * BLOCK + 9))
    first, second = [*rules, 70, 71], [*rules, *range(80, 80 + BLOCK)]
    store.put(first, entry(first))
    store.put(second, entry(second))
    assert known(store, [*first, 5]) == first[: BLOCK + 1]  # the newest that begins so; the rest is less than a block
    assert known(store, [*second, 5]) == second
    assert known(store, second) == second[:-1]  # one token must be left to read
    assert known(store, [*rules, 99, 99]) == rules  # another's start is as good
    assert known(store, [1, *second]) == []
    assert known(store, rules[:BLOCK]) == []
    third = list(range(200, 200 + BLOCK))
    store.put(third, entry(third))  # the first must go
    assert known(store, [*second, 5]) == second
    assert known(store, [*third, 5]) == third
    fourth = list(range(300, 300 + 2 * BLOCK))
    store.put(fourth, entry(fourth))  # the second, too
    assert known(store, [*second, 5]) == []
    assert known(store, [*fourth, 5]) == fourth
    big = list(range(400, 400 + 8 * BLOCK))
    store.put(big, entry(big))
    assert known(store, [*big, 5]) == []  # larger than the whole store
    assert known(store, [*fourth, 5]) == fourth
    store.clear()
    assert known(store, [*fourth, 5]) == []


def test_starts_of_equal_hash_are_distinguished(monkeypatch):
    monkeypatch.setattr("training.engines.local.kv._starts", lambda tokens: iter([7] * (len(tokens) // BLOCK)))
    store = PrefixStore(capacity=10_000)
    first, other = list(range(BLOCK)), list(range(50, 50 + BLOCK))
    store.put(first, entry(first))
    assert known(store, [*other, 5]) == []


def test_rows_that_are_kept_move_within_the_table():
    """The memory of a second table would be missing where the first fills most of it."""
    tokens = [[1, 2, 3], [4], [5, 6, 7, 8], [9, 10]]
    cache = RowCache(Shape(1, 1, 8), [entry(row) for row in tokens], 6, torch.zeros(1))
    memory = cache._table.untyped_storage().data_ptr()
    for rows in ([0, 2, 3], [1, 2]):
        cache.keep(rows)
        tokens = [tokens[row] for row in rows]
        assert [cache.row(index)[0, 0, 0, :, 0].tolist() for index in range(len(rows))] == tokens
        assert cache.lengths == [len(row) for row in tokens]
        seen = cache.open(slice(None), torch.tensor([[length] for length in cache.lengths]), 5)
        assert seen.sum(-1).flatten().tolist() == [length + 1 for length in cache.lengths]
    assert tokens == [[5, 6, 7, 8], [9, 10]]
    assert cache._table.untyped_storage().data_ptr() == memory


def test_rows_are_read_together_with_rows_of_about_their_length():
    assert alike([9]) == [slice(0, 1)]
    assert alike([8, 5, 4, 3, 2, 1]) == [slice(0, 3), slice(3, 5), slice(5, 6)]
    assert alike([READ_TOKENS, 3000, READ_TOKENS // 2]) == [slice(0, 1), slice(1, 2), slice(2, 3)]
    assert alike([3 * READ_TOKENS, 9]) == [slice(0, 1), slice(1, 2)]  # read in pieces
    assert alike([1] * 5) == [slice(0, 5)]


@pytest.fixture
def toy(tmp_path):
    return write_random_llama(tmp_path / "toy")


def conversation(engine, seats=7, turns=3):
    """Growing conversations of different speeds, which join and leave batches; return every sample."""

    async def seat(index):
        prompt, samples = [3 + index] * (4 + 3 * index), []
        for turn in range(turns):
            sampling = Sampling(max_tokens=3 + 5 * ((index + turn) % 4))
            sample = await engine.sample(SampleRequest(prompt, sampling, seed=10 * index + turn))
            samples.append(sample)
            prompt += [*sample.tokens, 7, 8]
            for _ in range(index):
                await asyncio.sleep(0)
        return samples

    async def main():
        return await asyncio.gather(*(seat(index) for index in range(seats)))

    return asyncio.run(main())


def test_the_same_requests_in_the_same_order_give_the_same_bits(toy):
    first = conversation(TransformersEngine(toy, EngineOptions(max_running=4)))
    assert conversation(TransformersEngine(toy, EngineOptions(max_running=4))) == first
    engine = TransformersEngine(toy, EngineOptions(max_running=4, cache_gib=1e-5))  # nothing stored: all is read anew
    assert [[s.tokens for s in seat] for seat in conversation(engine)] == [[s.tokens for s in seat] for seat in first]


def test_long_prompts_read_in_pieces_change_nothing(toy, monkeypatch):
    first = conversation(TransformersEngine(toy))
    monkeypatch.setattr("training.engines.local.transformers.READ_TOKENS", 16)
    pieces = conversation(TransformersEngine(toy))
    assert [[s.tokens for s in seat] for seat in pieces] == [[s.tokens for s in seat] for seat in first]


def test_numbers_that_are_none_fail_the_requests_and_not_the_process(toy):
    engine = TransformersEngine(toy)
    weights = [(name, p.clone()) for name, p in engine._model.named_parameters()]
    weights[-1][1].fill_(float("nan"))

    async def main():
        await engine.load_weights(weights)
        asked = [engine.sample(SampleRequest([5, 6], Sampling(), seed)) for seed in range(3)]
        return await asyncio.gather(*asked, return_exceptions=True)

    results = asyncio.run(main())
    assert [type(result) for result in results] == [EngineError] * 3
    assert "not finite" in str(results[0])


def test_weights_come_from_a_folder_too_and_must_be_complete(toy, tmp_path):
    other = write_random_llama(tmp_path / "other", seed=1)
    engine, expected = TransformersEngine(toy), TransformersEngine(other)

    async def main():
        await engine.load_weights(other)
        return await engine.score([5], [[6, 7]]), await expected.score([5], [[6, 7]])

    logprobs, wanted = asyncio.run(main())
    assert logprobs == wanted
    fewer = TransformersEngine(toy)
    with pytest.raises(EngineError, match="no weights came for"):
        asyncio.run(fewer.load_weights(list(fewer._model.named_parameters())[:-1]))


def test_a_score_behind_what_was_sampled_reads_only_what_is_new(toy, monkeypatch):
    engine, fresh = TransformersEngine(toy), TransformersEngine(toy)
    names = [[7, 8, 9], [11], [12, 13]]

    async def main():
        sample = await engine.sample(SampleRequest([5] * 40, Sampling(max_tokens=4), 1))
        prefix = [*[5] * 40, *sample.tokens, 9, 9]
        read, forward = [], engine._model.forward

        def counted(*args, **more):
            read.append(more["input_ids"].shape[1])
            return forward(*args, **more)

        monkeypatch.setattr(engine._model, "forward", counted)
        scores = await engine.score(prefix, names)
        return scores, await fresh.score(prefix, names), list(read), await engine.score(prefix, names)

    logprobs, wanted, read, again = asyncio.run(main())
    assert logprobs == pytest.approx(wanted, abs=1e-4)
    # the token drawn last and the two behind it (43 were known), then the names without their last tokens: 2 + 0 + 1
    assert read == [6]
    assert again == logprobs  # scoring leaves the stored prefix as it was


@pytest.mark.parametrize(
    "choices, passes",
    [
        (((5, 6, 7, 2), (5, 8, 7, 2)), [4]),  # the prompt with the forced 5; whatever is drawn ends the reply
        (((5, 6, 7, 2), (5, 8, 7, 9, 2), (5, 8, 7, 4, 2)), [4, 2]),  # 8 and the forced 7 are read together
        (((5, 6, 7, 2),), []),
    ],
)
def test_forced_tokens_take_no_pass_of_their_own(toy, monkeypatch, choices, passes):
    engine, read = TransformersEngine(toy), []
    forward = engine._model.forward

    def counted(*args, **more):
        read.append(more["input_ids"].shape[1])
        return forward(*args, **more)

    monkeypatch.setattr(engine._model, "forward", counted)
    for seed in range(12):
        read.clear()
        request = SampleRequest([20, 21, 22], Sampling(max_tokens=5), seed, (2,), choices)
        sample = asyncio.run(engine.sample(request))
        if len(sample.tokens) == max(map(len, choices)):
            break
    assert len(sample.tokens) == len(sample.logprobs) == max(map(len, choices))
    assert read == passes


def test_what_was_forced_is_remembered_only_as_far_as_it_was_read(toy):
    """The second reply begins from the stored first one; its log-probabilities are those of a fresh engine."""
    engine, fresh = TransformersEngine(toy), TransformersEngine(toy)
    prompt = [5 + at % 30 for at in range(40)]
    choices = ((5, 6, 7, 9, 2), (5, 8, 7, 9, 2))

    async def main():
        first = await engine.sample(SampleRequest(prompt, Sampling(max_tokens=5), 1, (2,), choices))
        request = SampleRequest([*prompt, *first.tokens, 30, 31], Sampling(max_tokens=6), 2)
        return await engine.sample(request), await fresh.sample(request)

    later, wanted = asyncio.run(main())
    assert later.tokens == wanted.tokens
    assert later.logprobs == pytest.approx(wanted.logprobs, abs=1e-5)


def test_scores_that_are_asked_for_together_take_one_pass_and_are_those_of_each_alone(toy, monkeypatch):
    engine, alone = TransformersEngine(toy), TransformersEngine(toy)
    asked = [
        ([5] * 12, [[7, 8, 9], [11], [12, 13]]),  # its first eight tokens are stored
        ([3, 4], [[7, 8], [], [7, 8, 9]]),  # one of the continuations begins another
        ([9, 8, 7, 6, 5], [[]]),
        ([8, 8, 8], [[7, 9, 4], [7, 9, 5, 6], [7, 9]]),  # all begin alike, and the last is how the others begin
        ([6, 5] * 9, [[6, 5, 6, 5]]),
    ]

    async def main():
        await engine.sample(SampleRequest([5] * 8, Sampling(max_tokens=4), 1))
        read, forward = [], engine._model.forward

        def counted(*args, **more):
            read.append(tuple(more["input_ids"].shape))
            return forward(*args, **more)

        monkeypatch.setattr(engine._model, "forward", counted)
        return await asyncio.gather(*(engine.score(*each) for each in asked)), read

    scores, read = asyncio.run(main())
    assert len(read) == 2, "a long row and three short ones: padding is less than half"
    for (prefix, names), row in zip(asked, scores, strict=True):
        for name, score in zip(names, row, strict=True):
            assert score == pytest.approx(asyncio.run(plain(alone, prefix, name)), abs=1e-4)


async def plain(engine, prefix, name):
    """The log-probability of `name` from the model's logits for the whole sequence, without a cache."""
    ids = torch.tensor([[*prefix, *name]])
    with torch.no_grad():
        table = engine._model(input_ids=ids).logits[0].log_softmax(-1)
    return sum(float(table[len(prefix) + at - 1, token]) for at, token in enumerate(name))


def test_a_score_waits_for_new_weights_and_fails_with_a_closed_engine(toy, tmp_path):
    other = write_random_llama(tmp_path / "other", seed=1)
    engine, expected = TransformersEngine(toy), TransformersEngine(other)

    async def main():
        loading = asyncio.create_task(engine.load_weights(other))
        await asyncio.sleep(0)
        scores = await asyncio.wait_for(engine.score([5, 6], [[7]]), 30)
        await loading
        late = asyncio.create_task(engine.score([5, 6], [[7]]))
        await asyncio.sleep(0)
        await engine.close()
        return scores, await expected.score([5, 6], [[7]]), await asyncio.gather(late, return_exceptions=True)

    scores, wanted, [late] = asyncio.run(main())
    assert scores == wanted
    assert isinstance(late, EngineError)


def test_what_others_have_read_is_not_read_again(toy, monkeypatch):
    engine, fresh = TransformersEngine(toy), TransformersEngine(toy)
    rules = [5 + at % 30 for at in range(40)]

    async def main():
        await engine.sample(SampleRequest([*rules, 9, 9], Sampling(max_tokens=4), 1))
        read, forward = [], engine._model.forward

        def counted(*args, **more):
            read.append(more["input_ids"].shape[1])
            return forward(*args, **more)

        monkeypatch.setattr(engine._model, "forward", counted)
        request = SampleRequest([*rules, 8, 7, 6], Sampling(max_tokens=4), 2)
        return await engine.sample(request), await fresh.sample(request), read

    sample, wanted, read = asyncio.run(main())
    assert read[0] == 3
    assert sample.tokens == wanted.tokens
    assert sample.logprobs == pytest.approx(wanted.logprobs, abs=1e-5)


def test_models_with_windows_of_attention_are_refused(toy, monkeypatch):
    class Windowed:
        config = SimpleNamespace(layer_types=["full_attention", "sliding_attention"], max_position_embeddings=512)

        def to(self, device):
            return self

    monkeypatch.setattr("training.engines.local.transformers.load_merged", lambda model, dtype: Windowed())
    with pytest.raises(BadInput, match="sliding_attention needs the vllm engine"):
        engines.make("transformers", toy)


@pytest.mark.parametrize(
    "config",
    [
        MistralConfig(sliding_window=64),
        Phi3Config(sliding_window=64, pad_token_id=0),
        Qwen3MoeConfig(sliding_window=64, use_sliding_window=True),
        SimpleNamespace(attention_chunk_size=64),
    ],
    ids=lambda config: type(config).__name__,
)
def test_one_attention_window_for_all_layers_must_hold_the_longest_sequence(config):
    check_attention(config, 64)  # a token attends to 64, itself among them
    with pytest.raises(BadInput, match="64 is below the window of 65 tokens"):
        check_attention(config, 65)


@pytest.mark.parametrize(
    "config",
    [
        LlamaConfig(),
        MistralConfig(sliding_window=None),
        Qwen2Config(sliding_window=64, use_sliding_window=False),
        Qwen3MoeConfig(sliding_window=64, use_sliding_window=False),
    ],
    ids=lambda config: type(config).__name__,
)
def test_models_with_full_attention_are_accepted(config):
    check_attention(config, 32_768)


def test_the_engine_compares_its_own_window(toy, monkeypatch):
    def mistral(folder, dtype):
        model = load_merged(folder, dtype)
        model.config.sliding_window = 64
        return model

    monkeypatch.setattr("training.engines.local.transformers.load_merged", mistral)
    assert TransformersEngine(toy, EngineOptions(window=64)).window == 64
    with pytest.raises(BadInput, match="window of 512 tokens"):
        TransformersEngine(toy)
