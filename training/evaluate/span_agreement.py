"""Agreement of annotators who mark spans of one text: F1, Krippendorff's alpha for unitizing, and gamma.

A span is [start, end) in characters, with a label. `annotations[a]` are the spans of annotator a. Texts are compared
one by one: how values of several texts are averaged is the caller's choice. Raises `BadInput` for spans without length
or outside the text, and where a measure does not allow them.

Sources: Hripcsak and Rothschild, Agreement, the F-measure, and reliability in information retrieval (2005);
Krippendorff, On the reliability of unitizing continuous data (1995), and Content Analysis (2nd edition, 2004), section
11.6; Mathet, Widlöcher and Métivier, The unified and holistic method gamma (2015).
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import combinations, permutations
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

import numpy as np

from training.errors import BadInput, OutsideError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from training.records import Floats

    Ints: TypeAlias = NDArray[np.int64]

MOST_CANDIDATES = 500_000
"""Unitary alignments among which gamma looks for the best: beyond these its solver takes minutes."""
FEWEST_SAMPLES, MOST_SAMPLES = 30, 1000
"""Random annotations from which gamma's expected disorder is estimated."""


class Span(NamedTuple):
    """The characters from `start` to before `end`, and what an annotator says of them."""

    start: int
    end: int
    label: Hashable = ""


Annotations: TypeAlias = Sequence[Sequence[Span]]


def f1(first: Sequence[Span], second: Sequence[Span], match: Literal["exact", "overlap"] = "exact") -> float | None:
    """Return twice the number of matched pairs over the number of spans of both annotators; None without spans.

    It is symmetric: the precision of one annotator against the other is the recall of the other. Spans match that have
    one label and the same characters (`exact`) or share at least one (`overlap`). A span is in at most one pair, and as
    many pairs are formed as can be. There is no correction for chance.
    """
    _check((first, second))
    if not (first or second):
        return None
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import maximum_bipartite_matching  # slow to import, for every process of the site

    matches = _identical if match == "exact" else _overlapping
    graph = np.array([[matches(a, b) for b in second] for a in first], dtype=np.int8).reshape(len(first), len(second))
    pairs = int((maximum_bipartite_matching(csr_matrix(graph)) >= 0).sum()) if graph.size else 0
    return 2 * pairs / (len(first) + len(second))


def _identical(a: Span, b: Span) -> bool:
    return a == b


def _overlapping(a: Span, b: Span) -> bool:
    return a.label == b.label and a.start < b.end and b.start < a.end


def _check(annotations: Annotations, length: int | None = None) -> None:
    for span in (span for spans in annotations for span in spans):
        if not 0 <= span.start < span.end or (length is not None and span.end > length):
            raise BadInput(f"{span.start} to {span.end} is no part of the text", "spans")


def unitizing_alpha(annotations: Annotations, length: int) -> float | None:
    """Return Krippendorff's alpha for unitizing a text of `length` characters, over all labels; None if not defined.

    This is the version of 1995 and 2004, not the family of 2016: for each label, the squared differences of the ends of
    overlapping spans, and the squared lengths of spans that lie in another's gap, over what spans and gaps of these
    lengths give if they are put anywhere at random; both are summed over labels. Spans of one annotator and one label
    must not overlap. The time grows with the square of the number of spans.
    """
    _check(annotations, length)
    if len(annotations) < 2:
        return None
    labels = {span.label for spans in annotations for span in spans}
    sections = [[_sections(spans, label, length) for spans in annotations] for label in labels]
    observed = sum(_observed(each, length) for each in sections)
    expected = sum(_expected(each, length) for each in sections)
    return 1 - observed / expected if expected > 0 else None


class _Section(NamedTuple):
    """A span of the label that is looked at (`marked`), or the gap between two."""

    start: int
    length: int
    marked: bool


def _sections(spans: Sequence[Span], label: Hashable, length: int) -> list[_Section]:
    sections, last = [], 0
    for start, end in sorted((span.start, span.end) for span in spans if span.label == label):
        if start < last:
            raise BadInput(f"spans of one annotator and label overlap at character {start}", "spans")
        if start > last:
            sections.append(_Section(last, start - last, marked=False))
        sections.append(_Section(start, end - start, marked=True))
        last = end
    if last < length:
        sections.append(_Section(last, length - last, marked=False))
    return sections


