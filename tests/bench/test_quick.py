"""The quick trial over seeds: what is compared, and a run that fails."""

import json

import pytest

from bench import quick
from training import config as configs
from training import samples
from training.evaluate.intervals import paired


def row(leads, result="succeeded"):
    pairs = {f"s{at}": [10.0 + lead, 10.0] for at, lead in enumerate(leads)}
    lead = paired(*zip(*pairs.values(), strict=True)).to_dict() if pairs else None
    one = {name: {"mean": 0.9} for name in quick.PAIRED}
    return {
        "result": result,
        "why": "" if pairs else "out of memory",
        "verdict": "better" if pairs else "",
        "a": one if pairs else {},
        "b": one if pairs else {},
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


def test_the_quick_trial_bargains_over_items_alone_and_ends_with_its_own_head_to_head():
    config = configs.load(quick.CONFIG)
    first = samples.for_game("negotiation")[: config.data.limit]
    assert {scenario.settings["deal"]["kind"] for scenario in first} == {"items"}
    assert first == samples.load("items")
    assert config.evaluate.at_end
    assert config.evaluate.conversations % (2 * len(first)) == 0  # each start as often as every other
