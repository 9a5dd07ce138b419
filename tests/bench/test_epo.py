"""The miniatures of EPO: what their strategists begin from, their configurations, and their tables."""

from dataclasses import replace
from functools import partial
from statistics import fmean

import pytest

from bench import results
from bench.__main__ import parser
from bench.advice import Customer, Wordless, bargains, errands, named, played
from bench.epo import main, reinforced, show, summary, tasks, taught
from bench.homes import KITCHEN, Resident, chores, memories
from training import config as configs
from training.errors import BadInput
from training.games import make
from training.games.actions import plain
from training.run_sections import SpeakerSection
from training.text.parsing import parse

TASKS = tasks()
FORM = SpeakerSection(source="follower:100", words=12)


def test_bargains_have_each_pair_of_value_orders_once():
    pairs = {
        tuple(tuple(side["values"].values()) for side in scenario.settings["deal"]["sides"]) for scenario in bargains()
    }
    assert len(pairs) == len(bargains()) == 6 * 6
    assert all(sorted(values) == [3, 4, 5] for pair in pairs for values in pair)


def test_errands_of_the_two_splits_have_other_goals():
    from training.games import make

    def instructions(split):
        return {make(each).observe(0).messages[0].text for each in errands(split)}

    assert instructions("train")
    assert not instructions("train") & instructions("test")


@pytest.mark.parametrize("name", TASKS)
def test_a_speaker_that_follows_all_strategies_makes_the_moves_that_they_name(name):
    task = TASKS[name]
    episodes = played(task.train[:4], 4, partial(named, task.start.player, FORM), 0)
    turns = [(episode, turn) for episode in episodes for turn in episode.turns]
    assert turns
    for episode, turn in turns:
        move = episode.moves[turn.move_index].move
        assert plain(turn.strategy).replace("_", " ").startswith(move.action.replace("_", " "))


def test_a_customer_buys_better_with_more_skill():
    def mean_reward(skill):
        episodes = played(errands("train"), 60, partial(named, partial(Customer, skill=skill), FORM), 0)
        return fmean(episode.returns[0] for episode in episodes)

    assert mean_reward(0) < mean_reward(100)


def test_chores_are_every_family_with_every_thing():
    tasks = [scenario.settings["home"]["task"] for scenario in chores()]
    assert len({(task["family"], task["object"]) for task in tasks}) == len(tasks) == 6 * 4


def test_a_resident_knows_what_every_receptacle_contains():
    game = make(chores()[0])
    for place, memory in zip(KITCHEN, memories(), strict=True):
        for command in (f"go to {place}", *([f"open {place}"] if "is open" in memory.text else [])):
            game.step({0: parse(command, game.observe(0))[0]})
        assert game.observe(0).messages[-1].text.endswith(memory.text)


def test_a_resident_with_full_skill_does_every_chore_and_never_does_one_at_random():
    def solved(skill):
        episodes = played(chores(), 24, partial(named, partial(Resident, skill=skill), FORM), 0)
        return sum(episode.returns[0] for episode in episodes)

    assert solved(100) == 24
    assert solved(0) < solved(60) < 24


def test_a_teacher_is_worth_more_the_more_the_speaker_follows():
    task = replace(TASKS["epo_shop"], measured=60)
    shares = ("follower:1", "follower:50", "follower:100")
    means = [taught(task, task.form.model_copy(update={"source": share}), 0) for share in shares]
    assert means == sorted(set(means))


def test_a_wordless_player_names_moves_without_words():
    episodes = played(bargains(), 36, partial(named, lambda *_: Wordless(), FORM), 0)
    actions = {entry.move.action for episode in episodes for entry in episode.moves}
    assert actions == {"propose", "accept", "reject", "walk_away"}


@pytest.mark.parametrize("name, form", [(name, form) for name, task in TASKS.items() for form in task.forms])
def test_every_form_is_a_run_of_epo_before_its_speaker(name, form, tmp_path):
    speaker = TASKS[name].form.model_copy(update={"source": "follower:60"})
    config = configs.parse(reinforced(TASKS[name], tmp_path, form, speaker, 3, 7, tmp_path))
    assert (config.kind, config.seed, config.method.name, config.game.name) == ("train", 3, "epo", TASKS[name].game)
    assert config.speaker.source == "follower:60"
    assert sum(phase.steps for phase in config.phases) == config.learn.steps == 7


def test_means_and_gains_are_paired_by_seed():
    def row(form, seed, reward):
        return {"form": form, "following": 30, "seed": seed, "after": {"reward": reward}}

    rows = [row("none", 0, 0.125), row("rl", 0, 0.5), row("none", 1, 0.25), row("rl", 1, 0.5), row("rl", 2, 0.875)]
    rows.append({"form": "none", "following": 30, "seed": 2, "after": None})
    result = summary(TASKS["epo_shop"], ["none", "rl"], [30], rows, 7)
    rl = result["following"]["30"]["rl"]["reward"]
    assert (rl["mean"], rl["n"]) == (0.625, 3)
    assert (rl["gain"]["mean"], rl["gain"]["n"]) == (0.3125, 2)
    # Student's t with one degree of freedom: 12.7062 times the standard error, sqrt(0.0078125 / 2)
    assert rl["gain"]["interval"] == pytest.approx([0.3125 - 0.79414, 0.3125 + 0.79414], abs=1e-4)
    assert result["failed"] == 1
    assert show(result).splitlines()[1].split()[:4] == ["30", "%", "rl", "reward"]


@pytest.mark.parametrize("options, where", [([], "--dir"), (["--dir", "runs", "--forms", "rl,by_luck"], "--forms")])
def test_what_cannot_be_run_is_refused(options, where):
    with pytest.raises(BadInput) as caught:
        main(parser().parse_args(["miniature", "epo_negotiation", *options]))
    assert caught.value.where == where


def test_a_page_has_the_means_of_every_form_and_their_differences():
    def run(form, seed, advantage):
        after = {"both": advantage, "both_opposite": advantage}
        return {"form": form, "following": 60, "seed": seed, "after": after}

    runs = [run("none", 0, 0.125), run("rl", 0, 0.5), run("none", 1, 0.25), run("rl", 1, 0.5)]
    runs.append({"form": "rl", "following": 60, "seed": 2, "after": None})
    # standard errors 0.0625; t with one degree of freedom is 12.7062 (tables)
    assert list(results.epo({"tasks": {"epo_negotiation": {"runs": runs}}})) == [
        "| 60 % | `none` | 2 | 0.188 (-0.607 to 0.982) |",
        "| 60 % | `rl` | 2 | 0.500 (0.500 to 0.500) |",
        "| 60 % | `rl` minus `none` | 2 | +0.312 (−0.482 to +1.107) |",
    ]
