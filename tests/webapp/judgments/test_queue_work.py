"""Sharing out and reassigning, gold targets, priorities, the filter over games, more games, progress."""

from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from tests.webapp.judgments.make import FIVES, annotate, conversation, imported, people_queue, version, village_match
from tests.webapp.judgments.test_offers import made, offered, target
from training.errors import BadInput
from training.labels.codebooks import Codebook, LabelType, Option
from training.records import Label
from webapp.judgments.models import Assignment, Judgment, Qualification, Queue, Suggestion
from webapp.judgments.models import Label as LabelRow
from webapp.judgments.queues import gold, invitations, priorities, progress, reservations, sharing
from webapp.judgments.queues import services as queues
from webapp.judgments.queues.selection import Selection
from webapp.judgments.queues.similarity import disagreement, is_right, similarity
from webapp.scenarios.models import StoredConversation

pytestmark = pytest.mark.django_db


@pytest.fixture
def people(person):
    return [person("annotator", f"annotator-{number}") for number in range(4)]


def decide(row, by, values, *, as_gold=True):
    """An adjudicator's decision about a target, which makes it gold."""
    decision = Judgment.objects.create(
        target=row, author=by, codebook_version=row.queue.codebook_version, seat=row.seat,
        conversation=row.conversation, decides=True,
    )  # fmt: skip
    LabelRow.objects.bulk_create(
        LabelRow(judgment=decision, name=name, value=float(value), seat=row.seat) for name, value in values.items()
    )
    row.gold = as_gold
    row.save(update_fields=["gold"])


MIXED = Codebook(
    name="mixed", version=1, title="Mixed", labels=(
        LabelType(name="warmth", title="Warmth", kind="scale", about="seat", low=0, high=4, definition="How warm?"),
        LabelType(name="lie", title="Lie", kind="yes_no", about="turn", definition="A lie?", required=False),
        LabelType(name="threat", title="Threat", kind="span", about="span", definition="A threat?", required=False),
    ),
)  # fmt: skip


CHOSEN = Codebook(
    name="chosen", version=1, title="Chosen", labels=(
        LabelType(
            name="tactics", title="Tactics", kind="many_of", about="seat", definition="Which?", options=(
                Option(name="a", title="A"), Option(name="b", title="B"),
            ),
        ),
        LabelType(name="note", title="Note", kind="text", about="seat", definition="What else?"),
    ),
)  # fmt: skip


def chose(*options, note):
    return [Label(label="tactics", value=options, seat=0), Label(label="note", value=note, seat=0)]


def lie(turn):
    return Label(label="lie", value=True, turn=turn)


def threat(start, end):
    return Label(label="threat", turn=0, start=start, end=end)


def warm(value):
    return Label(label="warmth", value=float(value), seat=0)


def test_likeness_by_hand():
    # warmth: 1 - |1 - 3| / 4 = 1/2; lies: turns {1, 2} and {2, 3} share 1 of 3; threats: characters 0-9 and 5-14 share
    # 5 of 15
    first = [warm(1), lie(1), lie(2), threat(0, 10)]
    second = [warm(3), lie(2), lie(3), threat(5, 15)]
    assert similarity(first, second, MIXED) == pytest.approx((1 / 2 + 1 / 3 + 1 / 3) / 3)
    assert (similarity(None, None, MIXED), similarity(None, first, MIXED), similarity([], [], MIXED)) == (1, 0, 1)
    # three annotators at 0, 4 and 4: pairs differ by 1, 1 and 0
    assert disagreement([[warm(0)], [warm(4)], [warm(4)]], MIXED) == pytest.approx(2 / 3)
    assert disagreement([[warm(0)]], MIXED) == 0


def test_neither_the_order_of_options_nor_a_text_is_a_disagreement():
    # MASI of {a} and {a, b}, of which one contains the other: 1 - 2/3 * 1/2 = 2/3
    answer, same, other = chose("a", "b", note="x"), chose("b", "a", note="y"), chose("a", note="x")
    assert disagreement([answer, same], CHOSEN) == 0
    assert disagreement([answer, other], CHOSEN) == pytest.approx(2 / 3)
    assert is_right(same, answer, CHOSEN)
    assert not is_right(other, answer, CHOSEN)


