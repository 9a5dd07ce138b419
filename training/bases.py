"""The register of base models, and where prepared model folders live. Pure data: nothing here loads a model.

`resolve` turns what a user wrote (a registered name or a folder) into a folder that is safe to load: safetensors only,
no code of its own. Everything else raises `BadInput` before a byte of the weights is read.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from pydantic import Field

from training.errors import BadInput
from training.reading import Record
from training.store import MANIFEST, loads, sha256, verify_directory, write_json

INFO = "parley.json"
"""The file with a model folder's provenance (`ModelInfo`), beside the Hugging Face files."""

STATE = "trainer"
"""The folder in a checkpoint with the trainer's state, which nobody reads who loads the model."""

PREPARING_S = 180.0
"""Seconds without progress after which a preparation counts as ended."""

UNSAFE = frozenset(
    {".bin", ".pt", ".pth", ".ckpt", ".pkl", ".pickle", ".joblib", ".dill", ".npy", ".npz", ".py", ".so"}
)
"""Files that can run code when they are loaded; a folder with such a file is refused before it is read."""


class BaseModel(Record):
    """One line of the registry. `source`: `package` and `project` need no download, `hub` does."""

    name: str
    title: str
    hub: str = ""
    licence: str
    parameters: int
    source: str = "hub"
    note: str = ""

    @property
    def folder(self) -> Path:
        """The folder of the prepared model; it may not exist yet."""
        return models_root() / self.name

    @property
    def result_note(self) -> str:
        """The note for model cards and results; empty if the note only says how to get the model."""
        return "" if self.source == "hub" else self.note


class ModelInfo(Record):
    """The provenance of a prepared model or checkpoint; its model card and every result repeat `note`.

    `base` is the registered ancestor, `parent` the folder or checkpoint that training started from, `dataset` the
    hashes of the data, `command` what was run.
    """

    version: int = 1
    name: str
    base: str
    licence: str = ""
    parameters: int = 0
    note: str = ""
    parent: str = ""
    dataset: tuple[str, ...] = ()
    command: str = ""
    step: int = 0


def _hub(name: str, hub: str, licence: str, parameters: int) -> BaseModel:
    title = hub.rsplit("/", 1)[-1]
    return BaseModel(name=name, title=title, hub=hub, licence=licence, parameters=parameters, note="needs download")


REGISTRY: dict[str, BaseModel] = {
    entry.name: entry
    for entry in (
        BaseModel(
            name="smollm2-135m",
            title="SmolLM2-135M-Instruct",
            hub="HuggingFaceTB/SmolLM2-135M-Instruct",
            licence="apache-2.0",
            parameters=134_515_008,
            source="package",
            note="dequantised from 4 bits",
        ),
        BaseModel(
            name="tiny",
            title="tiny",
            licence="apache-2.0",
            parameters=779_136,
            source="project",
            note="for tests and quick trials; pretrained on scripted players only",
        ),
        _hub("smollm2-360m", "HuggingFaceTB/SmolLM2-360M-Instruct", "apache-2.0", 361_821_120),
        _hub("smollm2-1.7b", "HuggingFaceTB/SmolLM2-1.7B-Instruct", "apache-2.0", 1_711_376_384),
        _hub("qwen2.5-0.5b", "Qwen/Qwen2.5-0.5B-Instruct", "apache-2.0", 494_032_768),
        _hub("qwen2.5-1.5b", "Qwen/Qwen2.5-1.5B-Instruct", "apache-2.0", 1_543_714_304),
        _hub("qwen2.5-7b", "Qwen/Qwen2.5-7B-Instruct", "apache-2.0", 7_615_616_512),
        _hub("qwen3-0.6b", "Qwen/Qwen3-0.6B", "apache-2.0", 596_049_920),
        _hub("qwen3-4b", "Qwen/Qwen3-4B", "apache-2.0", 4_022_468_096),
        _hub("llama-3-8b", "meta-llama/Meta-Llama-3-8B-Instruct", "llama3", 8_030_261_248),
        _hub("llama-3.2-1b", "meta-llama/Llama-3.2-1B-Instruct", "llama3.2", 1_235_814_400),
        _hub("llama-3.2-3b", "meta-llama/Llama-3.2-3B-Instruct", "llama3.2", 3_212_749_824),
    )
}
DEFAULT = "smollm2-135m"


def home() -> Path:
    """Return PARLEY_HOME, the folder of models and runs: by default `var/` beside the `training` package."""
    chosen = os.environ.get("PARLEY_HOME", "")
    return Path(chosen).expanduser().absolute() if chosen else Path(__file__).resolve().parents[1] / "var"


def models_root() -> Path:
    """Return the folder of prepared base models."""
    return home() / "models"


