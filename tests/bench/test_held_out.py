"""Transfer to held-out games in miniature: its configurations, the tasks that it plays, and its table."""

import pytest

from bench.__main__ import parser
from bench.held_out import ALSO, GENERALIST, START, TRAINED, configuration, main, show, tasks
from training import config as configs
from training.errors import BadInput


@pytest.mark.parametrize("model", [*TRAINED, GENERALIST])
def test_every_model_is_a_configuration_of_its_games_alone(model, tmp_path):
    config = configs.parse(configuration(model, tmp_path, 3, 40))
    played = [entry.game for entry in config.mixture] or [config.game.name]
    assert played == (list(TRAINED) if model == GENERALIST else [model])
    assert config.rollout.scenarios == 64 * len(played)
    assert (config.kind, config.seed, config.learn.steps) == ("train", 3, 40)


def test_games_held_out_are_measured_and_pretrained_on_random_play_alone():
    held_out = {(task["game"], task.get("settings", {}).get("size")) for task in tasks() if task.get("held_out")}
    assert held_out == {("connect_four", None), ("leduc_poker", None), ("hanabi", "simple")}
    assert {task["game"] for task in tasks() if not task.get("held_out")} == set(TRAINED)
    shown = {(each.scenario.game, each.scenario.settings.get("size")): each.seats for each in (START, *ALSO)}
    assert all(shown[game] == ("random",) for game in held_out)


def test_a_command_without_a_directory_is_refused():
    with pytest.raises(BadInput) as caught:
        main(parser().parse_args(["held_out"]))
    assert caught.value.where == "--dir"


def test_a_number_shows_each_models_change_from_the_start():
    gains = {
        "leduc": {"generalist": {"gain": 12.5, "interval": [5.0, 20.0], "n": 3}},
        "hanabi": {"tic_tac_toe": {"gain": -2.0, "n": 1}},
    }
    name, generalist, _, alone = show({"gains": gains}).splitlines()
    assert name == "leduc"
    assert generalist.split() == ["generalist", "+12.50", "[+5.00,", "+20.00]", "n", "=", "3"]
    assert alone.split() == ["tic_tac_toe", "-2.00", "[+nan,", "+nan]", "n", "=", "1"]
