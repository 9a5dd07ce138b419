"""The quick trial over seeds: what is compared, and a run that fails."""

import json

import pytest

from bench import quick, results
from tests.learn.small_runs import make_run
from training import config as configs
from training import samples
from training.evaluate.intervals import paired


def row(leads, result="succeeded"):
    pairs = {f"s{at}": [10.0 + lead, 10.0] for at, lead in enumerate(leads)}
    lead = paired(*zip(*pairs.values(), strict=True)).to_dict() if pairs else None
    summary = {name: {"mean": 0.9} for name in quick.PAIRED}
    return {
        "result": result,
        "why": "" if pairs else "out of memory",
        "verdict": "better" if pairs else "",
        "a": summary if pairs else {},
        "b": summary if pairs else {},
        "difference": {"points": lead} if pairs else {},
        "agreement": {"mean": 0.8} if pairs else None,
        "by_scenario": pairs,
        "seconds": {"wall": 90.4, "cpu": 70.0, "head_to_head": 20.0},
    }


def test_seeds_above_zero_are_counted_and_a_failed_one_is_reported(monkeypatch, tmp_path):
    rows = iter([row([3.0, 5.0, 4.0]), row([-9.0, 9.0, 1.0]), row([], "failed")])
    monkeypatch.setattr(quick, "_measured", lambda config, folder: folder.mkdir(parents=True) or next(rows))
    result = quick.main(type("Arguments", (), {"seeds": 3, "dir": tmp_path}))
    assert (result["seeds"], result["above_zero"], result["n"]) == (3, 1, 2)
    assert result["lead"] == pytest.approx((4 + 1 / 3) / 2)
    assert [run["seed"] for run in result["runs"]] == [0, 1, 2]
    shown = quick.show(result)
    assert "seed 2: out of memory" in shown
    assert "interval above zero: 1 of 3 seeds" in shown
    assert json.loads((tmp_path / "seed-1" / "row.json").read_text())["config"]["seed"] == 1


def test_the_page_recomputes_intervals_from_the_points_by_scenario():
    # leads 3, 5, 4: mean 4, standard error 1/√3, t with two degrees of freedom 4.3027 (tables): ± 2.48
    lines = list(results.quick({"runs": [{"seed": 0, **row([3.0, 5.0, 4.0])}, {"seed": 1, **row([-9.0, 9.0, 1.0])}]}))
    assert lines[0] == "| 0 | 14.0 | 10.0 | **+4.0 (+1.5 to +6.5)** | 0.80 | 0.90 | 70 | 90 |"
    assert lines[2] == "**1 of 2 seeds have their interval above zero**"


def test_a_seed_is_a_run_of_the_command_line_with_its_own_report(tmp_path):
    config, _ = make_run(tmp_path / "made", steps=2, evaluate={"at_end": True, "conversations": 6})
    data = str(tmp_path / "made" / "data.jsonl")
    (tmp_path / "seed-3").mkdir()
    measured = quick._measured({**config.to_dict(), "data": {"path": data}, "seed": 3}, tmp_path / "seed-3")
    assert (measured["result"], measured["steps"]) == ("succeeded", 2)
    assert "over 3 scenarios" in measured["verdict"]
    a, b = zip(*measured["by_scenario"].values(), strict=True)
    assert paired(a, b).to_dict() == pytest.approx(measured["difference"]["points"])
    assert len(measured["watched"]["rows"]) == 2
    assert {"entropy", "parse_rate", "kl", "lr"} <= {*measured["watched"]["columns"]}
    assert measured["seconds"]["cpu"] > 0
    assert 0 < measured["seconds"]["head_to_head"] < measured["seconds"]["wall"]


def test_the_quick_trial_bargains_over_items_alone_and_ends_with_its_own_head_to_head():
    config = configs.load(quick.CONFIG)
    first = samples.for_game("negotiation")[: config.data.limit]
    assert {scenario.settings["deal"]["kind"] for scenario in first} == {"items"}
    assert first == samples.load("items")
    assert config.evaluate.at_end
    assert config.evaluate.conversations % (2 * len(first)) == 0  # each start as often as every other
