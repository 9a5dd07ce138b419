"""Several games in one run: shares, seeds, files, rewards and numbers of each."""

import gzip
import json
from collections import Counter
from types import SimpleNamespace

import pytest

from tests.learn.small_runs import make_run
from tests.learn.test_report import played
from tests.stub import Stub
from tests.toy_models import write_random_llama
from training import samples
from training.attempts.start import reopen, start
from training.config import RunConfig, parse
from training.errors import BadInput
from training.learn import trainer
from training.learn.report import outcome_metrics
from training.learn.scenarios import MixtureSampler, ScenarioSampler, jobs
from training.records import Episode
from training.rewards import PerGame
from training.rollout.pool import Pool
from training.rundir import RunDir
from training.store import read_lines

POOL = Pool((), 0, save_every=1, saved=1, loaded=1)
TWO = [{"game": "negotiation", "weight": 3}, {"game": "dialogue"}]
JUDGE = {"address": "http://127.0.0.1:9/v1", "model": "j"}


def parts(shuffle=True):
    return [
        ScenarioSampler([s.with_seed(0) for s in samples.load(name)[:count]], 3, shuffle=shuffle)
        for name, count in (("items", 4), ("dialogues", 3))
    ]


def test_every_part_has_its_share_after_any_number_of_places():
    mixture = MixtureSampler(parts(), [3, 1])
    taken = Counter()
    for place in range(200):
        taken[mixture.start(place).game] += 1
        assert abs(taken["negotiation"] - 0.75 * (place + 1)) < 1


def test_a_part_of_a_mixture_plays_what_it_would_play_alone():
    mixture, alone = MixtureSampler(parts(), [3, 1]), parts()[0]
    starts = [start for start in map(mixture.start, range(24)) if start.game == "negotiation"]
    assert starts == [alone.start(place) for place in range(18)]
    again = MixtureSampler(parts(), [3, 1])
    assert [again.start(place) for place in (23, 5)] == [mixture.start(place) for place in (23, 5)]


def test_a_step_plays_all_its_places_and_replays():
    settings = RunConfig().rollout.model_copy(update={"scenarios": 4, "games": 2})
    config = RunConfig().model_copy(update={"rollout": settings})
    played = [job for step in (1, 2) for job in jobs(config, MixtureSampler(parts(), [1, 1]), POOL, step)]
    assert Counter(job.scenario.game for job in played) == {"negotiation": 8, "dialogue": 8}
    assert {(job.scenario.id, job.scenario.seed) for job in played[0::2]} == {
        (job.scenario.id, job.scenario.seed) for job in played[1::2]
    }


def test_what_a_mixture_needs_is_that_of_all_its_games():
    with pytest.raises(BadInput, match="needs a judge"):
        parse({"mixture": TWO, "learn": {"steps": 20}})
    with pytest.raises(BadInput, match="only a judge"):
        parse({"mixture": TWO, "judge": JUDGE, "reward": {"source": "outcome"}, "learn": {"steps": 20}})
    with pytest.raises(BadInput) as caught:
        parse({"mixture": [{"game": "chess"}], "learn": {"steps": 20}})
    assert caught.value.where == "mixture.0.game"
    both = parse({"mixture": TWO, "judge": JUDGE, "reward": {"scale": "raw"}, "learn": {"steps": 20}})
    assert both.reward_low == pytest.approx(-30 / 7)  # the judge's least; negotiation alone has 0
    assert both.judged
    assert parse({"learn": {"steps": 20}}).reward_low == 0


def test_every_part_brings_its_file_or_plays_the_samples(tmp_path):
    (tmp_path / "own.jsonl").write_text(samples.path("prices").read_text("utf-8"), "utf-8")
    wanted = [{"game": "negotiation", "path": "own.jsonl"}, {"game": "dialogue"}]
    config = start(
        parse({"mixture": wanted, "judge": JUDGE, "learn": {"steps": 20}}), RunDir(tmp_path / "run"), tmp_path
    )
    assert len({part.path for part in config.mixture}) == 2
    assert all((tmp_path / "run" / part.path).is_file() for part in config.mixture)
    assert reopen(RunDir(tmp_path / "run")).mixture[1].game == "dialogue"
    with pytest.raises(BadInput) as caught:
        start(parse({"mixture": [{**TWO[0], "path": "none.jsonl"}]}), RunDir(tmp_path / "other"), tmp_path)
    assert caught.value.where == "mixture.0.path"


