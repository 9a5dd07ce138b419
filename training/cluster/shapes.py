"""Shapes of models: how many parameters of what size a decoder has, read from its `config.json` or known by name.

Parameters are counted as Transformers makes them for Llama, Qwen2 and Qwen3. Everything else raises `BadInput` naming
the field: a shape that is only nearly right would give a wrong plan.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from training import bases
from training.errors import BadInput
from training.store import loads

FAMILIES = ("llama", "qwen2", "qwen3")
"""The values of `model_type` whose layers are known here."""


@dataclass(frozen=True, slots=True)
class ModelShape:
    """Sizes of a decoder: grouped attention, a gated MLP and RMSNorm. `tied`: the output head is the embeddings.

    `window` is the longest sequence in tokens. `attention_bias`: query, key and value projections have biases;
    `output_bias`: the attention's output has one; `mlp_bias`: the three layers of the MLP have. `head_norms`: queries
    and keys are normalised in every head (Qwen3).
    """

    name: str
    layers: int
    hidden: int
    intermediate: int
    heads: int
    kv_heads: int
    head_dim: int
    vocabulary: int
    tied: bool
    window: int
    attention_bias: bool = False
    output_bias: bool = False
    mlp_bias: bool = False
    head_norms: bool = False

    @property
    def query(self) -> int:
        """The width of all queries together, and of the attention's output before its projection."""
        return self.heads * self.head_dim

    @property
    def key(self) -> int:
        """The width of all keys together; values have the same."""
        return self.kv_heads * self.head_dim

    @property
    def linear_sizes(self) -> tuple[tuple[str, int, int], ...]:
        """The linear layers of one layer: name in Transformers, inputs, outputs."""
        return (
            ("q_proj", self.hidden, self.query),
            ("k_proj", self.hidden, self.key),
            ("v_proj", self.hidden, self.key),
            ("o_proj", self.query, self.hidden),
            ("gate_proj", self.hidden, self.intermediate),
            ("up_proj", self.hidden, self.intermediate),
            ("down_proj", self.intermediate, self.hidden),
        )

    @property
    def linear_parameters(self) -> int:
        """Weights of the linear layers of one layer."""
        return sum(inputs * outputs for _, inputs, outputs in self.linear_sizes)

    @property
    def layer_parameters(self) -> int:
        """Parameters of one layer: linear layers, biases and norms."""
        biases = (self.query + 2 * self.key) * self.attention_bias + self.hidden * self.output_bias
        biases += (2 * self.intermediate + self.hidden) * self.mlp_bias
        norms = 2 * self.hidden + 2 * self.head_dim * self.head_norms
        return self.linear_parameters + biases + norms

    @property
    def outer_parameters(self) -> int:
        """Parameters outside of the layers: embeddings, output head (if it is not tied to them), the last norm."""
        return self.vocabulary * self.hidden * (1 if self.tied else 2) + self.hidden

    @property
    def parameters(self) -> int:
        """All parameters; tied ones count once."""
        return self.layers * self.layer_parameters + self.outer_parameters

    def adapter_parameters(self, rank: int, targets: tuple[str, ...] = ()) -> int:
        """Parameters of LoRA adapters of this rank on all linear layers, or on those that are named."""
        known = [name for name, _, _ in self.linear_sizes]
        if unknown := [name for name in targets if name not in known]:
            raise BadInput(f"{unknown[0]!r} is none of {', '.join(known)}, which are counted", "learn.lora.targets")
        adapted = [(a, b) for name, a, b in self.linear_sizes if not targets or name in targets]
        return self.layers * sum(rank * (inputs + outputs) for inputs, outputs in adapted)


SHAPES: dict[str, ModelShape] = {
    "0.6b": ModelShape("qwen3-0.6b", 28, 1024, 3072, 16, 8, 128, 151936, tied=True, window=40960, head_norms=True),
    "4b": ModelShape("qwen3-4b", 36, 2560, 9728, 32, 8, 128, 151936, tied=True, window=40960, head_norms=True),
    "7b": ModelShape("qwen2.5-7b", 28, 3584, 18944, 28, 4, 128, 152064, tied=False, window=32768, attention_bias=True),
}
"""Shapes that stand in for weights that are not here, by name: those in the `config.json` of Qwen/Qwen3-0.6B,
Qwen/Qwen3-4B and Qwen/Qwen2.5-7B-Instruct on the Hugging Face hub."""


