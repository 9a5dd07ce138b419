"""A classifier of turns, trained on labels: a logistic regression for each label on the states of a frozen model.

Layer, pooling, context, strength, calibration and thresholds are chosen by cross-validation over the training
dialogues, whole dialogues at a time. The error rates stored with the classifier come from the same held-out
predictions, so that they may be a little too small: the thresholds were chosen on them. Raises `BadInput` for too few
labels, and for a stored classifier that is incomplete, changed or of another form.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from training import bases
from training.engines.local.embedding import Embedder
from training.engines.pooling import Pooling
from training.errors import BadInput
from training.labels.info import INFO, WEIGHTS, ClassifierInfo, read_info
from training.labels.prevalence import agreement, error_rates
from training.labels.turns import LabelledTurns
from training.seeding import derive
from training.store import atomic_directory, from_json, write_json

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from training.engines.local.embedding import States

    Floats = NDArray[np.float64]
    Flags = NDArray[np.bool_]

FOLDS = 5
"""Parts of the training dialogues for strength, calibration, thresholds and errors."""
COARSE_FOLDS = 3
"""Parts for the choice of the pooling, which compares many candidates."""
STRENGTHS = (0.001, 0.003, 0.01, 0.03, 0.1)
"""Candidates of scikit-learn's C, the inverse of the L2 penalty."""
FIRST_STRENGTH = 0.01
"""The strength with which poolings are compared."""
FEWEST = 2 * FOLDS
"""Dialogues in which a label must occur, and as many in which a turn is without it."""
DEPTHS = (0.2, 0.4, 0.6, 0.8, 1.0)
"""Candidates of the layer, as shares of the number of layers."""


@dataclass(frozen=True)
class Classifier:
    """Weights (L, d) and biases (L,) of the labels; their logistic function is the calibrated probability."""

    info: ClassifierInfo
    weights: Floats
    biases: Floats

    def predict(self, texts: Sequence[str], dialogues: Sequence[Hashable] | None = None, device: str = "cpu") -> Floats:
        """Return the probability (n, L) of each label in each turn; `dialogues` as in `embed_all`."""
        return Labeller(self, device).predict(texts, dialogues)

    def probabilities(self, embeddings: States) -> Floats:
        """Return the probability (n, L) of each label from the turns' embeddings (n, d)."""
        from scipy.special import expit

        probabilities: Floats = expit(embeddings @ self.weights.T + self.biases)
        return probabilities

    def decide(self, probabilities: Floats) -> Flags:
        """Return which labels (n, L) reach their thresholds."""
        return probabilities >= np.array(self.info.thresholds)

    def save(self, folder: Path) -> None:
        """Write the classifier to a folder, which must not be that of anything else."""
        from safetensors.numpy import save_file

        with atomic_directory(folder) as temporary:
            write_json(temporary / INFO, self.info.to_dict())
            save_file({"weights": self.weights, "biases": self.biases}, temporary / WEIGHTS)


class Labeller:
    """A classifier with its base model in memory, for any number of calls."""

    def __init__(self, classifier: Classifier, device: str = "cpu") -> None:
        self.classifier = classifier
        self._embedder = Embedder(classifier.info.base, device)

    @property
    def info(self) -> ClassifierInfo:
        """What the classifier says of itself."""
        return self.classifier.info

    def predict(
        self,
        texts: Sequence[str],
        dialogues: Sequence[Hashable] | None = None,
        progress: Callable[[int, int], None] = lambda _done, _total: None,
    ) -> Floats:
        """Return the probability (n, L) of each label in each turn; arguments as in `Embedder.embed`."""
        pooling = self.info.pooling
        return self.classifier.probabilities(self._embedder.embed(texts, [pooling], dialogues, progress)[pooling])


def load(folder: Path) -> Classifier:
    """Return a stored classifier; raise `BadInput` naming the place for one that does not fit together."""
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    info = read_info(folder)
    try:
        tensors = load_file(folder / WEIGHTS)
    except SafetensorError as error:
        raise BadInput(f"cannot be read: {error}", str(folder / WEIGHTS)) from error
    _check(info, tensors, folder)
    return Classifier(info, tensors["weights"], tensors["biases"])


