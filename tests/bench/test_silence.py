"""The measurement of silence and waiting: what is compared with the thresholds, by hand, and its configuration."""

import pytest

from bench.silence import ROLES, configuration, lasting, show
from training.config import parse


@pytest.mark.parametrize(
    "phases, share",
    [
        ([[0.1, 0.9, 0.8, 0.7]], 0.7),  # of 0.9, 0.8 and 0.7; before them 0.1
        ([[0.9, 0.9], [0.9, 0.2, 0.3]], 0.2),  # two steps of one phase and one of the next are not three in a row
        ([[0.9, None, 0.9, 0.9]], None),  # a step without messages interrupts
        ([[1.0, 1.0, 1.0, None]], 1.0),
        ([], None),
    ],
)
def test_a_share_lasts_as_long_as_the_rule_is_patient(phases, share):
    assert lasting(phases, 3) == share


def test_the_run_is_one_that_the_rules_watch():
    config = parse(configuration("tiny", 3))
    assert (config.seed, config.stop.silent, config.stop.waits, config.stop.patience) == (3, 0.8, 0.8, 5)
    assert all(phase.steps >= config.stop.patience for phase in config.phases)
    assert [entry.learner for phase in config.phases for entry in phase.opponents] == [(role,) for role in ROLES]


def test_the_text_names_thresholds_and_runs_that_ended():
    shares = {f"{rule}/{role}": 0.5 for rule in ("silent", "waits") for role in ROLES}
    text = show({"largest": shares, "lasting": {**shares, "silent/imposter": None}, "ended": 1, "seeds": 10})
    assert "silent/imposter  largest 0.500, 5 steps in a row none (threshold 0.8)" in text
    assert text.endswith("runs that ended early: 1 of 10")
