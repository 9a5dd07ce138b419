"""The memory that one process of a training run needs, on a GPU or without, line by line, each with its formula.

It is arithmetic for Transformers' Llama, Qwen2 and Qwen3 layers with flash attention, under AdamW in float32. What a
layer keeps for the backward pass is counted tensor by tensor; the tests compare it with what PyTorch saves. Sharded
numbers are those of `fully_shard`: every layer is gathered for its own forward and backward pass, and the embeddings
and the output head stay gathered from the one to the other. Loading needs less than a step: a rank reads the rows that
it keeps, of weights and of a checkpoint's state, tensor by tensor, so that beside these one tensor is there at a time,
in the memory of the machine.

Not counted: what `notes` says of a configuration.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from training.cluster.shapes import ModelShape, of_model
from training.engines.adapters import served_rank
from training.errors import BadInput

if TYPE_CHECKING:
    from training.config import RunConfig

GIB = 2**30
SIZES = {"float32": 4, "bfloat16": 2}
MARGIN = 0.05
"""The share of a GPU's memory that a plan leaves free: PyTorch's allocator rounds blocks up and cannot use every gap
between them. A margin, not a measurement."""
LIBRARIES = "libraries"
"""The name of the line of what a process has before it loads anything."""
LEARNER_OVERHEAD = GIB
"""CUDA's context with torch's kernels (about 0.5 GiB), workspaces of matrix products and buffers of NCCL."""
ENGINE_OVERHEAD = 3 * GIB // 2
"""vLLM: CUDA's context (about 0.5 GiB), and what it logs as memory outside of torch (0.2 to 0.4 GiB) and of its CUDA
graphs (0.1 to 0.4 GiB), rounded up. The engine `transformers` has what a learner rank has."""
MAPPED = 2**21
"""Bytes from which on a block is mapped by itself on a CPU (`training.learn.memory`): a huge page, and the smallest for
which torch asks for them."""
GAPS = {"adapters": 0.25, "adapters, small": 1.3, "all weights": 0.0, "all weights, small": 0.4}
"""The share of its activations that a rank has in gaps of the heap on a CPU, where small tensors are kept between those
that come and go; probably more in small micro-batches, because their hidden states are not mapped by themselves. Chosen
from measurements of SmolLM2 in float32, in micro-batches of 256 to 2,048 tokens."""
READ_TOKENS = 4096
"""Least number of tokens that the engine reads in one step (`training.engines.local.vllm_core`)."""
LABELLED_TOKENS = 2048
"""Tokens of a forward pass of a classifier's model (`training.engines.local.embedding`)."""
PREFETCHED = 2
"""Gathered layers at once: the one that computes, and the next, whose weights arrive meanwhile."""
MOST_FEATURES = 1024
"""Widest input of a ridge head (`training.learn.critic`)."""

When = Literal["always", "forward-backward", "logits", "head", "layer", "step", "load"]


@dataclass(frozen=True, slots=True)
class Line:
    """One part of a process's memory in bytes. `when` it is there: always; during a forward and a backward pass, or in
    these only while logits, the gradient of the output head or one layer are computed; while the optimizer steps; or
    while weights are sent, loaded or saved.
    """

    name: str
    bytes: int
    formula: str
    when: When = "always"


@dataclass(frozen=True, slots=True)
class Memory:
    """All lines of a process. Of what is never there at the same time, only the largest counts."""

    lines: tuple[Line, ...]

    @property
    def total(self) -> int:
        """The most bytes that are needed at once."""

        def of(when: When) -> int:
            return sum(line.bytes for line in self.lines if line.when == when)

        passes = of("forward-backward") + max(of("logits"), of("head"), of("layer"))
        return of("always") + max(passes, of("step"), of("load"))

    def fits(self, gib: float) -> bool:
        """Whether a GPU with so many GiB has room for it, and for the margin."""
        return self.total <= gib * GIB * (1 - MARGIN)


def both(first: Memory, second: Memory) -> Memory:
    """Return the memory of two processes on one GPU."""
    return Memory((*first.lines, *second.lines))


