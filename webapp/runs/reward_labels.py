"""Labels as rewards of runs: the classifiers that a configuration names, and how well they agree with people."""

from __future__ import annotations

from dataclasses import replace

from training.config import RunConfig
from training.errors import BadInput
from training.labels.codebooks import CODEBOOKS
from training.labels.info import ClassifierInfo
from training.rewards.labels import Measured, measured
from webapp.runs.models import Run
from webapp.runs.signals import classifier_named


def measured_labels(config: RunConfig) -> list[Measured]:
    """Return how well the sources of a reward's labels agree with people, each with a warning where that is too little.

    Raises `BadInput` with the field for a classifier or codebook that this site does not have.
    """
    labels = []
    for place, entry in enumerate(config.reward.labels):
        where = f"reward.labels.{place}"
        if entry.codebook and entry.codebook not in CODEBOOKS:
            raise BadInput(f"name one of {', '.join(CODEBOOKS)}; files are for the command line", f"{where}.codebook")
        info, withdrawn = _classifier(entry.classifier) if entry.classifier else (None, False)
        if entry.classifier and info is None:
            why = f"no trained classifier is named {entry.classifier[:80]!r}; folders are for the command line"
            raise BadInput(why, f"{where}.classifier")
        try:
            label = measured(entry, config.reward.least_agreement, info)
        except BadInput as error:
            raise BadInput(error.why, f"{where}.{error.where}") from error
        why = f"consent to a game was withdrawn after {entry.classifier} had learned from it" if withdrawn else ""
        labels.append(replace(label, warning="; ".join(filter(None, (label.warning, why)))))
    return labels


def _classifier(name: str) -> tuple[ClassifierInfo | None, bool]:
    """What the classifier of this name states of itself, and whether it learned from a withdrawn game."""
    for _, answer in classifier_named.send(sender=Run, name=name):
        known: object = answer
        if isinstance(known, tuple):
            info, withdrawn = known
            return info, withdrawn
    return None, False


def recorded(run: Run) -> list[dict[str, object]]:
    """Return what the run's newest attempt recorded of its labels and their agreement; none without labels."""
    event = run.events.filter(kind="labels").order_by("-pk").first()
    labels: list[dict[str, object]] = event.data.get("labels", []) if event else []
    return labels