def test_an_answer_is_right_if_values_are_equal_and_four_fifths_of_the_marks():
    decided = [warm(2), *(lie(turn) for turn in range(5))]
    assert is_right([warm(2), *(lie(turn) for turn in range(4))], decided, MIXED), "4 of 5 marks"
    assert not is_right([warm(2), *(lie(turn) for turn in range(3))], decided, MIXED)
    assert not is_right([warm(3), *(lie(turn) for turn in range(5))], decided, MIXED)
    assert is_right(None, None, MIXED)
    assert not is_right(None, decided, MIXED)


def test_what_somebody_has_not_judged_goes_to_others(researcher, people):
    queue = made(researcher, people[:3], conversations=3, overlap=1, assignment=Queue.Assignment.PREASSIGNED)
    mine = offered(queue, people[0])
    assert len(mine) == 2
    annotate(target=target(queue, mine[0]), by=people[0], values=FIVES)
    assert sharing.reassign(queue=queue, from_=people[0], to=[people[1]]) == (1, 0)
    assert (offered(queue, people[0]), len(offered(queue, people[1]))) == ([], 3)
    with pytest.raises(BadInput, match="other annotators"):
        sharing.reassign(queue=queue, from_=people[0], to=[people[3]])


def test_a_target_stays_where_everybody_has_it_already(researcher, people):
    queue = made(researcher, people[:2], conversations=1, overlap=2, assignment=Queue.Assignment.PREASSIGNED)
    assert sharing.reassign(queue=queue, from_=people[0]) == (0, 2)
    assert offered(queue, people[0]) == [0, 1]


def test_an_annotator_is_removed_and_added_again(researcher, people, player):
    queue = made(researcher, people[:2], conversations=2, overlap=1, assignment=Queue.Assignment.PREASSIGNED)
    before = len(offered(queue, people[0]))
    assert sharing.remove_annotator(queue=queue, annotator=people[0]) == (before, 0)
    assert (offered(queue, people[0]), len(offered(queue, people[1]))) == ([], 4)
    with pytest.raises(BadInput, match="nobody would be left"):
        sharing.remove_annotator(queue=queue, annotator=people[1])
    assert sharing.add_annotators(queue=queue, annotators=[people[0], people[1]]) == [people[0]]
    with pytest.raises(BadInput, match="invite them by a link"):
        sharing.add_annotators(queue=queue, annotators=[player])


def test_where_annotators_disagree_one_more_is_asked(researcher, people):
    queue = made(researcher, people, conversations=1, overlap=2, max_overlap=3, order=Queue.Order.DISAGREEMENT)
    for user, value in ((people[0], 1), (people[1], 9)):
        annotate(target=target(queue, 1), by=user, values=dict.fromkeys(FIVES, value))
        annotate(target=target(queue, 0), by=user, values=FIVES)
    rows = queue.targets.order_by("position")
    low, high = version().record().labels[0].bounds
    assert [row.required for row in rows] == [2, 3]
    assert [row.priority for row in rows] == pytest.approx([0, 8 / (high - low)])
    assert offered(queue, people[2]) == [1], "the one on which they agree is done"
    annotate(target=target(queue, 1), by=people[2], values=FIVES)
    assert queue.targets.get(position=1).required == 3, "no more than the most"


def test_one_more_annotator_is_assigned_where_targets_are_shared_out(researcher, people):
    queue = made(
        researcher, people[:3], conversations=1, overlap=2, max_overlap=3, assignment=Queue.Assignment.PREASSIGNED
    )
    row = queue.targets.get(position=0)
    for user, value in zip((each.annotator for each in row.assignments.all()), (1, 9), strict=True):
        annotate(target=target(queue, 0), by=user, values=dict.fromkeys(FIVES, value))
    assert set(row.assignments.values_list("annotator", flat=True)) == {user.pk for user in people[:3]}


def test_the_least_sure_suggestions_come_first(researcher, people):
    queue = made(researcher, people[:1], order=Queue.Order.UNCERTAINTY)
    rows = list(queue.targets.order_by("position"))
    for row, scores in zip(rows, ((0.9,), (0.5, 0.7), (0.1, 0.5), ()), strict=True):
        for number, score in enumerate(scores):
            Suggestion.objects.create(target=row, source=f"classifier:{number}", name="x", score=score)
    priorities.prioritise(queue=queue)
    # By hand: 1-|0.8| = 0.2; (1 + 0.6) / 2 = 0.8; (0.2 + 1) / 2 = 0.6; 0
    assert [row.priority for row in queue.targets.order_by("position")] == pytest.approx([0.2, 0.8, 0.6, 0])
    assert offered(queue, people[0]) == [1, 2, 0, 3]


