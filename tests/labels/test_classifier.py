"""The classifier on data whose best answer is known: what it learns, chooses, states of its errors, and stores."""

import json
from dataclasses import replace

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from scipy.special import expit
from sklearn.metrics import f1_score

from tests.toy_models import write_random_llama
from training.engines.pooling import Pooling
from training.errors import BadInput
from training.labels import classifier
from training.labels.classifier import (
    best_thresholds,
    calibration,
    candidates,
    check_enough,
    folds,
    load,
    train,
    train_on,
)
from training.labels.prevalence import error_rates
from training.labels.turns import LabelledTurns
from training.store import MANIFEST, sha256, write_json

NAMES = ("asks", "offers")
GOOD, NOISE = (Pooling(layer=layer, how="mean", context="none") for layer in (1, 2))


def separable(dialogues=60, noise=0.5, seed=0):
    """Turns of eight dimensions; each label is the sign of one of them, with noise. Other embeddings say nothing."""
    rng = np.random.default_rng(seed)
    names = [f"d{at // 6}" for at in range(6 * dialogues)]
    features = rng.normal(3.0, 2.0, (len(names), 8)).astype(np.float32)
    labels = features[:, :2] - 3.0 + rng.normal(0, noise, (len(names), 2)) > 0
    turns = LabelledTurns([str(at) for at in range(len(names))], names, NAMES, labels, np.ones(len(names), dtype=bool))
    return {NOISE: rng.normal(size=features.shape).astype(np.float32), GOOD: features}, turns


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    return str(write_random_llama(tmp_path_factory.mktemp("random"), layers=2))


@pytest.fixture(scope="module")
def trained(base):
    """A classifier on the width of the toy model, trained with embeddings that are made up."""
    embeddings, turns = separable()
    wide = {pooling: np.hstack([rows, np.zeros((len(rows), 56), np.float32)]) for pooling, rows in embeddings.items()}
    return train_on(wide, turns, base)


def test_it_learns_the_rule_and_chooses_the_embeddings_that_hold_it():
    embeddings, turns = separable()
    learned = train_on(embeddings, turns, "any")
    assert learned.info.pooling == GOOD
    fresh, test = separable(seed=1)
    seen = learned.decide(learned.probabilities(fresh[GOOD]))
    # the sign of the known dimension itself is the best rule
    best = f1_score(test.labels, fresh[GOOD][:, :2] > 3.0, average="macro")
    assert f1_score(test.labels, seen, average="macro") > best - 0.03
    assert learned.info.turns == 360
    assert learned.info.dialogues == 60
    assert learned.info.data == turns.digest()


def test_probabilities_are_calibrated_and_errors_stated_on_new_dialogues():
    embeddings, turns = separable(dialogues=250, noise=2.0)
    learned = train_on(embeddings, turns, "any")
    fresh, test = separable(dialogues=400, noise=2.0, seed=2)
    probabilities = learned.probabilities(fresh[GOOD])
    for at in range(2):
        for low in (0.1, 0.3, 0.5, 0.7):
            which = (probabilities[:, at] >= low) & (probabilities[:, at] < low + 0.2)
            assert test.labels[which, at].mean() == pytest.approx(probabilities[which, at].mean(), abs=0.05)
        measured = error_rates(learned.decide(probabilities)[:, at], test.labels[:, at], test.dialogues)
        stated = learned.info.accuracy[at]
        assert stated.sensitivity.share == pytest.approx(measured.sensitivity.share, abs=0.05)
        assert stated.specificity.share == pytest.approx(measured.specificity.share, abs=0.05)


def test_turns_that_nobody_labelled_are_not_learned():
    embeddings, turns = separable()
    wrong = turns.labels.copy()
    rated = np.arange(len(wrong)) % 2 == 0
    wrong[~rated] = ~wrong[~rated]
    with_wrong = train_on(embeddings, replace(turns, labels=wrong, rated=rated), "any")
    without = train_on(embeddings, replace(turns, rated=rated), "any")
    assert with_wrong.weights == pytest.approx(without.weights)
    assert with_wrong.info.turns == 180


def test_the_same_seed_gives_the_same_classifier():
    embeddings, turns = separable()
    first, second = train_on(embeddings, turns, "any", seed=3), train_on(embeddings, turns, "any", seed=3)
    assert first.info == second.info
    assert np.array_equal(first.weights, second.weights)


def test_dialogues_stay_whole_in_folds():
    dialogues = [f"d{at % 13}" for at in range(100)]
    parts = folds(dialogues, 5, 0)
    assert sorted(at for _, held_out in parts for at in held_out) == list(range(100))
    for learn, held_out in parts:
        assert not {dialogues[at] for at in learn} & {dialogues[at] for at in held_out}


def test_the_threshold_with_the_best_f1_by_hand():
    # F1 from 0.9 on: 2/(2 + 0 + 2) = 1/2; 0.8: 2/(2 + 1 + 2) = 2/5; 0.7: 4/(4 + 1 + 1) = 2/3; 0.6: 6/7; 0.1: 3/4
    scores = np.array([[0.9], [0.8], [0.7], [0.6], [0.1]])
    targets = np.array([[True], [False], [True], [True], [False]])
    assert best_thresholds(scores, targets).tolist() == [0.6]


