"""Loading, adapters, merged weights and saving, against PEFT's own merge and plain forwards."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import MambaConfig, MambaForCausalLM

from tests.toy_models import write_random_llama
from training import bases
from training.engines.local import loading
from training.engines.local.loading import load_full, load_merged
from training.errors import BadInput
from training.learn import models
from training.sections import LoraConfig
from training.store import atomic_directory

LORA = LoraConfig(rank=4, alpha=8)


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    return write_random_llama(tmp_path_factory.mktemp("base") / "toy")


def test_a_model_that_carries_a_state_from_token_to_token_is_refused():
    model = MambaForCausalLM(MambaConfig(vocab_size=20, hidden_size=8, num_hidden_layers=1, state_size=2))
    with pytest.raises(BadInput, match="mamba models cannot be trained here"):
        models.refuse_unpackable(model)


def test_targets_that_the_model_lacks_are_wrong_input(base):
    model = models.load(base)[0]
    with pytest.raises(BadInput, match="nowhere") as caught:
        models.adapt(model, LoraConfig(targets=("nowhere",)))
    assert caught.value.where == "lora.targets"


def train_adapters(model):
    """Give the adapters an effect: PEFT starts B at zero."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "lora_B" in name:
                parameter.normal_(0, 0.1, generator=torch.Generator().manual_seed(len(name)))
    return model


def logits(model):
    with torch.no_grad():
        return model(input_ids=torch.tensor([[1, 50, 60, 70, 2]])).logits


def write(model, tokenizer, folder, **options):
    info = bases.ModelInfo(name="trained", base="toy", parent=options.pop("parent", ""), note="made for a test")
    with atomic_directory(folder) as temporary:
        models.save(model, tokenizer, temporary, info, **options)
    return folder


def test_without_adapters_every_weight_trains_and_merged_weights_are_the_weights(base):
    model, _ = models.load(base)
    assert all(p.requires_grad for p in model.parameters())
    merged = dict(models.merged_weights(model))
    assert set(merged) == {n for n, _ in model.named_parameters()}
    assert all(torch.equal(merged[n], p) for n, p in model.named_parameters())


def test_only_adapters_train_and_they_are_float32_on_a_bfloat16_model(base):
    model, _ = models.load(base, "bfloat16", LORA)
    trained = {n: p.dtype for n, p in model.named_parameters() if p.requires_grad}
    assert trained
    assert all("lora_" in n and d == torch.float32 for n, d in trained.items())
    assert {t.dtype for _, t in models.merged_weights(model)} == {torch.bfloat16}


def test_merged_weights_equal_peft_merge_and_use_the_base_models_names(base):
    names = {n for n, _ in models.load(base)[0].named_parameters()}
    model = train_adapters(models.load(base, lora=LORA)[0])
    merged = {n: t.clone() for n, t in models.merged_weights(model)}
    reference = model.merge_and_unload()
    assert set(merged) == names
    for name, parameter in reference.named_parameters():
        torch.testing.assert_close(merged[name], parameter, rtol=0, atol=1e-6)


@pytest.mark.parametrize("lora", [None, LORA])
def test_weights_for_engines_in_bfloat16_have_half_the_bytes_and_their_rounding(base, lora):
    model = train_adapters(models.load(base, lora=lora)[0])
    whole = {name: tensor.clone() for name, tensor in models.merged_weights(model)}
    half = dict(models.merged_weights(model, torch.bfloat16))
    assert sum(t.nbytes for t in half.values()) == sum(t.nbytes for t in whole.values()) / 2
    for name, tensor in whole.items():
        sampling = torch.empty_like(tensor, dtype=torch.bfloat16)
        assert torch.equal(half[name], sampling.copy_(tensor))  # as an engine loads it


def test_saved_merged_checkpoint_is_a_plain_model_with_the_adapted_distribution(base, tmp_path):
    model, tokenizer = models.load(base, lora=LORA)
    before = logits(model)
    expected = logits(train_adapters(model))
    assert (expected - before).abs().max() > 0.01
    folder = write(model, tokenizer, tmp_path / "step_000001")
    assert not (folder / "adapter_config.json").exists()
    again, again_tokenizer = models.load(folder)
    torch.testing.assert_close(logits(again), expected, rtol=0, atol=1e-4)
    assert again_tokenizer.chat_template == tokenizer.chat_template
    info = bases.read_info(folder)
    assert info.parameters == sum(p.numel() for p in models.load(base)[0].parameters())
    assert "Made for a test" in (folder / "README.md").read_text()


def test_adapter_checkpoint_resumes_or_merges_onto_its_base(base, tmp_path):
    model, tokenizer = models.load(base, lora=LORA)
    expected = logits(train_adapters(model))
    folder = write(model, tokenizer, tmp_path / "adapter", adapter_only=True, parent=str(base))
    assert {p.name for p in folder.glob("*.safetensors")} == {"adapter_model.safetensors"}
    torch.testing.assert_close(logits(models.load(folder, lora=LORA)[0]), expected, rtol=0, atol=1e-5)
    torch.testing.assert_close(logits(models.load(folder)[0]), expected, rtol=0, atol=1e-4)
    with pytest.raises(BadInput, match="rank 4, not 8"):
        models.load(folder, lora=LoraConfig(rank=8))


