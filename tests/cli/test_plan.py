"""`python -m training plan`: the layout and the arithmetic as tables and JSON, and exit code 2 where nothing fits."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from training.cli import main
from training.cluster import fit, layout, memory
from training.cluster.processes import Node
from training.cluster.shapes import SHAPES
from training.config import load
from training.errors import BadInput

QUICK = "training/configs/omar/quick.toml"


def planned(capsys, *words, code=0):
    assert main(["plan", *words, "--json"]) == code
    return json.loads(capsys.readouterr().out)


@pytest.fixture
def large(tmp_path):
    """A configuration that trains all weights of a large model."""
    file = tmp_path / "large.toml"
    file.write_text('[learn]\nlora = false\nautocast = true\nrecompute = true\n[engine]\ndtype = "bfloat16"\n')
    return file


def test_a_configuration_without_the_section_gets_its_lines(capsys, large):
    reported = planned(capsys, str(large), "--gpus", "8", "--shape", "4b")
    assert reported["fits"] is True
    assert (reported["model"], reported["parameters"], reported["memory_gib"]) == ("qwen3-4b", 4_022_468_096, 80)
    assert reported["toml"] == "[cluster]\nlearners = 2\nengines = 6"
    assert [each["name"] for each in reported["processes"]] == [
        "driver", "learner 0", "learner 1", *(f"engine {number}" for number in range(6)),
    ]  # fmt: skip
    large.write_text(large.read_text() + reported["toml"])
    assert (load(large).cluster.learners, load(large).cluster.engines) == (2, 6)
    assert [line["bytes"] for line in reported["memory"]["store"]] == [2 * 4_022_468_096]
    again = planned(capsys, str(large), "--gpus", "8", "--shape", "4b")
    assert again["toml"] == ""
    assert again["processes"] == reported["processes"]


def test_the_lines_for_a_gpu_each_are_planned_again_as_they_are(capsys, large):
    words = (str(large), "--gpus", "2", "--shape", "0.6b")
    reported = planned(capsys, *words)
    assert reported["toml"] == '[cluster]\nlearners = 1\nengines = 1\naddress = "local"'
    large.write_text(large.read_text() + reported["toml"])
    assert planned(capsys, *words)["processes"] == reported["processes"]


def test_the_tables_have_every_process_and_line(capsys, large):
    assert main(["plan", str(large), "--gpus", "16", "--gpus-per-node", "4", "--shape", "7b"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("Fits: a learner rank needs ")
    assert lines[0].endswith("; 76.0 GiB of each GPU are usable.")
    assert lines[2] == "qwen2.5-7b, 7,615,616,512 parameters; engine vllm; 16 GPUs of 80 GiB on 4 nodes"
    words = [line.split() for line in lines]
    assert ["driver", "0", "-", "-"] in words
    assert ["learner", "3", "0", "3"] in [line[:4] for line in words]
    assert ["engine", "11", "3", "3"] in [line[:4] for line in words]
    # 4 bytes × 7,615,616,512 over 4 ranks = 7.09 GiB; 2 bytes × as many = 14.19 GiB
    assert "weights 7.09 GiB 4 bytes × 7,615,616,512 parameters, over 4 ranks" in [" ".join(line) for line in words]
    assert "weights 14.19 GiB 2 bytes × 7,615,616,512 parameters" in [" ".join(line) for line in words]
    # the newest weights, which the engines load from there
    assert "Memory of Ray's object store, on the first rank's node:" in lines
    stored = "weights for the engines 14.19 GiB 2 bytes × 7,615,616,512 parameters × 1: the newest weights"
    assert stored in [" ".join(line) for line in words]
    assert "Memory of the driver, on its machine:" in lines
    assert lines[-3:] == ["[cluster]", "learners = 4", "engines = 12"]


def test_what_does_not_fit_says_why_and_what_would(capsys, large):
    reported = planned(capsys, str(large), "--gpus", "2", "--shape", "7b", code=2)
    assert (reported["fits"], reported["process"]) == (False, "the learner")
    assert reported["error"]["kind"] == "input"
    assert reported["error"]["where"] == "cluster.learners"
    weights = next(line for line in reported["memory"] if line["name"] == "weights")
    assert weights["bytes"] == 4 * 7_615_616_512
    assert reported["advice"][0] == "cluster.learners = 3 on at least 4 GPUs"
    assert main(["plan", str(large), "--gpus", "2", "--shape", "7b"]) == 2
    output = capsys.readouterr().out
    assert "Memory of the learner:" in output
    assert output.startswith("Does not fit: the learner needs ")
    assert "The learner would fit with:\n- cluster.learners = 3 on at least 4 GPUs" in output


def test_an_engine_and_a_rank_that_do_not_fit_are_both_reported(capsys, tmp_path):
    file = tmp_path / "run.toml"
    file.write_text("learn = { lora = false }\n[cluster]\nlearners = 4\nengines = 4\n")
    words = [str(file), "--gpus", "8", "--memory", "20", "--shape", "7b"]
    reported = planned(capsys, *words, code=2)
    engine, rank = reported["shortfalls"]
    assert (engine["process"], rank["process"]) == ("an engine", "each of 4 learner ranks")
    assert {name: reported[name] for name in ("process", "bytes", "memory", "advice")} == {
        name: value for name, value in engine.items() if name != "where"
    }
    assert main(["plan", *words]) == 2
    output = capsys.readouterr().out
    each = [f"{part['process']} needs {part['bytes'] / 2**30:.1f} GiB" for part in reported["shortfalls"]]
    assert output.splitlines()[0] == f"Does not fit: {' and '.join(each)}; 19.0 GiB of each GPU are usable."
    assert f"An engine would fit with:\n- {engine['advice'][0]}" in output
    assert f"Each of 4 learner ranks would fit with:\n- {rank['advice'][0]}" in output
    assert "Memory of an engine:" in output
    assert "Memory of each of 4 learner ranks:" in output


@pytest.fixture
def laptop(tmp_path):
    """A configuration of two engines and a rank on a machine without GPUs."""
    file = tmp_path / "laptop.toml"
    file.write_text(
        'engine = { name = "transformers", window = 2048, max_running = 4 }\n'
        "learn = { tokens_per_batch = 1024 }\ncluster = { engines = 2 }\n"
    )
    return file


def test_without_gpus_a_machine_is_planned(capsys, laptop):
    reported = planned(capsys, str(laptop), "--gpus", "0", "--memory", "64", "--shape", "0.6b")
    assert (reported["fits"], reported["memory_gib"], reported["cores"]) == (True, 64, 3)
    sizes = {each["name"]: each["bytes"] for each in reported["processes"]}
    assert [*sizes] == ["driver", "learner 0", "engine 0", "engine 1"]
    stored = 4 * 596_049_920  # the newest weights
    [needed] = [sum(line["bytes"] for line in reported["memory"]["machine"])]
    assert needed == sum(sizes.values()) + stored
    config = load(laptop)
    nodes = [Node(id="0", name="here", address="", gpus=0)]
    beside_driver = (needed - sizes["driver"]) / 2**30
    fit.fitted(config, SHAPES["0.6b"], nodes, beside_driver + 1e-6)
    with pytest.raises(BadInput):  # what a run's start refuses
        fit.fitted(config, SHAPES["0.6b"], nodes, beside_driver - 1e-6)
    assert main(["plan", str(laptop), "--gpus", "0", "--memory", "64", "--shape", "0.6b"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"Fits: the run needs {needed / 2**30:.1f} GiB; the machine has 64 GiB."
    assert "with fewer than 3 cores the processes slow each other down" in lines
    assert ["engine", "1", "0", "-", f"{sizes['engine 1'] / 2**30:.1f}"] in [line.split() for line in lines]
    assert "Memory of Ray's object store:" in lines


def test_what_a_machine_without_gpus_has_no_memory_for(capsys, laptop):
    reported = planned(capsys, str(laptop), "--gpus", "0", "--memory", "16", "--shape", "0.6b", code=2)
    assert (reported["fits"], reported["process"]) == (False, "the machine")
    assert (reported["error"]["where"], reported["advice"][0]) == ("cluster", "cluster.engines = 1")
    assert "the machine has 16 GiB, of which the driver needs 1.1" in reported["error"]["why"]
    assert [each["name"] for each in reported["processes"]] == ["driver", "learner 0", "engine 0", "engine 1"]
    assert main(["plan", str(laptop), "--gpus", "0", "--memory", "16", "--shape", "0.6b"]) == 2
    output = capsys.readouterr().out
    needed = f"{reported['bytes'] / 2**30:.1f} GiB"
    assert output.startswith(f"Does not fit: the run needs {needed}; the machine has 16 GiB.")
    assert "The machine would fit with:\n- cluster.engines = 1" in output
    laptop.write_text(laptop.read_text().replace("engines = 2", "engines = 1"))
    assert planned(capsys, str(laptop), "--gpus", "0", "--memory", "16", "--shape", "0.6b")["fits"] is True


def test_without_gpus_and_a_section_everything_is_one_process(capsys):
    reported = planned(capsys, QUICK, "--gpus", "0", "--memory", "64", "--shape", "0.6b")
    assert (reported["shared"], reported["cores"], reported["toml"]) == (True, 1, "")
    assert {*reported["memory"]} == {"machine", "learner", "engine"}


@pytest.mark.parametrize("installed, name", [({"vllm", "transformers"}, "vllm"), ({"transformers"}, "transformers")])
def test_without_gpus_the_engine_is_the_one_that_a_run_here_chooses(capsys, tmp_path, monkeypatch, installed, name):
    """What `auto` is decides whether replies that are decoded have a cache beside `engine.cache_gib`."""
    monkeypatch.setattr("training.engines.choice._installed", lambda engine: engine in installed)
    file = tmp_path / "auto.toml"
    file.write_text('[engine]\nname = "auto"\nwindow = 2048\n')
    here = planned(capsys, str(file), "--gpus", "0", "--memory", "640", "--shape", "0.6b")
    assert here["engine"] == name
    named = {line["name"] for line in here["memory"]["engine"]}
    assert ("KV cache of running requests" in named) == (name == "transformers")
    assert planned(capsys, str(file), "--gpus", "8", "--shape", "0.6b")["engine"] == "vllm"


def test_without_gpus_nothing_is_said_of_what_gpus_have(capsys, tmp_path):
    """There is one memory, in which activations that are offloaded would stay, and no kernel of flash attention."""
    file = tmp_path / "offloads.toml"
    file.write_text("[learn]\noffload_activations = true\n")
    on_gpu = " ".join(planned(capsys, str(file), "--gpus", "1", "--shape", "0.6b")["notes"])
    without = " ".join(planned(capsys, str(file), "--gpus", "0", "--memory", "640", "--shape", "0.6b")["notes"])
    for words in ("in the memory of its machine", "flash attention"):
        assert words in on_gpu
        assert words not in without


def test_without_gpus_and_a_size_the_memory_that_is_free_here_counts(capsys, laptop, monkeypatch):
    monkeypatch.setattr("training.cli.plan.memory_free", lambda: 40 * 2**30)
    assert planned(capsys, str(laptop), "--gpus", "0", "--shape", "0.6b")["memory_gib"] == 40


def test_gpus_that_are_left_over_are_named(capsys, large):
    large.write_text(large.read_text() + "[cluster]\nlearners = 1\nengines = 1\nlag = 1\n")
    assert main(["plan", str(large), "--gpus", "4", "--shape", "0.6b"]) == 0
    assert "Unused: GPU 2 of node 0, 3 of node 0" in capsys.readouterr().out


def test_one_gpu_is_shared(capsys):
    assert main(["plan", QUICK, "--gpus", "1", "--shape", "0.6b", "--memory", "60"]) == 0
    output = capsys.readouterr().out
    assert output.startswith("Fits: the learner and an engine need ")
    needed = layout.plan(load(Path(QUICK)), SHAPES["0.6b"], 1, 60)
    together = memory.both(needed.learner, needed.engine).total / 2**30
    assert f" need {together:.1f} GiB together; 57.0 GiB of each GPU are usable." in output
    assert "Note: flash attention needs bfloat16" in output


@pytest.mark.parametrize("learn, engines", [("[learn]\nlora = false\n", 3), ("", 2)])
def test_other_models_are_counted(capsys, tmp_path, learn, engines):
    """Two past selves, or one engine for both where they are adapters, and one base model."""
    file = tmp_path / "run.toml"
    sources = ["past", "smollm2-135m", "smollm2-135m", "random", "http://127.0.0.1:1/v1 m"]
    entries = "".join(f'[[opponents]]\nsource = "{source}"\n' for source in sources)
    file.write_text(f"{entries}[rollout]\npast_loaded = 2\n{learn}")
    lines = planned(capsys, str(file), "--gpus", "1", "--shape", "0.6b")["memory"]["engine"]
    others = next(line for line in lines if line["name"] == "engines of other models")
    assert others["formula"].startswith(f"{engines} × ")


@pytest.mark.parametrize(
    "words, where, why",
    [
        ([QUICK, "--gpus", "8", "--shape", "8b"], "--shape", "neither one of 0.6b, 4b, 7b nor a config.json"),
        ([QUICK, "--gpus", "-1"], "--gpus", "-1 is not between 0 and 8192"),
        ([QUICK, "--gpus", "1", "--memory", "0"], "--memory", "not above 0"),
        (["training/configs/sft/quick.toml", "--gpus", "1"], "kind", "only training runs are planned"),
        (["none.toml", "--gpus", "1"], "none.toml", "cannot be read"),
    ],
)
def test_wrong_words_are_named(capsys, words, where, why):
    error = planned(capsys, *words, code=2)["error"]
    assert error["where"] == where
    assert why in error["why"]


@pytest.mark.parametrize("gpus", ["8", "0"])
def test_it_loads_neither_torch_nor_ray(gpus):
    code = (
        "import sys; from training.cli import main\n"
        f"code = main(['plan', {QUICK!r}, '--gpus', '{gpus}', '--memory', '80', '--shape', '0.6b'])\n"
        "sys.exit(code or any(name in sys.modules for name in ('torch', 'transformers', 'vllm', 'ray')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False, capture_output=True).returncode == 0


def test_the_shapes_that_it_offers_are_those_there_are(capsys):
    with pytest.raises(SystemExit):
        main(["plan", "--help"])
    assert f"{', '.join(SHAPES)}, or a config.json" in " ".join(capsys.readouterr().out.split())
