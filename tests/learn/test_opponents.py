"""Training against a pool: who sat where, what learns from it, what stays on disk, and going on to the same bits."""

import gzip
import json
import shutil

import pytest
import torch

from tests.learn.small_runs import another, make_run
from tests.toy_models import write_random_llama
from tests.trust.test_kill_resume import final_bits, history, numbers
from training import bases
from training.attempts.start import reopen
from training.config import parse
from training.engines.local import transformers as transformers_engine
from training.errors import BadInput
from training.learn import trainer
from training.learn.opponents import _check
from training.records import LEARNER, Episode, Scenario
from training.samples import for_game
from training.store import MANIFEST, dumps, read_lines, write_json

STEPS = 4
MIXED = [{"source": "mirror"}, {"source": "past", "weight": 2}, {"source": "scripted"}]


def episodes(run_dir, attempt=1):
    episodes = []
    for step in range(1, STEPS + 1):
        path = run_dir.attempt(attempt).episodes(step)
        if path.exists():
            with gzip.open(path, "rt") as file:
                episodes += [(step, json.loads(line)) for line in file]
    return episodes


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A run against the pool, left in peace; one checkpoint is kept beside those that the pool may draw."""
    root = tmp_path_factory.mktemp("whole")
    learn = {"steps": STEPS, "keep": 1}
    rollout = {"scenarios": 4, "games": 2, "past_saved": 2}
    config, run_dir = make_run(root, steps=STEPS, opponents=MIXED, learn=learn, rollout=rollout)
    assert trainer.run(config, run_dir)["result"] == "succeeded"
    return run_dir


def test_only_the_learners_traces_have_credit(whole):
    policies = set()
    for step, record in episodes(whole):
        episode = Episode.from_dict(record["episode"])
        for trace, credit in zip(episode.traces, record["credit"], strict=True):
            policies.add(trace.policy)
            assert (credit is not None) == (trace.policy == LEARNER)
            if trace.policy.startswith("past"):
                assert int(trace.policy.split()[1]) in range(step)
    assert policies >= {LEARNER, "past 0"}
    assert len(policies) >= 3


def test_the_numbers_name_the_opponents(whole):
    lines = [line for line, _ in read_lines(whole.attempt(1).metrics)]
    met = {name: sum(line.get(f"games_against {name}", 0) for line in lines) for name in ("past", "scripted")}
    assert met["past"] > 0 < met["scripted"]
    assert sum(met.values()) < 8 * STEPS  # the rest were mirrors
    line = next(line for line in lines if "reward_against scripted" in line)
    assert 0 <= line["reward_against scripted"] <= 1


def test_what_the_pool_may_still_draw_stays_on_disk(whole):
    # after step 4 the next step draws from the newest two of 0, 1, 2, 3, 4; one more would be kept anyway
    assert [step for step, _ in whole.attempt(1).checkpoints()] == [3, 4]


def test_a_run_that_stops_and_resumes_ends_with_the_same_bits(whole, tmp_path):
    parts = another(whole, tmp_path)

    async def stop_after_two(running, step):
        if step == 2 and parts.attempts() == [1]:
            parts.attempt(1).ask("stop")
        return {}

    first = reopen(parts)
    watched = first.model_copy(update={"evaluate": first.evaluate.model_copy(update={"every": 1})})
    assert trainer.run(watched, parts, evaluate=stop_after_two)["step"] == 2
    assert trainer.run(reopen(parts), parts)["result"] == "succeeded"
    assert [numbers(line) for line in history(parts)] == [numbers(line) for line in history(whole)]
    assert final_bits(parts) == final_bits(whole)
    assert any("past" in str(record["episode"]["traces"]) for _, record in episodes(parts, attempt=2))


def test_a_saved_step_that_is_gone_is_named(whole):
    with pytest.raises(BadInput, match="after step 1 is not on this machine"):
        whole.checkpoint_of(1)
    assert whole.checkpoint_of(3).name == "step_000003"


def test_an_unknown_source_is_refused_before_anything_is_written(tmp_path):
    with pytest.raises(BadInput, match="the learner itself is named mirror"):
        parse({"opponents": [{"source": "learner"}], "learn": {"steps": 20}})
    config, run_dir = make_run(tmp_path, opponents=[{"source": "mirror"}, {"source": "nobody"}])
    with pytest.raises(BadInput) as caught:
        trainer.run(config, run_dir)
    assert caught.value.where == "opponents.1.source"
    assert run_dir.attempts() == []


def test_roles_that_nobody_has_are_refused_before_anything_is_written(tmp_path):
    nobody = [{"source": "mirror"}, {"source": "past", "learner": ["crewmate"]}]
    config, run_dir = make_run(tmp_path, opponents=nobody)
    with pytest.raises(
        BadInput, match=r"nobody has the learner's roles \(crewmate\); the starts have no roles"
    ) as caught:
        trainer.run(config, run_dir)
    assert caught.value.where == "opponents.1.learner"
    assert run_dir.attempts() == []


def test_an_opponent_without_a_seat_is_refused():
    everybody = ["seer", "villager", "witch", "hunter", "guard", "doctor", "werewolf"]
    config = parse({"game": {"name": "werewolf"}, "opponents": [{"source": "random", "learner": everybody}]})
    with pytest.raises(BadInput, match="nobody opposes") as caught:
        _check(config, for_game("werewolf"))
    assert caught.value.where == "opponents.0.learner"
    _check(parse({"opponents": [{"source": "random", "learner": everybody[:-1]}]}), for_game("werewolf"))


def test_a_named_model_has_an_engine_of_its_own(tmp_path):
    config, run_dir = make_run(tmp_path, steps=2)
    config = config.model_copy(
        update={"opponents": parse({"opponents": [{"source": config.model.base}], "learn": {"steps": 20}}).opponents}
    )
    assert trainer.run(config, run_dir)["result"] == "succeeded"
    for _, record in episodes(run_dir):
        assert {trace["policy"] for trace in record["episode"]["traces"]} == {LEARNER, config.model.base}


def test_past_selves_that_are_adapters_share_one_copy_of_the_weights(tmp_path, monkeypatch):
    """A registered base, so that checkpoints are adapters: the run's engine, and one for all of its past selves."""
    folder = write_random_llama(tmp_path / "home" / "models" / "toy", layers=1, window=4096)
    write_json(folder / MANIFEST, {"version": 1, "files": {}})
    monkeypatch.setenv("PARLEY_HOME", str(tmp_path / "home"))
    entry = bases.BaseModel(name="toy", title="Toy", licence="none", parameters=1, source="project")
    monkeypatch.setitem(bases.REGISTRY, "toy", entry)
    loaded, load_merged = [], transformers_engine.load_merged
    monkeypatch.setattr(
        transformers_engine, "load_merged", lambda model, dtype: loaded.append(model) or load_merged(model, dtype)
    )
    config, run_dir = make_run(
        tmp_path,
        steps=STEPS,
        model={"base": "toy"},
        opponents=[{"source": "past"}, {"source": "scripted"}],
        rollout={"scenarios": 4, "games": 2, "past_saved": 3, "past_loaded": 3},
        league={"every": 2, "games": 2},
    )
    assert trainer.run(config, run_dir)["result"] == "succeeded"
    assert (run_dir.checkpoint_of(4) / "adapter_config.json").is_file()
    assert len(loaded) == 2
    traces = [trace for _, record in episodes(run_dir) for trace in Episode.from_dict(record["episode"]).traces]
    assert {trace.policy for trace in traces} == {LEARNER, "past 0", "past 1", "past 2", "past 3"}
    for policy in ("past 0", "past 3"):
        model = load_merged(run_dir.checkpoint_of(3) if policy == "past 3" else "toy", "float32")
        trace = next(trace for trace in traces if trace.policy == policy)
        at = [place for place, sampled in enumerate(trace.mask) if sampled]
        with torch.no_grad():
            rows = model(torch.tensor([trace.tokens])).logits[0].log_softmax(-1)
        expected = [float(rows[place - 1, trace.tokens[place]]) for place in at]
        assert [trace.logprobs[place] for place in at] == pytest.approx(expected, abs=1e-4)


