"""When a run is ended early, and when it is not."""

import pytest

from training.learn.watchdog import Watchdog
from training.run_sections import StopSection

RULES = StopSection(failing=0.5, entropy_rise=0.5, kl_ceiling=0.3, patience=3)


def told(values, name, rules=RULES):
    """What the watchdog says after each step, in which one number takes `values` and the others are healthy."""
    dog = Watchdog(rules)
    healthy = {"failing": 0.1, "kl": 0.01} if name == "entropy" else {"failing": 0.1, "entropy": 1.0, "kl": 0.01}
    return [dog.see({**healthy, name: value}) for value in values]


@pytest.mark.parametrize(
    "name, bad, good, word", [("failing", 0.6, 0.5, "failed the filter"), ("kl", 0.31, 0.3, "further")]
)
def test_a_bound_must_be_passed_several_steps_in_a_row(name, bad, good, word):
    answers = told([bad, bad, good, bad, bad, bad], name)
    assert answers[:5] == [""] * 5
    assert word in answers[5]


def test_entropy_must_rise_every_step_and_far():
    assert told([1.0, 1.2, 1.4, 1.6], "entropy")[3].startswith("the entropy rose 3 steps")
    assert told([1.0, 1.1, 1.2, 1.3], "entropy") == [""] * 4  # rises, but by 30 %
    assert told([1.0, 2.0, 1.9, 2.1, 2.2], "entropy") == [""] * 5  # far, but it fell in between
    assert told([3.0, 1.0, 1.5, 2.0, 2.5], "entropy") == [""] * 5  # back up to below where it began


def test_missing_numbers_are_no_alarm():
    dog = Watchdog(RULES)
    assert [dog.see({}) for _ in range(5)] == [""] * 5


def test_it_goes_on_after_a_restart():
    first, second = Watchdog(RULES), Watchdog(RULES)
    for _ in range(2):
        first.see({"kl": 1.0, "entropy": 2.0})
    second.load_state_dict(first.state_dict())
    assert "further" in second.see({"kl": 1.0})
    assert second.began == 2.0
