"""Decoding among legal moves: engine and trainer mean the same policy, and learning moves it."""

import asyncio
import gzip
import json

import numpy as np
import pytest
import torch

from tests.learn.small_runs import make_run
from tests.methods.episodes import trace
from tests.toy_models import write_random_llama
from training import samples
from training.engines.base import EngineOptions, Sampling
from training.engines.local.loading import load_merged
from training.engines.local.transformers import TransformersEngine
from training.engines.trie import Trie
from training.errors import BadInput
from training.games import make
from training.learn import policy as policies
from training.learn import trainer
from training.learn.batch import Item, batches
from training.learn.forward import measure
from training.players.model import ModelPlayer, legal_replies
from training.records import Episode, Trace, TraceCredit
from training.rollout import RolloutPolicy, play
from training.run_sections import LearnSection
from training.store import dumps, read_lines
from training.text.messages import chat
from training.text.template import ChatTokenizer

SAMPLING = Sampling(max_tokens=24, temperature=0.7, constrain=True)


@pytest.fixture(scope="module")
def start():
    return samples.load("among_us")[0].with_seed(3)


@pytest.fixture(scope="module")
def policy(tmp_path_factory, start):
    """A random model whose tokens are words of the rules."""
    rules = "".join(message.text for seat in range(2) for message in make(start).observe(seat).messages)
    folder = write_random_llama(tmp_path_factory.mktemp("village") / "model", window=2048, known=rules)
    learn = LearnSection.from_dict({"lora": {"rank": 4}, "logits_chunk": 13})
    loaded = policies.load(str(folder), (), learn, seed=1, temperature=SAMPLING.temperature, device="cpu")
    loaded.folder = folder
    return loaded


@pytest.fixture(scope="module")
def episode(policy, start):
    """A game of Among Us: moves are limited to the legal ones, what is said is free."""
    engine = TransformersEngine(policy.folder, EngineOptions(choices=True))
    tokens = ChatTokenizer(policy.tokenizer)
    players = [
        ModelPlayer(engine, tokens, SAMPLING, seat=seat, names=start.seats, window=2048)
        for seat in range(len(start.seats))
    ]
    played = asyncio.run(play(start, players, rules=RolloutPolicy(seed=1)))
    asyncio.run(engine.close())
    assert played.error is None
    return played


def test_engine_and_trainer_agree_on_limited_forced_and_free_tokens(policy, episode):
    items = [Item(trace, (0, trace.seat)) for trace in episode.traces]
    measure(policy, items, old=True, reference=True)
    gaps = {"limited": [], "forced": [], "free": []}
    for item in items:
        for at in np.flatnonzero(item.trace.mask):
            allowed = len(item.trace.choices.get(int(at), ()))
            kind = "free" if not allowed else "forced" if allowed == 1 else "limited"
            gaps[kind].append(abs(item.old[at] - item.trace.logprobs[at]))
            if kind == "forced":
                assert item.old[at] == item.reference[at] == item.trace.logprobs[at] == 0
        assert np.abs(item.old - item.reference).max() < 1e-5  # the adapters still add nothing
    assert min(map(len, gaps.values())) > 15
    assert max(gaps["limited"]) < 1e-4
    assert max(gaps["free"]) < 1e-3


def test_a_limited_reply_is_always_legal_and_a_free_one_may_not_be(episode):
    limited, free = [], []
    for made in episode.traces:
        for at in (at for at, turn in enumerate(made.turn) if turn >= 0 and made.turn[at - 1] != turn):
            (limited if at in made.choices else free).append(episode.turns[made.turn[at]].passed)
    assert all(limited)
    assert len(limited) > 10
    assert free
    assert episode.metrics["constrained"] == pytest.approx(len(limited) / (len(limited) + len(free)))
    assert episode.metrics["unlisted"] == 0


@pytest.fixture(scope="module")
def listed(policy, start):
    """Every first reply that a seat could give, as if it had been sampled: one item each."""
    game = make(start)
    seen, tokens = game.observe(0), ChatTokenizer(policy.tokenizer)
    prompt = tokens.prompt(chat(seen, 0, start.seats))
    replies = legal_replies(tokens, seen.actions, SAMPLING.max_tokens)
    trie, items = Trie(replies), []
    for reply in replies:
        mask = (0,) * len(prompt) + (1,) * len(reply)
        made = Trace(
            seat=0,
            tokens=(*prompt, *reply),
            mask=mask,
            turn=tuple(on - 1 for on in mask),
            logprobs=tuple(0.0 for _ in mask),
            choices=dict(enumerate(trie.along(reply), len(prompt))),
        )
        items.append(Item(made, (0, 0)))
    return items


