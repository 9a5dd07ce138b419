"""The experiment with scripted participants: the recomputation itself, and the stored result against it."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from bench import experiments, recomputed
from bench.participants import choose

RAW = Path("docs/results/experiments.json")


@pytest.fixture(scope="module")
def raw() -> dict[str, Any]:
    stored: dict[str, Any] = json.loads(RAW.read_text("utf-8"))
    return stored


def test_the_stored_analysis_equals_a_recomputation_from_the_stored_export(raw: dict[str, Any]) -> None:
    again = recomputed.recompute("\n".join(raw["export"]), experiments.ARMS, experiments.COLUMNS)
    assert recomputed.largest_gap(raw["analysis"], again) < experiments.TOLERANCE


def test_three_left_nothing_was_lost_and_the_arms_are_balanced(raw: dict[str, Any]) -> None:
    assert (raw["participants"], len(raw["export"])) == (40, 41)
    assert raw["left"] == ["play", "play", "wait"]
    assert raw["lost"] == []
    assert raw["outcomes"] == {"completed": 37, "left": 3}  # the partner of the one who left a pair completes
    assert raw["analysed"] == {"alone": 18, "pairs": 18}
    assert raw["ok"] is True


def test_a_recomputation_by_hand() -> None:
    """Arm a: groups 1 and 3, mean 2, t(0.975, 1) = 12.706 and error 1. Arm b: one group of two, 4 and 6, mean 5."""
    text = "arm,analysed,group,x\na,1,1,1\na,1,2,3\nb,1,3,4\nb,1,3,6\nb,1,4,7\nb,0,5,99\n"
    analysis = recomputed.recompute(text, ("a", "b"), {"x": "x"})
    assert analysis["measures"]["x"]["a"]["mean"] == 2
    assert analysis["measures"]["x"]["a"]["low"] == pytest.approx(2 - 12.7062, abs=1e-3)
    assert analysis["measures"]["x"]["b"]["mean"] == 6  # groups 5 and 7
    half = 12.7062 * 2**0.5  # each arm: variance 2 of its groups, over 2
    assert analysis["differences"]["b"]["x"]["high"] == pytest.approx(4 + half, abs=1e-3)


def test_gaps_are_found() -> None:
    assert recomputed.largest_gap({"a": {"b": 1.0}}, {"a": {"b": 1.5}}) == 0.5
    assert recomputed.largest_gap({}, {"a": 1.0}) == float("inf")


def test_moves_are_read_from_the_page() -> None:
    page = 'name="propose.oil" min="0" max="3" name="propose.soup" min="0" max="1"'
    fields = choose(page, random.Random(1))
    assert fields["action"] == "propose"
    assert int(fields["propose.oil"]) <= 3
    assert choose('value="accept"', random.Random(1))["action"] == "accept"
