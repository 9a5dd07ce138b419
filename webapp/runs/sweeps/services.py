"""Services for sweeps: launch, stop all, resume all."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db import transaction

from training.config import RunConfig, parse
from training.errors import BadInput
from webapp.accounts.models import User
from webapp.runs import services as runs
from webapp.runs.models import Run
from webapp.runs.querysets import ALIVE
from webapp.runs.summaries.comparing import flat
from webapp.runs.sweeps.models import Sweep, Trial


@dataclass(frozen=True)
class Template:
    """What the runs of a sweep share: a configuration, and the other arguments of `create_run`."""

    config: Mapping[str, Any]
    choices: Mapping[str, Any] = field(default_factory=dict)

    def paths(self) -> list[str]:
        """The fields that a sweep can vary."""
        return sorted(path for path, _ in flat(self.config) if path not in {"name", "kind"})

    def with_values(self, values: Mapping[str, Any], name: str) -> RunConfig:
        """The configuration of one trial; raises `BadInput` for a value that does not fit, or an unknown field."""
        config: dict[str, Any] = copy.deepcopy(dict(self.config))
        known = set(self.paths())
        for path, value in values.items():
            if path not in known:
                raise BadInput("the configuration has no such field", path)
            *outer, last = path.split(".")
            section: Any = config
            for part in outer:
                section = section[int(part)] if isinstance(section, list) else section[part]
            section[int(last) if isinstance(section, list) else last] = value
        return parse({**config, "name": name})


@transaction.atomic
def launch(*, sweep: Sweep, template: Template, trials: Sequence[Mapping[str, Any]]) -> Sweep:
    """Store a sweep and queue its runs, all or none. Raises `BadInput` for a trial whose configuration does not fit, or
    if they are more than a quota of the owner allows.
    """
    sweep.save()
    for number, values in enumerate(trials, 1):
        config = template.with_values(values, f"{sweep.name} {number}")
        run = runs.create_run(owner=sweep.owner, config=config, **template.choices)
        run.group = sweep.name
        run.save(update_fields=["group"])
        Trial.objects.create(sweep=sweep, run=run, number=number, values=dict(values))
    return sweep


def stop_all(*, sweep: Sweep) -> int:
    """Ask every active run of a sweep to stop; return their number."""
    active = list(Run.objects.filter(trial__sweep=sweep, state__in=ALIVE, stop_asked_at=None))
    for run in active:
        runs.stop_run(run=run)
    return len(active)


@transaction.atomic
def resume_all(*, sweep: Sweep) -> int:
    """Queue every stopped or failed run of a sweep again, all or none; return their number. Raises `BadInput` if a
    quota is used up.
    """
    ended = list(Run.objects.filter(trial__sweep=sweep, state__in=(Run.State.STOPPED, Run.State.FAILED)))
    for run in ended:
        runs.resume_run(run=run)
    return len(ended)


def template_of(run: Run, user: User) -> Template:
    """The template of a run: its configuration, data and first weights, as a clone has them."""
    config = {**RunConfig().to_dict(), **run.config}
    choices = {
        "place": "gpu" if run.queue == runs.TRAIN_QUEUES["gpu"] else "cpu",
        "dataset_version": run.dataset_version,
        "start_checkpoint": run.start_checkpoint,
        "opponent_checkpoint": run.opponent_checkpoint,
        "cloned_from": run,
    }
    return Template(config, choices)