def test_the_probabilities_of_all_replies_add_up_to_one(policy, listed):
    measure(policy, listed, old=True, reference=False)
    chances = [np.exp(item.old.sum()) for item in listed]
    assert len(chances) > 2
    assert max(chances) < 0.999
    assert sum(chances) == pytest.approx(1, abs=1e-5)


def test_the_gradients_of_all_replies_cancel(policy, listed):
    """Σ π ∇ log π = ∇ Σ π = ∇ 1 = 0: what makes a constant baseline harmless. No reply's own gradient is 0."""
    weights = list(policy.trained.values())
    total = [torch.zeros_like(weight) for weight in weights]
    sizes = []
    for item in listed:
        [batch] = batches([item], 4096, "token_mean")
        hidden = policy.hidden(batch.ids, layout=batch.layout)[0, batch.at - 1]
        logp = policy.logprobs(hidden, batch.targets, choices=batch.choices)[0].sum()
        slopes = torch.autograd.grad(logp.exp(), weights)
        sizes.append(max(float(slope.abs().max()) for slope in slopes))
        total = [sum_ + slope for sum_, slope in zip(total, slopes, strict=True)]
    assert min(sizes) > 1e-4
    assert max(float(sum_.abs().max()) for sum_ in total) < 1e-3 * max(sizes)


@pytest.mark.parametrize("how, expected", [("token_mean", [1 / 3, 1 / 3, 1 / 3]), ("turn_mean", [1 / 4, 1 / 4, 1 / 2])])
def test_forced_tokens_weigh_nothing_in_any_average(how, expected):
    """Of turn 0 two of four tokens were chosen, of turn 1 none, of turn 2 its only one, freely."""
    layout = ".0000.11.2"
    choices = {1: (1,), 2: (2, 99), 3: (3, 50, 99), 4: (4,), 6: (6,), 7: (7,)}
    ones = np.ones(len(layout))
    item = Item(trace(layout, choices=choices), (0, 0), TraceCredit(ppo=ones, reinforce=ones))
    [batch] = batches([item], 100, how)
    assert batch.at.tolist() == [2, 3, 9]
    for term in ("ppo", "reinforce", "sampled"):
        assert batch.streams[f"{term}_weight"].tolist() == pytest.approx(expected)
    assert batch.choices.rows.tolist() == [0, 1]
    assert [set(ids) for ids in batch.choices.ids.tolist()] == [{2, 99}, {3, 50, 99}]
    item.credit = TraceCredit(nll=ones)
    [batch] = batches([item], 100, how)
    assert batch.at.tolist() == [2, 3, 5, 8, 9]  # imitation, too, has nothing to learn from forced tokens


def test_without_choices_a_pass_carries_none():
    [batch] = batches([Item(trace(".00.1"), (0, 0))], 100, "token_mean")
    assert batch.choices is None


def run(tmp_path, **sections):
    game = {"name": "tic_tac_toe", "settings": {}}
    sampling = {"max_tokens": 40, "temperature": 0.6, "constrain": True, **sections.pop("sampling", {})}
    config, run_dir = make_run(tmp_path, game=game, data={"path": ""}, sampling=sampling, **sections)
    result = trainer.run(config, run_dir)
    lines = [line for line, _ in read_lines(run_dir.attempt(1).metrics)]
    return config, run_dir, result, lines


def episodes(run_dir, step):
    with gzip.open(run_dir.attempt(1).episodes(step), "rt") as file:
        return [(Episode.from_dict(record["episode"]), record["credit"]) for record in map(json.loads, file)]


