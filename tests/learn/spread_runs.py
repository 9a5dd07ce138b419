"""Small runs on several processes, and how two runs are compared."""

import pytest
from safetensors.torch import load_file

from tests.learn.small_runs import another
from training.config import parse
from training.store import loads, read_lines, write_json


def spread(run_dir, folder, **cluster):
    """The same run on other processes."""
    fresh = another(run_dir, folder)
    config = loads(fresh.config.read_text())
    write_json(fresh.config, config | {"cluster": cluster})
    return fresh


def metrics(run_dir, attempt=1):
    times = ("_s", "_per_s")
    lines = [line for line, _ in read_lines(run_dir.attempt(attempt).metrics)]
    return [{k: v for k, v in line.items() if k != "at" and not k.endswith(times)} for line in lines]


def same_line(line, wanted, heads=1e-5):
    """Metrics of a step that are equal but for rounding, of which a gap consists; those of value heads by `heads`."""
    assert line.keys() == wanted.keys()
    for name, value in line.items():
        digits = heads if name.startswith(("value_", "explained_")) else 1e-5
        apart = 1e-4 if name.startswith("gap_") else 1e-5
        assert value == pytest.approx(wanted[name], rel=digits, abs=apart), name


def tensors(folder):
    return {
        f"{file.parent.name}/{n}": t
        for file in sorted(folder.rglob("*.safetensors"))
        for n, t in load_file(file).items()
    }


def config_of(run_dir):
    return parse(loads(run_dir.config.read_text()))


def same(first, second):
    """Equal but for a hundredth of each tensor's length: Adam takes the sign of gradients that are nearly 0."""
    ours, theirs = tensors(first), tensors(second)
    assert ours.keys() == theirs.keys()
    for name, tensor in ours.items():
        if "generator" not in name:
            difference = (theirs[name].double() - tensor.double()).norm().item()
            assert difference <= 1e-2 * max(tensor.double().norm().item(), 1e-6), name