def test_the_training_round_decides_who_judges_on(researcher, people):
    queue = made(researcher, people[:2], qualification_items=2, qualification_threshold=0.5)
    for position in (1, 3):
        decide(target(queue, position), researcher, FIVES)
    annotate(target=target(queue, 1), by=people[0], values=FIVES)
    assert offered(queue, people[0]) == [3]
    annotate(target=target(queue, 3), by=people[0], values=dict.fromkeys(FIVES, 1))
    row = Qualification.objects.get(annotator=people[0])
    assert (row.passed, row.right, row.items) == (True, 0.5, 2)
    assert offered(queue, people[0]) == [0, 2]
    for position in (1, 3):
        annotate(target=target(queue, position), by=people[1], values=dict.fromkeys(FIVES, 1))
    assert offered(queue, people[1]) == []
    annotate(target=target(queue, 1), by=people[1], values=FIVES)  # having seen what was right
    assert gold.accuracies(queue)[people[1].pk] == gold.Accuracy(0, 2), "the first answer counts"
    with pytest.raises(BadInput, match="needs 2 gold targets that they have not judged, and 0 are left"):
        gold.decide(queue=queue, user=people[1], passed=False)
    for position in (0, 2):
        decide(target(queue, position), researcher, FIVES)
    gold.decide(queue=queue, user=people[1], passed=False)
    for position in (0, 2):
        annotate(target=target(queue, position), by=people[1], values=FIVES)
    row = Qualification.objects.get(annotator=people[1])
    assert (row.passed, row.right, row.by_owner) == (True, 1, False)


def test_the_owner_lets_somebody_pass(researcher, people):
    queue = made(researcher, people[:1], qualification_items=1)
    gold.decide(queue=queue, user=people[0], passed=True)
    assert offered(queue, people[0]) == [0, 1, 2, 3]
    with pytest.raises(BadInput, match="not an annotator"):
        gold.decide(queue=queue, user=people[1], passed=True)


def test_wolves_that_won_are_selected(researcher, people):
    matches = [village_match(researcher, seed) for seed in range(1, 5)]
    assert all(match.returns["0"] == 1 for match in matches), "the wolves win when everybody moves by chance"
    matches[1].returns = {key: 1 - value for key, value in matches[1].returns.items()}
    for metrics in matches[1].seat_metrics.values():
        metrics["won"] = 1 - metrics["won"]
    matches[1].save(update_fields=["returns", "seat_metrics"])
    wolves_won = [matches[0], *matches[2:]]
    queue = queues.create_queue(
        name="q", owner=researcher, codebook_version=version("werewolf-behaviours"), matches=matches,
        annotators=people[:1], how=queues.QueueSettings(selection=Selection(role="Werewolf", outcome="won")),
    )  # fmt: skip
    # by hand: seats 0 and 2 are the wolves of every village
    assert sorted(queue.targets.values_list("match", "seat")) == sorted(
        (match.pk, seat) for match in wolves_won for seat in (0, 2)
    )
    assert queue.selection["role"] == "Werewolf"
    with pytest.raises(BadInput, match="no game matches"):
        queues.create_queue(
            name="q", owner=researcher, codebook_version=version(), matches=matches, annotators=people[:1],
            how=queues.QueueSettings(selection=Selection(game="negotiation")),
        )  # fmt: skip


def test_events_words_and_steps(researcher):
    stored = imported(researcher, conversation(0), conversation(1))
    rows = list(StoredConversation.objects.filter(scenario__version=stored).order_by("position"))
    assert Selection(text="TWO, number 1").matching(rows) == rows[1:]
    assert Selection(action="accept").matching(rows, most=1) == rows[:1]
    assert Selection(event="refused_proposal").matching(rows) == []
    rows[0].data["moves"][3]["move"]["action"] = "reject"
    assert Selection(event="refused_proposal").matching(rows) == rows[:1]
    assert Selection(step_from=1).matching(rows) == [], "conversations of a dataset have no step"


def test_games_are_added_as_the_next_batch(researcher, people):
    queue = made(researcher, people[:1], conversations=1, batch_size=2)
    stored = imported(researcher, conversation(7), conversation(8), name="more")
    rows = list(StoredConversation.objects.filter(scenario__version=stored).order_by("position"))
    present = [queue.targets.with_games()[0].conversation]
    assert queues.add_games(queue=queue, by=researcher, conversations=[*present, *rows]) == 4
    assert list(queue.targets.order_by("position").values_list("batch", flat=True)) == [1, 1, 2, 2, 3, 3]
    assert offered(queue, people[0]) == [0, 1]
    with pytest.raises(BadInput, match="has these games already"):
        queues.add_games(queue=queue, by=researcher, conversations=rows)