def _observed(annotators: Sequence[Sequence[_Section]], length: int) -> float:
    total = sum(
        _distance(section, other)
        for first, second in permutations(annotators, 2)
        for section in first
        for other in second
    )
    return total / (len(annotators) * (len(annotators) - 1) * length**2)


def _distance(a: _Section, b: _Section) -> int:
    """Return the squared distance of two sections (Krippendorff 2004, section 11.6.2)."""
    ahead, past = a.start - b.start, a.start + a.length - b.start - b.length
    if a.marked and b.marked and -a.length < ahead < b.length:
        return ahead**2 + past**2
    if a.marked and not b.marked and ahead >= 0 >= past:
        return a.length**2
    if b.marked and not a.marked and past >= 0 >= ahead:
        return b.length**2
    return 0


def _expected(annotators: Sequence[Sequence[_Section]], length: int) -> float:
    marked = [section.length for sections in annotators for section in sections if section.marked]
    gaps = [section.length for sections in annotators for section in sections if not section.marked]
    total = len(annotators) * length
    disagreement = sum(
        (len(marked) - 1) / 3 * (2 * size**3 - 3 * size**2 + size)
        + size**2 * sum(gap - size + 1 for gap in gaps if gap >= size)
        for size in marked
    )
    return 2 / length * disagreement / (total * (total - 1) - sum(size * (size - 1) for size in marked))


@dataclass(frozen=True, slots=True)
class Gamma:
    """Gamma of one text, the disorder of the best alignment, that of random annotations, and how many were drawn.

    `alignment` has a row of span numbers per group of aligned spans, one per annotator, None where it has no span.
    """

    value: float | None
    disorder: float
    expected: float
    samples: int
    alignment: tuple[tuple[int | None, ...], ...]


def gamma(
    annotations: Annotations,
    length: int,
    *,
    position: float = 1.0,
    category: float = 1.0,
    empty: float = 1.0,
    precision: float = 0.02,
    seed: int = 0,
) -> Gamma:
    """Return gamma: 1 - disorder of the best alignment / mean disorder of random annotations.

    The dissimilarity of two spans is `position` ((|start - start'| + |end - end'|) / (length + length'))^2, plus
    `category` if their labels differ, both times `empty`, which is the dissimilarity of a span and none, and of none
    and none (alpha, beta and delta of the paper). An alignment puts every span in one group of at most one span per
    annotator. Its disorder is the sum over groups of the mean dissimilarity of their pairs, over the mean number of
    spans of an annotator.

    The best alignment is exact: HiGHS solves an integer programme (`scipy.optimize.milp`) whose variables are the
    groups. Groups that are no better than their spans alone are left out first, which loses nothing. The problem is
    NP-hard from three annotators on: where many spans lie close together, the groups grow with (spans + 1) to the power
    of annotators, and more than 500,000 are refused. What is estimated is the mean disorder of random annotations.
    These are (section 5.2 of the paper) the spans of annotators drawn with replacement, each annotator's moved by a
    random number of characters around the end of the text. At least 30 are drawn, at most 1000, and as many as give the
    mean to `precision` (relative, at 95 %).
    """
    _check(annotations, length)
    if len(annotations) < 2:
        raise BadInput("gamma needs two annotators", "spans")
    if not any(annotations):
        return Gamma(None, 0.0, 0.0, 0, ())
    weights = (position, category, empty)
    disorder, alignment = _best(annotations, weights)
    rng = np.random.default_rng(seed)
    sampled: list[float] = []
    wanted = FEWEST_SAMPLES
    while len(sampled) < wanted:
        sampled.append(_best(_random(annotations, length, rng), weights)[0])
        if len(sampled) == FEWEST_SAMPLES and np.mean(sampled) > 0:
            spread = float(np.std(sampled, ddof=1) / np.mean(sampled))
            wanted = min(MOST_SAMPLES, max(FEWEST_SAMPLES, math.ceil((1.96 * spread / precision) ** 2)))
    expected = float(np.mean(sampled))
    return Gamma(1 - disorder / expected if expected > 0 else None, disorder, expected, len(sampled), alignment)


