"""Numbers of seats and of roles: what an episode's metrics, attempts and traces say of each seat, averaged by role.

Pure functions over episodes; a game without roles has no numbers by role.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean

from training.records import Episode, Seat

OF_SEAT = re.compile(r"^(.+)_(\d+)$")
"""How a number about one seat is named: `won_3` is `won` of seat 3."""

Numbers = dict[str, float]


def of_seat(name: str, seats: int) -> tuple[str, Seat] | None:
    """Return (`won`, 3) of `won_3`; None for a name that is not about one of `seats` seats."""
    found = OF_SEAT.match(name)
    return (found[1], int(found[2])) if found and int(found[2]) < seats else None


def seat_numbers(episode: Episode, passed: Sequence[bool] | None = None) -> dict[Seat, Numbers]:
    """Return every seat's numbers: the game's own, how its attempts went, and what was played for it.

    `passed` tells of every turn whether it passed all quality filters: then `failing` is a seat's share of turns that
    did not. `reply_tokens` is the mean length of its sampled replies, where tokens are known.
    """
    seats = len(episode.scenario.seats)
    found: dict[Seat, Numbers] = {seat: {} for seat in range(seats)}
    for name, value in episode.metrics.items():
        if about := of_seat(name, seats):
            found[about[1]][about[0]] = value
    sampled = [0] * seats
    for trace in episode.traces:
        sampled[trace.seat] += sum(trace.mask)
    for seat, numbers in found.items():
        own = [index for index, turn in enumerate(episode.turns) if turn.seat == seat]
        unread = numbers.pop("unread", 0.0)
        if own:
            numbers["parse_rate"] = 1 - unread / len(own)
            numbers["legal_rate"] = fmean(episode.turns[index].passed for index in own)
            if passed is not None:
                numbers["failing"] = fmean(not passed[index] for index in own)
            if sampled[seat]:
                numbers["reply_tokens"] = sampled[seat] / len(own)
        moves = [entry.move.origin for entry in episode.moves if entry.seat == seat]
        numbers["forfeits"] = float(moves.count("forfeit"))
        numbers["defaults"] = float(moves.count("default"))
    return found


def by_role(seated: Iterable[tuple[Episode, Mapping[Seat, Numbers]]]) -> Numbers:
    """Return the mean of every number over the seats that held a role, as `name/role`: `won/werewolf`.

    Each pair is an episode with the numbers of those of its seats that count.
    """
    values: dict[str, list[float]] = {}
    for episode, seats in seated:
        if not episode.roles:
            continue
        for seat, numbers in seats.items():
            for name, value in numbers.items():
                values.setdefault(f"{name}/{episode.roles[seat]}", []).append(value)
    return {name: fmean(found) for name, found in sorted(values.items())}
