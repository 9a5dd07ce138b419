"""Which targets are offered to whom, what people may still come to judge, and reservations at the same time."""

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Barrier

import pytest
from django.db import connection
from django.db.models.functions import Now

from tests.webapp.judgments.make import FIVES, annotate, conversation, finished_match, imported, version
from training.errors import BadInput
from webapp.arena.setup import waiting_room
from webapp.judgments.models import Assignment, Judgment, Qualification, Queue, Target
from webapp.judgments.queues import reservations
from webapp.judgments.queues import services as queues
from webapp.judgments.queues.services import QueueSettings
from webapp.scenarios.models import StoredConversation

pytestmark = pytest.mark.django_db


@pytest.fixture
def people(person):
    return [person("annotator", f"annotator-{number}") for number in range(4)]


def made(owner, annotators, *, conversations=2, name="imported", **how):
    """A queue over imported conversations of two seats each, with these settings."""
    stored = imported(owner, *(conversation(number) for number in range(conversations)), name=name)
    rows = StoredConversation.objects.filter(scenario__version=stored).order_by("position")
    return queues.create_queue(
        name="q", owner=owner, codebook_version=version(), conversations=rows, annotators=annotators,
        how=QueueSettings(**{"order": Queue.Order.POSITION, **how}),
    )  # fmt: skip


def offered(queue, user):
    return list(queue.targets.open_for(user).values_list("position", flat=True))


def awaited(queue, user):
    return list(queue.targets.awaited_by(user).values_list("position", flat=True))


def target(queue, position):
    return Target.objects.with_games().get(queue=queue, position=position)


def test_without_an_overlap_everybody_judges_every_target(researcher, people):
    queue = made(researcher, people[:2])
    assert [offered(queue, user) for user in people[:3]] == [[0, 1, 2, 3], [0, 1, 2, 3], []]
    annotate(target=target(queue, 1), by=people[0], values=FIVES)
    assert (offered(queue, people[0]), awaited(queue, people[0])) == ([0, 2, 3], [0, 2, 3])
    assert offered(queue, people[1]) == [0, 1, 2, 3]


def test_the_first_who_open_a_target_judge_it(researcher, people):
    queue = made(researcher, people, overlap=2)
    taken = [reservations.offer(queue=queue, user=user).target.position for user in people]
    assert taken == [0, 0, 1, 1], "each target is reserved for two"
    assert [offered(queue, user) for user in people] == [[0, 2, 3], [0, 2, 3], [1, 2, 3], [1, 2, 3]]
    assert awaited(queue, people[3]) == [0, 1, 2, 3], "a reservation of others may lapse"
    for user in people[:2]:
        annotate(target=target(queue, 0), by=user, values=FIVES)
    assert (offered(queue, people[3]), awaited(queue, people[3])) == ([1, 2, 3], [1, 2, 3])


def test_a_reservation_lapses_by_the_clock_and_its_judgment_is_still_stored(researcher, people):
    queue = made(researcher, people, overlap=1, conversations=1)
    assert reservations.offer(queue=queue, user=people[0]).target.position == 0
    assert offered(queue, people[1]) == [1]
    Assignment.objects.update(expires_at=Now())
    assert reservations.offer(queue=queue, user=people[1]).target.position == 0
    annotate(target=target(queue, 0), by=people[1], values=FIVES)
    annotate(target=target(queue, 0), by=people[0], values=FIVES)
    assert Judgment.objects.filter(target__position=0).count() == 2, "one more than was wanted, and nothing is lost"
    with pytest.raises(BadInput, match="no more judgments are required"):
        annotate(target=target(queue, 0), by=people[2], values=FIVES)
    assert not Assignment.objects.exists(), "a judgment ends its reservation"


def test_a_reservation_is_prolonged_by_opening_again(researcher, people):
    queue = made(researcher, people, overlap=1, conversations=1)
    reservations.offer(queue=queue, user=people[0])
    first = Assignment.objects.get().expires_at
    reservations.offer(queue=queue, user=people[0])
    assert Assignment.objects.get().expires_at > first


def test_targets_are_shared_out_evenly_and_stay_with_whom_they_were_given(researcher, people):
    queue = made(researcher, people[:3], conversations=5, overlap=2, assignment=Queue.Assignment.PREASSIGNED)
    # By hand: 10 targets of 2 annotators each are 20 assignments of 3 people: 7, 7 and 6.
    assert sorted(len(offered(queue, user)) for user in people[:3]) == [6, 7, 7]
    assert all(each.assignments.count() == 2 for each in queue.targets.all())
    for user in people[:3]:
        assert awaited(queue, user) == offered(queue, user)
    stranger = next(each for each in queue.targets.all() if not each.assignments.filter(annotator=people[0]).exists())
    with pytest.raises(BadInput, match="assigned to other annotators"):
        annotate(target=target(queue, stranger.position), by=people[0], values=FIVES)


def test_a_paused_queue_offers_nothing_and_a_closed_one_never_again(researcher, people):
    queue = made(researcher, people[:1], conversations=1)
    queues.pause(queue=queue)
    assert (offered(queue, people[0]), awaited(queue, people[0])) == ([], [0, 1])
    annotate(target=target(queue, 0), by=people[0], values=FIVES)
    queues.resume(queue=queue)
    assert offered(queue, people[0]) == [1]
    queues.close(queue=queue)
    assert (offered(queue, people[0]), awaited(queue, people[0])) == ([], [])
    with pytest.raises(BadInput, match="closed"):
        annotate(target=target(queue, 1), by=people[0], values=FIVES)
    with pytest.raises(BadInput, match="closed for good"):
        queues.resume(queue=queue)


