"""What annotators, researchers without a queue and invited people try at the annotation bench, and do not get."""

import pytest
from django.urls import reverse

from tests.trust.withdrawn import canary_match, reveal
from tests.webapp.api.calling import Caller
from tests.webapp.judgments.make import (
    FIVES,
    annotate,
    conversation,
    conversation_queue,
    finished_match,
    imported,
    people_queue,
    version,
)
from training.records import ALL, Label
from webapp.accounts.models import User
from webapp.arena.models import Match
from webapp.arena.setup import waiting_room
from webapp.judgments.models import Assignment, Judgment, Queue, Suggestion, SuggestionRun
from webapp.judgments.queues import reservations
from webapp.judgments.queues import services as queues
from webapp.judgments.queues.services import QueueSettings
from webapp.judgments.results import decisions
from webapp.judgments.suggesting import services as suggesting
from webapp.judgments.suggesting.sources import Answer, Suggested
from webapp.scenarios.models import StoredConversation

pytestmark = pytest.mark.django_db


def made(owner, annotators, **how):
    """A queue of three conversations of two seats each, in its order."""
    stored = imported(owner, *(conversation(number) for number in range(3)))
    rows = StoredConversation.objects.filter(scenario__version=stored).order_by("position")
    return queues.create_queue(
        name="q", owner=owner, codebook_version=version(), conversations=rows, annotators=annotators,
        how=QueueSettings(order=Queue.Order.POSITION, **how),
    )  # fmt: skip


@pytest.mark.parametrize(
    "how",
    [
        {"batch_size": 2},
        {"qualification_items": 1},
        {"overlap": 1},
        {"overlap": 1, "assignment": Queue.Assignment.PREASSIGNED},
    ],
)
def test_what_is_sent_about_a_target_of_somebody_else_or_of_later_does_not_bring_it(
    researcher, annotator, person, client_of, how
):
    queue = made(researcher, [annotator, person("annotator", "another")], **how)
    later = queue.targets.exclude(assignments__annotator=annotator).last()
    address, client = reverse("judgments:annotate", args=[queue.pk]), client_of(annotator)
    for sent in ({}, {"unscored": "1"}, {"skip": "1", "why": "no"}, {"HX-Request": "true"}):
        data, headers = ({}, sent) if "HX-Request" in sent else (sent, {})
        answer = client.post(address, {"target": later.pk, **data}, headers=headers, follow=True).content.decode()
        assert f'id="target-{later.pk}"' not in answer
        assert f"number {later.conversation.position}" not in answer
    assert not Judgment.objects.exists()
    assert not Assignment.objects.exclude(skipped="").exists()


def test_a_judgment_under_way_is_shown_again_where_it_is_refused(researcher, annotator, client_of):
    queue = made(researcher, [annotator], overlap=1)
    target = reservations.offer(queue=queue, user=annotator).target
    assert target is not None
    queues.pause(queue=queue)
    sent = {"target": target.pk, "reason": "my comment"}
    answer = client_of(annotator).post(reverse("judgments:annotate", args=[queue.pk]), sent)
    assert answer.status_code == 400
    assert "my comment" in answer.content.decode()


def test_the_replay_of_a_match_is_closed_to_its_annotators_until_they_have_judged_it(
    client_of, player, researcher, annotator
):
    match = finished_match(player)
    assert match.visibility == Match.Visibility.PRIVATE
    queue, client = people_queue(researcher, match, [annotator]), client_of(annotator)
    addresses = [f"/play/{match.pk}/replay/?viewer={ALL}", f"/play/{match.pk}/result/"]
    for target in queue.targets.order_by("position"):
        assert [client.get(address).status_code for address in addresses] == [404, 404]
        annotate(target=target, by=annotator, values=FIVES)
    assert [client.get(address).status_code for address in addresses] == [200, 200]


def test_a_queue_that_shows_what_was_hidden_opens_its_matches(client_of, player, researcher, annotator):
    match = finished_match(player)
    Queue.objects.filter(pk=people_queue(researcher, match, [annotator]).pk).update(shows_hidden=True)
    assert client_of(annotator).get(f"/play/{match.pk}/replay/?viewer={ALL}").status_code == 200