def find(name: str) -> BaseModel | None:
    """Return the registry's entry of a short name or hub name, None for anything else."""
    return REGISTRY.get(name) or next((e for e in REGISTRY.values() if e.hub and e.hub == name), None)


def is_prepared(entry: BaseModel) -> bool:
    """Return whether the entry's folder is complete on this machine."""
    return (entry.folder / MANIFEST).is_file()


class Preparation(Record):
    """The progress of preparing a base model: `share` (0 to 1) of the work was done at `at`, in Unix seconds."""

    began: float
    at: float
    share: float = Field(ge=0, le=1)

    def seconds_left(self, now: float) -> float | None:
        """Return the estimated remaining seconds at the average speed so far; None at a share of 0."""
        if not self.share:
            return None
        return max(0.0, (self.at - self.began) * (1 - self.share) / self.share - (now - self.at))


def preparation(entry: BaseModel) -> Preparation | None:
    """Return the progress of the entry's preparation; None without progress for `PREPARING_S`."""
    try:
        state = Preparation.from_dict(loads(_preparation_file(entry).read_bytes()))
    except (OSError, ValueError, BadInput):
        return None
    return state if time.time() - state.at < PREPARING_S else None


class PreparationLog:
    """Writes the progress of a preparation to a file, at most once per second, and deletes the file at the end."""

    def __init__(self, entry: BaseModel) -> None:
        self.path, self.began, self._written = _preparation_file(entry), time.time(), 0.0

    def __enter__(self) -> Self:
        self.reached(0.0)
        return self

    def __exit__(self, *_: object) -> None:
        self.path.unlink(missing_ok=True)

    def reached(self, share: float) -> None:
        """Record that this share of the work is done."""
        now = time.time()
        if now - self._written >= 1.0:
            self._written = now
            write_json(self.path, Preparation(began=self.began, at=now, share=share).to_dict())


def _preparation_file(entry: BaseModel) -> Path:
    return models_root() / f".{entry.name}.preparing.json"


def resolve(name_or_path: str | Path, roots: Sequence[Path] | None = None) -> Path:
    """Return the checked model folder behind a registered name, a hub name of the registry, or a path.

    With `roots` a path must lie below one of them. Raises `BadInput` if nothing is there or it is not safe to load.
    """
    entry = find(str(name_or_path))
    if entry is not None:
        if why := unprepared(entry.name):
            raise BadInput(why, "model")
        return check_folder(entry.folder)
    folder = Path(name_or_path).expanduser()
    if roots is not None:
        folder = _below(folder, roots)
    if not folder.is_dir():
        names = ", ".join(REGISTRY)
        raise BadInput(f"no such model: {str(name_or_path)!r} is neither a folder nor one of {names}", "model")
    return check_folder(folder)


def is_folder(name: str | Path) -> bool:
    """Return whether a name is that of a folder; a name that no path can have is none."""
    try:
        return Path(name).expanduser().is_dir()
    except (OSError, RuntimeError, ValueError):  # too long, of an unknown user, with a NUL
        return False


def unprepared(name: str) -> str:
    """Return why a registered base model cannot be used yet; empty where it can, or is not registered."""
    entry = find(name)
    if entry is None or is_prepared(entry):
        return ""
    state = preparation(entry)
    if state is None:
        return f"{entry.title} is not prepared on this machine; run `python -m training models prepare {entry.name}`"
    seconds = state.seconds_left(time.time())
    return f"{entry.title} is being prepared on this machine; try again " + (
        "in a few minutes" if seconds is None else f"in {max(1, round(seconds))} s"
    )


def _below(folder: Path, roots: Sequence[Path]) -> Path:
    """Return `folder` without links if it lies below one of `roots`."""
    real = folder.resolve()
    allowed = [root.resolve() for root in (*roots, models_root())]
    if not any(real.is_relative_to(root) for root in allowed):
        raise BadInput("the folder is not below one of MODEL_ROOTS", str(folder))
    for file in real.rglob("*"):
        if file.is_symlink() and not any(file.resolve().is_relative_to(root) for root in allowed):
            raise BadInput(f"{file.name} is a link that leaves MODEL_ROOTS", str(folder))
    return real