def _check(info: ClassifierInfo, tensors: Mapping[str, Any], folder: Path) -> None:
    """Raise `BadInput` unless the shapes and the base model fit together."""
    count = len(info.labels)
    if bases.find(info.base) is None and not bases.is_folder(info.base):
        raise BadInput(f"unknown model {info.base!r}", f"{folder / INFO}, base")
    width = int(_config(info.base)["hidden_size"])
    for name, shape in (("weights", (count, width)), ("biases", (count,))):
        if name not in tensors:
            raise BadInput("missing", f"{folder / WEIGHTS}, {name}")
        if tensors[name].shape != shape or tensors[name].dtype != np.float64:
            form = f"{tensors[name].dtype} {tensors[name].shape}"
            raise BadInput(f"expected float64 {shape}, not {form}", f"{folder / WEIGHTS}, {name}")
        if not np.isfinite(tensors[name]).all():
            raise BadInput("contains numbers that are not finite", f"{folder / WEIGHTS}, {name}")


def _config(base: str) -> Mapping[str, Any]:
    """Return a base model's configuration in the form of Hugging Face."""
    path = bases.base_of(bases.resolve(base)) / "config.json"
    config: dict[str, Any] = from_json(path.read_bytes(), str(path))
    return config


def candidates(base: str) -> list[Pooling]:
    """Return the poolings among which training chooses."""
    count = int(_config(base)["num_hidden_layers"])
    layers = dict.fromkeys(max(1, round(depth * count)) for depth in DEPTHS)
    return [
        Pooling(layer=layer, how=how, context=context)
        for context, how, layer in product(("none", "previous", "dialogue"), ("mean", "last"), layers)
    ]


