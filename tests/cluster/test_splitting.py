"""Into how many parts a model can be split."""

import json

import pytest

from training.cluster import splitting
from training.cluster.shapes import SHAPES, ModelShape
from training.config import parse
from training.errors import BadInput

UNEVEN = ModelShape("uneven", 2, 96, 252, 12, 4, 8, 100, tied=True, window=64)


@pytest.mark.parametrize(
    "shape, parts, why",
    [
        (SHAPES["7b"], 4, ""),  # 28 heads, 4 of keys
        (SHAPES["7b"], 2, ""),
        (SHAPES["7b"], 3, "3 does not divide the 28 attention heads of qwen2.5-7b"),
        (SHAPES["7b"], 14, "14 does not divide the 18944 columns of the feed-forward layers of qwen2.5-7b"),
        (SHAPES["0.6b"], 16, ""),  # 16 heads, 8 of keys: each part has one, and two have the same
        (UNEVEN, 6, "6 neither divides nor is a multiple of the 4 KV heads of uneven"),
        (UNEVEN, 12, ""),
        (UNEVEN, 1, ""),
    ],
)
def test_heads_and_columns_are_divided(shape, parts, why):
    assert splitting.obstacle(shape, parts).startswith(why)
    assert bool(splitting.obstacle(shape, parts)) == bool(why)
    config = parse({"cluster": {"tensor_parallel": parts}})
    if not why:
        splitting.check(config, shape)
        return
    with pytest.raises(BadInput, match="set a number that does") as caught:
        splitting.check(config, shape)
    assert caught.value.where == "cluster.tensor_parallel"


def test_only_vllm_splits_a_model():
    config = parse({"cluster": {"tensor_parallel": 2}, "engine": {"name": "transformers"}})
    with pytest.raises(BadInput, match="transformers does not split a model") as caught:
        splitting.check(config, SHAPES["7b"])
    assert caught.value.where == "cluster.tensor_parallel"


@pytest.mark.parametrize(
    "sections, where",
    [
        ({"opponents": [{"source": "MODEL"}]}, "opponents.0.source"),
        ({"speaker": {"source": "MODEL"}}, "speaker.source"),
        ({"evaluate": {"at_end": True, "opponent": "MODEL"}}, "evaluate.opponent"),
        ({"evaluate": {"opponent": "MODEL"}}, ""),  # no head-to-head is played
        ({"opponents": [{"source": "random"}, {"source": "past"}]}, ""),
    ],
)
def test_other_models_of_a_run_are_split_too(tmp_path, sections, where):
    """They are opened in the middle of the run; this one has 6 heads, and the learner's 28 are divided by 4."""
    sizes = {"hidden_size": 48, "num_hidden_layers": 1, "intermediate_size": 96, "num_attention_heads": 6}
    facts = {"model_type": "llama", "vocab_size": 50, "max_position_embeddings": 64}
    (tmp_path / "config.json").write_text(json.dumps(sizes | facts))
    (tmp_path / "model.safetensors").touch()
    named = json.loads(json.dumps(sections).replace("MODEL", str(tmp_path)))
    config = parse({"cluster": {"tensor_parallel": 4}, **named})
    if not where:
        splitting.check(config, SHAPES["7b"])
        return
    with pytest.raises(BadInput, match=rf"4 does not divide the 6 attention heads of {tmp_path.name} \({where}\)"):
        splitting.check(config, SHAPES["7b"])
    splitting.check(parse({"cluster": {"tensor_parallel": 2}, **named}), SHAPES["7b"])
