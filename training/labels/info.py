"""The metadata of a stored classifier: its labels, its thresholds, and how well it agrees with people.

Reading it needs neither the weights nor the model that they stand on. Raises `BadInput` naming the place.
"""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from training.engines.pooling import Pooling
from training.errors import BadInput
from training.labels.prevalence import Agreement, ErrorRates
from training.reading import Record
from training.store import from_json, verify_directory

INFO, WEIGHTS = "classifier.json", "classifier.safetensors"


class ClassifierInfo(Record):
    """What is stored beside the weights: one threshold and one `ErrorRates` per label, and what they come from.

    `agreement` has one entry per label, or none in a folder of an earlier release. `data` is the digest of the training
    turns, `turns` and `dialogues` are their numbers; `strength` is C. `codebook` and its version say what the labels
    mean; empty and None where the turns came without one.
    """

    version: int = 1
    labels: tuple[str, ...] = Field(min_length=1)
    base: str
    pooling: Pooling
    strength: float
    thresholds: tuple[float, ...]
    accuracy: tuple[ErrorRates, ...]
    agreement: tuple[Agreement, ...] = ()
    codebook: str = ""
    codebook_version: int | None = None
    data: str
    turns: int
    dialogues: int
    seed: int

    def place_of(self, label: str) -> int:
        """Return the column of a label; raise `BadInput` for one that the classifier does not know."""
        if label not in self.labels:
            raise BadInput(f"the classifier has no label {label!r}; it has {', '.join(self.labels)}", "label")
        return self.labels.index(label)

    def agreement_of(self, label: str) -> Agreement | None:
        """Return how well it agrees with people on a label; None if it was not measured. Raises `BadInput`."""
        place = self.place_of(label)
        return self.agreement[place] if self.agreement else None


def read_info(folder: Path) -> ClassifierInfo:
    """Return what a complete, unchanged folder says of its classifier; raise `BadInput` for any other folder."""
    verify_directory(folder)
    for name in (INFO, WEIGHTS):
        if not (folder / name).is_file():
            raise BadInput("missing: this is no classifier", str(folder / name))
    place = str(folder / INFO)
    try:
        info = ClassifierInfo.from_dict(from_json((folder / INFO).read_bytes(), place))
    except BadInput as error:
        raise BadInput(error.why, f"{place}, {error.where}" if error.where != place else place) from error
    for name in ("thresholds", "accuracy", "agreement"):
        if len(getattr(info, name)) != len(info.labels) and (name != "agreement" or info.agreement):
            raise BadInput(f"expected {len(info.labels)}, one per label", f"{place}, {name}")
    return info
