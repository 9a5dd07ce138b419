"""What the parts of a step cost on GPUs: published rows, sizes of data sheets and assumptions, each with its source.

None of these has been measured with this code. `SOURCES` says of every number where it is from.
"""

from __future__ import annotations

from bench.step_model import Costs, Work
from training.cluster.shapes import SHAPES, ModelShape

MEMORY = 4.8e12
CAPACITY, USED = 141e9, 0.9
PEAK = 989e12
NVLINK = 450e9
NETWORK = 50e9
PCIE = 25e9
STORE = 5e9
BETWEEN_STORES = 2.5e9
READS, COMPUTES, LAUNCH = 0.6, 0.4, 0.002
TRAINED = 27_440 / 8
"""Tokens per second and GPU of prime-rl's RL row."""
TRAINED_FASTER = 53_140 / 8
"""Those of its row for supervised training: how far the tables depend on that number."""

SOURCES = {
    "memory of an H200, 141 GB, 4.8 TB/s": "NVIDIA's data sheet",
    "90 % of it for an engine's weights and KV cache, which bounds its sequences": "assumed",
    "a prompt token is read once": "assumed: every engine finds a conversation's earlier turns in its prefix cache",
    "bfloat16 without sparsity, 989 TFLOP/s": "NVIDIA's data sheet",
    "NVLink, 450 GB/s in each direction": "NVIDIA's data sheet",
    "network between nodes, 50 GB/s for each GPU": "assumed: 400 Gbit/s InfiniBand",
    "GPU to host memory and back, 25 GB/s": "assumed: half of PCIe 5.0 × 16",
    "copying into Ray's store, 5 GB/s": "assumed: one core that copies",
    "from store to store, 2.5 GB/s": "assumed: Ray's object manager over TCP",
    "60 % of the memory's speed, 40 % of the peak, 2 ms for a decoding step": "assumed",
    "learning, 3,430 tokens per second and GPU": "prime-rl's benchmark of 2026-02-07: Qwen3-4B, RL of all weights, "
    "sequences of 16,384 tokens, activations recomputed, 27.44k on 8 × H200 (MFU 14.7 %)",
    "learning in the last table, 6,642": "the same benchmark, supervised training of all weights, 53.14k (MFU 28.4 %)",
    "turns of the driver": "measured on this machine: games with a scripted engine, requests to an engine's process "
    "with prompts of 512 tokens",
    "credit and records": "measured on this machine with shorter traces, in proportion to their tokens",
}

WORK = Work(conversations=512, turns=32, sampled=4096, read=4096, learned=8192, longest=1.5)
"""512 conversations whose traces have 8,192 tokens: 32 replies of 128 tokens and as many tokens of prompts; the longest
has half as many again as the mean."""


def costs(shape: ModelShape, *, turn: float, credit: float, trained: float = TRAINED, context: float = 4096) -> Costs:
    """Return the costs of a 4B model, trained with all weights, on H200s.

    A GPU trains on `trained` tokens per second; `context` is the mean length in decoding.
    """
    weights, cache = shape.parameters, 2 * 2 * shape.key * shape.layers
    each = 2 * weights / (COMPUTES * PEAK)
    return Costs(
        decode_step=LAUNCH + 2 * weights / (READS * MEMORY),
        decode_token=cache * context / (READS * MEMORY) + each,
        read_token=each,
        running=int((USED * CAPACITY - 2 * weights) / (cache * context)),
        learn_token=1 / trained,
        batch=16384,
        collective_bytes=(2 * 2 + 4) * weights,
        within=1 / NVLINK,
        between=1 / NETWORK,
        overlapped=True,
        weights=2 * weights,  # engines sample in bfloat16
        load=1 / PCIE + 1 / STORE + 1 / PCIE,
        send=1 / BETWEEN_STORES,
        turn=turn,
        credit=credit,
    )


FOUR_B = SHAPES["4b"]
