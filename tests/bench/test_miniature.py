"""The negotiation part of the miniature: comparisons, stored rows, and interruptions."""

import pytest

from bench import miniature, rows
from training.errors import BadInput

GAINS = {("default", 0): 0.1, ("default", 1): 0.3, ("flat", 0): 0.0, ("flat", 1): 0.1, ("paper", 0): 0.2}


@pytest.fixture
def measured(monkeypatch):
    calls = []

    def stand_in(form, seed, steps, conversations, folder):
        calls.append((form, seed))
        folder.mkdir(parents=True)
        gain = GAINS.get((form, seed))
        return {"seed": seed, "difference": None if gain is None else {"mean": gain}}

    monkeypatch.setattr(miniature, "_train_and_measure", stand_in)
    return calls


def test_gains_are_compared_by_seed(measured, tmp_path):
    result = miniature.negotiation(["default", "flat"], 2, 60, 100, tmp_path)
    assert result["forms"]["default"]["gain"] == pytest.approx(0.2)
    assert result["compared_seeds"] == [0, 1]
    against = result["gain_minus_default"]["flat"]
    assert against["mean"] == pytest.approx(-0.15)  # −0.1 and −0.2
    # standard error 0.05; t with one degree of freedom is 12.7062 (tables)
    assert against["interval"] == pytest.approx([-0.15 - 12.7062 * 0.05, -0.15 + 12.7062 * 0.05], abs=1e-4)
    assert against["n"] == 2


def test_a_seed_without_a_result_is_reported_and_not_compared(measured, tmp_path):
    result = miniature.negotiation(["default", "paper"], 2, 60, 100, tmp_path)
    assert result["forms"]["paper"]["runs"][1]["difference"] is None
    assert result["compared_seeds"] == [0]
    assert result["gain_minus_default"]["paper"] == {"mean": pytest.approx(0.1), "n": 1}  # one seed has no interval


def test_what_was_measured_is_kept_and_not_measured_again(measured, tmp_path):
    first = miniature.negotiation(["flat"], 2, 60, 100, tmp_path)
    assert miniature.negotiation(["flat"], 2, 60, 100, tmp_path) == first
    assert measured == [("flat", 0), ("flat", 1)]
    with pytest.raises(BadInput, match="new directory"):
        miniature.negotiation(["flat"], 2, 30, 100, tmp_path)


def test_only_ctrl_c_ends_the_comparison():
    stopped = {"result": "stopped", "why": "the policy went too far", "exit": 0}
    assert rows.unless_interrupted(stopped) == stopped
    with pytest.raises(KeyboardInterrupt):
        rows.unless_interrupted({"result": "stopped", "why": "signal SIGINT", "exit": 130})
