"""The path of a participant, stage by stage: answers, attention, coming back, withdrawing."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest

from tests.webapp.experiments import making
from training.errors import BadInput
from webapp.accounts.models import User
from webapp.arena.models import Match
from webapp.arena.play import hosting
from webapp.arena.play import services as arena
from webapp.arena.setup import tables
from webapp.core import quotas
from webapp.experiments import participation, states
from webapp.experiments.models import Experiment, Participant
from webapp.experiments.participation import Origin
from webapp.experiments.states import Outcome

pytestmark = pytest.mark.django_db


def with_questions(owner: User, **check: object) -> Experiment:
    from webapp.experiments import design

    made = making.experiment(owner, code_completed="DONE1", code_attention="ATT1", code_waited="WAIT1")
    making.arm(made, "only")
    making.question(made, "age", part="before", kind="number", options=[])
    making.question(made, "blue", part="before", kind="choice", options=["red", "blue"], right="blue", **check)
    making.question(made, "trust")
    design.open_experiment(experiment=made)
    return Experiment.objects.get(pk=made.pk)


def test_every_stage_follows_the_one_before(researcher: User) -> None:
    experiment = with_questions(researcher)
    participant = making.come(experiment, "P-1")
    assert (participant.stage, participant.arm, participant.external_id) == ("before", None, "P-1")
    participant = participation.answer(participant=participant, part="before", answers={"age": 30, "blue": "blue"})
    assert (participant.stage, participant.arm and participant.arm.name) == ("wait", "only")
    participant = participation.heartbeat(participant=participant, visible=True)
    assert participant.stage == "play"
    making.end_match(participant)
    participant = participation.update_stage(participant=participant)
    assert participant.stage == "after"
    participant = participation.answer(participant=participant, part="after", answers={"trust": 4})
    assert participant.stage == "debriefing"
    participant = participation.finish(participant=participant)
    assert (participant.stage, participant.outcome, participant.code) == ("done", "completed", "DONE1")
    assert participant.answers == {"age": 30, "blue": "blue", "trust": 4}
    names = ("consent", "before", "answered_before", "wait", "play", "after", "answered_after", "debriefing", "ended")
    times = [participant.times[name] for name in names]
    assert times == sorted(times)
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00", time) for time in times)


def test_an_answer_is_taken_once(researcher: User) -> None:
    experiment = with_questions(researcher)
    participant = making.come(experiment)
    participation.answer(participant=participant, part="before", answers={"age": 30, "blue": "blue"})
    again = participation.answer(participant=participant, part="before", answers={"age": 99, "blue": "red"})
    assert again.answers["age"] == 30
    assert again.failed == []


def test_a_wrong_answer_is_noted(researcher: User) -> None:
    participant = making.come(with_questions(researcher))
    participant = participation.answer(participant=participant, part="before", answers={"age": 1, "blue": "red"})
    assert (participant.stage, participant.failed) == ("wait", ["blue"])


def test_a_wrong_answer_ends_the_participation_before_an_arm_is_drawn(researcher: User) -> None:
    experiment = with_questions(researcher, on_wrong="end")
    participant = making.come(experiment)
    participant = participation.answer(participant=participant, part="before", answers={"age": 1, "blue": "red"})
    assert (participant.outcome, participant.code, participant.arm) == ("attention", "ATT1", None)
    assert not experiment.slots.filter(participant=participant).exists()


def test_nobody_takes_part_twice_under_one_id(researcher: User) -> None:
    experiment = making.opened(researcher)
    making.come(experiment, "P-1")
    with pytest.raises(BadInput, match="in which you began"):
        making.come(experiment, "P-1")
    assert Participant.objects.count() == 1
    making.come(experiment, "")
    making.come(experiment, "")


def test_a_study_can_ask_for_an_id(researcher: User) -> None:
    experiment = making.opened(researcher, requires_id=True)
    with pytest.raises(BadInput, match="no participant's id"):
        making.come(experiment)


@pytest.mark.parametrize("action, why", [("pause", "paused"), ("close", "over")])
def test_nobody_begins_while_it_is_not_open(researcher: User, action: str, why: str) -> None:
    from webapp.experiments import design

    experiment = making.opened(researcher)
    getattr(design, action)(experiment=experiment)
    with pytest.raises(BadInput, match=why):
        making.come(experiment)


def test_the_owner_has_a_quota_of_participants(researcher: User, settings: object) -> None:
    limits = {**quotas.settings.QUOTAS, "participants_per_hour": {"researcher": 1}}
    settings.QUOTAS = limits  # type: ignore[attr-defined]
    experiment = making.opened(researcher)
    making.come(experiment)
    with pytest.raises(BadInput, match="limit of 1 participants"):
        making.come(experiment)


def test_who_left_the_waiting_room_comes_back_to_their_arm(researcher: User) -> None:
    experiment = making.opened(researcher, making.PAIR)
    participant = making.come(experiment)
    arm = participant.arm
    states.end(states.locked(participant), Outcome.LEFT)
    back = participation.heartbeat(participant=participant, visible=True)
    assert (back.stage, back.outcome, back.returns, back.arm) == ("wait", "", 1, arm)
    assert back.slot.arm == arm


def test_who_comes_back_too_late_gets_the_code_for_waiting(researcher: User) -> None:
    experiment = making.opened(researcher, making.PAIR, arms=1, per_arm=2, code_waited="WAIT1")
    first = making.come(experiment)
    making.come(experiment)
    states.end(states.locked(first), Outcome.LEFT)
    making.come(experiment)
    back = participation.update_stage(participant=Participant.objects.get(pk=first.pk))
    assert (back.outcome, back.code) == ("waited", "WAIT1")


def test_withdrawing_erases_answers_and_ids_and_keeps_the_match_out_of_exports(researcher: User) -> None:
    experiment = making.opened(researcher)
    participant = making.come(experiment, "P-1")
    participant = participation.heartbeat(participant=participant, visible=True)
    making.end_match(participant)
    assert participant.group is not None
    assert Match.objects.exportable().filter(pk=participant.group.match_id).exists()
    participant = participation.withdraw(participant=participation.update_stage(participant=participant))
    assert (participant.outcome, participant.external_id, participant.answers) == ("withdrawn", "", {})
    assert not Match.objects.exportable().filter(pk=participant.group.match_id).exists()
    assert participant not in experiment.participants.exportable()


def test_nobody_takes_part_again_after_withdrawing(researcher: User) -> None:
    experiment = making.opened(researcher)
    participation.withdraw(participant=making.come(experiment, "P-1"))
    assert not experiment.participants.filter(external_id="P-1").exists()
    with pytest.raises(BadInput, match="begun this study already"):
        making.come(experiment, "P-1")
    making.come(making.opened(researcher), "P-1")  # another study


def test_who_withdraws_in_the_game_does_not_return_to_it(researcher: User) -> None:
    participant = making.seated(making.opened(researcher))
    assert participant.group is not None
    participation.withdraw(participant=participant)
    assert participant.group.match.seats.get(user=participant.user).stand_in
    with pytest.raises(BadInput, match="participation has ended"):
        hosting.take_back(match=participant.group.match, user=participant.user)


def test_a_table_of_an_experiment_is_not_the_hosts_to_change(researcher: User) -> None:
    participant = making.seated(making.opened(researcher))
    assert participant.group is not None
    match = participant.group.match
    with pytest.raises(BadInput, match="monitor"):
        hosting.kick(match=match, number=0)
    arena.abort(match_id=match.pk, why="a model did not start")
    assert Match.objects.filter(pk=match.pk).unrevealed_to(participant.user).exists(), "its debriefing comes later"
    match.refresh_from_db()
    with pytest.raises(BadInput, match="no rematch"):
        tables.again(match=match, host=participant.user)


def test_pages_that_never_go_on_hold_no_places(researcher: User) -> None:
    experiment = with_questions(researcher)
    for _ in range(experiment.per_arm * experiment.arms.count()):
        making.come(experiment)
    with pytest.raises(BadInput, match="no place left"):
        making.come(experiment)
    experiment.participants.update(created_at=arena.database_now() - timedelta(minutes=31))
    making.come(experiment)


def test_consent_to_reuse_is_that_of_the_seat(researcher: User) -> None:
    experiment = making.opened(researcher)
    participant = participation.heartbeat(participant=making.come(experiment, may_reuse=False), visible=True)
    assert participant.group is not None
    assert participant.group.match.seats.get(user=participant.user).consent is False
    assert participant.group.match.state == "running"


def test_a_guest_of_an_experiment_is_never_told_who_the_others_were(researcher: User) -> None:
    participant = making.seated(making.opened(researcher))
    making.end_match(participant)
    assert participant.group is not None
    match = Match.objects.get(pk=participant.group.match_id)
    assert Match.objects.unrevealed_to(participant.user).filter(pk=match.pk).exists()


def test_origin_is_cut_to_what_can_be_stored(researcher: User) -> None:
    experiment = making.opened(researcher)
    origin = Origin("x" * 500, "y" * 500, "z" * 500)
    made = participation.begin(experiment=experiment, user=None, origin=origin, may_reuse=True)
    assert (len(made.external_id), len(made.study_id), len(made.session_id)) == (200, 200, 200)


@pytest.mark.django_db(transaction=True)
def test_beats_of_many_pages_do_not_block_each_other(researcher: User) -> None:
    """Pages that say at the same time that they are there, while groups of them are formed."""
    from concurrent.futures import ThreadPoolExecutor

    from django.db import connection

    experiment = making.opened(researcher, making.PAIR, arms=1, per_arm=8)
    people = [making.come(experiment) for _ in range(8)]

    def beat(participant: Participant) -> None:
        try:
            for _ in range(4):
                participation.heartbeat(participant=participant, visible=True)
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(beat, people))
    assert experiment.participants.filter(stage="play").count() == 8
    assert experiment.arms.get().groups.count() == 4
