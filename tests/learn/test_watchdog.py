"""When a run is ended early, and when it is not."""

import json

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


BEGAN = {"reward": 0.3, "failing": 0.1, "parse_rate": 0.9, "reply_tokens": 20.0, "entropy": 2.0, "kl": 0.01}
HACKING = StopSection(failing=1.0, hacking_failing=0.3, hacking_length=3.0, patience=3)


def after_a_sound_beginning(steps, rules=HACKING):
    """What the watchdog says after each of `steps`, which differ from three first ones as they say."""
    dog = Watchdog(rules)
    assert [dog.see(BEGAN) for _ in range(3)] == [""] * 3
    return [dog.see({**BEGAN, **step}) for step in steps]


@pytest.mark.parametrize(
    "bad, good",
    [
        ({"failing": 0.41}, {"failing": 0.39}),
        ({"parse_rate": 0.59}, {"parse_rate": 0.61}),
        ({"reply_tokens": 61.0}, {"reply_tokens": 60.0}),
    ],
)
def test_more_reward_for_worse_turns_is_hacking(bad, good):
    more = {"reward": 0.5}
    answers = after_a_sound_beginning([{**more, **step} for step in (bad, bad, good, bad, bad, bad)])
    assert answers[:5] == [""] * 5
    assert answers[5].startswith("reward hacking: 3 steps")
    assert after_a_sound_beginning([{**more, **good}] * 9) == [""] * 9
    assert after_a_sound_beginning([{"reward": 0.3, **bad}] * 9) == [""] * 9  # worse, and nothing gained by it
    assert after_a_sound_beginning([{**more, **bad}, {**more, **bad}, {"reward": 0.2, **bad}] * 3) == [""] * 9


def test_learning_is_not_hacking():
    rules = StopSection()
    dog = Watchdog(rules)
    for step in range(60):
        share = step / 59
        wobble = 0.05 * (-1) ** step
        told = dog.see({
            "reward": 0.2 + 0.6 * share + wobble,
            "failing": 0.5 - 0.4 * share - wobble,
            "parse_rate": 0.6 + 0.3 * share + wobble,
            "reply_tokens": 12 + 24 * share + 40 * wobble,
            "entropy": 2.7 - 2.0 * share,
            "kl": 0.1 * share,
        })  # fmt: skip
        assert told == ""


def test_hacking_is_seen_after_a_restart():
    first, second = Watchdog(HACKING), Watchdog(HACKING)
    for step in ({}, {}, {}, {"reward": 0.5, "failing": 0.6}, {"reward": 0.5, "failing": 0.6}):
        assert first.see({**BEGAN, **step}) == ""
    second.load_state_dict(json.loads(json.dumps(first.state_dict())))
    assert "reward hacking" in second.see({**BEGAN, "reward": 0.5, "failing": 0.6})


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
