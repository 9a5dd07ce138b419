"""The tables of a made-up result of `bench scale`: every cell by hand."""

import json
from importlib import import_module

import pytest

from bench import results, scale, scale_page
from bench.__main__ import parser
from bench.gpu import PUBLISHED
from bench.step_tables import Scaling
from training.errors import BadInput

SIDE = {"median": 100.0, "spread": [90.0, 110.0]}
COMPARED = {"a": {"median": 300.4}, "b": SIDE, "ratio": 3.004, "ratios": [2.9, 3.1]}
SECONDS = {
    name: {"median": seconds, "spread": [seconds, 2 * seconds]}
    for name, seconds in (("sampling", 4.0), ("learning", 5.0), ("sync", 0.5), ("rest", 0.5), ("step", 10.0))
}
SHARES = {"sampling": 0.4, "learning": 0.5, "sync": 0.05, "rest": 0.05}
SYNC = {
    "sides": {"a": "two processes", "b": "one process"},
    "a": {"seconds": SECONDS, "shares": SHARES},
    "b": {"seconds": SECONDS, "shares": SHARES},
    "bytes": 500e6, "bytes_per_s": 1e9, "share": 0.06, "target": 0.05, "ok": False,
}  # fmt: skip
MODEL = {
    "checks": [
        {"engines": 1, "lag": 0, "conversations": 12, "modelled_s": 1.1, "measured_s": 1.0, "error": 0.1},
        {"engines": 2, "lag": 0, "conversations": 12, "skipped": "3 processes need a core each"},
    ],
    "driver": {"turn_s": 0.001, "request_s": 0.0005, "credit_s": 0.02, "work": {"trace_tokens": 2000.0}},
}
GPU = {
    "shapes": {
        "0.6b": {
            "full": {
                "tokens_per_s": 10_000.0, "mfu": 0.1, "peak_bytes": 2**31, "planned_bytes": 2**32, "device": "some GPU",
            },
            "lora": {"missing": "No module named 'peft'"},
            "sampling": {"tokens_per_s": 900.0, "vllm": {"tokens_per_s": 1200.0}, "ratio": 0.75},
            "steps": {"seconds": SECONDS, "shares": SHARES},
        },
        "4b": {"weights": {"skipped": "it takes about 40 s, and 5 s are left"}},
    },
    "published": [{"shape": shape, "part": part, **row} for (shape, part), row in PUBLISHED.items()],
    "source": "a benchmark",
}  # fmt: skip
CONDITIONS = {
    "commit": "abcd", "began": "2026-01-02T03:04:05+00:00", "cores": 2, "processor": "a CPU", "load_before": 0.1,
    "load_after": 1.0,
}  # fmt: skip


def lines(**parts):
    return list(scale_page.page({"parts": {name: {**part, "measured": CONDITIONS} for name, part in parts.items()}}))


def test_comparisons_have_a_row_each():
    about = {"unit": "tokens per second", "sides": {"a": "packed", "b": "padded"}}
    work = {
        "traces": 3, "tokens": 1700, "lengths": [100, 600, 1000], "padding": 0.15, "passes": {"a": 2, "b": 3},
    }  # fmt: skip
    packing = {**about, "traces": {**COMPARED, "work": work}, "branches": {**COMPARED, "work": work}}
    checkpoints = {**about, "save": COMPARED, "load": COMPARED}
    row = {**about, **COMPARED}
    overlap = {**row, "reward_difference": {"mean": -0.01, "half_width": 0.02, "seeds": 3}}
    ranks = {**row, "independent": row}
    made = lines(packing=packing, engines=row, ranks=ranks, overlap=overlap, checkpoints=checkpoints, transfer=row)
    names = (
        *("packing, traces", "packing, branches", "engines", "ranks", "independent learners", "overlap"),
        *("checkpoints, save", "checkpoints, load", "transfer"),
    )
    assert made[2:11] == [
        f"| {name}, tokens per second | packed | padded | 300 | 100 | **3.00** | 2.90 to 3.10 |" for name in names
    ]
    assert "| branches | 3 | 1,700 | 100, 600, 1000 | 15.0 % | 2 | 3 |" in made
    assert "Reward at the end, lag 1 minus lag 0: −0.010 ± 0.020 over 3 seeds." in made


def test_each_part_has_its_conditions():
    later = {**SYNC, "measured": {**CONDITIONS, "commit": "ef01", "load_before": 0.6}}
    made = list(scale_page.page({"parts": {"model": {**MODEL, "measured": CONDITIONS}, "sync": later}}))
    assert made[-2:] == [
        "| model | abcd | 2026-01-02T03:04:05+00:00 | 2 | a CPU | 0.10 | 1.00 |",
        "| sync | ef01 | 2026-01-02T03:04:05+00:00 | 2 | a CPU | 0.60 (not idle) | 1.00 |",
    ]