def _random(annotations: Annotations, length: int, rng: np.random.Generator) -> list[list[Span]]:
    """Return the spans of annotators drawn with replacement, each moved around; two are not moved alike.

    Moves lie half a mean span apart, where that is possible, since a copy of an annotator agrees with itself.
    """
    spans = [span for row in annotations for span in row]
    apart = sum(span.end - span.start for span in spans) / len(spans) / 2
    moves: list[int] = []
    for _ in annotations:
        move = int(rng.integers(length))
        for _ in range(100):
            if all(abs(move - other) >= apart for other in moves):
                break
            move = int(rng.integers(length))
        moves.append(move)
    drawn = rng.integers(len(annotations), size=len(annotations))
    sources = [annotations[who] for who in drawn] if any(annotations[who] for who in drawn) else annotations
    return [[_moved(span, move, length) for span in row] for row, move in zip(sources, moves, strict=True)]


def _moved(span: Span, move: int, length: int) -> Span:
    """Return the span moved to the right; one that would start behind the end comes in again at the left."""
    start = (span.start + move) % length
    return Span(start, start + span.end - span.start, span.label)


def _best(
    annotations: Annotations, weights: tuple[float, float, float]
) -> tuple[float, tuple[tuple[int | None, ...], ...]]:
    """Return the disorder of the best alignment, and the alignment."""
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import csr_matrix

    groups, costs = _groups(annotations, weights)
    counts = [len(spans) for spans in annotations]
    offsets = np.cumsum([0, *counts[:-1]])
    group, annotator = np.nonzero(groups >= 0)
    spans = offsets[annotator] + groups[group, annotator]
    once = csr_matrix((np.ones(len(group)), (spans, group)), shape=(sum(counts), len(groups)))
    solved = milp(
        costs, constraints=LinearConstraint(once, 1, 1), integrality=1, bounds=Bounds(0, 1), options={"mip_rel_gap": 0}
    )
    if not solved.success:
        raise OutsideError(f"HiGHS found no alignment: {solved.message}")
    chosen = groups[solved.x > 0.5]
    alignment = tuple(tuple(None if place < 0 else int(place) for place in row) for row in chosen)
    return float(solved.fun) * len(counts) / sum(counts), alignment


def _groups(annotations: Annotations, weights: tuple[float, float, float]) -> tuple[Ints, Floats]:
    """Return the groups that a best alignment may have (groups x annotators, -1: no span), and their disorder.

    They grow by one annotator at a time. A group of k spans that costs at least k times what a span alone costs is left
    out: its spans alone are as good.
    """
    empty, count = weights[2], len(annotations)
    pairs = count * (count - 1) / 2
    tables = {
        (i, j): _dissimilarities(annotations[i], annotations[j], weights) for i, j in combinations(range(count), 2)
    }
    groups, costs = np.zeros((1, 0), dtype=np.int64), np.zeros(1)
    for new in range(count):
        places = np.arange(-1, len(annotations[new]))
        size = len(groups) * len(places)
        if size > MOST_CANDIDATES:
            raise BadInput("too many spans lie close together to be aligned: compare fewer annotators", "spans")
        groups = np.column_stack([np.repeat(groups, len(places), axis=0), np.tile(places, len(groups))])
        costs = np.repeat(costs, len(places))
        for old in range(new):
            costs = costs + tables[old, new][groups[:, old], groups[:, new]]
        most = (groups >= 0).sum(axis=1) + count - 1 - new  # spans that the group can still come to have
        kept = costs < pairs * empty * most
        kept |= (most == 1) & (costs <= pairs * empty * most * (1 + 1e-9))
        groups, costs = groups[kept], costs[kept]
    return groups, costs / pairs


def _dissimilarities(first: Sequence[Span], second: Sequence[Span], weights: tuple[float, float, float]) -> Floats:
    """Return the dissimilarities of two annotators' spans; the last row and column are those of no span."""
    position, category, empty = weights
    table = np.full((len(first) + 1, len(second) + 1), empty)
    for i, a in enumerate(first):
        for j, b in enumerate(second):
            moved = (abs(a.start - b.start) + abs(a.end - b.end)) / (a.end - a.start + b.end - b.start)
            table[i, j] = empty * (position * moved**2 + category * (a.label != b.label))
    return table