def test_calibration_recovers_the_line_of_the_log_odds():
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(40_000, 2))
    targets = rng.random(scores.shape) < expit(scores * [2.0, 0.5] + [-1.0, 0.3])
    slopes, offsets = calibration(scores, targets)
    assert slopes == pytest.approx([2.0, 0.5], abs=0.06)
    assert offsets == pytest.approx([-1.0, 0.3], abs=0.06)


def test_a_label_of_too_few_dialogues_is_refused():
    labels = np.zeros((60, 2), dtype=bool)
    labels[::2, 0] = True
    labels[:27, 1] = True  # of nine dialogues with three turns each
    with pytest.raises(BadInput, match="label offers: 9 dialogues have a turn with it; training needs 10"):
        check_enough(NAMES, labels, [f"d{at // 3}" for at in range(60)])
    check_enough(NAMES[:1], labels[:, :1], [f"d{at // 3}" for at in range(60)])


def test_training_from_text_to_prediction(base):
    """The second label is a word of the turn; a random model's token embeddings are enough to see it."""
    rng = np.random.default_rng(0)
    words = rng.integers(0, 2, 160)
    texts = [f"{'zzzz' if word else 'aaaa'}{at % 7}" for at, word in enumerate(words)]
    turns = LabelledTurns(
        texts,
        [f"d{at // 4}" for at in range(160)],
        ("word",),
        words.astype(bool)[:, None],
        np.ones(160, dtype=bool),
    )
    learned = train(turns, base)
    probabilities = learned.predict(["zzzz9", "aaaa9", "zzzz3"], ["x", "x", "x"])
    assert learned.decide(probabilities)[:, 0].tolist() == [True, False, True]
    assert learned.info.pooling in candidates(base)
    assert {pooling.layer for pooling in candidates(base)} == {1, 2}


def test_a_stored_classifier_is_read_as_it_was(trained, tmp_path):
    trained.save(tmp_path / "c")
    again = load(tmp_path / "c")
    assert again.info == trained.info
    assert np.array_equal(again.weights, trained.weights)
    assert np.array_equal(again.biases, trained.biases)
    assert sorted(file.name for file in (tmp_path / "c").iterdir()) == [
        "classifier.json", "classifier.safetensors", MANIFEST,
    ]  # fmt: skip


def rewrite(folder, *, info=None, tensors=None):
    """Change a stored classifier, with a manifest that fits."""
    if info is not None:
        write_json(folder / classifier.INFO, json.loads((folder / classifier.INFO).read_text()) | info)
    if tensors is not None:
        save_file(load_file(folder / classifier.WEIGHTS) | tensors, folder / classifier.WEIGHTS)
    files = {
        name: {"sha256": sha256(folder / name), "bytes": (folder / name).stat().st_size}
        for name in (classifier.INFO, classifier.WEIGHTS)
    }
    write_json(folder / MANIFEST, {"version": 1, "files": files})


@pytest.mark.parametrize(
    "change, message",
    [
        ({"tensors": {"weights": np.zeros((2, 63))}}, r"safetensors, weights: expected float64 \(2, 64\), not .*63"),
        ({"tensors": {"weights": np.zeros((2, 64), np.float32)}}, r"weights: expected float64 \(2, 64\), not float32"),
        ({"tensors": {"biases": np.zeros(3)}}, r"safetensors, biases: expected float64 \(2,\), not float64 \(3,\)"),
        ({"tensors": {"biases": np.array([0.0, np.nan])}}, "biases: contains numbers that are not finite"),
        ({"info": {"base": "/gone"}}, "classifier.json, base: unknown model '/gone'"),
        ({"info": {"thresholds": [0.5]}}, "classifier.json, thresholds: expected 2, one per label"),
        ({"info": {"labels": []}}, "classifier.json, labels: "),
        ({"info": {"colour": "red"}}, "classifier.json, colour: there is no such field"),
    ],
)
def test_a_stored_classifier_that_does_not_fit_is_refused(trained, tmp_path, change, message):
    trained.save(tmp_path / "c")
    rewrite(tmp_path / "c", **change)
    with pytest.raises(BadInput, match=message):
        load(tmp_path / "c")


def test_a_changed_or_missing_file_is_refused(trained, tmp_path):
    with pytest.raises(BadInput, match="incomplete"):
        load(tmp_path)
    trained.save(tmp_path / "c")
    with (tmp_path / "c" / classifier.WEIGHTS).open("ab") as file:
        file.write(b"\0")
    with pytest.raises(BadInput, match=r"classifier\.safetensors is missing or does not match"):
        load(tmp_path / "c")
    (tmp_path / "d").mkdir()
    write_json(tmp_path / "d" / MANIFEST, {"version": 1, "files": {}})
    with pytest.raises(BadInput, match=r"classifier\.json: missing"):
        load(tmp_path / "d")
