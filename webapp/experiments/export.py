"""The export of an experiment: one row per participant who has not withdrawn, as CSV or JSON lines.

The columns are described in docs/experiments.md. Ids of the recruitment platform are the owner's only: for
administrators these columns are empty.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from webapp.accounts.models import User
from webapp.arena.models import Match
from webapp.experiments import measures
from webapp.experiments.models import Experiment, Participant

TIMES = (
    "consent", "before", "answered_before", "wait", "play", "after", "answered_after", "debriefing", "done", "ended",
)  # fmt: skip


def columns(experiment: Experiment) -> list[str]:
    """The names of the columns, in their order."""
    fixed = [
        "participant", "external_id", "study_id", "session_id", "arm", "shown_as", "stage", "outcome", "analysed",
        "group", "group_broken", "group_filled", "match", "seat", "role", "return", "agreement", "stand_in",
        "failed_checks", "left_at", "came_back", "may_reuse",
    ]  # fmt: skip
    answers = [f"answer_{name}" for name in experiment.questions.values_list("name", flat=True)]
    return [*fixed, *(f"time_{name}" for name in TIMES), *answers]


def rows(experiment: Experiment, user: User) -> Iterator[dict[str, Any]]:
    """The rows as JSON data, in the order in which participants came."""
    names = list(experiment.questions.values_list("name", flat=True))
    is_owner = experiment.owner_id == user.pk
    for participant in experiment.participants.exportable():
        yield _row(participant, names, is_owner=is_owner)


def _row(participant: Participant, names: list[str], *, is_owner: bool) -> dict[str, Any]:
    group, arm, seat = participant.group, participant.arm, measures.seat_number(participant)
    complete = participant.outcome == Participant.Outcome.COMPLETED
    return {
        "participant": participant.pk,
        "external_id": participant.external_id if is_owner else "",
        "study_id": participant.study_id if is_owner else "",
        "session_id": participant.session_id if is_owner else "",
        "arm": arm.name if arm else "",
        "shown_as": arm.shown_as if arm else "",
        "stage": participant.stage,
        "outcome": participant.outcome,
        "analysed": complete and group is not None and not group.broken_why,
        "group": group.pk if group else None,
        "group_broken": group.broken_why if group else "",
        "group_filled": group.filled if group else None,
        "match": group.match_id if group else None,
        "seat": seat,
        "role": _role(group.match, seat) if group else "",
        "return": measures.result(participant),
        "agreement": measures.agreement(participant),
        "stand_in": any(each.stand_in for each in group.match.seats.all()) if group else None,
        "failed_checks": " ".join(participant.failed),
        "left_at": participant.left_at.isoformat(timespec="milliseconds") if participant.left_at else "",
        "came_back": participant.returns,
        "may_reuse": participant.may_reuse,
        **{f"time_{name}": participant.times.get(name, "") for name in TIMES},
        **{f"answer_{name}": participant.answers.get(name) for name in names},
    }


def _role(match: Match, seat: int | None) -> str:
    return "" if seat is None or seat >= len(match.roles) else str(match.roles[seat])


def json_lines(experiment: Experiment, user: User) -> Iterator[str]:
    """The rows as lines of JSON."""
    return (json.dumps(row, ensure_ascii=False) for row in rows(experiment, user))


def table(experiment: Experiment, user: User) -> Iterator[list[Any]]:
    """The rows as cells in the order of `columns`, with 1 or 0 for yes or no."""
    names = columns(experiment)
    for row in rows(experiment, user):
        yield [int(row[name]) if isinstance(row[name], bool) else row[name] for name in names]