def learner(config: RunConfig, shape: ModelShape, ranks: int) -> Memory:
    """Return the memory of one of `ranks` learner ranks."""
    lines = (
        *_weights(config, shape, ranks),
        *_pass(config, shape, ranks),
        *_critic(config, shape),
        *_sent(config, shape, ranks),
    )
    overhead = Line(LIBRARIES, LEARNER_OVERHEAD, "torch; on a GPU CUDA's context, workspaces, NCCL: 1 GiB")
    return Memory((*(line for line in lines if line.bytes), overhead))


def learner_on_cpu(config: RunConfig, shape: ModelShape, ranks: int) -> Memory:
    """Return the memory of one of `ranks` learner ranks without a GPU, whose tensors the C library allocates."""
    rank, learn = learner(config, shape, ranks), config.learn
    small = learn.tokens_per_batch * shape.hidden * stored_size(config) < MAPPED
    share = GAPS[("all weights" if learn.lora is None else "adapters") + (", small" if small else "")]
    activations = sum(line.bytes for line in rank.lines if "activations" in line.name and line.when != "layer")
    gaps = Line("gaps of the heap", round(share * activations), f"{share:.0%} of the activations", "forward-backward")
    return Memory((*rank.lines, *([gaps] if gaps.bytes else [])))


def _adapters(config: RunConfig, shape: ModelShape) -> int:
    lora = config.learn.lora
    return 0 if lora is None else shape.adapter_parameters(lora.rank, lora.targets)


