"""From the conversations of a head-to-head to numbers with intervals.

Every number is first averaged within a scenario, over both seatings and all repetitions, then over scenarios; the
interval resamples scenarios. A scenario counts only where both seatings of a repetition have the number, so that a
seat's advantage cancels; a number about one role (`won/werewolf`) is compared between the seating in which one model
holds the role and that in which the other does. What could not be scored is counted, never replaced.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from training.evaluate.head_to_head import NAMES, Match, Name
from training.evaluate.intervals import Interval, interval
from training.records import Judgment, Record, Seat
from training.rollout.roles import Numbers, by_role, of_seat, seat_numbers
from training.seeding import derive


class Summary(Record):
    """What a head-to-head found. `difference` is a minus b, paired; `shared` are facts of a conversation as a whole.

    `used` of `conversations` had no error and a partner seating without one; `unscored` counts seats that a judge
    could not score, per rubric.
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


@dataclass(frozen=True, slots=True)
class _Conversation:
    """One conversation's numbers: per side, and of the whole."""

    sides: Mapping[Name, Numbers]
    shared: Numbers


def summarise(matches: Sequence[Match], judgments: Mapping[int, Sequence[Judgment]], seed: int) -> Summary:
    """Return the summary; `judgments` are by the pairing's number."""
    couples = _couples(matches)
    read = {m.pairing.number: _numbers(m, judgments.get(m.pairing.number, ())) for m in matches if not m.episode.error}
    rows = [[(read[x.pairing.number], read[y.pairing.number]) for x, y in couple] for couple in couples.values()]
    names = sorted(
        {name for row in rows for pair in row for one in pair for name in (*one.sides["a"], *one.sides["b"])}
    )
    shared = sorted({name for row in rows for pair in row for one in pair for name in one.shared})
    sides: dict[Name, dict[str, Interval]] = {"a": {}, "b": {}}
    difference: dict[str, Interval] = {}
    for name in names:
        means = [found for row in rows if (found := _both(row, name))]
        if means:
            for place, side in enumerate(NAMES):
                sides[side][name] = interval([mean[place] for mean in means], derive(seed, side, name))
            difference[name] = interval([a - b for a, b in means], derive(seed, "difference", name))
    whole = {name: _shared(rows, name, seed) for name in shared}
    used = 2 * sum(len(couple) for couple in couples.values())
    return Summary(
        conversations=len(matches),
        used=used,
        scenarios=len(couples),
        errors=_count(m.episode.error.kind for m in matches if m.episode.error),
        a=sides["a"],
        b=sides["b"],
        difference=difference,
        shared={name: found for name, found in whole.items() if found},
        scored=_count(j.rubric for found in judgments.values() for j in found if j.values is not None),
        unscored=_count(j.rubric for found in judgments.values() for j in found if j.values is None),
    )


def _couples(matches: Iterable[Match]) -> dict[str, list[tuple[Match, Match]]]:
    """Return by scenario the pairs of seatings in which both conversations ended without an error."""
    halves: dict[tuple[str, int], list[Match]] = {}
    for match in matches:
        if not match.episode.error:
            halves.setdefault((match.pairing.scenario.id, match.pairing.repeat), []).append(match)
    found: dict[str, list[tuple[Match, Match]]] = {}
    for (scenario, _), seatings in halves.items():
        if len(seatings) == 2:
            found.setdefault(scenario, []).append((seatings[0], seatings[1]))
    return found


def _both(row: Sequence[tuple[_Conversation, _Conversation]], name: str) -> tuple[float, float] | None:
    """Return a scenario's means of `name` (of a, of b) over the couples that have it.

    All four numbers must be known; of a number about one role, one of each side is enough.
    """
    enough = any if "/" in name else all
    full = [pair for pair in row if all(enough(name in one.sides[side] for one in pair) for side in NAMES)]
    if not full:
        return None
    a, b = (fmean(one.sides[side][name] for pair in full for one in pair if name in one.sides[side]) for side in NAMES)
    return a, b


def _shared(rows: Sequence[Sequence[tuple[_Conversation, _Conversation]]], name: str, seed: int) -> Interval | None:
    means = []
    for row in rows:
        full = [pair for pair in row if all(name in one.shared for one in pair)]
        if full:
            means.append(fmean(one.shared[name] for pair in full for one in pair))
    return interval(means, derive(seed, "shared", name)) if means else None


def _numbers(match: Match, judgments: Sequence[Judgment]) -> _Conversation:
    """Sort a conversation's numbers: a seat's belong to who sat there, as means over a side's seats and by role."""
    episode = match.episode
    seats = seat_numbers(episode)
    for seat, result in episode.returns.items():
        if result is not None:
            seats[seat]["return"] = result
    for judgment in judgments:
        if judgment.values is not None and judgment.seat in seats:
            numbers = seats[judgment.seat]
            numbers |= {f"{judgment.rubric}.{name}": value for name, value in judgment.values.items()}
            numbers[f"{judgment.rubric}.mean"] = fmean(judgment.values.values())
    sides = {name: {seat: seats[seat] for seat in match.pairing.seats_of(name)} for name in NAMES}
    shared = {key: value for key, value in episode.metrics.items() if not of_seat(key, len(seats))}
    return _Conversation({name: _means(held) | by_role([(episode, held)]) for name, held in sides.items()}, shared)


def _means(held: Mapping[Seat, Numbers]) -> Numbers:
    """Return the mean of every number over those of a side's seats that have it: who dies unheard has no legal rate."""
    values: dict[str, list[float]] = {}
    for numbers in held.values():
        for name, value in numbers.items():
            values.setdefault(name, []).append(value)
    return {name: fmean(found) for name, found in values.items()}


def _count(names: Iterable[str]) -> dict[str, int]:
    counted: dict[str, int] = {}
    for name in names:
        counted[name] = counted.get(name, 0) + 1
    return counted
