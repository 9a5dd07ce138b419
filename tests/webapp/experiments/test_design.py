"""Drafts, what an experiment needs before it opens, and what opening it fixes."""

from __future__ import annotations

import hashlib
from datetime import timedelta

import pytest

from tests.webapp.experiments import making
from training.errors import BadInput
from webapp.accounts.models import User
from webapp.arena.play import services
from webapp.experiments import clock, design
from webapp.experiments.models import PERSON, Arm, Experiment

pytestmark = pytest.mark.django_db


def test_opening_states_the_hash_of_the_preregistration(researcher: User) -> None:
    text = "H1: people concede more to people."
    experiment = making.opened(researcher, preregistration=text)
    assert experiment.preregistration_sha256 == hashlib.sha256(text.encode()).hexdigest()
    assert experiment.opened_at is not None


def test_an_open_experiment_cannot_be_changed(researcher: User) -> None:
    experiment = making.opened(researcher)
    with pytest.raises(BadInput, match="fixed its design"):
        design.save(experiment=experiment, owner=researcher)
    with pytest.raises(BadInput, match="fixed its design"):
        making.arm(experiment, "late")
    with pytest.raises(BadInput, match="fixed its design"):
        making.question(experiment, "late")
    with pytest.raises(BadInput, match="fixed its design"):
        design.delete(experiment=experiment)


def test_what_is_missing(researcher: User) -> None:
    experiment = making.experiment(researcher, per_arm=None)
    assert [text.split()[0] for text in design.missing(experiment)] == ["Add", "State"]
    making.arm(experiment, "pairs", making.PAIR)
    experiment.per_arm = 3
    (why,) = design.missing(experiment)
    assert "multiple" in why


@pytest.mark.parametrize(
    "players, shown_as, shortest_wait_s, warned",
    [
        ([PERSON, "scripted:scripted"], "unknown", 0, True),
        ([PERSON, "scripted:scripted"], "person", 19, True),
        ([PERSON, "scripted:scripted"], "person", 20, False),
        ([PERSON, "scripted:scripted"], "model", 0, False),
        ([PERSON, "scripted:scripted"], "computer", 0, False),
        ([PERSON, PERSON], "unknown", 0, False),
    ],
)
def test_a_table_that_begins_at_once_is_warned_of(
    researcher: User, players: list[str], shown_as: str, shortest_wait_s: int, warned: bool
) -> None:
    experiment = making.experiment(researcher, shortest_wait_s=shortest_wait_s)
    making.arm(experiment, "only", players, shown_as=shown_as)
    assert not design.missing(experiment), "it can be opened all the same"
    assert [f"{shortest_wait_s} s" in text and "only" in text for text in design.warnings(experiment)] == [
        True
    ] * warned


@pytest.mark.parametrize(
    "arms, warned",
    [
        ([(making.ALONE, "unknown", "")], []),
        ([(making.PAIR, "unknown", "")], []),
        ([(making.ALONE, "unknown", ""), (making.PAIR, "unknown", "")], ["Waiting times differ"]),
        ([(making.ALONE, "model", ""), (making.PAIR, "unknown", "")], []),
        ([(making.ALONE, "unknown", ""), (making.PAIR, "model", "")], []),
        ([(making.PAIR, "person", "scripted:scripted")], ["In arm 0, the fallback"]),
        ([(making.PAIR, "model", "scripted:scripted")], []),
        ([(making.PAIR, "computer", "scripted:scripted")], []),
        ([(making.ALONE, "unknown", "scripted:scripted")], []),
    ],
)
def test_waits_that_tell_partners_apart_are_warned_of(
    researcher: User, arms: list[tuple[list[str], str, str]], warned: list[str]
) -> None:
    experiment = making.experiment(researcher, shortest_wait_s=20)
    for number, (players, shown_as, fallback) in enumerate(arms):
        making.arm(experiment, f"arm {number}", players, shown_as=shown_as, fallback=fallback)
    texts = design.warnings(experiment)
    assert len(texts) == len(warned)
    assert all(text.startswith(start) for text, start in zip(texts, warned, strict=True))