async def test_each_game_is_scored_by_its_own_reward():
    async def nothing(episode, seed):
        return "dialogue's"

    reward = PerGame({"dialogue": SimpleNamespace(score=nothing)})
    assert await reward.score(Episode(scenario=samples.load("dialogues")[0]), 0) == "dialogue's"


def test_numbers_of_each_game():
    first, other = played(0, 1.0), played(1, 0.5)
    scenario = other.episode.scenario.model_copy(update={"game": "second"})
    other.episode = other.episode.model_copy(update={"scenario": scenario})
    metrics = outcome_metrics([first, other], by_game=True)
    game = first.episode.scenario.game
    assert (metrics["reward"], metrics[f"{game}.reward"], metrics["second.reward"]) == (0.75, 1.0, 0.5)
    assert metrics["second.episodes"] == 1


def test_a_run_on_villages_and_bargains_against_a_remote_model(tmp_path, monkeypatch):
    """The paper's mixture; the learner holds one seat of each game, a model behind an address the rest."""
    write_random_llama(tmp_path / "model", layers=1, window=16384)
    mixture = [
        {"game": "werewolf", "settings": {"day_limit": 1, "wolf_talk": 0}, "path": str(samples.path("werewolf"))},
        {"game": "negotiation", "settings": {"turn_limit": 2}, "path": str(samples.path("items"))},
    ]
    with Stub() as stub:
        monkeypatch.setenv("MODEL_ADDRESSES", stub.url)
        stub.answer = "I say nothing of use."
        config, run_dir = make_run(
            tmp_path,
            steps=1,
            mixture=mixture,
            data={"path": str(samples.path("items"))},
            opponents=[{"source": f"{stub.url} partner"}],
            reward={"malformed": -0.5},  # babble never earns anything, so there must be something to lose
            learn={"steps": 1, "critic_warmup": 0, "tokens_per_batch": 16384},
        )
        assert trainer.run(config, run_dir)["result"] == "succeeded"
        asked = len(stub.requests)
    (numbers,) = [line for line, _ in read_lines(run_dir.attempt(1).metrics)]
    assert (numbers["werewolf.episodes"], numbers["negotiation.episodes"], numbers["games_against partner"]) == (
        2,
        2,
        4,
    )
    assert asked > 2 * 5  # in each of two villages at least five others talk and vote
    with gzip.open(run_dir.attempt(1).episodes(1), "rt") as file:
        played_ = [Episode.from_dict(json.loads(line)["episode"]) for line in file]
    assert {episode.scenario.game for episode in played_} == {"werewolf", "negotiation"}
    for episode in played_:
        assert episode.error is None
        assert len({trace.seat for trace in episode.traces}) <= 1


def test_a_run_on_two_files_at_once(tmp_path):
    mixture = [
        {"game": "negotiation", "settings": {"turn_limit": 2}, "path": str(samples.path("items"))},
        {"game": "negotiation", "settings": {"turn_limit": 2}, "path": str(samples.path("prices"))},
    ]
    config, run_dir = make_run(tmp_path, steps=2, mixture=mixture)
    assert trainer.run(config, run_dir)["result"] == "succeeded"
    lines = [line for line, _ in read_lines(run_dir.attempt(1).metrics)]
    assert [line["negotiation.episodes"] for line in lines] == [4, 4]
    played_ = {line["summary"]["scenario"] for line, _ in read_lines(run_dir.attempt(1).index)}
    ids = [{s.id for s in samples.load(name)} for name in ("items", "prices")]
    assert [len(played_ & scenario_ids) for scenario_ids in ids] == [2, 2]
