"""The strategic miniatures: their configurations, forms and tables."""

import pytest

from bench.__main__ import parser
from bench.strategic import FORMS, TASKS, configuration, main, show
from training import config as configs
from training.errors import BadInput
from training.methods.mars import MarsConfig


def configured(part, form, tmp_path, steps=None):
    task = TASKS[part]
    return configs.parse(configuration(task, tmp_path, form, 3, steps or task.steps))


@pytest.mark.parametrize("part", TASKS)
@pytest.mark.parametrize("form", FORMS)
def test_every_task_and_form_is_a_configuration_of_its_game(part, form, tmp_path):
    config = configured(part, form, tmp_path)
    assert (config.kind, config.seed, config.game.name) == ("train", 3, TASKS[part].game)
    assert config.learn.steps == TASKS[part].steps
    assert isinstance(config.method, MarsConfig)


def test_forms_differ_in_the_method_alone_and_each_is_another(tmp_path):
    made = {form: configured("hanabi", form, tmp_path) for form in FORMS if form != "fixed_opponent"}
    assert len({config.method for config in made.values()}) == len(made)
    for config in made.values():
        assert config.model_copy(update={"method": made["full"].method}) == made["full"]


@pytest.mark.parametrize("part", TASKS)
def test_a_fixed_opponent_takes_a_seat_of_twice_as_many_games(part, tmp_path):
    full, fixed = (configured(part, form, tmp_path) for form in ("full", "fixed_opponent"))
    assert full.opponents == ()
    assert [(entry.source, entry.learner) for entry in fixed.opponents] == [(TASKS[part].opponent, "one")]
    assert fixed.rollout.scenarios == 2 * full.rollout.scenarios
    assert fixed.method == full.method


def test_phases_have_their_shares_of_the_steps(tmp_path):
    phases = configured("kuhn", "full", tmp_path, steps=5).phases
    assert [(phase.name, phase.steps) for phase in phases] == [("wide", 3), ("narrow", 2)]  # 2.75 and 2.25
    assert configured("hanabi", "full", tmp_path, steps=5).phases == ()


@pytest.mark.parametrize("options, where", [([], "--dir"), (["--dir", "runs", "--forms", "full,by_luck"], "--forms")])
def test_what_cannot_be_run_is_refused(options, where):
    with pytest.raises(BadInput) as caught:
        main(parser().parse_args(["miniature", "kuhn", *options]))
    assert caught.value.where == where


def test_one_line_shows_the_start_and_each_form():
    runs = {"nash_conv": 0.25, "interval": [0.125, 0.375], "n": 3}
    shown = show({"before": {"nash_conv": 0.5}, "forms": {"full": runs, "role_ema": {"nash_conv": 0.75, "n": 1}}})
    first, full, alone = shown.splitlines()
    assert first == "start: nash_conv 0.500"
    assert full.split() == ["full", "0.250", "[0.125,", "0.375]", "n", "=", "3"]
    assert "nan" in alone
