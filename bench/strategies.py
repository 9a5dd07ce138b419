"""A classifier of negotiation strategies trained on people's labels, beside baselines, over random splits by dialogue.

The dataset is CaSiNo's file, whose annotated dialogues alone are used. Of each split the classifier and the baselines
learn from the same dialogues and choose everything inside them. Intervals within a split are the bootstrap over its
test dialogues (percentiles), the same resamples for all methods. Raises `BadInput` for a file of another form, and for
too few dialogues.
"""

from __future__ import annotations

import tempfile
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bench.rows import stored_row
from training import bases
from training.engines.local.embedding import embed_all
from training.engines.pooling import Pooling
from training.errors import BadInput
from training.labels import classifier
from training.labels.classifier import best_thresholds, cross_validated, folds, ranking
from training.labels.prevalence import error_rates, rate, true_prevalence
from training.labels.turns import LabelledTurns
from training.seeding import rng
from training.store import sha256
from webapp.scenarios.importers.casino_annotations import STRATEGIES, align
from webapp.scenarios.importers.reading import load_json

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Flags = NDArray[np.bool_]

RESAMPLES = 2000
LEVEL = 0.95
TOKENS = r"\w+|[?!]"
"""What counts as a word for the baselines."""
SIZES = (1, 2, 5, 10, 20, 50)
"""Candidates of the number of keywords of a strategy."""
STRENGTHS = (0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
"""Candidates of C for the regression on TF-IDF."""


@dataclass(frozen=True)
class Part:
    """The labelled turns of some dialogues: their rows among all turns, texts, dialogues and labels (n, L)."""

    rows: NDArray[np.intp]
    texts: NDArray[np.object_]
    dialogues: list[str]
    labels: Flags


def main(arguments: Namespace) -> dict[str, Any]:
    """Return a row for every seed: F1 of each method and strategy, and what the classifier says of its errors."""
    turns, unplaced = read(arguments.dataset)
    count = len(set(turns.dialogues))
    if count - arguments.train < 2:
        raise BadInput(f"{count} annotated dialogues leave fewer than two for the test", "--train")
    wanted = {"model": arguments.model, "train": arguments.train, "data": turns.digest()}
    with tempfile.TemporaryDirectory() if arguments.dir is None else nullcontext(arguments.dir) as folder:
        embeddings = cached(
            turns, arguments.model, Path(folder) / f"{turns.digest()[:16]}-{Path(arguments.model).name}.npz"
        )
        rows = [
            stored_row(
                Path(folder) / f"seed-{seed}",
                wanted | {"seed": seed},
                partial(measure, turns, embeddings, arguments.model, arguments.train, seed),
            )
            for seed in range(arguments.seeds)
        ]
    return {
        "measurement": "strategies",
        "dataset": {"file": arguments.dataset.name, "sha256": sha256(arguments.dataset), "unplaced": unplaced},
        "model": arguments.model,
        "dialogues": count,
        "train": arguments.train,
        "test": count - arguments.train,
        "turns": int(turns.rated.sum()),
        "labels": {name: int(turns.labels[:, at].sum()) for at, name in enumerate(turns.names)},
        "rows": rows,
    }


def read(path: Path) -> tuple[LabelledTurns, int]:
    """Return the turns of the annotated dialogues, and the number of annotations that belong to no turn."""
    records = load_json(path)
    if not isinstance(records, list):
        raise BadInput("expected a list of dialogues", path.name)
    texts: list[str] = []
    dialogues: list[str] = []
    labels: list[list[bool]] = []
    rated: list[bool] = []
    unplaced = 0
    for number, record in enumerate(records):
        aligned = align(record, f"{path.name}, dialogue {number}")
        unplaced += len(aligned.unplaced)
        if not aligned.labels:
            continue
        for turn, entry in enumerate(record["chat_logs"]):
            texts.append(entry["text"])
            dialogues.append(str(number))
            labels.append([name in aligned.labels.get(turn, ()) for name in STRATEGIES])
            rated.append(turn in aligned.labels)
    if not texts:
        raise BadInput("no dialogue has annotations", path.name)
    return LabelledTurns(texts, dialogues, STRATEGIES, np.array(labels), np.array(rated)), unplaced


def cached(turns: LabelledTurns, model: str, file: Path) -> dict[Pooling, NDArray[np.float32]]:
    """Return the embeddings of all turns by every pooling from a file, after computing them if it is missing."""
    poolings = classifier.candidates(model)
    if not file.exists():
        computed = embed_all(turns.texts, model, poolings, turns.dialogues)
        file.parent.mkdir(parents=True, exist_ok=True)
        arrays: Any = {str(at): computed[pooling] for at, pooling in enumerate(poolings)}
        np.savez(file, **arrays)
    with np.load(file) as stored:
        return {pooling: stored[str(at)] for at, pooling in enumerate(poolings)}


def measure(
    turns: LabelledTurns, embeddings: Mapping[Pooling, NDArray[np.float32]], model: str, train: int, seed: int
) -> dict[str, Any]:
    """Return the row of one split."""
    fit, test = split(turns, train, seed)
    in_training = np.zeros(len(turns.texts), dtype=bool)
    in_training[fit.rows] = True
    of_training = LabelledTurns(turns.texts, turns.dialogues, turns.names, turns.labels, in_training)
    head = classifier.train_on(embeddings, of_training, model, seed=seed)
    probabilities = head.probabilities(embeddings[head.info.pooling][test.rows])
    by_words, precision = tfidf(fit, test, seed)
    decisions = {
        "head": head.decide(probabilities),
        "tfidf": by_words,
        "keywords": keywords(fit, test, seed),
        "always": np.ones_like(test.labels),
        "majority": np.repeat(fit.labels.mean(axis=0, keepdims=True) > 0.5, len(test.labels), axis=0),
    }
    return {
        "pooling": head.info.pooling.to_dict(),
        "strength": head.info.strength,
        "average_precision": {"head": round(ranking(probabilities, test.labels), 4), "tfidf": round(precision, 4)},
        **compared(decisions, test, turns.names, seed),
        "errors": errors(head, decisions["head"], probabilities, fit, test),
    }


def split(turns: LabelledTurns, train: int, seed: int) -> tuple[Part, Part]:
    """Return the labelled turns of `train` dialogues that are drawn by the seed, and those of the others."""
    names = list(dict.fromkeys(turns.dialogues))
    drawn = set(rng(seed, "split").sample(names, train))
    return _part(turns, drawn.__contains__), _part(turns, lambda name: name not in drawn)


def _part(turns: LabelledTurns, belongs: Callable[[str], bool]) -> Part:
    rows = np.array([at for at, name in enumerate(turns.dialogues) if turns.rated[at] and belongs(name)], dtype=np.intp)
    texts = np.array([turns.texts[at] for at in rows], dtype=object)
    return Part(rows, texts, [turns.dialogues[at] for at in rows], turns.labels[rows])


def tfidf(fit: Part, test: Part, seed: int) -> tuple[Flags, float]:
    """Return what a logistic regression on TF-IDF of words and pairs of words sees in the test's turns (n, L), and its
    macro average precision there. C and thresholds are chosen as those of the classifier.
    """
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.multiclass import OneVsRestClassifier
    from sklearn.pipeline import make_pipeline

    parts = folds(fit.dialogues, classifier.FOLDS, seed)
    best, chosen, held_out = -1.0, None, np.empty(0)
    for strength in STRENGTHS:
        words = TfidfVectorizer(token_pattern=TOKENS, ngram_range=(1, 2), min_df=2, sublinear_tf=True)
        estimator = make_pipeline(words, OneVsRestClassifier(LogisticRegression(C=strength, max_iter=1000)))
        scores = cross_validated(estimator, fit.texts, fit.labels, parts)
        if (value := ranking(scores, fit.labels)) > best:
            best, chosen, held_out = value, estimator, scores
    assert chosen is not None, "average precision is at least 0"
    scores = chosen.fit(fit.texts, fit.labels.astype(int)).decision_function(test.texts)
    return scores >= best_thresholds(held_out, fit.labels), ranking(scores, test.labels)


def keywords(fit: Part, test: Part, seed: int) -> Flags:
    """Return which turns (n, L) contain a keyword of each strategy.

    Keywords are the words and pairs of words with the highest chi-square among those that occur more often with the
    strategy than without; their number is the one with the best F1 on held-out dialogues.
    """
    parts = folds(fit.dialogues, classifier.FOLDS, seed)
    held_out = {size: np.zeros_like(fit.labels) for size in SIZES}
    for learn, hold in parts:
        seen = _contains(fit.texts[learn], fit.labels[learn], fit.texts[hold])
        for size in SIZES:
            held_out[size][hold] = seen[size]
    best = np.argmax([_f1(_counts(held_out[size], fit.labels).sum(axis=0)) for size in SIZES], axis=0)
    seen = _contains(fit.texts, fit.labels, test.texts)
    return np.stack([seen[SIZES[size]][:, at] for at, size in enumerate(best)], axis=1)


def _contains(learned: Any, labels: Flags, texts: Any) -> dict[int, Flags]:
    """Return by number of keywords which texts (n, L) contain one of each label's."""
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.feature_selection import chi2

    counter = CountVectorizer(token_pattern=TOKENS, ngram_range=(1, 2), min_df=3, binary=True)
    words = counter.fit_transform(learned)
    present = counter.transform(texts)
    seen = {size: np.zeros((len(texts), labels.shape[1]), dtype=bool) for size in SIZES}
    for at in range(labels.shape[1]):
        more = words[labels[:, at]].mean(axis=0).A1 > words[~labels[:, at]].mean(axis=0).A1
        order = np.argsort(-np.where(more, chi2(words, labels[:, at])[0], -1.0), kind="stable")
        for size in SIZES:
            seen[size][:, at] = np.asarray(present[:, order[:size]].sum(axis=1)).ravel() > 0
    return seen


def _counts(seen: Flags, true: Flags) -> NDArray[np.int64]:
    """Return for each turn and label (n, L, 3) whether it is a true positive, a false positive, a false negative."""
    return np.stack([seen & true, seen & ~true, ~seen & true], axis=-1).astype(np.int64)


def _f1(counts: Any) -> Floats:
    """Return F1 (…) from counts (…, 3); 0 where the label neither occurs nor is seen."""
    total = 2 * counts[..., 0] + counts[..., 1] + counts[..., 2]
    f1: Floats = np.divide(2.0 * counts[..., 0], total, out=np.zeros(total.shape), where=total > 0)
    return f1


def compared(decisions: Mapping[str, Flags], test: Part, names: Sequence[str], seed: int) -> dict[str, Any]:
    """Return F1 by method and strategy, macro F1 with intervals, and the classifier's lead over every other method."""
    dialogues, number = np.unique(np.array(test.dialogues), return_inverse=True)
    generator = np.random.default_rng(rng(seed, "bootstrap").getrandbits(63))
    drawn = generator.multinomial(len(dialogues), np.full(len(dialogues), 1 / len(dialogues)), RESAMPLES)
    f1: dict[str, Floats] = {}
    resampled: dict[str, Floats] = {}
    for method, seen in decisions.items():
        sums = np.zeros((len(dialogues), len(names), 3))
        np.add.at(sums, number, _counts(seen, test.labels))
        f1[method] = _f1(sums.sum(axis=0))
        resampled[method] = _f1(np.einsum("rd,dlc->rlc", drawn, sums))
    macro = {method: _estimate(f1[method].mean(), values.mean(axis=1)) for method, values in resampled.items()}
    leads = {
        method: _estimate(f1["head"].mean() - f1[method].mean(), (resampled["head"] - values).mean(axis=1))
        for method, values in resampled.items()
        if method != "head"
    }
    return {
        "f1": {method: {name: round(float(v), 4) for name, v in zip(names, f1[method], strict=True)} for method in f1},
        "f1_intervals": {name: _estimate(f1["head"][at], resampled["head"][:, at]) for at, name in enumerate(names)},
        "macro": macro,
        "head_minus": leads,
    }


def _estimate(mean: Any, resampled: Floats) -> dict[str, float]:
    low, high = np.quantile(resampled, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return {"mean": round(float(mean), 4), "low": round(float(low), 4), "high": round(float(high), 4)}


def errors(
    head: classifier.Classifier, seen: Flags, probabilities: Floats, fit: Part, test: Part
) -> dict[str, dict[str, float]]:
    """Return for each strategy sensitivity and specificity as the classifier states them and in the test, the labelled,
    seen and corrected share of the test's turns, and Brier scores of the probabilities and of the training's share.
    """
    rows = {}
    for at, name in enumerate(head.info.labels):
        stated, measured = head.info.accuracy[at], error_rates(seen[:, at], test.labels[:, at], test.dialogues)
        observed = rate(_by_dialogue(seen[:, at], test.dialogues))
        corrected = true_prevalence(observed, stated)
        true = test.labels[:, at]
        values = {
            "sensitivity": stated.sensitivity.share,
            "sensitivity_test": measured.sensitivity.share,
            "specificity": stated.specificity.share,
            "specificity_test": measured.specificity.share,
            "labelled": float(true.mean()),
            "seen": observed.share,
            "corrected": corrected.share,
            "low": corrected.low,
            "high": corrected.high,
            "brier": float(np.mean((probabilities[:, at] - true) ** 2)),
            "brier_share": float(np.mean((fit.labels[:, at].mean() - true) ** 2)),
        }
        rows[name] = {key: round(value, 4) for key, value in values.items()}
    return rows


def _by_dialogue(seen: Flags, dialogues: Sequence[str]) -> list[tuple[int, int]]:
    """Return (turns seen, turns) of each dialogue."""
    _, number = np.unique(np.array(dialogues), return_inverse=True)
    return [(int(hits), int(turns)) for hits, turns in zip(np.bincount(number, seen), np.bincount(number), strict=True)]


def show(result: dict[str, Any]) -> str:
    """Return a line per split: macro F1 of every method."""
    title = bases.REGISTRY[result["model"]].title if result["model"] in bases.REGISTRY else result["model"]
    lines = [f"{title}: {result['turns']} turns of {result['dialogues']} dialogues, {result['train']} for training"]
    for row in result["rows"]:
        values = "  ".join(f"{method} {each['mean']:.3f}" for method, each in row["macro"].items())
        lines.append(f"seed {row['seed']}, macro F1: {values}")
    return "\n".join(lines)
