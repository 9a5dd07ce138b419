"""When a run is ended early, and when it is not."""

import json
from pathlib import Path

import pytest

from training.learn.watchdog import Watchdog
from training.run_sections import StopSection

RULES = StopSection(failing=0.5, entropy_rise=0.5, kl_ceiling=0.3, patience=3)


def alarms(values, name, rules=RULES):
    """What the watchdog says after each step, in which one number takes `values` and the others are healthy."""
    dog = Watchdog(rules)
    healthy = {"failing": 0.1, "kl": 0.01} if name == "entropy" else {"failing": 0.1, "entropy": 1.0, "kl": 0.01}
    return [dog.see({**healthy, name: value}) for value in values]


@pytest.mark.parametrize(
    "name, bad, good, word",
    [
        ("failing", 0.6, 0.5, "failed the filter"),
        ("kl", 0.31, 0.3, "further"),
        ("clipfrac", 0.51, 0.5, "was clipped"),
        ("silent", 0.81, 0.8, "silence"),
        ("waits/crewmate", 0.81, 0.8, "waiting"),
    ],
)
def test_a_bound_must_be_passed_several_steps_in_a_row(name, bad, good, word):
    answers = alarms([bad, bad, good, bad, bad, bad], name)
    assert answers[:5] == [""] * 5
    assert word in answers[5]


def test_entropy_must_rise_every_step_and_far():
    assert alarms([1.0, 1.2, 1.4, 1.6], "entropy")[3].startswith("the entropy rose 3 steps")
    assert alarms([1.0, 1.1, 1.2, 1.3], "entropy") == [""] * 4  # rises, but by 30 %
    assert alarms([1.0, 2.0, 1.9, 2.1, 2.2], "entropy") == [""] * 5  # far, but it fell in between
    assert alarms([3.0, 1.0, 1.5, 2.0, 2.5], "entropy") == [""] * 5  # back up to below where it began


BEGAN = {"reward": 0.3, "failing": 0.1, "parse_rate": 0.9, "reply_tokens": 20.0, "entropy": 2.0, "kl": 0.01}
HACKING = StopSection(failing=1.0, legality_fall=1.0, hacking_failing=0.3, hacking_length=3.0, patience=3)


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
        warning = dog.see({
            "reward": 0.2 + 0.6 * share + wobble,
            "failing": 0.5 - 0.4 * share - wobble,
            "parse_rate": 0.6 + 0.3 * share + wobble,
            "reply_tokens": 12 + 24 * share + 40 * wobble,
            "entropy": 2.7 - 2.0 * share,
            "kl": 0.1 * share,
        })  # fmt: skip
        assert warning == ""


def test_hacking_is_seen_after_a_restart():
    first, second = Watchdog(HACKING), Watchdog(HACKING)
    for step in ({}, {}, {}, {"reward": 0.5, "failing": 0.6}, {"reward": 0.5, "failing": 0.6}):
        assert first.see({**BEGAN, **step}) == ""
    second.load_state_dict(json.loads(json.dumps(first.state_dict())))
    assert "reward hacking" in second.see({**BEGAN, "reward": 0.5, "failing": 0.6})


def test_missing_numbers_are_no_alarm():
    dog = Watchdog(RULES)
    assert [dog.see({}) for _ in range(5)] == [""] * 5


def test_it_continues_after_a_restart():
    first, second = Watchdog(RULES), Watchdog(RULES)
    for _ in range(2):
        first.see({"kl": 1.0, "entropy": 2.0})
    second.load_state_dict(first.state_dict())
    assert "further" in second.see({"kl": 1.0})
    assert second.began == 2.0


# --- moving averages ---

AVERAGED = StopSection(entropy_fall=0.5, legality_fall=0.2, advantage_drift=1.0, average=2, patience=2)


def test_a_collapse_of_entropy_by_hand():
    # means of two steps: 1.0, 1.0, 0.8, 0.55, 0.45; only the last is below half of 1.0
    assert [bool(text) for text in alarms([1.0, 1.0, 1.0, 0.6, 0.5, 0.4], "entropy", AVERAGED)] == [False] * 5 + [True]
    # the horizon is twice `patience` steps: at a slower fall the highest mean in sight falls as well
    assert alarms([1.0, 0.9, 0.8, 0.7, 0.6, 0.55, 0.5, 0.45, 0.4], "entropy", AVERAGED) == [""] * 9


