"""Permuted blocks: balance, reproducibility, and slots that are given away again."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from tests.webapp.experiments import making
from webapp.accounts.models import User
from webapp.experiments import allocation, participation, states
from webapp.experiments.models import Experiment, Participant
from webapp.experiments.states import Outcome

pytestmark = pytest.mark.django_db


def shown(experiment: Experiment) -> Counter[str]:
    """Participants who hold a slot, by arm."""
    return Counter(experiment.slots.filter(participant__isnull=False).values_list("arm__name", flat=True))


def test_a_block_has_every_arm_as_often() -> None:
    for number in range(20):
        assert Counter(allocation.order_of_block([5, 6, 9], 3, 1, number)) == {5: 3, 6: 3, 9: 3}


def test_blocks_are_drawn_by_the_seed() -> None:
    orders = [allocation.order_of_block([1, 2], 4, seed, 0) for seed in (1, 1, 2, 3, 4)]
    assert orders[0] == orders[1]
    assert len({tuple(order) for order in orders}) > 1


def test_arms_differ_by_at_most_the_block_size_whenever_slots_are_full(researcher: User) -> None:
    """People come and leave at random; whenever no freed slot waits for a newcomer, the arms are balanced."""
    experiment = making.opened(researcher, arms=3, per_arm=12, repeats=2)
    chance, inside = random.Random(3), []
    for _ in range(60):
        if inside and chance.random() < 0.3:
            left = inside.pop(chance.randrange(len(inside)))
            states.end(states.locked(left), Outcome.LEFT)
        elif allocation.free_places(experiment):
            inside.append(making.come(experiment))
        numbers = list(experiment.slots.order_by("number").values_list("participant", flat=True))
        if None not in numbers[: sum(number is not None for number in numbers)]:
            counts = shown(experiment)
            assert max(counts.values(), default=0) - min((counts[f"arm {n}"] for n in (1, 2, 3)), default=0) <= 2


def test_who_leaves_is_replaced_in_the_same_arm(researcher: User) -> None:
    experiment = making.opened(researcher, per_arm=4)
    people = [making.come(experiment) for _ in range(8)]
    assert shown(experiment) == {"arm 1": 4, "arm 2": 4}
    assert allocation.free_places(experiment) == 0
    gone = people[2]
    states.end(states.locked(gone), Outcome.LEFT)
    newcomer = making.come(experiment)
    assert newcomer.arm == gone.arm
    assert shown(experiment) == {"arm 1": 4, "arm 2": 4}


def test_the_last_block_ends_with_the_places_of_the_stopping_rule(researcher: User) -> None:
    experiment = making.opened(researcher, per_arm=3, repeats=2)
    for _ in range(6):
        making.come(experiment)
    assert experiment.slots.count() == 6
    assert shown(experiment) == {"arm 1": 3, "arm 2": 3}
    assert participation.refusal(experiment, making.NOTHING) == participation.FULL


def test_a_study_with_only_a_date_never_is_full(researcher: User) -> None:
    from datetime import UTC, datetime

    experiment = making.opened(researcher, per_arm=None, closes_at=datetime(2999, 1, 1, tzinfo=UTC), repeats=1)
    for _ in range(5):
        making.come(experiment)
    assert sorted(shown(experiment).values()) == [2, 3]
    assert Participant.objects.count() == 5