def train(
    turns: LabelledTurns,
    base: str,
    *,
    seed: int = 0,
    device: str = "cpu",
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> Classifier:
    """Return a classifier of the turns' labels on a base model (a registered name or a folder).

    Raises `BadInput` for a label that too few dialogues have or lack. `progress` as in `Embedder.embed`.
    """
    rated = [name for name, use in zip(turns.dialogues, turns.rated, strict=True) if use]
    check_enough(turns.names, turns.labels[turns.rated], rated)
    embeddings = Embedder(base, device).embed(turns.texts, candidates(base), turns.dialogues, progress)
    return train_on(embeddings, turns, base, seed=seed)


def train_on(embeddings: Mapping[Pooling, States], turns: LabelledTurns, base: str, *, seed: int = 0) -> Classifier:
    """Return a classifier from the turns' embeddings (n, d) by pooling; see `train`."""
    rated = turns.rated
    targets = turns.labels[rated]
    dialogues = [name for name, use in zip(turns.dialogues, rated, strict=True) if use]
    check_enough(turns.names, targets, dialogues)
    pooling, strength = choose({each: rows[rated] for each, rows in embeddings.items()}, targets, dialogues, seed)
    features = embeddings[pooling][rated]
    held_out = cross_validated(_head(strength), features, targets, folds(dialogues, FOLDS, seed))
    slopes, offsets = calibration(held_out, targets)
    probabilities = _logistic(held_out * slopes + offsets)
    thresholds = best_thresholds(probabilities, targets)
    seen = probabilities >= thresholds
    weights, biases = _linear(_head(strength).fit(features, targets))
    info = ClassifierInfo(
        labels=turns.names,
        base=base,
        pooling=pooling,
        strength=strength,
        thresholds=tuple(thresholds.tolist()),
        accuracy=tuple(error_rates(seen[:, at], targets[:, at], dialogues) for at in range(len(turns.names))),
        agreement=tuple(agreement(seen[:, at], targets[:, at], dialogues) for at in range(len(turns.names))),
        codebook=turns.codebook,
        codebook_version=turns.codebook_version,
        data=turns.digest(),
        turns=len(targets),
        dialogues=len(set(dialogues)),
        seed=seed,
    )
    return Classifier(info, weights * slopes[:, None], biases * slopes + offsets)


def check_enough(names: Sequence[str], targets: Flags, dialogues: Sequence[str]) -> None:
    """Raise `BadInput` for a label that fewer than `FEWEST` dialogues have, or lack in some turn."""
    groups = np.asarray(dialogues)
    for at, name in enumerate(names):
        for flag, verb in ((True, "with"), (False, "without")):
            count = len(np.unique(groups[targets[:, at] == flag]))
            if count < FEWEST:
                raise BadInput(f"{count} dialogues have a turn {verb} it; training needs {FEWEST}", f"label {name}")


def choose(
    embeddings: Mapping[Pooling, States], targets: Flags, dialogues: Sequence[str], seed: int
) -> tuple[Pooling, float]:
    """Return the pooling and then the strength with the best macro average precision on held-out dialogues."""
    parts = {count: folds(dialogues, count, seed) for count in (COARSE_FOLDS, FOLDS)}

    def quality(pooling: Pooling, strength: float, count: int) -> float:
        scores = cross_validated(_head(strength), embeddings[pooling], targets, parts[count])
        return ranking(scores, targets)

    pooling = max(embeddings, key=lambda each: quality(each, FIRST_STRENGTH, COARSE_FOLDS))
    return pooling, max(STRENGTHS, key=lambda each: quality(pooling, each, FOLDS))


def folds(dialogues: Sequence[str], count: int, seed: int) -> list[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Return `count` (training, held out) numbers of turns; a dialogue is in one part whole."""
    from sklearn.model_selection import GroupKFold

    splitter = GroupKFold(count, shuffle=True, random_state=derive(seed, "folds", count) % 2**32)
    return list(splitter.split(np.zeros(len(dialogues)), groups=np.asarray(dialogues)))


def cross_validated(estimator: Any, features: Any, targets: Flags, parts: Sequence[Any]) -> Floats:
    """Return the scores (n, L) of every turn by the estimator that has not learned from its dialogue."""
    from sklearn.base import clone

    scores = np.empty(targets.shape)
    for learn, held_out in parts:
        learned = clone(estimator).fit(features[learn], targets[learn].astype(int))
        # a single label has scores (n,)
        scores[held_out] = learned.decision_function(features[held_out]).reshape(len(held_out), -1)
    return scores


def ranking(scores: Floats, targets: Flags) -> float:
    """Return the mean over labels of the average precision."""
    from sklearn.metrics import average_precision_score

    return float(average_precision_score(targets, scores, average="macro"))


def calibration(scores: Floats, targets: Flags) -> tuple[Floats, Floats]:
    """Return slopes (L,) and offsets (L,) that turn scores into log-odds (Platt, 1999, without his priors)."""
    from sklearn.linear_model import LogisticRegression

    lines = [
        LogisticRegression(C=np.inf, solver="newton-cholesky").fit(scores[:, [at]], targets[:, at])
        for at in range(targets.shape[1])
    ]
    return np.array([line.coef_[0, 0] for line in lines]), np.array([line.intercept_[0] for line in lines])


def best_thresholds(scores: Floats, targets: Flags) -> Floats:
    """Return for each label the threshold (L,) with the best F1: a turn whose score reaches it is seen to have it."""
    from sklearn.metrics import precision_recall_curve

    chosen = []
    for at in range(targets.shape[1]):
        precision, recall, thresholds = precision_recall_curve(targets[:, at], scores[:, at])
        total = precision + recall
        f1 = np.divide(2 * precision * recall, total, out=np.zeros_like(total), where=total > 0)
        chosen.append(float(thresholds[int(np.argmax(f1[:-1]))]))  # the last point has no threshold
    return np.array(chosen)


def _head(strength: float) -> Any:
    from sklearn.linear_model import LogisticRegression
    from sklearn.multiclass import OneVsRestClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), OneVsRestClassifier(LogisticRegression(C=strength, max_iter=1000)))


def _linear(pipeline: Any) -> tuple[Floats, Floats]:
    """Return weights (L, d) and biases (L,) of a trained head on embeddings that are not standardised."""
    scaler, head = pipeline[0], pipeline[1]
    standardised = np.array([each.coef_[0] for each in head.estimators_], dtype=np.float64)
    weights: Floats = standardised / scaler.scale_.astype(np.float64)
    biases: Floats = np.array([each.intercept_[0] for each in head.estimators_]) - weights @ scaler.mean_
    return weights, biases


def _logistic(values: Floats) -> Floats:
    from scipy.special import expit

    probabilities: Floats = expit(values)
    return probabilities