def test_falling_legality_by_hand():
    # means of two steps: 0.9, 0.95, 0.85, 0.755, 0.7, 0.7; both last ones are 0.25 below the best, 0.755 is not 0.2
    answers = alarms([0.9, 0.9, 1.0, 0.7, 0.81, 0.59, 0.81], "parse_rate", AVERAGED)
    assert answers[:6] == [""] * 6
    assert answers[6].startswith("falling legality")
    assert alarms([0.5, 0.6, 0.9, 0.8, 0.75, 0.75], "parse_rate", AVERAGED) == [""] * 6
    # 0.9, 0.69, 0.71, 0.92: only one mean is below 0.7, since the rate recovers
    assert alarms([0.9, 0.9, 0.48, 0.94, 0.9], "parse_rate", AVERAGED) == [""] * 5


def test_drifting_advantages_by_hand():
    def after(steps):
        dog = Watchdog(AVERAGED)
        return [bool(dog.see({"advantage_mean": mean, "advantage_std": 0.4, "lr": lr})) for mean, lr in steps]

    assert after([(0.5, 1e-4), (0.2, 1e-4), (0.5, 1e-4), (-0.5, 1e-4), (-0.4, 1e-4)]) == [False] * 4 + [True]
    assert after([(0.9, 0.0)] * 5) == [False] * 5  # while only the critic learns
    equal = Watchdog(AVERAGED)  # all rewards are the same: the advantages are rounding
    assert [equal.see({"advantage_mean": 1e-8, "advantage_std": 1e-9, "lr": 1e-4}) for _ in range(5)] == [""] * 5


def test_a_held_out_gap_by_hand():
    dog = Watchdog(StopSection(held_out_gap=0.25, average=2, patience=2))
    assert dog.see_evaluation(0, {"difference.return_high": -1.0}) == ""  # no reward to compare with
    for reward in (0.2, 0.4, 0.6, 0.8):
        assert dog.see({"reward": reward}) == ""
    # the first two rewards have the mean 0.3, the last two 0.7
    assert dog.see_evaluation(4, {"difference.return_high": 0.16, "difference.return": 0.0}) == ""
    assert dog.last_good_step(4) == 2  # what another rule would name
    dog = _restarted(dog, dog.rules)
    dog.see({"reward": 0.8})
    text = dog.see_evaluation(5, {"difference.return_high": 0.24, "difference.points_high": 9.0})
    assert text.startswith("held-out gap: in training the reward has risen by 0.5")
    assert dog.last_good_step(5) == 4
    # of two roles the one that gained more counts
    roles = {"difference.return/wolf_high": 0.3, "difference.return/seer_high": 0.0}
    assert dog.see_evaluation(6, roles) == ""
    assert dog.see_evaluation(6, {"used": 4.0}) == ""
    # 9 points of return are worth 0.225 of reward
    assert dog.see_evaluation(6, {"difference.return_high": 9.0}, worth=1 / 40)
    assert dog.see_evaluation(6, {"difference.return_high": 11.0}, worth=1 / 40) == ""


def _restarted(dog, rules):
    another = Watchdog(rules)
    another.load_state_dict(json.loads(json.dumps(dog.state_dict())))
    return another


# --- replays of recorded metrics ---

RESULTS = Path(__file__).parents[2] / "docs" / "results"


def alarm(rows):
    """The step at which the default rules end a run with these metrics; None: never."""
    dog = Watchdog(StopSection())
    for step, row in enumerate(rows, 1):
        if dog.see({name: value for name, value in row.items() if value is not None}):
            return step
    return None


def casino(attempt):
    published = json.loads((RESULTS / "casino.json").read_text())["omar"]
    [metrics] = [entry["metrics"] for entry in published if entry["attempt"] == attempt]
    return [dict(zip(metrics["columns"], row, strict=True)) for row in metrics["rows"]]


