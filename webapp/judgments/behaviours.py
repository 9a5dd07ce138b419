"""The behaviour table of a queue: what its yes-or-no questions found of who survived their games and who did not.

It needs no game to be played again: roles and who survived are stored with matches and with episodes of runs. Games
that do not tell them, such as those without roles, have no part in it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from training.evaluate.behaviours import JudgedGame, Table, report
from training.records import Judgment as JudgmentRecord
from training.records import split_seat_metrics
from training.rewards.rubrics import Rubric
from webapp.judgments.games import GameId
from webapp.judgments.models import Judgment, Queue


def of_queue(queue: Queue) -> Table | None:
    """Return the table, or None for a rubric without such a question and for games that do not tell who survived."""
    rubric = queue.rubric_version.record()
    if not any(dimension.yes_no for dimension in rubric.dimensions):
        return None
    judged = _judged(queue, rubric)
    rows = queue.targets.order_by("position").values_list(
        "match_id", "episode_id", "match__roles", "match__seat_metrics", "episode__summary"
    )
    told: dict[GameId, JudgedGame] = {}
    for match, episode, roles, metrics, summary in rows:
        if (match, episode) not in told:
            known = (roles, metrics) if match else (summary.get("roles"), _seat_metrics(summary))
            survived = _survived(*known)
            if survived is not None:
                told[match, episode] = JudgedGame(known[0], survived, judged[match, episode])
    tables = report(list(told.values()), rubric).tables
    return tables[0] if tables else None


def _seat_metrics(summary: Mapping[str, Any]) -> Mapping[str, Mapping[str, float]]:
    """Return the seats' metrics of an episode's summary; older summaries name them `survived_0` among the game's."""
    if "seat_metrics" in summary:
        return summary["seat_metrics"]
    _, by_seat = split_seat_metrics(summary.get("metrics") or {}, len(summary.get("roles") or ()))
    return {str(seat): metrics for seat, metrics in by_seat.items()}


def _survived(roles: Sequence[str] | None, metrics: Mapping[str, Mapping[str, float]] | None) -> list[bool] | None:
    values = [(metrics or {}).get(str(seat), {}).get("survived") for seat in range(len(roles or ()))]
    return [bool(value) for value in values] if values and None not in values else None


def _judged(queue: Queue, rubric: Rubric) -> dict[GameId, list[JudgmentRecord]]:
    """Return the values that were given in a queue, by game."""
    found: dict[GameId, list[JudgmentRecord]] = defaultdict(list)
    for row in Judgment.objects.scored().filter(target__queue=queue).select_related("judge__remote"):
        record = JudgmentRecord(
            rubric=rubric.name, rubric_version=rubric.version, episode=str(row.match_id or row.episode_id),
            seat=row.seat, author=row.by, values=row.values,
        )  # fmt: skip
        found[row.match_id, row.episode_id].append(record)
    return found