def test_the_pace_counts_active_time():
    start = datetime(2026, 1, 1, tzinfo=UTC)
    times = [start + timedelta(seconds=each) for each in (0, 60, 120, 7200, 7260)]
    # by hand: gaps of 60, 60 and 60 s are active, the break of two hours is not: 3 judgments in 180 s
    assert progress.per_hour([(at, None) for at in times]) == pytest.approx(60)
    assert progress.per_hour([(times[0], 30.0), (times[1], 90.0)]) == pytest.approx(60), "seconds, where they are known"
    assert progress.per_hour([(times[0], None)]) is None


def test_a_researcher_leaves_a_queue_that_closes_results_of_their_own(
    researcher, other_researcher, annotator, client_of
):
    """Of six targets two are shared out to each of three people; what the researcher has not judged goes to others."""
    own_queue = made(researcher, [annotator], conversations=3, name="own")
    rows = StoredConversation.objects.order_by("position")
    theirs = queues.create_queue(
        name="theirs", owner=other_researcher, codebook_version=version(), conversations=rows,
        annotators=[researcher, annotator, other_researcher],
        how=queues.QueueSettings(overlap=1, assignment=Queue.Assignment.PREASSIGNED),
    )  # fmt: skip
    client, results = client_of(researcher), reverse("judgments:agreement", args=[own_queue.pk])
    closed = "once you have judged your remaining seats"
    assert closed in client.get(results).text
    judged = theirs.targets.open_for(researcher).with_games().first()
    annotate(target=judged, by=researcher, values=FIVES)
    address = reverse("judgments:queue-leave", args=[theirs.pk])
    assert address in client.get(reverse("judgments:own_queues")).text
    assert client.get(address).status_code == 405
    assert client.post(address).status_code == 302
    assert closed not in client.get(results).text
    assert client.post(address).status_code == 404, "they are no longer in it"
    assert not theirs.annotators.filter(pk=researcher.pk).exists()
    assert judged.judgments.get().author == researcher
    kept = Assignment.objects.filter(target__queue=theirs)
    assert sorted(kept.filter(annotator=researcher).values_list("target", flat=True)) == [judged.pk]
    assert kept.count() == 6, "nothing is lost"


def test_the_last_annotator_leaves_and_a_closed_queue_is_not_left(researcher, annotator, client_of):
    queue, client = made(researcher, [annotator], overlap=1), client_of(annotator)
    assert reservations.offer(queue=queue, user=annotator).target is not None
    client.post(reverse("judgments:queue-leave", args=[queue.pk]))
    assert not queue.annotators.exists()
    assert not Assignment.objects.exists()
    sharing.add_annotators(queue=queue, annotators=[annotator])
    queues.close(queue=queue)
    assert reverse("judgments:queue-leave", args=[queue.pk]) not in client.get(reverse("judgments:own_queues")).text
    client.post(reverse("judgments:queue-leave", args=[queue.pk]))
    assert queue.annotators.get() == annotator


@pytest.mark.parametrize("second", [1, 5])
def test_who_may_be_asked_once_more_reads_nothing_before(researcher, people, other_researcher, second):
    """Two annotators judge a target first. Where they disagree (5 and 1), the researcher is the third; where they
    agree, nobody is, also when one of them changes the answer later.
    """
    third = other_researcher
    queue = made(
        researcher, [*people[:2], third], conversations=3, overlap=2, max_overlap=3,
        assignment=Queue.Assignment.PREASSIGNED,
    )  # fmt: skip
    chosen = next(each for each in queue.targets.with_games() if not each.assignments.filter(annotator=third).exists())
    said = Judgment.objects.filter(target=chosen).readable_by(third)
    annotate(target=chosen, by=people[0], values=FIVES)
    assert not said.all().exists()
    annotate(target=chosen, by=people[1], values=dict.fromkeys(FIVES, second))
    agreed = second == 5
    assert said.all().count() == (2 if agreed else 0)
    assert chosen.assignments.filter(annotator=third).exists() != agreed
    annotate(target=chosen, by=people[1], values=dict.fromkeys(FIVES, 3))
    assert chosen.assignments.filter(annotator=third).exists() != agreed


