"""Transfer to held-out games in miniature: its configurations, the tasks that it plays, and its table."""

import pytest

from bench import results
from bench.__main__ import parser
from bench.held_out import ALSO, GENERALIST, START, TRAINED, configuration, main, show, tasks
from training import config as configs
from training.errors import BadInput


@pytest.mark.parametrize("model", [*TRAINED, GENERALIST])
def test_every_model_is_a_configuration_of_its_games_alone(model, tmp_path):
    config = configs.parse(configuration(model, tmp_path, 3, 30))
    played = [entry.game for entry in config.mixture] or [config.game.name]
    assert played == (list(TRAINED) if model == GENERALIST else [model])
    assert (config.kind, config.seed, config.learn.steps) == ("train", 3, 30)
    sides = 1 if config.opponents else 2  # every specialist learns from at least 48 games, from both seats or from one
    assert config.rollout.scenarios * sides >= 96 * len(played)


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


def test_the_page_has_each_models_change_from_the_start_in_points_and_in_nashconv():
    def row(points, nash_conv):
        interval = {"mean": points, "low": points - 5, "high": points + 5, "n": 100}
        return {"after": {"Hanabi, mirror": {"normalised": interval}}, "nash_conv": {"leduc_poker": nash_conv}}

    raw = {"before": row(40.0, 5.0), "models": {"hanabi": [row(50.0, 4.0), row(70.0, 4.5)]}}
    # standard errors 10 and 0.25; t with one degree of freedom is 12.7062 (tables)
    assert list(results._held_out(raw)) == [
        "| Hanabi, mirror | 40 (35 to 45) | +20 (−107 to +147) |",
        "| leduc_poker | 5.00 | −0.75 (−3.93 to +2.43) |",
    ]