def check_folder(folder: Path) -> Path:
    """Return `folder` if it is a model that loads without running code; raise `BadInput` before reading any weights."""
    for file in folder.rglob("*"):
        if file.suffix.lower() in UNSAFE:
            raise BadInput(f"{file.name} may run code when loaded; only safetensors are accepted", str(folder))
    described = [name for name in ("config.json", "adapter_config.json") if (folder / name).is_file()]
    if not described:
        raise BadInput("no config.json: not a Hugging Face model folder", str(folder))
    for name in described:
        try:
            config = json.loads((folder / name).read_text("utf-8"))
        except ValueError as error:
            raise BadInput(f"not valid JSON: {error}", str(folder / name)) from error
        if not isinstance(config, dict):
            raise BadInput("not a JSON object", str(folder / name))
        if "auto_map" in config:
            raise BadInput("the model needs code of its own (auto_map), which is never run", str(folder / name))
    if not any(folder.glob("*.safetensors")):
        raise BadInput("no .safetensors file: convert the weights first", str(folder))
    return folder


def has_chat_template(folder: Path) -> bool:
    """Return whether a folder's tokenizer has a format for prompts, by its files alone; of an adapter its base's.

    `training.engines.local.loading.read_tokenizer` is what decides where a model is loaded.
    """
    if is_adapter(folder) or (folder / "chat_template.jinja").is_file() or (folder / "chat_template.json").is_file():
        return True
    try:
        return bool(loads((folder / "tokenizer_config.json").read_bytes()).get("chat_template"))
    except (OSError, ValueError, AttributeError):
        return False


def verified(model: str | Path) -> Path:
    """Return the model's folder after checking the hashes of its manifest, if it has one, but for a trainer's state."""
    folder = resolve(model)
    if (folder / MANIFEST).is_file():
        verify_directory(folder, without=STATE)
    return folder


def is_adapter(folder: Path) -> bool:
    """Return whether the folder contains adapters only."""
    return (folder / "adapter_config.json").is_file()


def base_name(adapter: Path) -> str:
    """Return the name or folder of the base that an adapter folder names."""
    config = json.loads((adapter / "adapter_config.json").read_text("utf-8"))
    return str(config.get("base_model_name_or_path", ""))


def base_of(folder: Path) -> Path:
    """Return the folder of the full model: the folder itself, or the base that an adapter names."""
    return verified(base_name(folder)) if is_adapter(folder) else folder


def read_info(folder: Path) -> ModelInfo:
    """Return the folder's provenance; a model from elsewhere is named after its folder."""
    path = folder / INFO
    if not path.is_file():
        return ModelInfo(name=folder.name, base=folder.name)
    try:
        return ModelInfo.from_dict(json.loads(path.read_text("utf-8")))
    except ValueError as error:
        raise BadInput(f"not valid JSON: {error}", str(path)) from error


def start_of(folder: Path) -> str:
    """Return the model that a checkpoint descends from: its registered ancestor, or the folder it was trained from.

    It is the model's own folder where it was not trained here. Raises `BadInput` where that folder is gone.
    """
    info = read_info(folder)
    if find(info.base) is not None or not info.parent:
        return info.base if find(info.base) is not None else str(folder)
    if not is_folder(info.parent):
        raise BadInput(f"the model from which {info.name} was trained, {info.parent}, is not on this machine", "model")
    return info.parent


def child_info(base: str, *, name: str, how: str, datasets: Sequence[Path], command: str) -> ModelInfo:
    """Return what a model trained from `base` (a registered name or a folder) on dataset files says about itself.

    Without a `name` it is called after its base and how it was trained.
    """
    parent = read_info(resolve(base))
    return ModelInfo(
        name=name or f"{parent.name}-{how}",
        base=parent.base,
        licence=parent.licence,
        note=parent.note,
        parent=base,
        dataset=tuple(dict.fromkeys(map(sha256, datasets))),
        command=command,
    )


def write_info(folder: Path, info: ModelInfo) -> None:
    """Write `parley.json` and the model card (README.md) of a model folder."""
    write_json(folder / INFO, info.to_dict())
    (folder / "README.md").write_text(model_card(info), encoding="utf-8")


def model_card(info: ModelInfo) -> str:
    """Return the model card: front matter as the Hugging Face hub reads it, then provenance in words."""
    entry = REGISTRY.get(info.base)
    front = ["---", f"license: {info.licence or 'unknown'}", "library_name: transformers", "tags: [parley]"]
    if entry is not None and entry.hub:
        front.append(f"base_model: {entry.hub}")
    lines = [*front, "---", "", f"# {info.name}", ""]
    if info.note:
        lines += [f"**{info.note[0].upper()}{info.note[1:]}.** Results of this model carry the same words.", ""]
    facts = {
        "Base model": entry.title if entry is not None else info.base,
        "Parameters": f"{info.parameters:,}" if info.parameters else "",
        "Started from": info.parent,
        "Training step": str(info.step) if info.step else "",
        "Data (SHA-256)": ", ".join(info.dataset),
        "Command": f"`{info.command}`" if info.command else "",
    }
    lines += [f"- {name}: {value}" for name, value in facts.items() if value]
    return "\n".join([*lines, ""])
