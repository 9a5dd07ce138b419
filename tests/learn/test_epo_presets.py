"""The configurations of EPO start: each plays, scores and learns with small models in place of those that it names."""

import json
import re
import tomllib

import pytest
import torch

from tests.stub import Stub
from tests.toy_models import write_random_llama
from training import config, samples
from training.attempts.start import start
from training.config import CONFIGS
from training.games import lookup, make
from training.labels.codebooks import SOTOPIA
from training.learn import trainer
from training.opponent_sections import TEACHER
from training.records import LEARNER
from training.rundir import RunDir
from training.store import dumps, read_lines

PRESETS = sorted((CONFIGS / "epo").glob("*.toml"))
ADDRESSES = r"https://api\.openai\.com/v1|http://127\.0\.0\.1:8000/v1"
SECRET = r"OPENAI_API_KEY|JUDGE_API_KEY"
TURNS = {"dialogue": 4, "household": 15, "negotiation": 6, "shop": 6}
FOLLOWED = {"household": "follower:100", "negotiation": "follower:100"}
"""Speakers of games in which nothing that a random model says would bring anything within reach."""


def answer(body):
    """Play a participant or a teacher, or judge: the first strategy is critical, and every value the best."""
    last = body["messages"][0]["content"].splitlines()[-1]
    if not last.startswith("{"):
        return "Say hello first.\nStrategy: be polite\nHello."
    form = json.loads(last)
    if "values" in form:
        best = {label_type.name: label_type.high for label_type in SOTOPIA.labels}
        form["values"] = {name: {"value": best[name], "reason": "so"} for name in form["values"]}
    else:
        form |= {"indexes": [1], "reasoning": "so"}
    return json.dumps(form)


def small(path, root, address):
    """The preset with a random model, two starts, one step of each phase, one epoch, fewer games, turns and tokens."""
    text = re.sub(SECRET, "", re.sub(ADDRESSES, address, path.read_text()))
    data = tomllib.loads(text)
    game = data["game"]["name"]
    starts = list(samples.for_game(game))[:2]
    rules = "".join(message.text for each in starts for message in make(each).observe(0).messages)
    model = str(write_random_llama(root / "model", layers=1, window=8192, known=rules))
    (root / "data.jsonl").write_text("".join(f"{dumps(each.to_dict())}\n" for each in starts))
    if game in TURNS:
        data["game"]["settings"]["turn_limit"] = TURNS[game]
    if "://" not in data["speaker"]["source"]:
        data["speaker"]["source"] = FOLLOWED.get(game, model)
    for phase in data.get("phases", ()):
        phase["steps"] = 1
    data |= {"model": {"base": model, "device": "cpu"}, "data": {"path": str(root / "data.jsonl")}}
    data["engine"]["name"] = "transformers"
    data["sampling"]["max_tokens"] = 6
    data["rollout"]["scenarios"] = 8 if game == "negotiation" else 2
    data["learn"] |= {"steps": 2, "warmup": 1, "threads": 1, "epochs": 1}
    return config.parse(data)


@pytest.mark.parametrize("path", PRESETS, ids=lambda path: path.stem)
def test_it_plays_and_learns(path, tmp_path, monkeypatch):
    torch.set_num_threads(1)
    with Stub() as stub:
        stub.answer = answer
        monkeypatch.setenv("MODEL_ADDRESSES", stub.url)
        made = small(path, tmp_path, stub.url)
        run_dir = RunDir(tmp_path / "run")
        result = trainer.run(start(made, run_dir, tmp_path), run_dir)
    games = [line for line, _ in read_lines(run_dir.attempt(1).index)]
    assert [line["summary"]["error"] for line in games if line["summary"].get("error")] == []
    assert result["result"] == "succeeded", result
    steps = [line for line, _ in read_lines(run_dir.attempt(1).metrics)]
    assert len(steps) == 2
    assert all(("reward_process" in line) == (made.reward.process != "none") for line in steps)
    seated = [
        {name for line in games if line["step"] == step for name in line["summary"]["policies"]} for step in (1, 2)
    ]
    assert seated == [{TEACHER if made.phases else LEARNER}, {LEARNER}]
    if lookup(made.game.name).judged:
        assert all(line["reward_process"] > 0 and line["grad_norm"] > 0 for line in steps)
