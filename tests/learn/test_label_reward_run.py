"""That a label as a reward changes what is learned: a real run with a real classifier of turns."""

import numpy as np
import pytest

from tests.learn.small_runs import make_run
from training.labels import classifier
from training.labels.turns import LabelledTurns
from training.learn import trainer
from training.seeding import rng
from training.store import read_lines

WORD = "food"
OTHERS = ("water", "firewood", "units", "split", "turn", "proposal", "points", "keep", "you", "the")


def trained(model, folder):
    """A classifier that has learned from 200 made-up turns to see one word."""
    draw = rng(0, "turns")
    texts = [" ".join(draw.choices((WORD, *OTHERS), k=6)) for _ in range(200)]
    labels = np.array([[WORD in text.split()] for text in texts])
    turns = LabelledTurns(texts, [str(number) for number in range(200)], ("names_food",), labels, np.ones(200, bool))
    classifier.train(turns, str(model), seed=0).save(folder)
    return folder


PAID = {"label": "names_food", "use": "reward", "per": "turn", "weight": 1.0}


def learned(tmp_path, *entries):
    """The metrics of the steps of a run whose reward are these entries: the game itself pays all alike."""
    make_run(tmp_path)
    folder = trained(tmp_path / "model", tmp_path / "classifier")
    root = tmp_path / "labelled"
    root.mkdir()
    for name in ("model", "data.jsonl"):
        (root / name).symlink_to(tmp_path / name)
    config, run_dir = make_run(
        root,
        learn={"steps": 12, "lora": None, "lr": 6e-3, "critic_warmup": 1, "save_every": 50, "kl": "none"},
        rollout={"scenarios": 3, "games": 12},
        sampling={"max_tokens": 8},
        reward={"labels": [{"classifier": str(folder), **entry} for entry in entries], "repetition": 1.0},
        stop={"entropy_fall": 0, "advantage_drift": 0, "kl_ceiling": 1e6, "hacking_length": 1e6},
    )
    result = trainer.run(config, run_dir)
    lines = [line for line, _ in read_lines(run_dir.attempt(1).metrics)]
    return result, lines


def mean(lines, name):
    return sum(line[name] for line in lines) / len(lines)


@pytest.mark.slow
def test_a_model_learns_to_say_what_the_label_pays(tmp_path):
    result, lines = learned(tmp_path, PAID)
    assert (result["result"], len(lines)) == ("succeeded", 12)
    assert mean(lines[-3:], "reward_label_names_food") > mean(lines[:3], "reward_label_names_food") + 0.1
    assert lines[0]["agreement_names_food"] > 0.6, "measured on turns from which the classifier has not learned"
