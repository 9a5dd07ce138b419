"""Periodic tasks of the experiments: groups, ends of waits, who has left, closing dates."""

import logging
from collections.abc import Callable
from functools import partial

from django.db import InterfaceError, OperationalError

from webapp.core.clock import register
from webapp.experiments import design, grouping, leaving
from webapp.experiments.models import Arm, Experiment
from webapp.experiments.states import Stage

logger = logging.getLogger(__name__)
MOST = 200


def _apart(what: str, work: Callable[[], object]) -> bool:
    """Run `work` and return whether it did anything; a failure of one does not delay the others."""
    try:
        return bool(work())
    except (OperationalError, InterfaceError) as error:  # a deadlock, say: the next tick tries again
        logger.warning("%s has to wait for the next tick: %s", what, error)
    except Exception:  # the root of this task
        logger.exception("%s failed", what)
    return False


@register("experiments.form_groups", every=2.0)
def form_groups() -> int:
    """Form the groups that are possible, also where no page has asked for it."""
    arms = Arm.objects.filter(experiment__state=Experiment.State.OPEN, participants__stage=Stage.WAIT).distinct()
    return sum(_apart(f"arm {arm.pk}", partial(grouping.form_groups, arm=arm)) for arm in arms[:MOST])


@register("experiments.end_waits", every=1.0)
def end_waits() -> int:
    """Give those who have waited for too long their outcome."""
    waiting = Experiment.objects.filter(participants__stage=Stage.WAIT, participants__outcome="").distinct()
    pks = waiting.values_list("pk", flat=True)[:MOST]
    return sum(_apart(f"experiment {pk}", partial(grouping.end_waits, experiment_id=pk)) for pk in pks)


@register("experiments.leave", every=2.0)
def leave() -> int:
    """Record who has left."""
    pks = leaving.absent(limit=MOST)
    return sum(_apart(f"participant {pk}", partial(leaving.leave, participant_id=pk)) for pk in pks)


@register("experiments.close", every=5.0)
def close() -> int:
    """Close the experiments whose date has come."""
    pks = design.overdue(limit=MOST)
    return sum(_apart(f"experiment {pk}", partial(design.close_on_date, experiment_id=pk)) for pk in pks)