@pytest.mark.parametrize("attempt, onset", [("A", 11), ("D", 11)])
def test_the_published_collapses_of_entropy_raise_an_alarm(attempt, onset):
    # onset: the first step whose entropy is below 0.8 of the first step's and stays there
    rows = casino(attempt)
    low = [row["entropy"] < 0.8 * rows[0]["entropy"] for row in rows]
    assert low.index(True) == onset - 1
    assert all(low[onset - 1 :])
    assert onset <= alarm(rows) <= onset + 5


@pytest.mark.parametrize("attempt", ["B", "C", "E", "F"])
def test_the_other_published_runs_raise_none(attempt):
    assert alarm(casino(attempt)) is None


def planted(form, seed):
    published = json.loads((RESULTS / "werewolf.json").read_text())["hack"]["forms"][form]["runs"]
    [curves] = [entry["curves"] for entry in published if entry["seed"] == seed]
    pairs = zip(curves["malformed"], curves["reward"], strict=True)
    return [{"parse_rate": 1 - bad, "failing": bad, "reward": reward} for bad, reward in pairs]


@pytest.mark.parametrize("seed", range(10))
def test_the_quick_trial_raises_none(seed):
    [run] = [run for run in json.loads((RESULTS / "quick.json").read_text())["runs"] if run["seed"] == seed]
    rows = [dict(zip(run["watched"]["columns"], row, strict=True)) for row in run["watched"]["rows"]]
    assert len(rows) == run["steps"]
    assert {"parse_rate", "entropy", "kl", "advantage_mean", "reward"} <= rows[0].keys()
    assert alarm(rows) is None


@pytest.mark.parametrize("seed", range(3))
def test_the_replications_on_casino_raise_none(seed):
    [run] = [run for run in json.loads((RESULTS / "casino.json").read_text())["replications"] if run["seed"] == seed]
    curves = run["train"]["curves"]
    rows = [dict(zip(curves, row, strict=True)) for row in zip(*curves.values(), strict=True)]
    assert {"parse_rate", "reward"} <= rows[0].keys()
    assert alarm(rows) is None


@pytest.mark.parametrize("seed, step", [(0, None), (1, 11), (2, None)])
def test_of_the_replications_on_werewolf_only_the_one_that_left_its_start_raises_an_alarm(seed, step):
    published = json.loads((RESULTS / "werewolf.json").read_text())["replications"]
    [run] = [run for run in published if run["seed"] == seed]
    curves = run["train"]["curves"]
    rows = [dict(zip(curves, row, strict=True)) for row in zip(*curves.values(), strict=True)]
    assert alarm(rows) == step
    dog = Watchdog(StopSection())
    for row in rows:
        dog.see({name: value for name, value in row.items() if value is not None})
    gains = run["eval"]["summary"]["difference"]
    highs = {f"difference.{name}_high": gain["high"] for name, gain in gains.items() if name.startswith("return")}
    assert highs
    assert dog.see_evaluation(len(rows), highs) == ""


@pytest.mark.parametrize("form", ["off", "zero"])
@pytest.mark.parametrize("seed", range(3))
def test_the_planted_bug_raises_an_alarm(form, seed):
    # onset: the first of three steps in a row in which 0.3 of the replies cannot be used (0.13 at the start)
    rows = planted(form, seed)
    bad = [row["failing"] for row in rows]
    onset = next(step for step in range(1, len(bad)) if min(bad[step - 1 : step + 2]) >= 0.3)
    assert onset <= alarm(rows) <= onset + 5


@pytest.mark.parametrize("seed", range(3))
def test_wolves_that_the_filter_keeps_from_the_bug_raise_none(seed):
    assert alarm(planted("min", seed)) is None


def test_the_werewolf_run_that_learned_raises_none_and_the_one_that_drifted_does():
    published = {
        entry["run"]: entry["metrics"]
        for entry in json.loads((RESULTS / "werewolf.json").read_text())["smollm2"]["omar"]
    }
    assert [alarm(rows) for _, rows in sorted(published.items())] == [None, 4, None]