def test_the_shortest_wait_is_shorter_than_the_longest(researcher: User) -> None:
    assert Experiment(owner=researcher).shortest_wait_s == 20
    experiment = making.experiment(researcher, shortest_wait_s=60, wait_seconds=60)
    making.arm(experiment, "only")
    (why,) = design.missing(experiment)
    assert "shortest wait" in why
    experiment.shortest_wait_s = 59
    assert not design.missing(experiment)


@pytest.mark.parametrize(
    "players, shown_as, fallback, misleads",
    [
        ([PERSON, PERSON], "person", "", False),
        ([PERSON, PERSON], "model", "", True),
        ([PERSON, PERSON], "unknown", "", False),
        ([PERSON, PERSON], "person", "checkpoint:1", True),
        ([PERSON, "checkpoint:1"], "person", "", True),
        ([PERSON, "checkpoint:1"], "model", "", False),
        ([PERSON, "scripted:scripted"], "model", "", True),
        ([PERSON, "scripted:scripted"], "unknown", "", True),
        ([PERSON, "checkpoint:1"], "unknown", "", False),
        ([PERSON, PERSON, "deployment:1"], "model", "", True),
        ([PERSON, "scripted:scripted"], "computer", "", False),
        ([PERSON, "scripted:random"], "computer", "", False),
        ([PERSON, "checkpoint:1"], "computer", "", False),
        ([PERSON, PERSON], "computer", "", True),
        ([PERSON, "scripted:random"], "person", "", True),
    ],
)
def test_misleading_arms_need_a_debriefing(
    researcher: User, players: list[str], shown_as: str, fallback: str, misleads: bool
) -> None:
    tomorrow = services.database_now() + timedelta(days=1)
    experiment = making.experiment(researcher, debriefing="", per_arm=None, closes_at=tomorrow)
    arm = Arm(experiment=experiment, name="a", players=players, shown_as=shown_as, fallback=fallback, deadline_s=60)
    arm.game, arm.scenario = "negotiation", "sample"
    design.save_arm(arm=arm)
    assert arm.misleads is misleads
    assert any("debriefing" in text for text in design.missing(experiment)) is misleads
    experiment.debriefing = "Your partner was not what you read."
    assert not design.missing(experiment)


def test_a_copy_is_a_draft_with_the_same_design(researcher: User) -> None:
    experiment = making.experiment(researcher)
    making.arm(experiment, "one")
    making.question(experiment, "trust")
    design.open_experiment(experiment=experiment)
    making.come(Experiment.objects.get(pk=experiment.pk))
    copied = design.copy(experiment=experiment, owner=researcher)
    assert (copied.state, copied.participants.count(), copied.preregistration_sha256) == ("draft", 0, "")
    assert copied.token != experiment.token
    assert [arm.name for arm in copied.arms.all()] == ["one"]
    assert [question.name for question in copied.questions.all()] == ["trust"]
    assert experiment.arms.count() == 1


def test_questions_can_be_moved(researcher: User) -> None:
    experiment = making.experiment(researcher)
    first, second = making.question(experiment, "first"), making.question(experiment, "second")
    design.move_up(question=second)
    assert [row.name for row in experiment.questions.all()] == ["second", "first"]
    design.move_up(question=second)
    assert [row.name for row in experiment.questions.all()] == ["second", "first"]
    with pytest.raises(BadInput, match="this name"):
        making.question(experiment, first.name)


def test_the_clock_closes_on_the_date_and_ends_waits(researcher: User) -> None:
    experiment = making.opened(researcher, making.PAIR, code_waited="WAIT1")
    waits = making.come(experiment)
    Experiment.objects.update(closes_at=services.database_now() - timedelta(seconds=1))
    assert clock.close() == 1
    experiment.refresh_from_db()
    waits.refresh_from_db()
    assert (experiment.state, waits.outcome, waits.code) == ("closed", "waited", "WAIT1")
    assert clock.close() == 0
