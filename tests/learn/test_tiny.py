"""`tiny` as it is prepared: small, loadable, and good enough at its games to be played against and trained."""

from __future__ import annotations

import asyncio
import functools

import pytest

from tests import tiny_model
from training import bases, samples
from training.engines.base import Sampling
from training.engines.local.loading import load_tokenizer
from training.engines.local.transformers import TransformersEngine
from training.learn import models
from training.learn.tiny import games, pretrain
from training.players.model import ModelPlayer
from training.rollout import Job, RolloutPolicy, collect
from training.text.conversations import traces
from training.text.template import ChatTokenizer

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def folder():
    return tiny_model.prepare()


@functools.cache
def self_play(folder, sample, temperature, games=24):
    """Play starts of a sample against itself, without retries; return the episodes."""
    engine, chat = TransformersEngine(folder), ChatTokenizer(load_tokenizer(folder))
    starts = samples.load(sample)
    jobs = [Job(at, starts[at % len(starts)].with_seed(at + 1), ("tiny", "tiny")) for at in range(games)]

    def player(scenario, seat):
        sampling = Sampling(max_tokens=64, temperature=temperature)
        return ModelPlayer(engine, chat, sampling, seat=seat, names=scenario.seats, window=2048)

    return asyncio.run(collect(jobs, {"tiny": player}, lanes=games, rules=RolloutPolicy(seed=1)))


def test_it_is_small_and_fits_every_engine(folder):
    model, tokenizer = models.load(folder)
    assert models.count(model) < 2_000_000
    assert model.config.head_dim in (32, 64)
    assert bases.read_info(folder).dataset == (pretrain.key(),)
    ids = tokenizer.encode("<propose>food 2</propose> 100 %", add_special_tokens=False)
    assert tokenizer.decode(ids) == "<propose>food 2</propose> 100 %"


@pytest.mark.parametrize("temperature,least", [(0.7, 0.9), (1.0, 0.8)])
@pytest.mark.parametrize("sample", pretrain.RECIPE.games)
def test_nine_replies_in_ten_are_moves(folder, sample, temperature, least):
    episodes = self_play(folder, sample, temperature, games=96)  # the weights differ by processor: a narrow estimate
    assert not [episode.error for episode in episodes if episode.error]
    turns = [turn for episode in episodes for turn in episode.turns]
    assert sum(turn.passed for turn in turns) / len(turns) >= least


def test_it_reaches_deals(folder):
    episodes = self_play(folder, "items", 0.7)
    assert sum(episode.metrics["agreement"] for episode in episodes) / len(episodes) >= 0.7


def test_a_prepared_tiny_is_kept_until_the_recipe_changes(folder, monkeypatch, tmp_path):
    built = []
    monkeypatch.setenv("PARLEY_HOME", str(tmp_path))

    def build(target, recipe, digest, reached):
        built.append(digest)
        (target / "config.json").write_text("{}")
        (target / "model.safetensors").write_bytes(b"x")
        bases.write_info(target, bases.ModelInfo(name="tiny", base="tiny", dataset=(digest,)))

    monkeypatch.setattr(pretrain, "build", build)
    assert pretrain.prepare_tiny() == pretrain.prepare_tiny() == tmp_path / "models" / "tiny"
    assert built == [pretrain.key()]
    monkeypatch.setattr(pretrain, "RECIPE", pretrain.RECIPE.model_copy(update={"seed": 1}))
    monkeypatch.setattr(pretrain, "key", lambda: "another")
    pretrain.prepare_tiny()
    assert built[1:] == ["another"]


def test_the_key_follows_the_recipe_and_the_words_of_the_games(monkeypatch):
    first = pretrain.key()
    assert first == pretrain.key()
    assert pretrain.key(pretrain.RECIPE.model_copy(update={"layers": 2})) != first
    monkeypatch.setattr(pretrain, "_texts", lambda games: iter(["other words"]))
    assert pretrain.key() != first


def test_varied_starts_are_legal_and_scripted_games_become_traces(folder):
    chat = ChatTokenizer(load_tokenizer(folder))
    played = games.play({"items": 30, "prices": 10, "dialogues": 5}, seed=3)
    assert len(played) == 45
    assert not [game.error for game in played if game.error]
    pools = {tuple(item["name"] for item in g.scenario.settings["deal"].get("items", ())) for g in played[:30]}
    assert len(pools) > 20
    for game in played:
        for trace in traces(game, chat, window=2048):
            assert sum(trace.mask) > 0


def test_progress_begins_with_the_games_and_ends_with_the_last_batch(tmp_path):
    few = pretrain.RECIPE.model_copy(update={"items": 2, "prices": 2, "dialogues": 2})
    shares = []
    pretrain.build(tmp_path, few, "digest", shares.append)
    assert shares == sorted(shares)
    assert shares[:2] == pytest.approx([0.1 / 6, 0.2 / 6]), "a tenth for six games"
    assert shares[-1] == 1.0


def test_every_stage_reads_its_own_traces_with_its_own_settings(tmp_path, monkeypatch):
    few = pretrain.RECIPE.model_copy(update={"context": 0.5})
    played = games.play({"items": 3, "prices": 0, "dialogues": 0}, seed=3)
    fits = []

    def record(model, tokenizer, traces, batches, sft, hooks):
        fits.append((traces, sft))
        for _ in batches:
            hooks.on_batch()

    monkeypatch.setattr("training.learn.sft.fit.fit", record)
    first = pretrain.Stage(lambda game, chat, /, *, window: traces(game, chat)[:1], context=0.0, sft={"lr": 1e-4})
    shares = []
    info = pretrain.bases.ModelInfo(name="two", base="tiny", licence="", note="", dataset=(), command="")
    pretrain.pretrain(tmp_path, played, few, info, stages=(first, pretrain.Stage()), on_progress=shares.append)
    [(one_seat, one_seat_config), (both_seats, both_seats_config)] = fits
    assert (len(one_seat), len(both_seats)) == (3, 6)
    assert all(trace.mask == tuple(int(turn >= 0) for turn in trace.turn) for trace in one_seat), "no context"
    assert sum(sum(trace.mask) for trace in both_seats[::2]) > sum(sum(trace.mask) for trace in one_seat)
    assert (one_seat_config, both_seats_config) == (few.sft.model_copy(update={"lr": 1e-4}), few.sft)
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
