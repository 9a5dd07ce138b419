"""Summarises the conversations of a head-to-head as means with intervals.

Every number is first averaged within a scenario, over both seatings and all repetitions, then over scenarios, which
are the unit of its interval. A scenario counts only if both seatings of a repetition have the number, so that a seat's
advantage cancels. For numbers of certain roles (`won/werewolf`), and for all numbers against a common opponent, one
seating has the number of a and the other that of b. Seats that could not be scored are counted, never imputed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from training.evaluate.head_to_head import NAMES, Match, Name
from training.evaluate.intervals import CAUTION, ENOUGH, Interval, interval, paired
from training.labels.codebooks import CODEBOOKS
from training.reading import Record
from training.records import Judgment, Seat
from training.rollout.roles import Numbers, by_role, seat_numbers

SCALES = {
    name: scale
    for codebook in CODEBOOKS.values()
    if codebook.scores_seats
    for name, scale in (
        *((f"{codebook.name}.{label_type.name}", label_type.bounds) for label_type in codebook.labels),
        (f"{codebook.name}.mean", codebook.mean_range()),
    )
}
"""The lowest and the highest possible value of each judged number."""


class Summary(Record):
    """The numbers of a head-to-head. `difference` is a minus b, paired; `shared` are numbers of whole conversations.

    `used` of `conversations` had no error in either seating; `unscored` counts the seats that a judge could not score,
    per codebook. `caution` is a warning if there are few scenarios, else empty.
    """

    conversations: int
    used: int
    scenarios: int
    errors: dict[str, int]
    a: dict[str, Interval]
    b: dict[str, Interval]
    difference: dict[str, Interval]
    shared: dict[str, Interval]
    scored: dict[str, int]
    unscored: dict[str, int]
    caution: str = ""


@dataclass(frozen=True, slots=True)
class _Conversation:
    """One conversation's numbers: per contestant, and of the whole conversation."""

    sides: Mapping[Name, Numbers]
    shared: Numbers


def summarise(matches: Sequence[Match], judgments: Mapping[int, Sequence[Judgment]]) -> Summary:
    """Return the summary; `judgments` has the pairing's number as key."""
    couples = _couples(matches)
    rows = _rows(couples, judgments)
    conversations = [conversation for row in rows.values() for pair in row for conversation in pair]
    names = sorted({name for each in conversations for side in NAMES for name in each.sides[side]})
    sides: dict[Name, dict[str, Interval]] = {"a": {}, "b": {}}
    difference: dict[str, Interval] = {}
    for name in names:
        means = [pair for row in rows.values() if (pair := _both(row, name))]
        if means:
            a, b = zip(*means, strict=True)
            scale = SCALES.get(name.partition("/")[0])
            sides["a"][name], sides["b"][name] = interval(a, scale=scale), interval(b, scale=scale)
            difference[name] = paired(a, b, scale=scale)
    shared = {name: _shared(rows, name) for name in sorted({name for each in conversations for name in each.shared})}
    return Summary(
        conversations=len(matches),
        used=2 * sum(len(couple) for couple in couples.values()),
        scenarios=len(couples),
        errors=_count(m.episode.error.kind for m in matches if m.episode.error),
        a=sides["a"],
        b=sides["b"],
        difference=difference,
        shared={name: interval(list(means.values())) for name, means in shared.items() if means},
        scored=_count(j.codebook for per_match in judgments.values() for j in per_match if j.labels is not None),
        unscored=_count(j.codebook for per_match in judgments.values() for j in per_match if j.labels is None),
        caution=_caution(len(couples)),
    )


def by_scenario(
    matches: Sequence[Match], judgments: Mapping[int, Sequence[Judgment]], name: str
) -> dict[str, list[float]]:
    """Return by scenario the means [of a, of b] of the number `name`, over which `summarise` has its intervals."""
    rows = _rows(_couples(matches), judgments)
    return {scenario: list(pair) for scenario, row in rows.items() if (pair := _both(row, name))}


