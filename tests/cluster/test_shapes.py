"""Shapes: parameters counted by hand, against real models, and in the published totals."""

import json

import pytest

from tests import tiny_model
from tests.cluster.decoders import TINY, decoder, shape
from training import bases
from training.cluster import shapes
from training.cluster.shapes import SHAPES, ModelShape, of_model, read
from training.errors import BadInput
from training.learn import models
from training.sections import LoraConfig


def test_tiny_by_hand():
    # 2 · 128 · 128 (queries, output) + 2 · 128 · 64 (keys, values) + 3 · 128 · 320 (MLP) + 2 · 128 (norms)
    assert TINY.layer_parameters == 32768 + 16384 + 122880 + 256 == 172288
    assert TINY.parameters == 3 * 172288 + 2048 * 128 + 128 == bases.REGISTRY["tiny"].parameters
    # rank 4: q 4 · 256, k and v 4 · 192 each, o 4 · 256, three of the MLP 4 · 448 each
    assert TINY.adapter_parameters(4) == 3 * (1024 + 2 * 768 + 1024 + 3 * 1792)
    assert TINY.adapter_parameters(4, ("q_proj",)) == 3 * 1024
    with pytest.raises(BadInput, match="'c_attn' is none of q_proj, ") as caught:
        TINY.adapter_parameters(4, ("c_attn",))
    assert caught.value.where == "learn.lora.targets"


@pytest.mark.parametrize(
    "name, published",
    [("0.6b", 596_049_920), ("4b", 4_022_468_096), ("7b", 7_615_616_512)],
)
def test_published_totals(name, published):
    assert SHAPES[name].parameters == published
    assert bases.REGISTRY[SHAPES[name].name].parameters == published


@pytest.mark.parametrize(
    "name, sizes, more",
    [
        ("smollm2-135m", (30, 576, 1536, 9, 3, 64, 49152, True, 8192), {}),
        ("qwen2.5-0.5b", (24, 896, 4864, 14, 2, 64, 151936, True, 32768), {"attention_bias": True}),
        ("llama-3-8b", (32, 4096, 14336, 32, 8, 128, 128256, False, 8192), {}),
    ],
)
def test_totals_of_further_registered_models(name, sizes, more):
    """The sizes are those of their public `config.json`."""
    assert ModelShape(name, *sizes, **more).parameters == bases.REGISTRY[name].parameters


def test_qwen_2_5_7b_by_hand():
    # queries and output 2 · 3584²; keys and values 2 · 3584 · 512; MLP 3 · 3584 · 18944; biases 3584 + 2 · 512; norms
    layer = 25_690_112 + 3_670_016 + 203_685_888 + 4_608 + 7_168
    assert SHAPES["7b"].parameters == 28 * layer + 2 * 152_064 * 3584 + 3584


@pytest.mark.parametrize("family", ["llama", "qwen2", "qwen3"])
@pytest.mark.parametrize("tied", [True, False])
def test_what_transformers_makes(family, tied, tmp_path):
    model = decoder(family, tie_word_embeddings=tied)
    model.config.save_pretrained(tmp_path)
    shape_read = read(tmp_path / "config.json", family)
    if tied and family != "qwen2":  # which leaves its width of a head to be inferred: 120 // 6
        expected = shape(family)
        assert {name: getattr(shape_read, name) for name in expected.__slots__} == {
            name: getattr(expected, name) if name != "window" else shape_read.window for name in expected.__slots__
        }
    assert shape_read.parameters == models.count(model)
    adapted = models.adapt(model, LoraConfig(rank=5))
    trained = sum(p.numel() for p in adapted.parameters() if p.requires_grad)
    assert shape_read.adapter_parameters(5) == trained


@pytest.mark.parametrize("changes", [{"attention_bias": True}, {"mlp_bias": True}])
def test_biases_of_llama(changes, tmp_path):
    model = decoder("llama", **changes)
    model.config.save_pretrained(tmp_path)
    assert read(tmp_path / "config.json").parameters == models.count(model)


def test_the_shape_of_a_prepared_model(tmp_path):
    folder = tiny_model.prepare()
    assert of_model("tiny") == TINY
    (tmp_path / "mine").symlink_to(folder, target_is_directory=True)
    assert of_model("mine", tmp_path).parameters == models.count(models.load("tiny")[0])


def test_a_registered_model_that_is_not_here_may_have_a_known_shape():
    assert of_model("qwen3-4b") is SHAPES["4b"] is of_model("Qwen/Qwen3-4B")
    with pytest.raises(BadInput, match=r"not prepared.*--shape 0\.6b, 4b, 7b or a config\.json"):
        of_model("llama-3-8b")


SIZES = {
    "model_type": "llama", "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 1,
    "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 10, "max_position_embeddings": 32,
}  # fmt: skip


@pytest.mark.parametrize(
    "changes, field, why",
    [
        ({"model_type": "gpt2"}, "model_type", "'gpt2' is not counted; known: llama, qwen2, qwen3"),
        ({"model_type": None}, "model_type", "not counted"),
        ({"hidden_size": "64"}, "hidden_size", "positive whole number, not 64"),
        ({"hidden_size": 0}, "hidden_size", "positive whole number"),
        ({"vocab_size": None}, "vocab_size", "positive whole number"),
        ({"num_hidden_layers": True}, "num_hidden_layers", "positive whole number"),
        ({"num_key_value_heads": 3}, "num_key_value_heads", "3 does not divide the 4 heads"),
        (
            {"num_attention_heads": 3, "num_key_value_heads": 3},
            "num_attention_heads",
            "3 does not divide the hidden size, 64",
        ),
        ({"tie_word_embeddings": 1}, "tie_word_embeddings", "true or false"),
    ],
)
def test_what_cannot_be_counted_is_refused_by_its_field(changes, field, why, tmp_path):
    file = tmp_path / "config.json"
    file.write_text(json.dumps({**SIZES, **changes}))
    with pytest.raises(BadInput) as caught:
        read(file)
    assert caught.value.where == f"{file}: {field}"
    assert why in caught.value.why


def test_a_shape_is_named_or_a_file(tmp_path):
    file = tmp_path / "config.json"
    file.write_text(json.dumps(SIZES))
    # 2 · 64² + 2 · 64 · 32 + 3 · 64 · 96 + 2 · 64; embeddings and head 2 · 10 · 64; last norm 64
    assert shapes.named(str(tmp_path)).parameters == 8192 + 4096 + 18432 + 128 + 1280 + 64
    for text in ("8b", str(tmp_path / "none.json")):
        with pytest.raises(BadInput, match=r"neither one of 0\.6b, 4b, 7b nor a config\.json"):
            shapes.named(text)
    file.write_text("{")
    with pytest.raises(BadInput, match="not valid JSON") as caught:
        shapes.named(str(file))
    assert caught.value.where == str(file)


@pytest.mark.parametrize("text", ["a" * 300, "~nobody-of-this-name/x", "/dev/null", ""])
def test_what_can_be_no_file_is_no_shape(text):
    with pytest.raises(BadInput, match="neither one of"):
        shapes.named(text)
