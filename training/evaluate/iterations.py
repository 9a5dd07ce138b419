"""The exploitability curve of a run in phases: how the crew fares against each opponent that one side learned against.

The numbers are those of the training games in the first and last `pooled` steps of a phase, so they approximate those
of the policies at its beginning and end. In a phase that trains the imposter, the end is the crew's win rate against an
imposter that was trained against it; in one that trains the crew, the win rate of a crew that was optimised against
that imposter. Where the learner's moves are drawn at random (`rollout.random_moves`), no policy is played, and a phase
has no numbers.
Source: Sarkar et al., AAMAS 2025, figure 5. Raises `BadInput` for a folder that is no run directory.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import Any

from training import phases
from training.config import RunConfig, load
from training.errors import BadInput
from training.evaluate.intervals import UNIT, Interval, interval
from training.reading import Record
from training.records import LEARNER
from training.rollout.pool import title
from training.rundir import RunDir
from training.store import read_lines

POOLED = 3
"""Training steps at each end of a phase whose games count together: a step has too few for a narrow interval."""
Game = tuple[int, int, Mapping[str, Any]]
"""Training step, number of the game in that step, and what the index says of it."""
Start = tuple[str | int, int]
"""Id and seed of a scenario; for games of earlier releases, their step and place in it."""


class Point(Record):
    """The crew's win rate in the games of the training steps `first` to `last`, with its 95 % interval over starts."""

    first: int
    last: int
    games: int
    crew: Interval


class Iteration(Record):
    """What learning in one phase changed against one opponent, which stayed as it was.

    `side` are the roles that learned and `partner` who held one of their seats ("": nobody). `opponent` held all seats
    with other roles; if an ally held one of them, both are named, the opponent first. The crew is the larger team,
    whichever side learned. `step` is the last training step that counts; `complete` says whether the phase has ended.
    """

    phase: str
    side: tuple[str, ...]
    opponent: str
    partner: str
    step: int
    complete: bool
    begin: Point
    end: Point


def iterations(run_dir: RunDir, pooled: int = POOLED) -> list[Iteration]:
    """Return an entry for each phase and opponent, in the order of the phases.

    Phases in which no side is fixed (`mirror`) or the learner moves at random, or of games without roles, have none, as
    have runs without phases.
    `pooled` is the number of training steps counted at each end; a phase with less than twice as many has fewer.
    """
    if not run_dir.config.is_file():
        raise BadInput("no config.json: not a run directory", str(run_dir.root))
    return of_games(load(run_dir.config, stored=True), games(run_dir), pooled)


def games(run_dir: RunDir) -> list[Game]:
    """Return the training games of a run, each once, in order: a later attempt replaces what follows its first step."""
    summaries: dict[tuple[int, int], Mapping[str, Any]] = {}
    for number in run_dir.attempts():
        attempt = run_dir.attempt(number)
        begun = next((event["step"] for event, _ in read_lines(attempt.events) if event["kind"] == "started"), None)
        if begun is None:  # it ended while it was loading, and replaces nothing
            continue
        summaries = {place: summary for place, summary in summaries.items() if place[0] <= begun}
        done = {line["step"] for line, _ in read_lines(attempt.metrics)}  # a step that was not finished has games, too
        lines = (line for line, _ in read_lines(attempt.index) if line["step"] in done)
        summaries |= {(line["step"], line["episode"]): line["summary"] for line in lines}
    return [(step, number, summary) for (step, number), summary in sorted(summaries.items())]


def of_games(config: RunConfig, played: Iterable[Game], pooled: int = POOLED) -> list[Iteration]:
    """Return the iterations of the training games `played`, in order of their steps."""
    ends = phases.ends(config.phases)
    drawn = [config.of_phase(place).rollout.random_moves for place in range(len(ends))]
    meetings: dict[tuple[int, tuple[str, ...], str, str], dict[int, list[tuple[Start, float]]]] = {}
    newest = 0
    for step, number, summary in played:
        newest = max(newest, step)
        place = min(bisect_left(ends, step), len(ends) - 1)
        if ends and not drawn[place] and (met := _meeting(summary)):
            start = start_of(summary) or (step, number // config.rollout.games)
            meetings.setdefault((place, *met), {}).setdefault(step, []).append((start, _crew_won(summary)))
    return [
        Iteration(
            phase=config.phases[place].name,
            side=side,
            opponent=opponent,
            partner=partner,
            step=max(by_step),
            complete=newest >= ends[place],
            begin=_point(by_step, sorted(by_step)[: _window(by_step, pooled)]),
            end=_point(by_step, sorted(by_step)[-_window(by_step, pooled) :]),
        )
        for (place, side, opponent, partner), by_step in sorted(meetings.items())
    ]


def start_of(summary: Mapping[str, Any]) -> Start | None:
    """Return what games of one start have in common, whose results depend on each other; None for earlier releases."""
    return (summary["scenario"], summary["seed"]) if summary.get("seed") else None


def _meeting(summary: Mapping[str, Any]) -> tuple[tuple[str, ...], str, str] | None:
    """Return the side that learned in a game, its opponent and its partner; None if there is no fixed opponent."""
    roles, policies = summary["roles"], summary.get("policies", ())
    won = [numbers for numbers in summary["seat_metrics"].values() if "won" in numbers]
    if summary.get("league") or summary["error"] or not (roles and policies and won):
        return None
    side = {role for role, policy in zip(roles, policies, strict=True) if policy == LEARNER}
    others = [(role in side, title(policy)) for role, policy in zip(roles, policies, strict=True) if policy != LEARNER]
    partner, opponent = (_names(name for mine, name in others if mine is which) for which in (True, False))
    return (tuple(sorted(side)), opponent, partner) if side and opponent else None


def _names(titles: Iterable[str]) -> str:
    """Return who holds these seats, first who holds most of them: the opponent before its ally."""
    seats = Counter(titles)
    return ", ".join(sorted(seats, key=lambda name: (-seats[name], name)))


def _crew_won(summary: Mapping[str, Any]) -> float:
    """Return 1 if the larger team won, which is the case if more than half of the seats did; 0.5 for half of them."""
    share = fmean(numbers["won"] for numbers in summary["seat_metrics"].values() if "won" in numbers)
    return float(share > 0.5) if share != 0.5 else share


def _window(by_step: Mapping[int, object], pooled: int) -> int:
    return max(1, min(pooled, len(by_step) // 2))


def _point(by_step: Mapping[int, Sequence[tuple[Start, float]]], steps: Sequence[int]) -> Point:
    starts: dict[Start, list[float]] = {}
    for step in steps:
        for start, won in by_step[step]:
            starts.setdefault(start, []).append(won)
    rate = interval([fmean(values) for values in starts.values()], scale=UNIT)
    return Point(first=steps[0], last=steps[-1], games=sum(map(len, starts.values())), crew=rate)
