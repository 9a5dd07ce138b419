"""A dialogue run whose reward, filter and end of game come from a judge: a stub at a local address."""

import json
import re

import pytest

from tests.learn.small_runs import make_run
from tests.rewards.samples import dialogue
from tests.stub import Status, Stub
from training.attempts.progress import Progress
from training.engines.remote.chat import RemoteModel
from training.errors import BadInput
from training.evaluate import during
from training.labels.codebooks import CONDUCT, SOTOPIA
from training.learn import trainer
from training.store import dumps, read_lines, read_member


def obliging(body):
    """Fill in whatever form the judge is shown: seat 0 gets every dimension's best, seat 1 the worst."""
    form = json.loads(body["messages"][0]["content"].splitlines()[-1])
    if "values" in form:
        ends = {d.name: (d.high, d.low)[form["seat"]] for d in (*SOTOPIA.labels, *CONDUCT.labels)}
        form["values"] = {name: {"value": ends[name], "reason": "so"} for name in form["values"]}
    elif "reached" in form:
        form["reached"] = [False] * len(form["reached"])
    else:
        asked = re.search(r"by number: ([\d, ]+)\.", body["messages"][0]["content"])[1]
        form["turns"] = [{"turn": int(n), "passed": form["seat"] == 0, "reason": "so"} for n in asked.split(", ")]
    return json.dumps(form)


@pytest.fixture
def judged(tmp_path, monkeypatch):
    data = tmp_path / "talk.jsonl"
    data.write_text(dumps(dialogue(turn_limit=2, goal_check=True).to_dict()) + "\n")
    with Stub() as stub:
        monkeypatch.setenv("MODEL_ADDRESSES", stub.url)
        config, run_dir = make_run(
            tmp_path,
            steps=2,
            game={"name": "dialogue", "settings": {}},
            data={"path": str(data)},
            reward={"judge_filter": True},
            judge={"address": stub.url, "model": "stub", "retries": 0},
            rollout={"scenarios": 1, "games": 2},
        )
        yield stub, config, run_dir


def metrics(run_dir):
    return [line for line, _ in read_lines(run_dir.attempt(1).metrics)]


def test_scores_filter_and_cost_reach_the_run(judged):
    stub, config, run_dir = judged
    stub.answer = obliging
    assert trainer.run(config, run_dir)["result"] == "succeeded"
    for line in metrics(run_dir):
        # unit scale: the mean of the best values is 1, of the worst 0
        assert (line["reward_0"], line["reward_1"]) == pytest.approx((1.0, 0.0))
        assert line["failing"] >= 0.5  # every turn of seat 1
        assert line["judge_calls"] > 0
    index = [line for line, _ in read_lines(run_dir.attempt(1).index)]
    first = index[0]
    record = read_member(run_dir.attempt(1).root / "episodes" / first["file"], first["offset"], first["length"])
    assert {judgment["seat"] for judgment in record["judgments"]} == {0, 1}
    asked = [entry["move"]["origin"] for entry in record["episode"]["moves"] if entry["seat"] == 2]
    assert set(asked) == {"tool"}  # the judge was asked for goals, too
    assert all(a <= 0 for a in record["credit"][1]["advantages"])  # seat 1 failed the filter on every turn


def test_every_scored_game_is_a_sign_of_life(judged, monkeypatch):
    stub, config, run_dir = judged
    stub.answer = obliging
    phases = []
    monkeypatch.setattr(Progress, "beat", lambda self, **facts: phases.append(self._phase))
    assert trainer.run(config, run_dir)["result"] == "succeeded"
    assert phases.count("scoring") == 4  # two games in each of two steps


def test_a_secret_of_another_address_is_refused_before_anything_is_written(judged, monkeypatch):
    stub, config, run_dir = judged
    monkeypatch.setenv("MODEL_ADDRESSES", f"{stub.url},https://other.example/v1=OTHER_API_KEY")
    monkeypatch.setenv("OTHER_API_KEY", "sk-canary")
    wrong = config.model_copy(update={"judge": config.judge.model_copy(update={"secret": "OTHER_API_KEY"})})
    with pytest.raises(BadInput, match="may not be sent") as caught:
        trainer.run(wrong, run_dir)
    assert caught.value.where == "judge.secret"
    assert run_dir.attempts() == []
    assert stub.requests == []


@pytest.fixture
def connections(monkeypatch):
    """How many remote models were asked, and are closed."""
    asked, closed = set(), set()
    reply, close = RemoteModel.reply, RemoteModel.close

    async def counted_reply(self, *args, **kwargs):
        asked.add(self)
        return await reply(self, *args, **kwargs)

    async def counted_close(self):
        await close(self)
        closed.add(self)

    monkeypatch.setattr(RemoteModel, "reply", counted_reply)
    monkeypatch.setattr(RemoteModel, "close", counted_close)
    return asked, closed


@pytest.mark.parametrize("answer", [obliging, Status(500)], ids=["succeeds", "fails"])
def test_the_judge_is_closed_when_the_run_ends(judged, connections, answer):
    stub, config, run_dir = judged
    stub.answer = answer
    trainer.run(config, run_dir)
    asked, closed = connections
    assert len(asked) == 1
    assert closed == asked


def test_the_judge_of_a_head_to_head_during_the_run_is_closed_too(judged, connections):
    stub, config, run_dir = judged
    stub.answer = obliging
    evaluate = config.evaluate.model_copy(update={"every": 1, "conversations": 2, "opponent": "scripted"})
    result = during.run(config.model_copy(update={"evaluate": evaluate}), run_dir)
    assert result["result"] == "succeeded", result
    asked, closed = connections
    assert len(asked) == 3  # the run's, and one of each head-to-head
    assert closed >= asked


def test_the_judge_scores_the_head_to_head_during_the_run(judged):
    stub, config, run_dir = judged
    stub.answer = obliging
    section = {"every": 1, "conversations": 2, "opponent": "scripted", "judge": True}
    result = during.run(config.model_copy(update={"evaluate": config.evaluate.model_copy(update=section)}), run_dir)
    assert result["result"] == "succeeded", result
    evaluations = [event for event, _ in read_lines(run_dir.attempt(1).events) if event["kind"] == "evaluation"]
    # the stub gives the first seat the most and the second the least; with seats swapped the sides are equal
    goal = next(d for d in SOTOPIA.labels if d.name == "goal")
    middle = (goal.low + goal.high) / 2
    assert [evaluations[0][f"{side}.sotopia.goal"] for side in "ab"] == pytest.approx([middle, middle])


def test_a_judge_that_is_down_is_an_error_never_a_zero(judged):
    stub, config, run_dir = judged
    stub.answer = Status(500)
    result = trainer.run(config, run_dir)
    assert result["result"] == "failed"
    assert all("reward" not in line and line["errors"] == 2 for line in metrics(run_dir))
