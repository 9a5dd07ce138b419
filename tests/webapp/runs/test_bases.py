"""Base models: registered ones that are prepared, and what an administrator adds; never one that may run code."""

import json

import pytest
from django.urls import reverse

from training import bases
from training.errors import BadInput
from training.store import write_json
from webapp.runs import services
from webapp.runs.models import Checkpoint

pytestmark = pytest.mark.django_db


def model(folder, config=None, extra=()):
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(config or {}))
    (folder / "model.safetensors").write_bytes(b"w")
    (folder / "chat_template.jinja").write_text("{{ messages }}")
    for name in extra:
        (folder / name).write_bytes(b"x")
    return folder


@pytest.fixture
def roots(tmp_path, settings):
    settings.MODEL_ROOTS = [tmp_path / "allowed"]
    return settings.MODEL_ROOTS


@pytest.fixture
def add(admin, client_of, roots):
    client = client_of(admin)
    return lambda source, name="mine": client.post(reverse("runs:add-base"), {"name": name, "source": str(source)})


def test_a_folder_below_a_root_becomes_a_base_model(add, roots):
    folder = model(roots[0] / "good")
    response = add(folder)
    made = Checkpoint.objects.get()
    assert response["Location"] == reverse("runs:checkpoint", args=[made.pk])
    assert (made.kind, made.base, made.path) == ("base", "mine", str(folder))


@pytest.mark.parametrize("extra", ["model.bin", "weights.pt", "pytorch_model.pkl", "modeling.py"])
def test_a_folder_that_may_run_code_is_refused_unread(add, roots, extra):
    response = add(model(roots[0] / "bad", extra=[extra]))
    assert response.status_code == 400
    assert "may run code when loaded" in response.content.decode()
    assert Checkpoint.objects.count() == 0


def test_code_of_its_own_is_refused(add, roots):
    response = add(model(roots[0] / "auto", config={"auto_map": {"AutoModel": "x.Y"}}))
    assert "auto_map" in response.content.decode()


def test_a_model_without_a_format_of_prompts_is_refused(add, roots):
    """A worker would refuse every run of it."""
    folder = model(roots[0] / "plain")
    (folder / "chat_template.jinja").unlink()
    assert "has no chat template" in add(folder).content.decode()
    (folder / "tokenizer_config.json").write_text("{}")
    assert "has no chat template" in add(folder).content.decode()
    assert not Checkpoint.objects.exists()
    (folder / "tokenizer_config.json").write_text(json.dumps({"chat_template": "{{ messages }}"}))
    assert add(folder).status_code == 302


def test_a_folder_elsewhere_is_refused(add, tmp_path, roots):
    roots[0].mkdir()
    outside = model(tmp_path / "outside")
    assert "not below one of MODEL_ROOTS" in add(outside).content.decode()
    assert "not below one of MODEL_ROOTS" in add(roots[0] / ".." / "outside").content.decode()
    (roots[0] / "link").symlink_to(outside)
    assert "not below one of MODEL_ROOTS" in add(roots[0] / "link").content.decode()


def test_a_name_is_taken_once(add, roots):
    add(model(roots[0] / "good"))
    assert "another model has this name" in add(roots[0] / "good").content.decode()
    assert "another model has this name" in add(roots[0] / "good", name="tiny").content.decode()


@pytest.mark.parametrize(
    "name",
    ["start", "past", "mirror", "phase one", "learner", "best_response", "random", "mcts:100", "https://host/v1 m"],
)
def test_a_name_that_means_another_opponent_is_refused(roots, name):
    folder = model(roots[0] / "good")
    with pytest.raises(BadInput, match="means something else: choose another one") as caught:
        services.add_base(name=name, source=str(folder), model_roots=roots)
    assert caught.value.where == "name"
    assert not Checkpoint.objects.exists()


def test_a_hub_model_that_was_downloaded_is_found_and_another_is_not(add, tmp_path, monkeypatch):
    from huggingface_hub import constants

    cache = tmp_path / "hub"
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(cache))
    snapshot = model(cache / "models--owner--model" / "snapshots" / ("a" * 40))
    (cache / "models--owner--model" / "refs").mkdir()
    (cache / "models--owner--model" / "refs" / "main").write_text("a" * 40)
    assert add("owner/model").status_code == 302
    assert Checkpoint.objects.get().path == str(snapshot)
    assert "hf download owner/other" in add("owner/other", name="other").content.decode()


def test_prepared_models_of_the_register_appear_once(tmp_path, monkeypatch):
    monkeypatch.setattr(bases, "models_root", lambda: tmp_path)
    assert services.register_bases() == 0
    folder = model(tmp_path / "tiny")
    write_json(folder / "manifest.json", {"version": 1, "files": {}})
    assert services.register_bases() == 1
    assert services.register_bases() == 0
    assert Checkpoint.objects.get().name == "tiny"
