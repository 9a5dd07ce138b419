"""Random assignment with balance, in permuted blocks.

A block has a slot for every arm, `repeats` times, in an order that is drawn by the experiment's seed. A participant
takes the free slot with the lowest number. The slot of somebody who leaves becomes free and is the next to be taken, so
that among the participants who hold slots two arms differ by at most `repeats`, once the freed slots are taken again.
Callers hold the lock of the experiment.
"""

from __future__ import annotations

from training.seeding import rng
from webapp.experiments.models import Arm, Experiment, Participant, Slot


def order_of_block(arms: list[int], repeats: int, seed: int, number: int) -> list[int]:
    """The arms of block `number` in their random order: every arm `repeats` times."""
    block = [arm for arm in arms for _ in range(repeats)]
    rng(seed, "block", number).shuffle(block)
    return block


def free_places(experiment: Experiment) -> int | None:
    """How many more participants can be assigned; None without a limit."""
    if experiment.per_arm is None:
        return None
    taken = experiment.slots.filter(participant__isnull=False).count()
    return experiment.per_arm * experiment.arms.count() - taken


def assign(participant: Participant) -> Arm | None:
    """Give a participant the next free slot, and return its arm; None if the experiment is full."""
    experiment = participant.experiment
    slot = experiment.slots.filter(participant=None).first() or _extend(experiment)
    return None if slot is None else _take(slot, participant)


def reassign(participant: Participant) -> Arm | None:
    """Give somebody who has returned a free slot of the arm that they had; None if there is none."""
    slot = participant.experiment.slots.filter(participant=None, arm=participant.arm).first()
    return None if slot is None else _take(slot, participant)


def release(participant: Participant) -> None:
    """Free the slot of a participant, if they hold one."""
    Slot.objects.filter(participant=participant).update(participant=None)


def _take(slot: Slot, participant: Participant) -> Arm:
    slot.participant = participant
    slot.save(update_fields=["participant"])
    return slot.arm


def _extend(experiment: Experiment) -> Slot | None:
    """Draw the next block and return its first slot; None if every arm has all its slots."""
    arms = list(experiment.arms.values_list("pk", flat=True))
    made = experiment.slots.count()
    each = made // len(arms)
    repeats = experiment.repeats if experiment.per_arm is None else min(experiment.repeats, experiment.per_arm - each)
    if repeats <= 0:
        return None
    order = order_of_block(arms, repeats, experiment.seed, made)
    slots = [Slot(experiment=experiment, number=made + at, arm_id=arm) for at, arm in enumerate(order)]
    return Slot.objects.bulk_create(slots)[0]
