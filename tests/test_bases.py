"""The register of base models and the check that a folder is safe to load."""

from __future__ import annotations

import json
import pickle

import pytest

from training import bases
from training.errors import BadInput


class Touch:
    """Unpickling this creates a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (open, (str(self.path), "w"))


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "model"
    path.mkdir()
    (path / "config.json").write_text(json.dumps({"model_type": "llama"}))
    (path / "model.safetensors").write_bytes(b"x")
    return path


def test_default_and_tiny_are_registered_and_the_rest_need_a_download():
    assert bases.DEFAULT in bases.REGISTRY
    for name, entry in bases.REGISTRY.items():
        assert entry.name == name
        assert entry.licence
        assert (entry.source == "hub") == (entry.note == "needs download")
        assert (entry.source == "project") == (entry.hub == "")


def test_home_follows_the_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("PARLEY_HOME", str(tmp_path / "h"))
    assert bases.REGISTRY["tiny"].folder == tmp_path / "h" / "models" / "tiny"
    monkeypatch.delenv("PARLEY_HOME")
    assert bases.home().name == "var"


def test_an_unprepared_base_model_says_what_to_run(monkeypatch, tmp_path):
    monkeypatch.setenv("PARLEY_HOME", str(tmp_path))
    with pytest.raises(BadInput, match=r"models prepare qwen2\.5-0\.5b"):
        bases.resolve("Qwen/Qwen2.5-0.5B-Instruct")


def test_unknown_names_list_the_known_ones():
    with pytest.raises(BadInput, match=r"no such model: 'nope'.*smollm2-135m"):
        bases.resolve("nope")


def test_a_safetensors_folder_resolves(folder):
    assert bases.resolve(folder) == folder


@pytest.mark.parametrize("name", ["pytorch_model.bin", "weights.PT", "deep/er/optimizer.pkl", "modeling.py", "a.ckpt"])
def test_files_that_may_run_code_are_refused_unread(folder, tmp_path, name):
    bad = folder / name
    bad.parent.mkdir(parents=True, exist_ok=True)
    bad.write_bytes(pickle.dumps(Touch(tmp_path / "ran")))
    with pytest.raises(BadInput, match="only safetensors"):
        bases.resolve(folder)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    "config,why",
    [
        ('{"auto_map": {"AutoModel": "x.Y"}}', "code of its own"),
        ("[1]", "not a JSON object"),
        ("{", "not valid JSON"),
    ],
)
def test_bad_configurations_are_refused(folder, config, why):
    (folder / "config.json").write_text(config)
    with pytest.raises(BadInput, match=why):
        bases.resolve(folder)


def test_folders_without_config_or_weights_are_refused(folder):
    (folder / "model.safetensors").unlink()
    with pytest.raises(BadInput, match=r"no \.safetensors"):
        bases.resolve(folder)
    (folder / "config.json").unlink()
    with pytest.raises(BadInput, match=r"no config\.json"):
        bases.resolve(folder)


def test_roots_bound_the_folders_links_included(folder, tmp_path):
    root = tmp_path / "root"
    root.mkdir()
    assert bases.resolve(folder, roots=[tmp_path]) == folder.resolve()
    with pytest.raises(BadInput, match="MODEL_ROOTS"):
        bases.resolve(folder, roots=[root])
    with pytest.raises(BadInput, match="MODEL_ROOTS"):
        bases.resolve(root / ".." / "model", roots=[root])
    (root / "link").symlink_to(folder)
    with pytest.raises(BadInput, match="MODEL_ROOTS"):
        bases.resolve(root / "link", roots=[root])
    inside = root / "inside"
    inside.mkdir()
    (inside / "config.json").write_text("{}")
    (inside / "model.safetensors").symlink_to(folder / "model.safetensors")
    with pytest.raises(BadInput, match="leaves MODEL_ROOTS"):
        bases.resolve(inside, roots=[root])


def test_provenance_is_read_back_and_stands_on_the_card(folder):
    info = bases.ModelInfo(
        name="cold start", base="smollm2-135m", licence="apache-2.0", note="dequantised from 4 bits", dataset=("ab12",)
    )
    bases.write_info(folder, info)
    assert bases.read_info(folder) == info
    text = (folder / "README.md").read_text()
    assert text.startswith("---\nlicense: apache-2.0\n")
    assert "base_model: HuggingFaceTB/SmolLM2-135M-Instruct" in text
    assert "Dequantised from 4 bits" in text
    assert "ab12" in text


def test_a_foreign_folder_is_named_after_itself_and_a_broken_note_is_reported(folder):
    assert bases.read_info(folder).name == "model"
    (folder / bases.INFO).write_text("{")
    with pytest.raises(BadInput, match="not valid JSON"):
        bases.read_info(folder)


def test_the_start_of_a_model_is_its_registered_ancestor_or_the_folder_it_was_trained_from(folder, tmp_path):
    assert bases.start_of(folder) == str(folder)  # it was not trained here

    def trained(base, parent):
        child = tmp_path / "child"
        child.mkdir(exist_ok=True)
        bases.write_info(child, bases.ModelInfo(name="child", base=base, parent=parent))
        return child

    assert bases.start_of(trained("smollm2-135m", "/gone")) == "smollm2-135m"
    assert bases.start_of(trained("elsewhere", str(folder))) == str(folder)
    with pytest.raises(BadInput, match="is not on this machine"):
        bases.start_of(trained("elsewhere", str(tmp_path / "gone")))