@pytest.mark.parametrize("lora", [{"rank": 4, "alpha": 8.0}, False])
def test_a_model_that_only_babbles_plays_whole_games(tmp_path, lora):
    learn = {"lr": 1e-2 if lora else 1e-3, "critic_warmup": 0, "lora": lora}
    _, run_dir, result, lines = run(tmp_path, steps=3, learn=learn)
    assert result["result"] == "succeeded"
    for line in lines:
        assert (line["legal_rate"], line["parse_rate"], line["constrained"], line["unlisted"]) == (1, 1, 1, 0)
        assert 0 <= line["gap_mean"] <= line["gap_max"] < 1e-3
        assert line["entropy"] > 0
    assert lines[-1]["kl"] > 1e-4  # the policy has moved, and the sampler with it
    entropies = []
    for played, credit in episodes(run_dir, 3):
        for made, weights in zip(played.traces, credit, strict=True):
            sampled = [at for at, on in enumerate(made.mask) if on]
            assert set(made.choices) == set(sampled)
            for at in sampled:
                if len(made.choices[at]) == 1:
                    assert weights["entropy"][at] == weights["reference"][at] == made.logprobs[at] == 0
                else:
                    entropies.append(weights["entropy"][at])
    assert len(entropies) > 20
    assert lines[-1]["entropy"] == pytest.approx(np.mean(entropies), abs=1e-4)


def test_past_versions_are_limited_as_the_learner_is(tmp_path):
    learn = {"critic_warmup": 0}
    _, run_dir, result, lines = run(tmp_path, steps=2, learn=learn, opponents=[{"source": "past"}])
    assert result["result"] == "succeeded"
    assert [line["constrained"] for line in lines] == [1, 1]
    met = set()
    for played, _ in episodes(run_dir, 2):
        assert all(turn.passed for turn in played.turns)
        for made in played.traces:
            met.add(made.policy)
            assert set(made.choices) == {at for at, on in enumerate(made.mask) if on}
    assert len(met) > 1


def test_a_reply_limit_below_a_legal_move_is_refused_before_the_start(tmp_path):
    with pytest.raises(BadInput, match=r"sampling.max_tokens: a legal move takes \d+ tokens, more than 3: raise it"):
        run(tmp_path, steps=2, sampling={"max_tokens": 3})


def test_the_mass_that_is_cut_off_is_in_every_step(tmp_path):
    """Step 1 plays with the weights of the start: the mass outside the five likeliest tokens, from plain logits."""
    settings = {"top_k": 5, "constrain": False, "max_tokens": 8}
    config, run_dir, _, lines = run(tmp_path, steps=2, sampling=settings)
    model, means = load_merged(config.model.base, "float32"), []
    for played, _ in episodes(run_dir, 1):
        by_turn = {}
        for made in played.traces:
            with torch.no_grad():
                chances = torch.softmax(model(torch.tensor([made.tokens])).logits[0] / 0.6, -1)
            cut = 1 - chances.topk(5).values.sum(-1)
            for at, turn in enumerate(made.turn):
                if turn >= 0:
                    by_turn.setdefault(turn, []).append(float(cut[at - 1]))
        means.append(np.mean([np.mean(masses) for masses in by_turn.values()]))
    assert np.mean(means) > 0.01
    assert lines[0]["discarded"] == pytest.approx(np.mean(means), abs=1e-4)


def test_random_moves_are_refused_where_none_can_be_listed(tmp_path):
    config, run_dir = make_run(tmp_path, sampling={"constrain": True}, rollout={"random_moves": True})
    with pytest.raises(BadInput, match="no move of negotiation can be listed") as caught:
        trainer.build(config, run_dir, None)
    assert caught.value.where == "rollout.random_moves"


def test_a_method_that_learns_from_probes_is_refused_where_there_are_none(tmp_path):
    config, run_dir = make_run(tmp_path, method={"name": "listen_speak"})
    with pytest.raises(BadInput, match="no scenario of negotiation has them with its settings") as caught:
        trainer.build(config, run_dir, None)
    assert caught.value.where == "method.name"


def test_a_method_that_reinforces_learns_nothing_from_random_moves(tmp_path):
    # in poker all moves are listed: there is no other token from which the method could learn
    (tmp_path / "data.jsonl").write_text(dumps(samples.for_game("kuhn_poker")[0].to_dict()) + "\n")
    write_random_llama(tmp_path / "model", window=4096)
    config, run_dir = make_run(
        tmp_path,
        steps=6,
        game={"name": "kuhn_poker", "settings": {}},
        sampling={"constrain": True, "max_tokens": 40},
        rollout={"random_moves": True},
        method={"name": "mars"},
    )
    result = trainer.run(config, run_dir)
    assert result["result"] == "failed"
    assert "3 steps in a row taught nothing; the last one: nothing was to be learned" in result["why"]