def _share(count: int, ranks: int) -> int:
    return -(-count // ranks)


def _over(ranks: int) -> str:
    return f", over {ranks} ranks" if ranks > 1 else ""


def _weights(config: RunConfig, shape: ModelShape, ranks: int) -> Iterator[Line]:
    """What is there all the time: weights, gradients, the optimizer's state, copies; and the optimizer's step."""
    learn, whole = config.learn, shape.parameters
    adapters, over = _adapters(config, shape), _over(ranks)
    trained = whole if learn.lora is None else adapters
    if learn.lora is None:
        yield Line("weights", _share(4 * whole, ranks), f"4 bytes × {whole:,} parameters{over}")
    else:
        size = SIZES[learn.dtype]
        yield Line("frozen weights", _share(size * whole, ranks), f"{size} bytes × {whole:,} parameters{over}")
        yield Line(
            "adapters", _share(8 * adapters, ranks), f"2 × 4 bytes × {adapters:,}: as they are, and as they began{over}"
        )
    if adapters and any(phase.reference != "start" for phase in config.phases):
        words = f"4 bytes × {adapters:,}, of the checkpoint that a phase names{over}"
        yield Line("adapters of the reference", _share(4 * adapters, ranks), words)
    yield Line("gradients", _share(4 * trained, ranks), f"4 bytes × {trained:,} trained parameters{over}")
    yield Line("optimizer state", _share(8 * trained, ranks), f"AdamW: 8 bytes × {trained:,} trained parameters{over}")
    if copies := _references(config):
        words = "4 bytes × parameters" if copies == 1 else "2 models × 4 bytes × parameters"
        yield Line("frozen reference", _share(4 * copies * whole, ranks), f"{words}{over}")
    if _takes_back(config):
        yield Line(
            "backup for rolling back a step",
            _share(12 * trained, ranks),
            f"weights and optimizer state, 12 bytes × trained{over}",
        )
    words = f"intermediates of all parameters at once, 4 bytes × trained{over}"
    yield Line("step of AdamW", _share(4 * trained, ranks), words, "step")


def _phases(config: RunConfig) -> list[RunConfig]:
    return [config.of_phase(place) for place in range(max(1, len(config.phases)))]


def _references(config: RunConfig) -> int:
    """How many frozen models are kept beside the policy; one with adapters is its own reference."""
    if config.learn.lora is not None or not any(part.learn.keeps_reference for part in _phases(config)):
        return 0
    another = any(phase.reference != "start" for phase in config.phases)
    return 2 if another and config.learn.critic.features == "start" else 1


def _takes_back(config: RunConfig) -> bool:
    """Whether a step of several updates keeps what it began with."""
    return config.learn.restart or any(not part.learn.single_update for part in _phases(config))


def _pass(config: RunConfig, shape: ModelShape, ranks: int) -> Iterator[Line]:
    """What forward and backward passes need at most, at `learn.tokens_per_batch` tokens."""
    learn, tokens = config.learn, config.learn.tokens_per_batch
    compute, stored = compute_size(config), stored_size(config)
    outer, layer = shape.outer_parameters, shape.layer_parameters
    if ranks > 1:
        gathered = PREFETCHED * layer + outer
        words = f"{compute} bytes × ({PREFETCHED} layers + embeddings and head)"
        yield Line("gathered weights", compute * gathered, words, "forward-backward")
        if adapted := _adapters(config, shape) // shape.layers:
            size = 2 if learn.autocast else 4
            words = (
                f"{size} bytes × {PREFETCHED} layers × {adapted:,}; gradients of one, {size} + 4 bytes × {adapted:,}"
            )
            yield Line("gathered adapters", (PREFETCHED * size + size + 4) * adapted, words, "forward-backward")
        if learn.lora is None:
            words = f"({compute} + 4) bytes × (1 layer + embeddings and head), before and while they are reduced"
            yield Line("gathered gradients", (compute + 4) * (layer + outer), words, "forward-backward")
    elif compute < stored:
        count = shape.linear_parameters * (1 if learn.recompute and learn.lora is not None else shape.layers)
        words = f"{compute} bytes × {count:,} weights of linear layers, which autocast converts"
        yield Line("converted weights", compute * count, words, "forward-backward")
    each = layer_activations(config, shape)
    if learn.recompute:
        kept = stored * shape.hidden
        words = f"{tokens:,} tokens × {shape.layers} layers × {kept:,} bytes"
        if not learn.offload_activations:
            yield Line("inputs of layers", tokens * shape.layers * kept, words, "forward-backward")
    if learn.recompute or learn.offload_activations:
        yield Line("activations of one layer", tokens * each, f"{tokens:,} tokens × {each:,} bytes", "layer")
    else:
        words = f"{tokens:,} tokens × {shape.layers} layers × {each:,} bytes"
        yield Line("activations", tokens * shape.layers * each, words, "forward-backward")
    width = 3 * compute * shape.intermediate + 2 * 4 * shape.hidden
    words = f"{tokens:,} tokens × (3 × {compute} bytes × {shape.intermediate:,} + 2 × 4 × {shape.hidden:,})"
    yield Line("gradients of activations", tokens * width, words, "layer")
    words = f"{tokens:,} tokens × 4 × 4 bytes × {shape.hidden:,}: last norm, and the states before the tokens"
    yield Line("last states", 16 * tokens * shape.hidden, words, "forward-backward")
    yield from _logits(config, shape, ranks)


def compute_size(config: RunConfig) -> int:
    """Return the bytes of a number in matrix products."""
    return 2 if config.learn.autocast else stored_size(config)


def stored_size(config: RunConfig) -> int:
    """Return the bytes of a weight; all trained weights are float32."""
    return 4 if config.learn.lora is None else SIZES[config.learn.dtype]


def layer_activations(config: RunConfig, shape: ModelShape) -> int:
    """Return the bytes per token that one layer keeps for the backward pass.

    These are the inputs of both norms, in float32; what the norms normalised (where their weights learn); the inputs of
    the linear layers; queries, keys, values and the output of attention; gate, its activation, up and their product;
    one number per head of the softmax, and one per norm. Under autocast each linear layer converts its input for
    itself; adapters in float32 on weights in bfloat16 convert it back. In float32 the traces of a packed row are
    attended to one by one, and their outputs are there beside that of the row.
    """
    hidden, inner, query, key = shape.hidden, shape.intermediate, shape.query, shape.key
    statistics = 4 * (shape.heads + 2 + (shape.heads + shape.kv_heads) * shape.head_norms)
    normed = (query + key) * shape.head_norms
    lora, size = config.learn.lora, compute_size(config)
    attention, mlp = size * ((2 if size == 2 else 3) * query + 2 * key), size * 4 * inner
    if lora is None:
        norms = 4 * 4 * hidden + (4 + size) * normed
        inputs = 2 * 5 * hidden if config.learn.autocast else 4 * 2 * hidden
        return statistics + norms + inputs + attention + mlp
    norms = 4 * 2 * hidden + 4 * normed
    if config.learn.autocast:
        return statistics + norms + 2 * (5 * hidden + query + 7 * lora.rank) + attention + mlp
    if size == 4:
        return statistics + norms + 4 * (2 * hidden + 7 * lora.rank) + attention + mlp
    inputs = 4 * (5 * hidden + inner + query + 7 * lora.rank)
    return statistics + norms + inputs + attention + size * 3 * inner


def offloaded(config: RunConfig, shape: ModelShape) -> int:
    """Return the bytes of activations that a rank keeps in the memory of its machine."""
    if not config.learn.offload_activations:
        return 0
    each = stored_size(config) * shape.hidden if config.learn.recompute else layer_activations(config, shape)
    return config.learn.tokens_per_batch * shape.layers * each


def notes(config: RunConfig, shape: ModelShape, *, gpus: bool = True) -> list[str]:
    """Return what the plan of this configuration, for GPUs or a machine without, does not count, in words."""
    uncounted, tokens = [], config.learn.tokens_per_batch
    longest = min(config.engine.window or shape.window, shape.window)
    if longest > tokens:
        uncounted.append(
            f"a trace may have {longest:,} tokens (engine.window), more than learn.tokens_per_batch = {tokens:,}: it "
            "is a forward and a backward pass by itself, which needs more than is planned"
        )
    if gpus and (size := offloaded(config, shape)):
        uncounted.append(f"every rank keeps {size / GIB:.2f} GiB of activations in the memory of its machine")
    if gpus and compute_size(config) == 4:
        uncounted.append(
            "flash attention needs bfloat16: other kernels may keep scores, which grow with the square of a "
            "trace's length and are not counted; learn.autocast = true avoids them"
        )
    if any(part.method.build().needs.critic for part in _phases(config)):
        each = 4 * shape.hidden * 100_000 / GIB
        uncounted.append(
            f"{each:.2f} GiB for every 100,000 positions of a step with a value target are not counted: the states "
            "that value heads learn from"
        )
    if (each := _decoded(config, shape)) and not config.engine.window:
        uncounted.append(
            f"{each:,} bytes for each token of the {config.engine.max_running:,} replies that an engine decodes are "
            "not counted: how many these are is not known unless engine.window is stated"
        )
    return [*uncounted, *_classifiers(config)[1]]


def _logits(config: RunConfig, shape: ModelShape, ranks: int) -> Iterator[Line]:
    """What `training.learn.head` has in memory at once, for a chunk of positions.

    The gradients of all chunks at the output head are added up. Where it is tied to the embeddings, the sum waits for
    theirs until the end of the backward pass. Of several ranks, the sum is among the gathered gradients.
    """
    learn, vocabulary = config.learn, shape.vocabulary
    chunk = min(learn.logits_chunk, learn.tokens_per_batch)
    copies = 5 if learn.ent_coef > 0 else 3 if learn.lora is None else 4  # the entropy, too, then has a gradient
    words = f"{chunk:,} positions × {vocabulary:,} tokens × 4 bytes × {copies}: logits, log-probabilities, gradients"
    yield Line("logits", chunk * vocabulary * 4 * copies, words, "logits")
    head, compute = vocabulary * shape.hidden, compute_size(config)
    if ranks == 1 and compute < stored_size(config):
        words = f"{compute} bytes × {head:,} weights, converted for a chunk"
        yield Line("converted output head", compute * head, words, "logits")
    if learn.lora is not None:
        return
    size = 4 if ranks == 1 else compute
    words = f"2 × {size} bytes × {head:,} weights: its gradient, and the next sum"
    yield Line("output head of a chunk", 2 * size * head, words, "head")
    if ranks == 1:
        words = f"4 bytes × {head:,} weights: the sum of the chunks"
        times: tuple[When, ...] = ("forward-backward",) if shape.tied else ("logits", "head")
        for when in times:
            yield Line("gradient of the output head", 4 * head, words, when)


def _sent(config: RunConfig, shape: ModelShape, ranks: int) -> Iterator[Line]:
    """What a rank has beside its shard while it sends weights or saves them, one tensor at a time.

    Of several ranks each gathers the tensor; adapters are added to a weight in float32: their product, the weight, and
    the sum (`training.learn.models.merged_weights`).
    """
    largest = shape.vocabulary * shape.hidden
    words, gathered = "", 0
    if ranks > 1:
        size = stored_size(config)
        gathered, words = size * largest, f"{size} bytes × {largest:,} weights of the largest tensor, gathered"
    if config.learn.lora is None:
        yield Line("tensor that is sent or saved", gathered, words, "load")
        return
    adapted = max(inputs * outputs for _, inputs, outputs in shape.linear_sizes)
    merged = f"3 × 4 bytes × {adapted:,}: a weight, what its adapter adds, and the sum{_over(ranks)}"
    both_words = f"{words}; {merged}" if words else merged
    yield Line("tensor that is sent or saved", gathered + _share(12 * adapted, ranks), both_words, "load")


def _critic(config: RunConfig, shape: ModelShape) -> Iterator[Line]:
    """The value heads of all phases: their buffers, weights and optimizer state, and what solving them needs."""
    names = {name for part in _phases(config) for name in part.method.build().needs.critic}
    section, hidden = config.learn.critic, shape.hidden
    if section.kind == "ridge":
        width = min(hidden, MOST_FEATURES)
        projection = 4 * width * hidden if hidden > width else 0
        each = 4 * 8 * width**2 + projection
        words = f"4 × 8 bytes × {width:,}²: moments, and three matrices while they are solved"
        words += f"; 4 bytes × {width:,} × {hidden:,}: projection" if projection else ""
    else:
        weights = hidden + 1 if section.kind == "linear" else section.hidden * (hidden + 2) + 1
        each = 16 * weights + 24 * hidden
        words = f"16 bytes × {weights:,} weights with gradients and optimizer state, 24 × {hidden:,} of statistics"
    yield Line("value heads", len(names) * each, f"{len(names)} × ({words})")


def engine(config: RunConfig, shape: ModelShape) -> Memory:
    """Return the memory of an engine, on each of its GPUs where it has some, with the engines of other models in its
    process, such as opponents. Where `engine.name` is `auto`, it is vLLM.
    """
    section, parts, others = config.engine, config.cluster.tensor_parallel, config.models_beside
    size, over = SIZES[section.dtype], f", over {parts} parts" if parts > 1 else ""
    weights, cache = _share(size * shape.parameters, parts), round(section.cache_gib * GIB)
    longest = min(section.window or shape.window, shape.window)
    tokens = max(longest, READ_TOKENS)
    width = size * (3 * _share(shape.intermediate, parts) + 4 * shape.hidden)
    running, decoded = section.max_running, _decoded(config, shape)
    of_each_model = (
        Line("weights", weights, f"{size} bytes × {shape.parameters:,} parameters{over}"),
        Line("KV cache", cache, f"engine.cache_gib = {section.cache_gib:g}{', in each part' if parts > 1 else ''}"),
        Line(
            "KV cache of running requests",
            running * longest * decoded if section.window else 0,
            f"{running:,} replies × {longest:,} tokens (engine.window) × {decoded:,} bytes of keys and values",
        ),
    )
    lines = [
        Line(
            "prefill activations",
            tokens * width,
            f"{tokens:,} tokens of a step × {width:,} bytes of one layer",
        ),
        Line(
            "logits",
            running * shape.vocabulary * 4 * 4,
            f"{running:,} replies × {shape.vocabulary:,} tokens × 4 bytes × 4: logits, log-probabilities, sorting",
        ),
        Line(LIBRARIES, ENGINE_OVERHEAD, "torch, vLLM; on a GPU CUDA's context, graphs, workspaces: 1.5 GiB")
        if section.name != "transformers"
        else Line(LIBRARIES, LEARNER_OVERHEAD, "torch; on a GPU CUDA's context, workspaces: 1 GiB"),
    ]
    each = sum(line.bytes for line in of_each_model)
    words = " + ".join(line.name for line in of_each_model if line.bytes)
    if parts > 1:
        each, words = each + ENGINE_OVERHEAD, f"{words} + 1.5 GiB, for they have workers of their own"
    beside = Line("engines of other models", others * each, f"{others} × ({words}), as large as the learner's")
    lines = [*of_each_model, beside, *lines]
    lines += [*_served_adapters(config, shape), *_labelling(config), *_reloaded(config, shape)]
    return Memory(tuple(line for line in lines if line.bytes))


def _decoded(config: RunConfig, shape: ModelShape) -> int:
    """The bytes of a token's keys and values that an engine has beside its cache, while it decodes.

    vLLM's cache has them; that of `transformers` has those of earlier requests (`training.engines.local.kv`).
    """
    return SIZES[config.engine.dtype] * 2 * shape.layers * shape.key if config.engine.name == "transformers" else 0


def _served_adapters(config: RunConfig, shape: ModelShape) -> Iterator[Line]:
    """The adapters that an engine of other models serves beside its weights (`training.learn.adapter_opponents`).

    vLLM allocates each slot for the largest rank: max_loras × rank × (inputs + outputs) of every linear layer
    (`create_lora_weights` in vllm/lora/layers), and the engine asks for one slot more than there are adapters.
    """
    count, rank = config.adapters_beside
    if not count:
        return
    slots = count
    if config.engine.name != "transformers":
        slots, rank = count + 1, served_rank(rank)
    size, each = SIZES[config.engine.dtype], shape.adapter_parameters(rank)
    words = f"{size} bytes × {slots} slots × {each:,} parameters of rank {rank}"
    yield Line("adapters of other models", size * slots * each, words)


def _labelling(config: RunConfig) -> Iterator[Line]:
    """The models of classifiers (`training.engines.local.embedding`): in float32, with the states of all layers."""
    for shape in _classifiers(config)[0]:
        count, width = shape.layers + 1, shape.hidden
        words = f"4 bytes × ({shape.parameters:,} parameters + {count} × {LABELLED_TOKENS:,} tokens × {width:,})"
        size = 4 * (shape.parameters + count * LABELLED_TOKENS * width)
        yield Line(f"classifiers on {shape.name}", size, words)


def _classifiers(config: RunConfig) -> tuple[list[ModelShape], list[str]]:
    """Return the models that the classifiers of `reward.labels` read, and what is not known of them, in words."""
    models: dict[str, ModelShape] = {}
    unknown = []
    for place, base in config.classifier_bases.items():
        try:
            if not base:
                raise BadInput("it is not on this machine")
            models[base] = of_model(base)
        except BadInput as error:
            unknown.append(f"the model of reward.labels.{place}.classifier is not counted: {error}")
    return list(models.values()), unknown


def _reloaded(config: RunConfig, shape: ModelShape) -> Iterator[Line]:
    """What vLLM has twice while it takes new weights: one module at a time is loaded beside the weights that sample.

    Queries, keys and values are one module, gate and up another (vllm/model_executor/model_loader/reload/layerwise.py).
    Transformers' weights are overwritten in place.
    """
    if config.engine.name == "transformers":
        return
    size, parts, hidden = SIZES[config.engine.dtype], config.cluster.tensor_parallel, shape.hidden
    modules = (shape.vocabulary * hidden, 2 * hidden * shape.intermediate, hidden * (shape.query + 2 * shape.key))
    words = f"{size} bytes × {max(modules):,} weights of the largest module, beside those that it replaces"
    yield Line("module that is reloaded", _share(size * max(modules), parts), words, "load")
