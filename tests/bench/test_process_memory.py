"""Measured memory beside the arithmetic."""

import json
from argparse import Namespace

import pytest

from bench import process_memory, scale
from tests.toy_models import write_random_llama


def test_a_row_has_what_was_measured_beside_what_was_planned():
    row = process_memory._row("rank 0 of 1", {"before": 7, "loaded": 50, "peak": 300}, 40, 200)
    assert (row["loaded_ratio"], row["peak_ratio"]) == (1.25, 1.5)
    assert process_memory.line({"rows": [row]}) == ("rank 0 of 1: loaded 0 MB, 1.25 of the plan, peak 0 MB, 1.50")


def test_traces_fill_micro_batches():
    items = process_memory.full_items(100, 3, 259)
    assert [len(item) for item in items] == [50] * 3
    assert [item.credit.ppo.sum() for item in items] == [-25, 25, -25]


@pytest.mark.process
@pytest.mark.slow
def test_two_ranks_have_half_of_what_one_has(tmp_path, monkeypatch):
    """20 layers of 2.4 MB: what a process takes besides is small against it."""
    monkeypatch.setattr(process_memory, "CASES", {"all weights": process_memory.CASES["all weights"]})
    monkeypatch.setattr(process_memory, "SHARES", (1 / 4,))
    model = write_random_llama(tmp_path / "model", width=256, layers=20)
    arguments = Namespace(
        part=["memory"], model=str(model), tokens=512, engine="transformers", dtype="float32", threads=1,
        games=None, rounds=None, out=tmp_path / "scale.json",
    )  # fmt: skip
    rows = scale.main(arguments)["parts"]["memory"]["rows"]
    of_ranks = ["rank 0 of 1, all weights", "rank 0 of 2, all weights", "rank 1 of 2, all weights"]
    assert [row["process"] for row in rows] == [
        *(f"{rank}, 128 tokens" for rank in of_ranks),
        "engine transformers, 512 tokens",
    ]
    assert rows[0]["loaded_planned"] == pytest.approx(2 * rows[1]["loaded_planned"], rel=1e-4)
    assert all(row["peak"] > row["loaded"] > 0 for row in rows)
    assert json.loads(arguments.out.read_text())["parts"]["memory"]["rows"] == rows
