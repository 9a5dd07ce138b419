"""Groups of connected, visible people; what becomes of those who wait too long, and of groups that somebody leaves."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.webapp.experiments import making
from webapp.accounts.models import User
from webapp.arena.models import MatchSeat
from webapp.arena.play import hosting, services
from webapp.experiments import design, facilitating, grouping, leaving, participation
from webapp.experiments.models import Arm, Experiment, Group, Participant

pytestmark = pytest.mark.django_db


def pairs(owner: User, **changes: object) -> Experiment:
    return making.opened(owner, making.PAIR, arms=1, per_arm=4, **changes)


def test_a_pair_plays_once_both_are_there(researcher: User) -> None:
    experiment = pairs(researcher)
    first, second = making.come(experiment), making.come(experiment)
    assert participation.heartbeat(participant=first, visible=True).stage == "play"  # both pages have just been opened
    second.refresh_from_db()
    assert second.group == Group.objects.get()
    match = second.group.match
    assert match.state == "running"
    assert {seat.user for seat in match.seats.all()} == {first.user, second.user}
    assert (match.shown_as, match.next_path) == ("unknown", f"/experiments/take/{experiment.token}/")


@pytest.mark.parametrize("away", ["hidden", "silent"])
def test_nobody_is_seated_beside_a_page_that_is_not_looked_at(researcher: User, away: str) -> None:
    experiment = pairs(researcher)
    first, second = making.come(experiment), making.come(experiment)
    if away == "hidden":
        participation.heartbeat(participant=second, visible=False)
    else:
        Participant.objects.filter(pk=second.pk).update(seen_at=services.database_now() - timedelta(seconds=30))
    assert participation.heartbeat(participant=first, visible=True).stage == "wait"
    participation.heartbeat(participant=second, visible=True)
    first.refresh_from_db()
    assert first.stage == "play"


def test_nobody_plays_before_the_shortest_wait(researcher: User) -> None:
    experiment = making.opened(researcher, shortest_wait_s=60)
    participant = making.come(experiment)
    assert participation.heartbeat(participant=participant, visible=True).stage == "wait"
    a_minute_ago = services.database_now() - timedelta(seconds=61)
    Participant.objects.filter(pk=participant.pk).update(waiting_since=a_minute_ago)
    assert participation.heartbeat(participant=participant, visible=True).stage == "play"


def test_no_groups_are_formed_during_a_pause(researcher: User) -> None:
    experiment = pairs(researcher)
    first, second = making.come(experiment), making.come(experiment)
    design.pause(experiment=experiment)
    assert participation.heartbeat(participant=first, visible=True).stage == "wait"
    design.resume(experiment=experiment)
    assert participation.heartbeat(participant=second, visible=True).stage == "play"


def late(participant: Participant) -> None:
    long_ago = services.database_now() - timedelta(minutes=6)
    Participant.objects.filter(pk=participant.pk).update(waiting_since=long_ago)


def test_who_waits_too_long_gets_the_code_for_waiting(researcher: User) -> None:
    experiment = pairs(researcher, code_waited="WAIT1")
    participant = making.come(experiment)
    assert grouping.end_waits(experiment_id=experiment.pk) == 0
    late(participant)
    assert grouping.end_waits(experiment_id=experiment.pk) == 1
    participant.refresh_from_db()
    assert (participant.outcome, participant.code) == ("waited", "WAIT1")
    assert not experiment.slots.filter(participant=participant).exists()


def test_the_fallback_sits_down_where_people_are_missing(researcher: User) -> None:
    experiment = pairs(researcher)
    Arm.objects.update(fallback="scripted:scripted")
    participant = making.come(experiment)
    late(participant)
    assert grouping.end_waits(experiment_id=experiment.pk) == 1
    participant.refresh_from_db()
    assert participant.stage == "play"
    assert participant.group is not None
    assert participant.group.filled
    assert sorted(participant.group.match.seats.values_list("kind", flat=True)) == ["person", "scripted"]


def test_a_player_who_is_gone_is_reported_and_the_participant_waits(researcher: User) -> None:
    experiment = making.opened(researcher, [*making.ALONE[:1], "deployment:99"], arms=1)
    participant = participation.heartbeat(participant=making.come(experiment), visible=True)
    assert participant.stage == "wait"
    assert "deployment:99" in experiment.arms.get().problem


def test_a_leaver_is_replaced_with_the_whole_group(researcher: User) -> None:
    """The partner goes on beside a stand-in and completes; both places are given away again."""
    experiment = pairs(researcher)
    stays, leaves = making.come(experiment), making.come(experiment)
    participation.heartbeat(participant=stays, visible=True)
    leaves.refresh_from_db()
    assert leaves.group is not None
    before = services.database_now() - timedelta(seconds=120)
    MatchSeat.objects.filter(user=leaves.user).update(seen_at=before)
    ((match_id, number),) = hosting.away(limit=9)
    hosting.stand_in(match_id=match_id, number=number)
    (pk,) = leaving.absent(limit=9)
    leaving.leave(participant_id=pk)
    leaves.refresh_from_db()
    stays.refresh_from_db()
    assert (pk, leaves.outcome, stays.outcome) == (leaves.pk, "left", "")
    assert experiment.slots.filter(participant__isnull=False).count() == 0
    assert Group.objects.get().broken_why
    making.end_match(stays)
    stays = participation.finish(participant=participation.update_stage(participant=stays))
    assert stays.outcome == "completed"
    assert [making.come(experiment).arm for _ in range(4)] == [stays.arm] * 4


def test_who_returns_to_the_table_goes_on(researcher: User) -> None:
    participant = making.seated(making.opened(researcher))
    MatchSeat.objects.filter(user=participant.user).update(stand_in=True)
    leaving.leave(participant_id=participant.pk)
    assert participation.update_stage(participant=Participant.objects.get(pk=participant.pk)).stage == "play"
    making.end_match(participant)
    back = participation.update_stage(participant=Participant.objects.get(pk=participant.pk))
    assert (back.stage, back.returns) == ("debriefing", 1)


def test_removing_a_player_seats_a_stand_in(researcher: User) -> None:
    participant = making.seated(making.opened(researcher))
    facilitating.replace(participant=participant)
    participant.refresh_from_db()
    seat = MatchSeat.objects.get(user=participant.user)
    assert (participant.outcome, seat.stand_in) == ("removed", True)


def test_a_notice_is_shown_at_the_own_seat_only(researcher: User) -> None:
    experiment = pairs(researcher)
    first, second = making.come(experiment), making.come(experiment)
    participation.heartbeat(participant=first, visible=True)
    facilitating.nudge(participant=second, text="Please go on.")
    notices = dict(MatchSeat.objects.values_list("user", "notice"))
    assert notices == {first.user.pk: "", second.user.pk: "Please go on."}


def test_silent_pages_are_noticed(researcher: User) -> None:
    experiment = pairs(researcher)
    waits = making.come(experiment)
    assert leaving.absent(limit=9) == []
    Participant.objects.update(seen_at=services.database_now() - timedelta(seconds=90))
    assert leaving.absent(limit=9) == [waits.pk]
    participation.heartbeat(participant=waits, visible=True)
    assert leaving.leave(participant_id=waits.pk) is None  # back before the clock came by


def test_an_experiment_closes_with_its_last_complete_participant(researcher: User) -> None:
    experiment = making.opened(researcher, arms=1, per_arm=1)
    making.completed(experiment)
    experiment.refresh_from_db()
    assert experiment.state == "closed"
