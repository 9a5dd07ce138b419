"""The order of starts, and the inputs of a new run directory."""

import pytest

from tests.learn.small_runs import make_run
from training import samples
from training.attempts.start import reopen, start
from training.config import RunConfig, parse
from training.errors import BadInput
from training.learn.scenarios import ScenarioSampler, read_scenarios
from training.learn.scenarios import jobs as drawn_jobs
from training.rollout.pool import Pool
from training.rundir import RunDir
from training.store import dumps, sha256


def starts(count=5, seed=3, shuffle=True):
    return ScenarioSampler([s.with_seed(0) for s in samples.load("items")[:count]], seed, shuffle=shuffle)


def jobs(config, scenarios, step):
    return drawn_jobs(config, scenarios, Pool((), 0, save_every=1, saved=1, loaded=1), step)


def ids(scenarios):
    return [scenario.id for scenario in scenarios]


def test_every_pass_holds_every_scenario_once_in_an_order_of_its_own():
    passes = [ids(starts().take(first, 5)) for first in (0, 5, 10)]
    assert {tuple(sorted(each)) for each in passes} == {tuple(sorted(ids(starts(shuffle=False).take(0, 5))))}
    assert len({tuple(each) for each in passes}) > 1


def test_the_order_depends_on_seed_and_place_only():
    assert ids(starts().take(7, 4)) == ids(starts().take(0, 20))[7:11]
    assert ids(starts(seed=4).take(0, 20)) != ids(starts().take(0, 20))
    assert ids(starts(shuffle=False).take(3, 4)) == ids(
        starts(shuffle=False).scenarios[3:] + starts(shuffle=False).scenarios[:2]
    )


def test_replays_of_a_start_share_id_and_seed():
    config = RunConfig().model_copy(update={"seed": 9})
    settings = config.rollout.model_copy(update={"scenarios": 3, "games": 2})
    planned = jobs(config.model_copy(update={"rollout": settings}), starts(), step=2)
    assert [job.number for job in planned] == list(range(6))
    keys = [(job.scenario.id, job.scenario.seed) for job in planned]
    assert keys[0::2] == keys[1::2]
    assert len(set(keys)) == 3
    assert all(seed for _, seed in keys)
    assert {job.policies for job in planned} == {("learner", "learner")}


def test_a_start_with_a_seed_of_its_own_is_the_same_in_every_pass():
    fixed = ScenarioSampler([starts(count=1).scenarios[0].with_seed(77)], 3, shuffle=True)
    config = RunConfig().model_copy(update={"rollout": RunConfig().rollout.model_copy(update={"scenarios": 1})})
    assert {jobs(config, fixed, step)[0].scenario.seed for step in (1, 2, 3)} == {77}
    assert len({jobs(config, starts(count=1), step)[0].scenario.seed for step in (1, 2, 3)}) == 3


def test_steps_continue_the_order_of_starts_with_new_seeds():
    config = RunConfig().model_copy(update={"rollout": RunConfig().rollout.model_copy(update={"scenarios": 5})})
    steps = [[job.scenario for job in jobs(config, starts(shuffle=False), step)] for step in (1, 2)]
    assert [ids(step) for step in steps] == [ids(starts(shuffle=False).scenarios)] * 2
    assert len({scenario.seed for step in steps for scenario in step}) == 10
    fewer = config.model_copy(update={"rollout": config.rollout.model_copy(update={"scenarios": 2})})
    by_step = [ids(job.scenario for job in jobs(fewer, starts(shuffle=False), step)) for step in (1, 2)]
    assert [*by_step[0], *by_step[1]] == ids(starts(shuffle=False).take(0, 4))


