"""Exports judged games as a dataset version: scenarios, conversations and their judgments, each with its provenance.

Games whose people did not all agree are left out, and so are games that were not scored. Games of one scenario are
its conversations; a scenario that was changed since gets a line of its own.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby

from django.db import transaction

from training.dataset import Conversation, DatasetLine
from training.errors import BadInput
from training.records import Judgment as JudgmentRecord
from training.records import Scenario
from training.store import dumps
from webapp.accounts.models import User
from webapp.arena.models import Match
from webapp.judgments import games
from webapp.judgments.models import Judgment, Queue, Target
from webapp.scenarios.models import Dataset, DatasetVersion
from webapp.scenarios.services import add_version, create_dataset

CHUNK = 200
"""Targets that are in memory at once."""


@dataclass
class Export:
    """The lines of an export and what was left out, with the reason of each."""

    lines: list[DatasetLine] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)


def collect(queue: Queue, by: User) -> Export:
    """Return a queue's judged games as dataset lines, without those of which `by` may not be told yet."""
    export = Export()
    untold = set(Match.objects.filter(targets__queue=queue).untold_to(by).values_list("pk", flat=True))
    by_scenario: dict[str, tuple[Scenario, list[Conversation]]] = {}
    for targets in _by_game(queue):
        try:
            if targets[0].match_id in untold:
                raise BadInput("rate it first, as you sat there")
            conversation = _conversation(targets)
        except BadInput as error:
            export.left_out.append(f"{_name(targets[0])}: {error.why}")
            continue
        scenario = conversation.episode.scenario.with_seed(0)
        key = hashlib.sha256(dumps(scenario.to_dict()).encode()).hexdigest()
        by_scenario.setdefault(key, (conversation.episode.scenario, []))[1].append(conversation)
    used: set[str] = set()
    for key, (scenario, conversations) in by_scenario.items():
        name = scenario.id if scenario.id not in used else f"{scenario.id[:191]}-{key[:8]}"
        used.add(name)
        line = DatasetLine(scenario=scenario.model_copy(update={"id": name}), conversations=tuple(conversations))
        export.lines.append(line)
    return export


def _by_game(queue: Queue) -> Iterator[list[Target]]:
    """The targets of one game after the other: a queue holds the seats of a game in a row."""
    targets = Target.objects.with_games().filter(queue=queue).order_by("position").iterator(chunk_size=CHUNK)
    for _game, seats in groupby(targets, lambda target: (target.match_id, target.episode_id)):
        yield list(seats)


def _name(target: Target) -> str:
    return f"match {target.match_id}" if target.match_id else f"episode {target.episode_id}"


def _conversation(targets: list[Target]) -> Conversation:
    first = targets[0]
    judged = list(Judgment.objects.with_authors().scored().filter(target__in=targets))
    if not judged:
        raise BadInput("not scored")
    game = games.judgeable(first)
    if first.match is not None:  # what the players themselves said of it travels along
        judged += list(Judgment.objects.with_authors().scored().filter(match=first.match, target=None))
    episode = game.episode()
    digest = hashlib.sha256(dumps(episode.to_dict()).encode()).hexdigest()
    records = tuple(
        JudgmentRecord(
            rubric=row.rubric_version.rubric.name, rubric_version=row.rubric_version.number, episode=digest,
            seat=row.seat, author=row.by, prompt_sha256=row.prompt_sha256, values=row.values,
            reasons=row.reasons, reason=row.reason,
        )
        for row in judged
    )  # fmt: skip
    return Conversation(source=game.source, episode=episode, judgments=records)


@transaction.atomic
def store(*, queue: Queue, name: str, by: User) -> tuple[DatasetVersion, list[str]]:
    """Store the export as a new dataset, or as the next version of one's own dataset of that name.

    Returns the version and what was left out. Raises `BadInput` if nothing can be exported, the name is taken, or `by`
    has yet to judge seats of the queue, whose other judgments the export would tell.
    """
    if queue.targets.open_for(by).exists():
        raise BadInput("judge what is left for you here first: the export tells what others said", "queue")
    export = collect(queue, by)
    if not export.lines:
        why = "; ".join(export.left_out[:3]) or "the queue is empty"
        raise BadInput(f"no judged game may be exported ({why})", "queue")
    note = f"judged games of queue “{queue.name}” under {queue.rubric_version}"
    existing = Dataset.objects.filter(name=name).first()
    if existing is None:
        source = f"judged games of queue {queue.pk}"
        return create_dataset(name=name, owner=by, lines=export.lines, source=source, note=note), export.left_out
    if not by.may_change(existing.owner_id):
        raise BadInput("this dataset is somebody else's; choose another name", "name")
    return add_version(dataset=existing, by=by, lines=export.lines, note=note), export.left_out