def test_a_file_of_results_keeps_the_parts_that_are_not_measured_again(tmp_path, monkeypatch):
    out = tmp_path / "scale.json"
    for round_, names in enumerate((["sync", "packing"], ["sync"])):
        for name in names:
            monkeypatch.setattr(import_module(scale.PARTS[name]), "measure", lambda _sizes, at=round_: {"round": at})
        scale.main(parser().parse_args(["scale", "--out", str(out), "--part", *names]))
    parts = json.loads(out.read_text())["parts"]
    assert {name: part["round"] for name, part in parts.items()} == {"packing": 0, "sync": 1}
    assert all(part["measured"]["cores"] > 0 for part in parts.values())
    out.write_text('{"measurement": "move"}')
    with pytest.raises(BadInput, match="other results"):
        scale.main(parser().parse_args(["scale", "--out", str(out), "--part", "sync"]))
    assert out.read_text() == '{"measurement": "move"}'


def test_a_sync_above_its_target_says_so():
    made = lines(sync=SYNC)
    assert "| sync | 0.50 | 0.50 to 1.00 | 5.0 % | 0.50 |" in made
    assert "The sync of 500 MB takes 6.0 % of a step, at most 5 %: **no**; 1000 MB/s." in made


def test_memory_stands_beside_the_plan():
    row = {"process": "rank 0 of 1", "loaded": 5e8, "loaded_ratio": 0.95, "peak": 1.2345e9, "peak_ratio": 1.1}
    assert "| rank 0 of 1 | 500 MB | -5 % | 1,234 MB | +10 % |" in lines(memory={"rows": [row]})


def test_every_part_is_on_the_page():
    assert {*scale_page.COMPARED, *scale_page.TABLES} == scale.PARTS.keys()


def test_the_model_has_checks_tables_and_sources():
    made = lines(model=MODEL)
    assert "| 1 engine, lag 0, 12 conversations | 1.10 s | 1.00 s | +10 % |" in made
    assert "| 2 engines, lag 0, 12 conversations | | not measured: 3 processes need a core each | |" in made
    assert sum(line.startswith("| 512 | ") for line in made) == 3
    assert [line.partition(",")[0] for line in made if line.startswith("In ")] == [
        "In strong scaling", "In weak scaling", "In strong scaling",
    ]  # fmt: skip
    alone = [line.split(" | ") for line in made if line.startswith("| 1 | 1 | 1 | ")]
    assert float(alone[0][5][:-2]) == pytest.approx(512 * 8192 / (27_440 / 8), rel=0.01)  # prime-rl's RL and its SFT
    assert float(alone[2][5][:-2]) == pytest.approx(512 * 8192 / (53_140 / 8), rel=0.01)
    assert "| NVLink, 450 GB/s in each direction | NVIDIA's data sheet |" in made
    assert any("the driver 1.50 ms for a turn and 81.9 ms for the credit" in line for line in made)  # 20 · 8192 / 2000


def test_where_a_step_stops_scaling_is_said():
    *_, last = scale_page._scaling(Scaling((), 32, 72), "strong scaling")
    assert last == (
        "In strong scaling, doubling the GPUs from 32 on adds less than half, and from 72 on the rate is within 1 % of "
        "its highest."
    )


def test_gpu_parts_stand_beside_what_others_published():
    made = lines(gpu=GPU)
    assert (
        "| 0.6b | full | 10000 tokens per second, MFU 10.0 %, 2.0 GiB at most, planned 4.0 "
        "(prime-rl, 1 × H100: 11900, MFU 11.1 %) |"
    ) in made
    assert "| 0.6b | lora | missing: No module named 'peft' |" in made
    assert "| 0.6b | sampling | 900 tokens per second, 0.75 of vLLM's own benchmark |" in made
    assert "| 0.6b | steps | 10.00 s of a step: sampling 40 %, learning 50 %, sync 5 %, rest 5 % |" in made
    assert "Measured on: some GPU. Published: a benchmark." in made
    assert "| 4b | weights | skipped: it takes about 40 s, and 5 s are left |" in made


def test_the_lines_are_written_between_the_marks_of_the_page():
    page = results.between_marks(f"# Scale\n\n{results.BEGIN}\n\n{results.END}\n", lines(sync=SYNC))
    assert "The sync of 500 MB" in page
