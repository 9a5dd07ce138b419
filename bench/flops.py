"""Floating-point operations of learning, and the share of a device's peak that they are (MFU).

For each token 6 operations for every weight in a matrix product where all weights are trained: 2 in the forward pass, 2
for the gradients of activations, 2 for those of weights. Under adapters the last are left out, so 4; the adapters
themselves are not counted. Attention: for every pair of a token and one that it attends to 4 operations for each number
of a query in the forward pass, and three times as many with the backward pass. The embeddings are no product; the
output head counts for scored tokens. What is recomputed does not count.
"""

from __future__ import annotations

from collections.abc import Sequence

from training.cluster.shapes import ModelShape

PEAKS = {
    "NVIDIA A100-SXM4-40GB": 312e12,
    "NVIDIA A100-SXM4-80GB": 312e12,
    "NVIDIA A100 80GB PCIe": 312e12,
    "NVIDIA H100 80GB HBM3": 989e12,
    "NVIDIA H100 PCIe": 756e12,
    "NVIDIA H200": 989e12,
    "NVIDIA L4": 121e12,
    "NVIDIA L40S": 362e12,
}
"""Operations per second in bfloat16 without sparsity, from NVIDIA's data sheets, by the name that CUDA reports."""


def operations(shape: ModelShape, lengths: Sequence[int], scored: int, *, lora: bool) -> float:
    """Return the operations of learning from traces of these lengths; `scored` tokens have log-probabilities."""
    tokens, pairs = sum(lengths), sum(length * (length + 1) // 2 for length in lengths)
    products = shape.layers * shape.linear_parameters * tokens + shape.vocabulary * shape.hidden * scored
    return (4 if lora else 6) * products + 12 * shape.layers * shape.query * pairs


def utilisation(operations_per_s: float, device: str) -> float | None:
    """Return the share of the device's peak; None for a device whose peak is not known here."""
    peak = PEAKS.get(device)
    return None if peak is None else operations_per_s / peak