def named(text: str) -> ModelShape:
    """Return the shape of that name, or of a `config.json` or model folder; raise `BadInput`."""
    if text in SHAPES:
        return SHAPES[text]
    if (file := _file(text)) is None:
        raise BadInput(f"{text[:200]!r} is neither one of {', '.join(SHAPES)} nor a config.json", "shape")
    return read(file)


def _file(text: str) -> Path | None:
    """Return the file that a path names, or that of the folder that it names; None if there is none."""
    try:
        path = Path(text).expanduser()
        file = path / "config.json" if path.is_dir() else path
        return file if file.is_file() else None
    except (OSError, RuntimeError):  # a name that is too long, or a home that is not known
        return None


def of_model(base: str, folder: Path | None = None) -> ModelShape:
    """Return the shape of a registered model or folder; a registered model that is not here may have a known one.

    `folder` is what relative paths start from. Raises `BadInput`.
    """
    if folder is not None and bases.find(base) is None and bases.is_folder(folder / base):
        base = str(folder / base)
    entry = bases.find(base)
    if entry is not None and not bases.is_prepared(entry):
        known = next((shape for shape in SHAPES.values() if shape.name == entry.name), None)
        if known is not None:
            return known
        raise BadInput(f"{bases.unprepared(base)}, or name its shape: --shape {', '.join(SHAPES)} or a config.json",
                       "model.base")  # fmt: skip
    path = bases.resolve(base)
    if bases.is_adapter(path):  # its base is not verified here: hashing large weights takes long
        path = bases.resolve(str(_mapping(path / "adapter_config.json").get("base_model_name_or_path", "")))
    return read(path / "config.json", entry.name if entry is not None else "")


def read(file: Path, name: str = "") -> ModelShape:
    """Return the shape in a Hugging Face `config.json`; raise `BadInput` naming the field that does not fit."""
    config = _mapping(file)
    try:
        return _shape(config, name or file.absolute().parent.name)
    except BadInput as error:
        raise BadInput(error.why, f"{file}: {error.where}") from error


def _mapping(file: Path) -> Mapping[str, Any]:
    try:
        config = loads(file.read_text("utf-8"))
    except OSError as error:
        raise BadInput(f"cannot be read: {error.strerror}", str(file)) from error
    except ValueError as error:
        raise BadInput(f"not valid JSON: {error}", str(file)) from error
    if not isinstance(config, Mapping):
        raise BadInput("not a JSON object", str(file))
    return config


def _shape(config: Mapping[str, Any], name: str) -> ModelShape:
    family = config.get("model_type")
    if family not in FAMILIES:
        raise BadInput(f"{str(family)[:80]!r} is not counted; known: {', '.join(FAMILIES)}", "model_type")
    heads = _size(config, "num_attention_heads")
    hidden = _size(config, "hidden_size")
    sizes = {
        "layers": _size(config, "num_hidden_layers"),
        "hidden": hidden,
        "intermediate": _size(config, "intermediate_size"),
        "heads": heads,
        "kv_heads": _size(config, "num_key_value_heads", heads),
        "head_dim": _size(config, "head_dim", 128 if family == "qwen3" else hidden // heads),
        "vocabulary": _size(config, "vocab_size"),
        "window": _size(config, "max_position_embeddings"),
    }
    if family != "qwen3" and "head_dim" not in config and hidden % heads:
        raise BadInput(f"{heads} does not divide the hidden size, {hidden}", "num_attention_heads")
    if sizes["heads"] % sizes["kv_heads"]:
        raise BadInput(f"{sizes['kv_heads']} does not divide the {heads} heads", "num_key_value_heads")
    attention = _flag(config, "attention_bias")
    return ModelShape(
        name=name,
        **sizes,
        tied=_flag(config, "tie_word_embeddings"),
        attention_bias=attention or family == "qwen2",  # Qwen2 has them without saying so
        output_bias=attention and family != "qwen2",
        mlp_bias=family == "llama" and _flag(config, "mlp_bias"),
        head_norms=family == "qwen3",
    )


def _size(config: Mapping[str, Any], name: str, default: int | None = None) -> int:
    """Return a positive whole number of the configuration; `default` where it has none."""
    value = config.get(name)
    if value is None and default is not None:
        return default
    if not isinstance(value, int) or isinstance(value, bool) or not 0 < value < 2**31:
        raise BadInput(f"expected a positive whole number, not {str(value)[:80]}", name)
    return value


def _flag(config: Mapping[str, Any], name: str) -> bool:
    value = config.get(name, False)
    if not isinstance(value, bool):
        raise BadInput(f"expected true or false, not {str(value)[:80]}", name)
    return value
