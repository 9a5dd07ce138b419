"""Floating-point operations and the share of the peak, by hand."""

import pytest

from bench.flops import operations, utilisation
from training.cluster.shapes import ModelShape

SMALL = ModelShape("small", 2, 4, 8, 2, 1, 2, 10, tied=True, window=16)
# of a layer: queries 4 · 4, keys 4 · 2, values 4 · 2, output 4 · 4, MLP 3 · 4 · 8 = 144 weights; the head 10 · 4 = 40


def test_all_weights_count_six_and_adapters_four_per_token():
    # lengths 3 and 2: 5 tokens, pairs 6 + 3 = 9; attention 12 · 2 layers · 4 numbers · 9 pairs = 864
    assert operations(SMALL, [3, 2], 4, lora=False) == 6 * (2 * 144 * 5 + 40 * 4) + 864
    assert operations(SMALL, [3, 2], 4, lora=True) == 4 * (2 * 144 * 5 + 40 * 4) + 864


def test_an_unknown_device_has_no_utilisation():
    assert utilisation(98.9e12, "NVIDIA H200") == pytest.approx(0.1)
    assert utilisation(98.9e12, "NVIDIA Something") is None
