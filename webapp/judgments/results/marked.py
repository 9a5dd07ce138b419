"""Agreement within one game on what annotators mark in it: spans, relations and rankings.

A measure takes what each annotator of a game marked and returns values from -1 or 0 to 1 by pair of annotators, or one
value for all of them under the pair (0, 0). It has no value where nobody marked anything.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from training.errors import BadInput
from training.evaluate.span_agreement import Span, f1, gamma, unitizing_alpha
from training.labels.codebooks import LabelType
from training.records import LabelValue
from webapp.judgments import games
from webapp.judgments.models import Target
from webapp.judgments.results.answers import Answers, Place

CHUNK = 200
ROOM = 10_000_000
"""Characters of a turn where the lengths of turns do not matter."""
ALL: tuple[int, int] = (0, 0)
Marked = Mapping[int, Mapping[Place, LabelValue]]
"""What each annotator marked in a game, by place."""


@dataclass(frozen=True)
class Measure:
    """A measure of one game. `of` gets what each annotator marked, and the lengths of the game's turns in characters
    if it `reads_text`, else none.
    """

    name: str
    title: str
    of: Callable[[Marked, Sequence[int]], Mapping[tuple[int, int], float | None]]
    reads_text: bool = False


def by_game(
    answers: Answers, label_type: LabelType, measure: Measure, targets: Collection[int] | None
) -> dict[int, dict[tuple[int, int], float]]:
    """Return the values of a measure for every target that two annotators scored (None: all, else only these)."""
    marked = {
        target: {
            number: answer.marks.get(label_type.name, {})
            for number, answer in sorted(by_annotator.items())
            if answer.marks is not None
        }
        for target, by_annotator in answers.by_target.items()
        if targets is None or target in targets
    }
    compared = {target: each for target, each in marked.items() if len(each) > 1 and any(each.values())}
    lengths = lengths_of(compared) if measure.reads_text else {}
    results = {}
    for target, each in compared.items():
        if measure.reads_text and target not in lengths:
            continue
        pairwise = measure.of(each, lengths.get(target, ()))
        results[target] = {pair: value for pair, value in pairwise.items() if value is not None}
    return results


def lengths_of(targets: Collection[int]) -> dict[int, list[int]]:
    """Return the length in characters of every move of these games, without those that can no longer be read."""
    lengths = {}
    for target in Target.objects.with_games().filter(pk__in=targets).iterator(chunk_size=CHUNK):
        try:
            lengths[target.pk] = [len(entry.move.text) for entry in games.game_of(target).moves]
        except BadInput:
            continue
    return lengths


def _pairwise(
    of: Callable[[Mapping[Place, LabelValue], Mapping[Place, LabelValue]], float | None],
) -> Callable[[Marked, Sequence[int]], Mapping[tuple[int, int], float | None]]:
    def measured(marked: Marked, _lengths: Sequence[int]) -> Mapping[tuple[int, int], float | None]:
        return {(a, b): of(marked[a], marked[b]) for a, b in combinations(sorted(marked), 2)}

    return measured


def spans(marks: Mapping[Place, LabelValue], lengths: Sequence[int] = ()) -> list[Span]:
    """Return the spans of one annotator in one text, in which the game's turns follow each other.

    Without `lengths`, every turn has the same room, which is longer than any text.
    """
    starts = [0]
    for length in lengths:
        starts.append(starts[-1] + length)
    places = sorted((turn or 0, start or 0, end or 0) for _, turn, start, end, _ in marks)
    offsets = [starts[turn] if lengths else turn * ROOM for turn, _, _ in places]
    return [Span(offset + start, offset + end) for offset, (_, start, end) in zip(offsets, places, strict=True)]


def overlap_f1(first: Mapping[Place, LabelValue], second: Mapping[Place, LabelValue]) -> float | None:
    """Return F1 of the spans that share characters."""
    return f1(spans(first), spans(second), "overlap")


def pair_f1(first: Mapping[Place, LabelValue], second: Mapping[Place, LabelValue]) -> float | None:
    """Return F1 of the pairs of turns that both annotators related; None if there are none at all."""
    count = len(first) + len(second)
    return 2 * len(first.keys() & second.keys()) / count if count else None


def tau(first: Mapping[Place, LabelValue], second: Mapping[Place, LabelValue]) -> float | None:
    """Return Kendall's tau of the turns that both annotators ranked, as the mean over the seats that both ranked."""
    values = [each for place in first.keys() & second.keys() if (each := _tau(first[place], second[place])) is not None]
    return sum(values) / len(values) if values else None


def _tau(first: LabelValue, second: LabelValue) -> float | None:
    if not isinstance(first, tuple) or not isinstance(second, tuple):
        return None
    ranks = {turn: rank for rank, turn in enumerate(second)}
    shared = [ranks[turn] for turn in first if turn in ranks]
    pairs = [1 if a < b else -1 for a, b in combinations(shared, 2)]
    return sum(pairs) / len(pairs) if pairs else None


def _unitizing(marked: Marked, lengths: Sequence[int]) -> Mapping[tuple[int, int], float | None]:
    try:
        return {ALL: unitizing_alpha([spans(each, lengths) for each in marked.values()], sum(lengths))}
    except BadInput:  # spans of this type may overlap, which alpha does not allow
        return {}


def _gamma(marked: Marked, lengths: Sequence[int]) -> Mapping[tuple[int, int], float | None]:
    try:
        return {ALL: gamma([spans(each, lengths) for each in marked.values()], sum(lengths)).value}
    except BadInput:  # too many spans lie close together
        return {}


GAMMA = Measure("gamma", "γ", _gamma, reads_text=True)
MEASURES: dict[str, tuple[Measure, ...]] = {
    "span": (
        Measure("overlap_f1", "F1 of overlapping spans", _pairwise(overlap_f1)),
        Measure("unitizing_alpha", "α for unitizing", _unitizing, reads_text=True),
        GAMMA,
    ),
    "relation": (Measure("pair_f1", "F1 of pairs of turns", _pairwise(pair_f1)),),
    "ranking": (Measure("tau", "Kendall's τ", _pairwise(tau)),),
}
"""The measures of each kind; the first is the one of pairs and periods."""