def test_batches_wait_until_they_are_opened(researcher, people):
    queue = made(researcher, people[:1], batch_size=3)
    assert list(queue.targets.order_by("position").values_list("batch", flat=True)) == [1, 1, 1, 2]
    assert (offered(queue, people[0]), awaited(queue, people[0])) == ([0, 1, 2], [0, 1, 2, 3])
    with pytest.raises(BadInput, match="batch is not open"):
        annotate(target=target(queue, 3), by=people[0], values=FIVES)
    assert queues.open_batch(queue=queue) == 2
    assert offered(queue, people[0]) == [0, 1, 2, 3]
    with pytest.raises(BadInput, match="all batches are open"):
        queues.open_batch(queue=queue)


def test_a_target_that_was_put_aside_comes_back_when_its_annotator_takes_it_back(researcher, people):
    queue = made(researcher, people, overlap=1, conversations=1)
    first = reservations.offer(queue=queue, user=people[0]).target
    with pytest.raises(BadInput, match="why"):
        reservations.skip(target=first, user=people[0], why=" ")
    reservations.skip(target=first, user=people[0], why="I know the players")
    assert (offered(queue, people[0]), awaited(queue, people[0])) == ([1], [0, 1])
    assert offered(queue, people[1]) == [0, 1], "it is not reserved any more"
    skipped = queue.targets.skipped_by(people[0])
    assert [(each.position, each.why) for each in skipped] == [(0, "I know the players")]
    reservations.unskip(target=first, user=people[0])
    assert offered(queue, people[0]) == [0, 1]
    with pytest.raises(BadInput, match="did not skip"):
        reservations.unskip(target=first, user=people[0])


def test_the_order_by_chance_is_the_annotators_own_and_always_the_same(researcher, people):
    queue = made(researcher, people[:2], conversations=6, order=Queue.Order.RANDOM)
    orders = [offered(queue, user) for user in people[:2]]
    assert [sorted(order) for order in orders] == [list(range(12))] * 2
    assert orders[0] != orders[1]
    assert orders[0] == offered(queue, people[0])


def test_a_match_whose_player_refused_is_in_no_queue(researcher, player, people):
    match = finished_match(researcher, player)
    queue = queues.create_queue(
        name="q", owner=researcher, codebook_version=version(), matches=[match], annotators=people[:1]
    )
    assert len(offered(queue, people[0])) == 2
    waiting_room.answer_consent(match=match, user=player, agreed=False)
    assert (offered(queue, people[0]), awaited(queue, people[0])) == ([], [])


def test_before_they_qualify_annotators_are_offered_gold_targets_only(researcher, people):
    queue = made(researcher, people[:2], qualification_items=1)
    queue.targets.filter(position=2).update(gold=True)
    assert (offered(queue, people[0]), awaited(queue, people[0])) == ([2], [0, 1, 2, 3])
    with pytest.raises(BadInput, match="qualification test"):
        annotate(target=target(queue, 0), by=people[0], values=FIVES)
    Qualification.objects.create(queue=queue, annotator=people[0], passed=True)
    assert offered(queue, people[0]) == [0, 1, 2, 3]
    Qualification.objects.create(queue=queue, annotator=people[1], passed=False)
    assert offered(queue, people[1]) == []


def test_what_others_said_is_withheld_from_whoever_may_still_come_to_judge_it(researcher, other_researcher, people):
    queue = made(researcher, [researcher, other_researcher, people[0]], conversations=1, overlap=2)
    annotate(target=target(queue, 0), by=people[0], values=FIVES)
    seen = Judgment.objects.not_awaited_by(researcher).filter(queue=queue)
    assert not seen.exists()
    queues.pause(queue=queue)
    assert not seen.all().exists(), "a pause reveals nothing"
    annotate(target=target(queue, 0), by=other_researcher, values=FIVES)
    assert seen.all().count() == 2, "it is judged by enough: this person will not judge it"


@pytest.mark.django_db(transaction=True)
def test_thirty_annotators_at_once_never_get_a_target_a_fourth_time(researcher, person):
    people = [person("annotator", f"annotator-{number}") for number in range(30)]
    queue = made(researcher, people, conversations=6, overlap=3)
    start = Barrier(len(people))

    def request(work):
        try:
            return work()
        finally:
            connection.close()  # as after every request: there are fewer connections than people

    def work(user):
        start.wait(60)
        taken = []
        while (each := request(lambda: reservations.offer(queue=queue, user=user).target)) is not None:
            request(partial(annotate, target=each, by=user, values=FIVES))
            taken.append(each.pk)
        return taken

    with ThreadPoolExecutor(len(people)) as pool:
        taken = list(pool.map(work, people))
    assert [each.judgments.count() for each in queue.targets.order_by("position")] == [3] * 12
    assert sum(map(len, taken)) == 36


@pytest.mark.django_db(transaction=True)
def test_of_two_who_open_the_last_place_at_once_one_gets_it(researcher, people):
    queue = made(researcher, people, conversations=1, overlap=1)
    first = target(queue, 0)
    start = Barrier(4)

    def work(user):
        try:
            start.wait(30)
            return reservations.reserve(target=first, user=user, waiting=queue.targets.open_for(user))
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as pool:
        assert sorted(pool.map(work, people)) == [False, False, False, True]
    assert Assignment.objects.filter(target=first).count() == 1