def test_a_model_that_is_deleted_during_the_run_is_named(tmp_path):
    config, run_dir = make_run(tmp_path, steps=3)
    other = tmp_path / "other"
    shutil.copytree(config.model.base, other)
    config = config.model_copy(
        update={"opponents": parse({"opponents": [{"source": str(other)}], "learn": {"steps": 20}}).opponents}
    )

    async def delete(running, step):
        shutil.rmtree(other)
        return {}

    watched = config.model_copy(update={"evaluate": config.evaluate.model_copy(update={"every": 2})})
    result = trainer.run(watched, run_dir, evaluate=delete)
    assert (result["result"], result["step"]) == ("failed", 2)
    assert f"the model in {other}, which is no longer there" in result["why"]


def test_only_the_wolves_learn_while_everybody_is_asked_aside(tmp_path):
    scenario = Scenario(id="v", game="werewolf", seats=("A", "B", "C", "D", "E", "F"), settings={"probes": True})
    write_random_llama(tmp_path / "model", layers=1, window=16384)
    (tmp_path / "data.jsonl").write_text(dumps(scenario.to_dict()) + "\n")
    config, run_dir = make_run(
        tmp_path,
        steps=2,
        game={"name": "werewolf", "settings": {"day_limit": 1}},
        rollout={"scenarios": 1, "games": 2, "probes": True},
        opponents=[{"source": "past", "learner": ["werewolf"]}],
        reward={"malformed": -0.5},  # babble never earns anything, so there must be something to lose
        learn={"steps": 2, "tokens_per_batch": 16384},
    )
    assert trainer.run(config, run_dir)["result"] == "succeeded"
    for _, record in episodes(run_dir):
        episode = Episode.from_dict(record["episode"])
        assert episode.error is None
        learners = {trace.seat for trace in episode.traces if trace.policy == LEARNER}
        assert learners <= {seat for seat, role in enumerate(episode.roles) if role == "werewolf"}
        assert {trace.policy for trace in episode.traces} - {LEARNER} in ({"past 0"}, {"past 1"})
        assert episode.beliefs
        assert all(sum(b.probabilities.values()) == pytest.approx(1) for b in episode.beliefs)
    lines = [line for line, _ in read_lines(run_dir.attempt(1).metrics)]
    assert all(line["probes"] > 0 and line["games_against past"] == 2 for line in lines)
    roles = {name.partition("/")[2] for line in lines for name in line if "/" in name and "belief_change" not in name}
    assert roles == {"werewolf"}