def test_a_target_is_not_reassigned_to_a_researcher_who_may_have_read_what_others_said_of_it(
    researcher, people, other_researcher
):
    queue = made(researcher, people[:2], conversations=1, overlap=2, assignment=Queue.Assignment.PREASSIGNED)
    first, second = queue.targets.with_games()
    annotate(target=first, by=people[0], values=FIVES)
    sharing.add_annotators(queue=queue, annotators=[other_researcher])
    assert sharing.reassign(queue=queue, from_=people[1]) == (1, 1)
    assert first.assignments.filter(annotator=people[1]).exists()
    assert second.assignments.filter(annotator=other_researcher).exists(), "nobody has judged it"
    sharing.add_annotators(queue=queue, annotators=[people[2]])
    assert sharing.reassign(queue=queue, from_=people[1]) == (1, 0)
    assert first.assignments.filter(annotator=people[2]).exists()


def test_an_invitation_makes_one_player_an_annotator_of_one_queue(researcher, player, person, client_of):
    queue, other = made(researcher, [researcher]), made(researcher, [researcher], name="other")
    other.annotators.add(player)  # named without the role, and without an invitation
    token = invitations.invite(queue=queue, by=researcher)
    client, address = client_of(player), reverse("judgments:invitation", args=[token])
    assert client.get(reverse("judgments:annotate", args=[queue.pk])).status_code == 404
    assert "Accept the invitation" in client.get(address).text
    assert client.post(address).status_code == 302
    assert client.get(reverse("judgments:annotate", args=[queue.pk])).status_code == 200
    for name, args in (("annotate", [other.pk]), ("queue", [queue.pk]), ("list", []), ("agreement", [queue.pk])):
        assert client.get(reverse(f"judgments:{name}", args=args)).status_code == 404
    judge = f'href="{reverse("judgments:annotate", args=[queue.pk])}" aria-label="Judge: 4 left in {queue.name}"'
    assert judge in client.get(reverse("judgments:own_queues")).text
    annotate(target=queue.targets.open_for(player).with_games().first(), by=player, values=FIVES)
    assert Judgment.objects.readable_by(player).count() == 1
    second = client_of(person("annotator", "second"))
    assert "has been used" in second.post(address).text
    sharing.remove_annotator(queue=queue, annotator=player)
    assert client.get(reverse("judgments:annotate", args=[queue.pk])).status_code == 404


def test_an_invitation_expires_and_is_revoked(researcher, player, settings):
    queue = made(researcher, [researcher])
    token = invitations.invite(queue=queue, by=researcher)
    row = invitations.find(token)
    type(row).objects.update(expires_at=row.created_at)
    with pytest.raises(BadInput, match="expired"):
        invitations.accept(token=token, user=player)
    invitations.revoke(invitation=row)
    with pytest.raises(BadInput, match="does not exist"):
        invitations.accept(token=token, user=player)
    settings.QUOTAS = {**settings.QUOTAS, "open_invitations": {"researcher": 1}}
    invitations.invite(queue=queue, by=researcher)
    with pytest.raises(BadInput, match="invitations"):
        invitations.invite(queue=queue, by=researcher)


def test_agreement_with_others_is_shown_once_nothing_waits(researcher, people):
    queue = made(researcher, people[:2], conversations=1)
    low, high = version().record().labels[0].bounds
    annotate(target=target(queue, 0), by=people[0], values=FIVES)
    annotate(target=target(queue, 0), by=people[1], values=dict.fromkeys(FIVES, 6))
    (row,) = progress.own_queues(people[0])
    assert (row.left, row.judged, row.agreement) == (1, 1, None)
    annotate(target=target(queue, 1), by=people[0], values=FIVES)
    (row,) = progress.own_queues(people[0])
    assert row.similarity_of(people[0]) == pytest.approx(1 - 1 / (high - low))


def test_the_page_of_a_queue_takes_the_same_queries_however_many_targets(researcher, people, client_of):
    client, counts = client_of(researcher), []
    for number in (1, 8):
        queue = made(
            researcher, people[:3], conversations=number, overlap=3, name=f"of-{number}", qualification_items=1
        )
        first = target(queue, 0)
        decide(first, researcher, FIVES)
        Qualification.objects.bulk_create(Qualification(queue=queue, annotator=u, passed=True) for u in people[:3])
        for user in people[:3]:
            for row in queue.targets.with_games():
                annotate(target=row, by=user, values=FIVES)
        address = reverse("judgments:queue", args=[queue.pk])
        client.get(address)
        with CaptureQueriesContext(connection) as captured:
            page = client.get(address)
        counts.append(len(captured))
        assert page.status_code == 200
    assert counts[0] == counts[1]
    assert "3 of 3" not in page.text
    assert people[0].username in page.text