def test_what_was_right_of_a_gold_target_is_withheld_while_its_seat_waits_in_another_queue(
    researcher, annotator, client_of
):
    stored = imported(researcher, conversation())
    queue = conversation_queue(researcher, stored, [annotator])
    target = queue.targets.with_games().order_by("position").first()
    judgment = annotate(target=target, by=annotator, values=FIVES)
    decisions.decide(target=target, by=researcher, labels=judgment.records(), note="so it is")
    decisions.set_gold(target=target, gold=True)
    address, client = reverse("judgments:gold-answer", args=[queue.pk, target.pk]), client_of(annotator)
    assert client.get(address).status_code == 200
    second = conversation_queue(researcher, stored, [annotator])
    assert client.get(address).status_code == 404
    for each in second.targets.with_games():
        annotate(target=each, by=annotator, values=FIVES)
    assert client.get(address).status_code == 200


def test_the_keys_of_targets_do_not_tell_the_order_of_the_games(researcher, annotator):
    """Twelve games of two seats: chance puts all 24 keys in order once in 24! queues."""
    stored = imported(researcher, *(conversation(number) for number in range(12)))
    queue = conversation_queue(researcher, stored, [annotator])
    rows = list(queue.targets.order_by("position").values_list("pk", "conversation__position", "seat"))
    assert [row[1:] for row in rows] == [(number, seat) for number in range(12) for seat in (0, 1)]
    keys = [pk for pk, *_ in rows]
    assert keys != sorted(keys)


def test_adding_annotators_by_number_tells_no_names_of_players(researcher, annotator, player, client_of):
    queue = made(researcher, [annotator])
    User.objects.filter(pk=player.pk).update(username="sentinelplayer")
    sent = {"annotators": [str(player.pk)]}
    answer = client_of(researcher).post(reverse("judgments:queue-annotators", args=[queue.pk]), sent, follow=True)
    assert "sentinelplayer" not in answer.content.decode()
    assert not queue.annotators.filter(pk=player.pk).exists()


def test_a_queue_made_over_the_interface_does_not_tell_which_names_are_accounts(researcher, player, annotator, person):
    User.objects.filter(pk=person("annotator", "gone").pk).update(is_active=False)
    person("guest", "visitor")
    match = finished_match(researcher)

    def answer(name):
        asked = {"name": "q", "codebook": "fine-grained", "matches": [match.pk], "annotators": [name]}
        response = Caller(researcher).post("queues", **asked)
        return response.status_code, response.json()

    refused = {str(answer(name)) for name in ("nobody-of-this-name", player.username, "gone", "visitor")}
    assert len(refused) == 1
    assert "422" in refused.pop()
    assert answer(annotator.username)[0] == 201


@pytest.mark.parametrize("value", ["nan", "inf", "-Infinity", "1e999"])
def test_a_search_for_what_is_no_finite_number_searches_for_the_word(researcher, client_of, value):
    answer = client_of(researcher).get(reverse("judgments:search"), {"value": value})
    assert answer.status_code == 200


def test_a_source_that_was_at_work_stores_nothing_about_a_game_that_was_withdrawn_meanwhile(
    researcher, player, annotator, monkeypatch
):
    match = canary_match(researcher, player)
    reveal(match, researcher)
    queue = people_queue(researcher, match, [annotator])
    run = SuggestionRun.objects.create(queue=queue, source="rule:slow")
    claimed = suggesting.claim(waiting=SuggestionRun.objects.waiting(), pk=run.pk)

    def answers(source, targets, command):
        waiting_room.answer_consent(match=match, user=player, agreed=False)
        for target in targets:
            label = Label(label="mutual_benefit", value=3.0, seat=target.seat, reason="what was said")
            yield Answer(target, [Suggested(label)])

    monkeypatch.setattr(suggesting.sources, "answers", answers)
    suggesting.fill(run=claimed, command=lambda arguments: {}, leave=lambda: None)
    assert not Suggestion.objects.exists()
    run.refresh_from_db()
    assert run.state == SuggestionRun.State.READY