def test_saving_an_adapter_needs_adapters(base, tmp_path):
    model, tokenizer = models.load(base)
    with pytest.raises(BadInput, match="adapters"):
        write(model, tokenizer, tmp_path / "x", adapter_only=True)
    assert not (tmp_path / "x").exists()


def test_a_flipped_bit_is_noticed_before_loading(base, tmp_path):
    model, tokenizer = models.load(base)
    folder = write(model, tokenizer, tmp_path / "step")
    file = folder / "model.safetensors"
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)
    with pytest.raises(BadInput, match="does not match its hash"):
        models.load(folder)


def test_truncated_weights_without_manifest_are_bad_input(base, tmp_path):
    folder = write_random_llama(tmp_path / "torn")
    file = folder / "model.safetensors"
    file.write_bytes(file.read_bytes()[:1000])
    with pytest.raises(BadInput, match="cannot be loaded"):
        models.load(folder)


def test_a_model_without_chat_template_is_refused(tmp_path):
    folder = write_random_llama(tmp_path / "plain")
    (folder / "chat_template.jinja").unlink()
    config = json.loads((folder / "tokenizer_config.json").read_text())
    config.pop("chat_template", None)
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    with pytest.raises(BadInput, match="chat template"):
        models.load(folder)


WITHOUT_PEFT = """
import sys
for name in ("peft", "trl", "vllm"):
    sys.modules[name] = None  # an import of it fails, as where it is not installed
from training.learn import models, policy, trainer
from training.run_sections import LearnSection
learn = LearnSection.from_dict({"lora": False})
made = policy.load(sys.argv[1], (), learn, seed=0, temperature=1.0, device="cpu")
weights = dict(models.merged_weights(made.model))
assert sorted(weights) == sorted(name for name, _ in made.model.named_parameters())
made.restart()
models.adapt(made.model, models.LoraConfig())
"""


def test_all_weights_train_where_peft_is_not_installed(base):
    command = [sys.executable, "-c", WITHOUT_PEFT, str(base)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.stderr.splitlines()[-1].startswith("ModuleNotFoundError: import of peft")
    assert "in adapt\n" in ended.stderr


def same_weights(first, second):
    """All weights and tables are equal, bit by bit, and tied weights are tied."""
    both = [dict(model.named_parameters()) | dict(model.named_buffers()) for model in (first, second)]
    assert both[0].keys() == both[1].keys()
    assert all(
        torch.equal(tensor, both[1][name]) and tensor.dtype == both[1][name].dtype for name, tensor in both[0].items()
    )


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize(
    "changes", [{}, {"file_size": "100KB"}, {"tie_word_embeddings": False, "mlp_bias": True}], ids=str
)
def test_weights_are_read_row_by_row_as_transformers_reads_them(tmp_path, dtype, changes):
    folder = write_random_llama(tmp_path / "model", **changes)
    assert (len(list(folder.glob("*.safetensors"))) > 1) == ("file_size" in changes)
    unfilled = models.unfilled(folder, dtype)
    assert not unfilled.whole
    model, expected = unfilled.fill(), load_full(folder, dtype)
    same_weights(model, expected)
    assert model.config.to_dict() == expected.config.to_dict()
    assert model.generation_config == expected.generation_config


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_adapters_are_merged_as_peft_merges_them(base, tmp_path, dtype):
    model, tokenizer = models.load(base, lora=LORA)
    folder = write(train_adapters(model), tokenizer, tmp_path / "adapters", adapter_only=True, parent=str(base))
    unfilled = models.unfilled(folder, dtype)
    assert not unfilled.whole
    same_weights(unfilled.fill(), load_merged(folder, dtype))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_new_adapters_are_drawn_as_those_of_a_model_that_has_its_weights(base, dtype):
    drawn = []
    for make in (lambda: models.adapt(load_full(base, dtype), LORA).eval(), lambda: models.load(base, dtype, LORA)[0]):
        torch.manual_seed(3)
        drawn.append(make())
    same_weights(*drawn)


def test_a_model_whose_files_use_other_names_is_loaded_as_a_whole(base, tmp_path):
    folder = shutil.copytree(base, tmp_path / "model")
    tensors = load_file(folder / "model.safetensors")
    save_file({n.removeprefix("model."): t for n, t in tensors.items()}, folder / "model.safetensors", {"format": "pt"})
    unfilled = models.unfilled(folder)
    assert unfilled.whole
    same_weights(unfilled.fill(), load_full(base, "float32"))


def test_quantised_weights_are_not_read_as_if_they_were_none(base, tmp_path):
    folder = shutil.copytree(base, tmp_path / "model")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"quantization_config": {"quant_method": "fp8"}}))
    assert loading.build(folder, "float32") is None


def test_an_index_that_leaves_its_folder_is_refused(tmp_path):
    folder = write_random_llama(tmp_path / "model", file_size="100KB")
    index = folder / "model.safetensors.index.json"
    index.write_text(index.read_text().replace("model-00001", "../model-00001"))
    with pytest.raises(BadInput, match="names files of other folders"):
        models.load(folder)
