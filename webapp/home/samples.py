"""Sample runs: recordings of real runs that a new installation shows, so that no page of it is empty.

Each folder below `samples/` holds files of one run's directory as the run wrote them, without weights and with the
first conversations of some steps, and its `provenance.json`: title, command, seed, commit. They belong to a person who
cannot sign in, so that nobody but administrators changes them and they use up nobody's quota; there are no matches
among them, so that no ladder counts them. A rule of `webapp.judgments.rules` judges their conversations. Storing them
again adds what a stored sample lacks, such as judgments by a rule of a later release. `remove` deletes everything.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.core.files.storage import default_storage
from django.db import transaction
from django.db.models.functions import Now

from training.config import RunConfig
from training.errors import BadInput
from training.records import Episode
from training.store import loads, read_lines
from webapp.accounts.models import Role, User
from webapp.core import files
from webapp.home.models import Sample
from webapp.judgments import rules
from webapp.judgments.models import Queue
from webapp.runs import batches
from webapp.runs import services as runs
from webapp.runs.batches import Batch
from webapp.runs.models import Attempt, Run

FOLDER = Path(__file__).parent / "samples"
OWNER = "parley-samples"
RULE = "reply-form"
"""The rule that judges their conversations."""


def names() -> list[str]:
    """The names of all samples."""
    return sorted(path.parent.name for path in FOLDER.glob("*/provenance.json"))


@transaction.atomic
def install(*, again: bool = False) -> list[Run]:
    """Store every sample that is not stored yet, and complete the others; return the runs that were changed.

    `again`: also those that were removed.
    """
    User.objects.select_for_update().get(pk=_owner().pk)  # whoever stores them at the same time waits
    known = {sample.name: sample for sample in Sample.objects.select_related("run__owner")}
    completed = [sample.run for sample in known.values() if sample.run is not None and _complete(sample.run, sample)]
    missing = [name for name in names() if name not in known or (again and known[name].run is None)]
    return [*completed, *(_store(name) for name in missing)]


@transaction.atomic
def remove() -> int:
    """Delete all sample runs with their files and judgments, and their owner; return how many there were.

    Raises `BadInput` if somebody has judged conversations of one.
    """
    stored = list(Run.objects.filter(sample__isnull=False))
    for owner in User.objects.filter(username=OWNER, is_active=False):
        rules.remove(owner=owner)
    for run in stored:
        runs.delete_run(run=run)
    User.objects.filter(username=OWNER, is_active=False).delete()
    return len(stored)


def _owner() -> User:
    owner, new = User.objects.get_or_create(username=OWNER, defaults={"role": Role.RESEARCHER, "is_active": False})
    if new:
        owner.set_unusable_password()
        owner.save(update_fields=["password"])
    elif owner.is_active:
        raise BadInput(f"somebody has the name {OWNER}, under which the samples would be stored", "owner")
    return owner


@transaction.atomic
def _store(name: str) -> Run:
    folder = FOLDER / name
    facts: dict[str, Any] = _json(folder / "provenance.json")
    config = RunConfig.from_dict(_json(folder / "config.json"))
    events = list(_lines(folder / "events.jsonl"))
    began, ended = (batches.moment(events[place]["at"]) for place in (0, -1))
    run = Run.objects.create(
        kind=config.kind, name=facts["title"], owner=_owner(), queue="train-cpu", config=config.to_dict(),
        method=config.method.name, game=config.game.name, base=config.model.base, steps=config.learn.steps,
        state=Run.State.SUCCEEDED, result=_json(folder / "evaluation.json"), code_version=facts["commit"],
        started_at=began, ended_at=ended,
    )  # fmt: skip
    run.directory = f"runs/{run.pk}"
    run.save(update_fields=["directory"])
    attempt = Attempt.objects.create(
        run=run, number=1, fence=1, state=Attempt.State.ENDED, lease_until=Now(), phase="finished",
        log=(folder / "log.txt").read_text("utf-8"), exit_code=0, ended_at=ended,
    )  # fmt: skip
    batches.store(_batch(folder, run), attempt, run, attempt)
    origin = {key: facts[key] for key in ("command", "seed", "commit")}
    _judge(folder, run)
    Sample.objects.update_or_create(name=name, defaults={"run": run, **origin})
    transaction.on_commit(lambda: _publish(folder, run))
    return run


def _complete(run: Run, sample: Sample) -> bool:
    """Add what a stored sample lacks: its evaluation, the judgments of the rule, its files; return whether it did.

    A sample whose recording has since been replaced is not changed.
    """
    folder = FOLDER / sample.name
    if sample.name not in names() or _json(folder / "provenance.json")["commit"] != sample.commit:
        return False
    unmeasured = run.result is None
    unjudged = not Queue.objects.filter(rule=RULE, targets__episode__run=run).exists()
    with files.storing():
        unpublished = not all(default_storage.exists(f"{_episodes(run)}/{path.name}") for path in _recorded(folder))
    if unmeasured:
        Run.objects.filter(pk=run.pk).update(result=_json(folder / "evaluation.json"))
    if unjudged:
        _judge(folder, run)
    if unpublished:
        transaction.on_commit(lambda: _publish(folder, run))
    return unmeasured or unjudged or unpublished


def _batch(folder: Path, run: Run) -> Batch:
    """All lines of a sample, whose episodes stand in the files of this run."""
    episodes = [{**line, "file": f"{_episodes(run)}/{line['file']}"} for line in _lines(folder / "index.jsonl")]
    metrics, events = (list(_lines(folder / f"{kind}.jsonl")) for kind in ("metrics", "events"))
    return Batch(metrics=metrics, events=events, episodes=episodes)


def _judge(folder: Path, run: Run) -> None:
    """Let a rule judge the conversations, in the order of the index; each is a gzip member of its file."""
    lines = {(line["step"], line["episode"]): line for line in _lines(folder / "index.jsonl")}
    episodes = []
    for row in run.episodes.order_by("step", "number"):
        line = lines[row.step, row.number]
        end = line["offset"] + line["length"]
        member = (folder / line["file"]).read_bytes()[line["offset"] : end]
        episodes.append((row, Episode.from_dict(loads(gzip.decompress(member))["episode"])))
    rules.judge(name=f"{run.name}, judged by a rule", rule=RULE, owner=run.owner, episodes=episodes)


def _publish(folder: Path, run: Run) -> None:
    for path in _recorded(folder):
        files.publish_file(path, f"{_episodes(run)}/{path.name}")


def _recorded(folder: Path) -> list[Path]:
    """The files of conversations."""
    return sorted(folder.glob("step_*.jsonl.gz"))


def _episodes(run: Run) -> str:
    return f"runs/{run.pk}/attempts/0001/episodes"


def _json(path: Path) -> Any:
    return loads(path.read_text("utf-8"))


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    return (line for line, _ in read_lines(path))