def test_a_drawn_seed_depends_on_the_scenario_the_pass_and_the_run():
    def draw(a_step, steps, seed=9):
        rollout = RunConfig().rollout.model_copy(update={"scenarios": a_step, "games": 1})
        config = RunConfig().model_copy(update={"rollout": rollout, "seed": seed})
        played = [job.scenario for step in range(1, steps + 1) for job in jobs(config, starts(seed=seed), step)]
        return [(scenario.id, scenario.seed) for scenario in played]

    assert draw(2, 5) == draw(5, 2) == draw(10, 1)
    assert len(set(draw(10, 1))) == 10
    assert not set(draw(10, 1)) & set(draw(10, 1, seed=8))


def test_inputs_are_copied_and_named_by_their_hash(tmp_path):
    config, run_dir = make_run(tmp_path)
    [copy] = run_dir.inputs.iterdir()
    assert copy.stem == sha256(copy)
    assert config.data.path == f"inputs/{copy.name}"
    (tmp_path / "data.jsonl").unlink()
    again = reopen(run_dir)
    assert again.data.path == str(copy)
    assert len(read_scenarios(again, copy).scenarios) == 3
    with pytest.raises(BadInput, match="has a run already"):
        start(config, run_dir, tmp_path)


def test_without_data_the_samples_of_the_game_are_played(tmp_path):
    config = start(parse({"learn": {"steps": 20}}), RunDir(tmp_path / "run"), tmp_path)
    starts = read_scenarios(config, tmp_path / "run" / config.data.path)
    assert len(starts.scenarios) == len(samples.for_game("negotiation"))


def test_a_wrong_file_is_refused_with_its_place(tmp_path):
    config = RunConfig()
    items = samples.load("items")[0]
    cases = {
        "empty": ("", "no scenario"),
        "other": (dumps(samples.load("dialogues")[0].to_dict()), "no scenario of negotiation: it has dialogue"),
        "broken": (
            dumps(items.model_copy(update={"settings": {**items.settings, "turn_limit": -4}}).to_dict()),
            "turn_limit",
        ),
        "text": ("hello", "not JSON"),
    }
    for name, (text, why) in cases.items():
        path = tmp_path / f"{name}.jsonl"
        path.write_text(text + "\n")
        with pytest.raises(BadInput, match=why) as caught:
            read_scenarios(config, path)
        assert f"{name}.jsonl" in str(caught.value)


def mixed(path):
    """A dataset file with scenarios of two games in turn; returns the ids of each game's."""
    games = {"negotiation": samples.load("items")[:3], "dialogue": samples.load("dialogues")[:2]}
    order = [(game, at) for at in range(3) for game in ("dialogue", "negotiation") if at < len(games[game])]
    path.write_text("".join(dumps(games[game][at].to_dict()) + "\n" for game, at in order))
    return {game: ids(scenarios) for game, scenarios in games.items()}


def test_a_file_of_two_games_gives_a_run_its_own(tmp_path, caplog):
    path = tmp_path / "mixed.jsonl"
    expected = mixed(path)
    for game in ("negotiation", "dialogue"):
        judge = {"address": "http://127.0.0.1:9/v1", "model": "j"}
        config = parse({"game": {"name": game}, "judge": judge, "learn": {"steps": 20}})
        with caplog.at_level("INFO", "training"):
            assert ids(read_scenarios(config, path).scenarios) == expected[game]
    assert "2 scenarios of dialogue are left out: the run plays negotiation" in caplog.text
    two = parse({"data": {"limit": 2}, "learn": {"steps": 20}})
    assert ids(read_scenarios(two, path).scenarios) == expected["negotiation"][:2]


def test_a_head_to_head_draws_from_its_own_game(tmp_path):
    from training.evaluate.run import draw

    expected = mixed(tmp_path / "mixed.jsonl")
    config = parse({"kind": "eval", "data": {"path": "mixed.jsonl"}, "evaluate": {"conversations": 6}})
    _, pairs = draw(config, RunDir(tmp_path))
    assert sorted({pair.scenario.id for pair in pairs}) == sorted(expected["negotiation"])


def test_no_run_directory_no_run(tmp_path):
    with pytest.raises(BadInput, match="not a run directory"):
        reopen(RunDir(tmp_path / "nothing"))
