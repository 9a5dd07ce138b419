"""Emergence curves: how often a behaviour of a codebook occurs in the games of each checkpoint of a run, with a band.

The share is over units (turns, seats or games, depending on the label type); answers of several authors about a unit
are averaged. The band is a 95 % interval over games, because the units of a game depend on each other. Where every game
has one unit it is that of `training.evaluate.intervals`: exact (Clopper and Pearson) for yes and no, Student's t for
means of several authors. Else it is exact with the effective number of units (`training.labels.prevalence.rate`). With
the errors of a classifier, share and band are corrected for them and carry their uncertainty
(`prevalence.true_prevalence`). Pure functions.

    checkpoints = [Checkpoint(step, [JudgedGame(roles, outcomes, judgments, turns), ...]), ...]
    curves(checkpoints, codebook)                    # by label type, a point for every checkpoint
    curves(checkpoints, codebook, {name: error_rates})  # what a classifier labelled, corrected for its errors
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from training.errors import BadInput
from training.evaluate.agreement import Agreement, estimate
from training.evaluate.behaviours import By, Checkpoint, Unit, is_asked, units
from training.evaluate.intervals import UNIT, interval
from training.labels.codebooks import Codebook
from training.labels.prevalence import ErrorRates, Rate, rate, true_prevalence
from training.reading import Record


class CurvePoint(Record):
    """One checkpoint: the share of units with the label, from `low` to `high`, in `games` games with `places` units.

    All three are None without an answer; from turns or seats of a single game the band is 0 to 1. `corrected`: errors
    of a classifier are taken into account, and `seen` is the uncorrected share. `agreement` is Krippendorff's alpha of
    several authors, None of one.
    """

    step: int
    share: float | None
    low: float | None
    high: float | None
    games: int
    places: int
    corrected: bool = False
    seen: float | None = None
    agreement: Agreement | None = None


def curves(
    checkpoints: Sequence[Checkpoint],
    codebook: Codebook,
    errors: Mapping[str, ErrorRates] | None = None,
    by: By = "both",
) -> dict[str, list[CurvePoint]]:
    """Return the curve of every yes-or-no label type of the codebook, by name.

    `errors` are those of the classifier that wrote the judgments, by label type.
    """
    wanted = [label_type.name for label_type in codebook.labels if is_asked(label_type)]
    return {name: curve(checkpoints, codebook, name, (errors or {}).get(name), by) for name in wanted}


def curve(
    checkpoints: Iterable[Checkpoint], codebook: Codebook, label: str, errors: ErrorRates | None = None, by: By = "both"
) -> list[CurvePoint]:
    """Return a label type's point at every checkpoint, in their order.

    Judgments under another codebook or version do not count. Raises `BadInput` for a label type that the codebook does
    not have or that is not yes-or-no, and for `errors` of judgments by several authors.
    """
    label_type = codebook.type_of(label)
    points = []
    for checkpoint in checkpoints:
        asked = [units(game, codebook, label_type, by) for game in checkpoint.games]
        answered = [[unit for unit in game if unit.answers] for game in asked]
        points.append(_point(checkpoint.step, [game for game in answered if game], errors, label))
    return points


def _point(step: int, games: Sequence[Sequence[Unit]], errors: ErrorRates | None, label: str) -> CurvePoint:
    authors = sorted({author for game in games for unit in game for author in unit.answers})
    if errors is not None and len(authors) > 1:
        raise BadInput(f"errors are those of one author, and {len(authors)} labelled", label)
    if not games:
        return CurvePoint(step=step, share=None, low=None, high=None, games=0, places=0, corrected=errors is not None)
    values = [[unit.value for unit in game] for game in games]
    share, low, high = _corrected(values, errors) if errors else _band(values)
    count = sum(map(len, values))
    return CurvePoint(
        step=step,
        share=share,
        low=low,
        high=high,
        games=len(games),
        places=count,
        corrected=errors is not None,
        seen=sum(map(sum, values)) / count if errors else None,
        agreement=_agreement(games, authors) if len(authors) > 1 else None,
    )


def _band(games: Sequence[Sequence[float]]) -> tuple[float, float, float]:
    """Return the share and its band from the values of each game."""
    if all(len(values) == 1 for values in games):
        estimated = interval([values[0] for values in games], scale=UNIT)
        return estimated.mean, max(0.0, estimated.low), min(1.0, estimated.high)
    seen = _rate(games)
    return seen.share, seen.low, seen.high


def _corrected(games: Sequence[Sequence[float]], errors: ErrorRates) -> tuple[float, float, float]:
    estimated = true_prevalence(_rate(games), errors)
    return (estimated.share, estimated.low, estimated.high) if len(games) > 1 else (estimated.share, 0.0, 1.0)


def _rate(games: Sequence[Sequence[float]]) -> Rate:
    """Return the share of units; that of a single game has the interval 0 to 1."""
    if len(games) > 1:
        return rate([(sum(values), len(values)) for values in games])
    return Rate(share=sum(games[0]) / len(games[0]), low=0.0, high=1.0, n=1.0)


def _agreement(games: Sequence[Sequence[Unit]], authors: Sequence[str]) -> Agreement:
    every = [(number, unit) for number, game in enumerate(games) for unit in game]
    ratings = [[unit.answers.get(author) for _, unit in every] for author in authors]
    return estimate("krippendorff", ratings, [number for number, _ in every])
