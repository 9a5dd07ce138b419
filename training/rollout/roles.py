"""Numbers per seat and per role, from an episode's metrics, attempts and traces.

Pure functions over episodes; a game without roles has no numbers per role.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean

from training.records import Episode, Seat

Numbers = dict[str, float]


def seat_numbers(episode: Episode, passed: Sequence[bool] | None = None) -> dict[Seat, Numbers]:
    """Return every seat's numbers: the game's metrics, rates of its attempts, and counts of forfeits and defaults.

    `passed` states for every turn whether it passed all quality filters; with it, `failing` is a seat's share of turns
    that did not. `reply_tokens` is the mean length of its sampled replies, if tokens are known.
    """
    seats = len(episode.scenario.seats)
    by_seat: dict[Seat, Numbers] = {seat: dict(episode.seat_metrics.get(seat, {})) for seat in range(seats)}
    sampled = [0] * seats
    for trace in episode.traces:
        sampled[trace.seat] += sum(trace.mask)
    for seat, numbers in by_seat.items():
        attempts = [index for index, turn in enumerate(episode.turns) if turn.seat == seat]
        unread = numbers.pop("unread", 0.0)
        if attempts:
            numbers["parse_rate"] = 1 - unread / len(attempts)
            numbers["legal_rate"] = fmean(episode.turns[index].passed for index in attempts)
            if passed is not None:
                numbers["failing"] = fmean(not passed[index] for index in attempts)
            if sampled[seat]:
                numbers["reply_tokens"] = sampled[seat] / len(attempts)
        moves = [entry.move.origin for entry in episode.moves if entry.seat == seat]
        numbers["forfeits"] = float(moves.count("forfeit"))
        numbers["defaults"] = float(moves.count("default"))
    return by_seat


def by_role(seated: Iterable[tuple[Episode, Mapping[Seat, Numbers]]]) -> Numbers:
    """Return the mean of every number over the seats with a role, as `name/role`: `won/werewolf`.

    Each pair is an episode and the numbers of its counted seats.
    """
    values: dict[str, list[float]] = {}
    for episode, seats in seated:
        if not episode.roles:
            continue
        for seat, numbers in seats.items():
            for name, value in numbers.items():
                values.setdefault(f"{name}/{episode.roles[seat]}", []).append(value)
    return {name: fmean(numbers) for name, numbers in sorted(values.items())}