def test_the_owners_page_has_names_and_others_see_numbers(researcher, other_researcher, people, client_of):
    queue = made(researcher, people[:1])
    address = reverse("judgments:queue", args=[queue.pk])
    assert people[0].username in client_of(researcher).get(address).text
    page = client_of(other_researcher).get(address)
    assert people[0].username not in page.text
    assert "Remove from the queue" not in page.text


def test_the_buttons_of_the_owner(researcher, people, client_of):
    queue = made(researcher, people[:2], conversations=1, overlap=1, assignment=Queue.Assignment.PREASSIGNED)
    client = client_of(researcher)

    def post(name, *args, **data):
        response = client.post(reverse(f"judgments:{name}", args=[queue.pk, *args]), data, follow=True)
        assert response.status_code == 200
        queue.refresh_from_db()
        return response.text

    assert "is paused" in post("queue-state", to="pause")
    assert queue.state == "paused"
    post("queue-state", to="resume")
    assert "Added: annotator-2" in post("queue-annotators", annotators=[people[2].pk])
    assert "1 of their targets were reassigned" in post("queue-annotator", people[0].pk, do="reassign")
    assert "no longer judges" in post("queue-annotator", people[0].pk, do="remove")
    assert reverse("judgments:invitation", args=["x"])[:-2] in post("queue-invite")
    assert "was revoked" in post("queue-uninvite", queue.invitations.get().pk)
    assert "all batches are open" in post("queue-state", to="open_batch")
    assert "is closed" in post("queue-state", to="close")
    assert "closed for good" in post("queue-state", to="resume")


def test_the_form_counts_the_matching_games_and_makes_the_queue(researcher, people, client_of):
    stored = imported(researcher, conversation(0), conversation(1))
    client, address = client_of(researcher), reverse("judgments:queue-new")
    data = {
        "name": "filtered", "codebook_version": version().pk, "version": stored.pk, "most": 20, "text": "number 1",
        "annotators": [people[0].pk, people[1].pk], "overlap": 1, "assignment": "preassigned", "order": "position",
        "reserve_minutes": 5, "qualification_items": 0, "qualification_threshold": 0.8,
    }  # fmt: skip
    assert "1 game matches." in client.post(address, {**data, "preview": "1"}).text
    assert not Queue.objects.exists()
    assert client.post(address, {**data, "overlap": 3}).status_code == 400
    assert client.post(address, data).status_code == 302
    queue = Queue.objects.get()
    assert (queue.overlap, queue.assignment, queue.reserve_minutes, queue.gold_feedback) == (1, "preassigned", 5, False)
    assert (queue.targets.count(), Assignment.objects.count()) == (2, 2)


def test_skipping_and_gold_answers_on_the_pages(researcher, people, client_of):
    queue, client = made(researcher, people[:1], conversations=1), client_of(people[0])
    decide(target(queue, 0), researcher, FIVES)
    reservations.skip(target=target(queue, 1), user=people[0], why="I know the <b>players</b>")
    page = client.get(reverse("judgments:own_queues")).text
    assert "I know the &lt;b&gt;players&lt;/b&gt;" in page
    client.post(reverse("judgments:queue-unskip", args=[queue.pk]), {"target": target(queue, 1).pk})
    assert "I know the" not in client.get(reverse("judgments:own_queues")).text
    answer = reverse("judgments:gold-answer", args=[queue.pk, target(queue, 0).pk])
    assert client.get(answer).status_code == 404, "not before it is judged"
    sent = {"target": target(queue, 0).pk, "unscored": "1", "reason": "too short"}
    page = reverse("judgments:annotate", args=[queue.pk])
    assert client.post(page, sent)["Location"] == answer
    assert f'href="{answer}"' in client.post(page, sent, headers={"HX-Request": "true"}).text
    assert "differs from the gold labels" in client.get(answer).text
    other = {"target": target(queue, 1).pk, "unscored": "1", "reason": "too short"}
    assert "See its gold labels" not in client.post(page, other, headers={"HX-Request": "true"}).text
    Queue.objects.update(gold_feedback=False)
    assert client.get(answer).status_code == 404
    assert client.post(page, sent)["Location"] == page


def test_a_queue_of_one_match_still_needs_nothing_of_all_this(researcher):
    queue = people_queue(researcher, village_match(researcher))
    assert queue.targets.open_for(researcher).count() == queue.targets.count() == 6
