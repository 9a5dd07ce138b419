"""Embeddings of turns against the model's own forward pass, and what is read before a turn."""

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM

from tests.toy_models import write_random_llama
from training.engines.local import embedding
from training.engines.local.embedding import Passage, batches, embed, embed_all, passages
from training.engines.pooling import Pooling
from training.errors import BadInput

TEXTS = ["first", "second turn", "", "a third one", "other talk", "ends"]
DIALOGUES = ["a", "a", "a", "a", "b", "b"]


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    return str(write_random_llama(tmp_path_factory.mktemp("random"), layers=3))


def states(base, tokens, layer):
    """The hidden states of one sequence by the library alone."""
    model = AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32)
    with torch.no_grad():
        return model(torch.tensor([tokens]), output_hidden_states=True).hidden_states[layer][0].numpy()


def tokens(*texts):
    """The start and the bytes of texts: the toy tokenizer has a token for every byte."""
    from training.engines.local.loading import load_tokenizer

    tokenizer = load_tokenizer(tokens.base)
    return [tokenizer.bos_token_id, *(token for text in texts for token in tokenizer.encode(text))]


@pytest.mark.parametrize("layer", [0, 2, 3])
def test_a_turn_alone_with_its_context_and_in_its_dialogue(base, layer):
    tokens.base = base
    vectors = {
        context: {
            how: embed(TEXTS, base, Pooling(layer=layer, how=how, context=context), DIALOGUES)
            for how in ("mean", "last")
        }
        for context in ("none", "previous", "dialogue")
    }
    read = {
        "none": tokens("a third one\n"),
        "previous": tokens("\n", "a third one\n"),
        "dialogue": tokens("first\n", "second turn\n", "\n", "a third one\n"),
    }
    for context, sequence in read.items():
        expected = states(base, sequence, layer)[-len("a third one\n") :]
        assert vectors[context]["mean"][3] == pytest.approx(expected.mean(axis=0), abs=1e-4)
        assert vectors[context]["last"][3] == pytest.approx(expected[-1], abs=1e-4)
        # the first turn of a dialogue has nothing before it
        alone = states(base, tokens("other talk\n"), layer)[1:]
        assert vectors[context]["mean"][4] == pytest.approx(alone.mean(axis=0), abs=1e-4)


def test_without_names_every_turn_stands_alone(base):
    pooling = Pooling(layer=3, how="mean", context="dialogue")
    alone = Pooling(layer=3, how="mean", context="none")
    assert embed(TEXTS, base, pooling) == pytest.approx(embed(TEXTS, base, alone), abs=1e-5)


def test_small_batches_change_nothing(base, monkeypatch):
    poolings = [Pooling(layer=1, how="last", context=context) for context in ("none", "dialogue")]
    together = embed_all(TEXTS, base, poolings, DIALOGUES)
    monkeypatch.setattr(embedding, "BATCH_TOKENS", 1)
    apart = embed_all(TEXTS, base, poolings, DIALOGUES)
    for pooling in poolings:
        assert apart[pooling] == pytest.approx(together[pooling], abs=1e-4)
        assert together[pooling].shape == (6, 64)
        assert together[pooling].dtype == np.float32


def test_a_layer_that_the_model_lacks_is_refused(base):
    with pytest.raises(BadInput, match=r"layer: .* has layers 0 to 3, not 4"):
        embed(TEXTS, base, Pooling(layer=4, how="mean", context="none"))


def test_a_model_that_is_not_there_is_refused():
    with pytest.raises(BadInput, match="no such model"):
        embed(TEXTS, "/no/such/model", Pooling(layer=1, how="mean", context="none"))


def test_passages_by_context():
    turns = [[1, 2], [3], [4, 5], [6]]
    read = {
        context: list(passages(turns, ["a", "a", "a", "b"], context, [0]))
        for context in ("none", "previous", "dialogue")
    }
    assert read["none"] == [
        Passage([0, 1, 2], [(0, 1, 3)]), Passage([0, 3], [(1, 1, 2)]), Passage([0, 4, 5], [(2, 1, 3)]),
        Passage([0, 6], [(3, 1, 2)]),
    ]  # fmt: skip
    assert read["previous"] == [
        Passage([0, 1, 2], [(0, 1, 3)]), Passage([0, 1, 2, 3], [(1, 3, 4)]), Passage([0, 3, 4, 5], [(2, 2, 4)]),
        Passage([0, 6], [(3, 1, 2)]),
    ]  # fmt: skip
    assert read["dialogue"] == [
        Passage([0, 1, 2, 3, 4, 5], [(0, 1, 3), (1, 3, 4), (2, 4, 6)]), Passage([0, 6], [(3, 1, 2)]),
    ]  # fmt: skip


def test_a_long_dialogue_is_read_in_parts(monkeypatch):
    monkeypatch.setattr(embedding, "PASSAGE_TOKENS", 4)
    read = list(passages([[1, 2], [3], [4, 5], [6, 7, 8, 9], [10]], ["a"] * 5, "dialogue", [0]))
    assert [passage.tokens for passage in read] == [[0, 1, 2, 3], [0, 4, 5], [0, 6, 7, 8, 9], [0, 10]]
    assert [span for passage in read for span in passage.spans] == [
        (0, 1, 3), (1, 3, 4), (2, 1, 3), (3, 1, 5), (4, 1, 2),
    ]  # fmt: skip


def test_batches_hold_every_passage_once(monkeypatch):
    monkeypatch.setattr(embedding, "BATCH_TOKENS", 6)
    read = [Passage([0] * length, []) for length in (5, 1, 3, 2, 9)]
    assert [[len(passage.tokens) for passage in batch] for batch in batches(read)] == [[1, 2], [3], [5], [9]]