def shared_by_scenario(matches: Sequence[Match], name: str) -> dict[str, float]:
    """Return by scenario the mean of the number `name` of whole conversations, such as agreement."""
    return _shared(_rows(_couples(matches), {}), name)


def _rows(
    couples: Mapping[str, Sequence[tuple[Match, Match]]], judgments: Mapping[int, Sequence[Judgment]]
) -> dict[str, list[tuple[_Conversation, _Conversation]]]:
    """Return, by scenario, the numbers of both conversations of every couple."""

    def numbers(match: Match) -> _Conversation:
        return _numbers(match, judgments.get(match.pairing.number, ()))

    return {scenario: [(numbers(x), numbers(y)) for x, y in pairs] for scenario, pairs in couples.items()}


def _couples(matches: Iterable[Match]) -> dict[str, list[tuple[Match, Match]]]:
    """Return, by scenario, the pairs of seatings whose conversations both ended without an error."""
    halves: dict[tuple[str, int], list[Match]] = {}
    for match in matches:
        if not match.episode.error:
            halves.setdefault((match.pairing.scenario.id, match.pairing.repeat), []).append(match)
    couples: dict[str, list[tuple[Match, Match]]] = {}
    for (scenario, _), seatings in halves.items():
        if len(seatings) == 2:
            couples.setdefault(scenario, []).append((seatings[0], seatings[1]))
    return couples


def _both(row: Sequence[tuple[_Conversation, _Conversation]], name: str) -> tuple[float, float] | None:
    """Return a scenario's means (of a, of b) of the number `name` over the couples that have it.

    Both models must have the number in every conversation they play; a number of one role, in at least one.
    """

    def has_number(pair: tuple[_Conversation, _Conversation], side: Name) -> bool:
        values = [name in each.sides[side] for each in pair if each.sides[side]]
        return any(values) if "/" in name else bool(values) and all(values)

    full = [pair for pair in row if all(has_number(pair, side) for side in NAMES)]
    if not full:
        return None
    a, b = (
        fmean(each.sides[side][name] for pair in full for each in pair if name in each.sides[side]) for side in NAMES
    )
    return a, b


def _shared(rows: Mapping[str, Sequence[tuple[_Conversation, _Conversation]]], name: str) -> dict[str, float]:
    means = {}
    for scenario, row in rows.items():
        full = [pair for pair in row if all(name in each.shared for each in pair)]
        if full:
            means[scenario] = fmean(each.shared[name] for pair in full for each in pair)
    return means


def _numbers(match: Match, judgments: Sequence[Judgment]) -> _Conversation:
    """Return a conversation's numbers per contestant: means over its seats, and means by role."""
    episode = match.episode
    seats = seat_numbers(episode)
    for seat, result in episode.returns.items():
        if result is not None:
            seats[seat]["return"] = result
    for judgment in judgments:
        if judgment.numbers is not None and judgment.seat in seats:
            numbers = seats[judgment.seat]
            numbers |= {f"{judgment.codebook}.{name}": value for name, value in judgment.numbers.items()}
            numbers[f"{judgment.codebook}.mean"] = fmean(judgment.numbers.values())
    sides = {name: {seat: seats[seat] for seat in match.pairing.seats_of(name)} for name in NAMES}
    return _Conversation(
        {name: _means(seated) | by_role([(episode, seated)]) if seated else {} for name, seated in sides.items()},
        episode.metrics,
    )


def _means(seated: Mapping[Seat, Numbers]) -> Numbers:
    """Return the mean of every number over the seats that have it; a seat without a turn has no legal rate."""
    values: dict[str, list[float]] = {}
    for numbers in seated.values():
        for name, value in numbers.items():
            values.setdefault(name, []).append(value)
    return {name: fmean(each) for name, each in values.items()}


def _caution(scenarios: int) -> str:
    if not 0 < scenarios < ENOUGH:
        return ""
    return f"{scenarios} scenario{'' if scenarios == 1 else 's'}, {CAUTION}"


def _count(names: Iterable[str]) -> dict[str, int]:
    counted: dict[str, int] = {}
    for name in names:
        counted[name] = counted.get(name, 0) + 1
    return counted
