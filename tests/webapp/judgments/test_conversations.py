"""Imported conversations: judged as any game is, with the judgments that came with them beside."""

import math
from datetime import UTC, datetime

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from tests.labelled import reasons, sent
from tests.webapp.api.test_api import Caller
from tests.webapp.judgments.make import (
    FIVES,
    annotate,
    conversation,
    conversation_queue,
    finished_match,
    imported,
    outside,
    rated,
    version,
)
from tests.webapp.runs.making import RECORD, make_episode, make_run
from training.errors import BadInput
from training.rewards.judge import transcript_of
from webapp.core import queue as hints
from webapp.judgments import games
from webapp.judgments.datasets import export
from webapp.judgments.datasets import imported as imports
from webapp.judgments.models import CodebookVersion, Judgment, Queue
from webapp.judgments.queues import services as queues
from webapp.judgments.results import analyses, background, comparison, estimates
from webapp.scenarios.models import Dataset, DatasetVersion, StoredConversation
from webapp.scenarios.services import add_version, delete_dataset, fork, lines_of
from webapp.scenarios.signals import version_stored

pytestmark = pytest.mark.django_db
GPT, RATER = "gpt-4", "rater 7"


def values(number):
    return dict.fromkeys(FIVES, float(number))


@pytest.fixture
def stored(researcher):
    """Three conversations; a model and a rater judged the first seat of each, and could not score one of the second."""
    numbers = ((4, 5), (6, 6), (8, 10))
    rows = [
        conversation(
            number,
            (
                outside(GPT, 0, values(model), reasons=dict.fromkeys(FIVES, "so")),
                outside(RATER, 0, values(rater), judged_at="2026-01-02T03:04:05+00:00"),
                outside(GPT, 1, None, reason="no answer"),
            ),
        )
        for number, (model, rater) in enumerate(numbers)
    ]
    return imported(researcher, *rows, licence="CC-BY-4.0")


def test_judgments_of_an_import_become_rows_by_authors_outside(stored):
    rows = Judgment.objects.outside().order_by("conversation__position", "seat", "outside_author")
    assert [(row.seat, row.outside_author, row.numbers) for row in rows[:3]] == [
        (0, GPT, values(4)), (0, RATER, values(5)), (1, GPT, None),
    ]  # fmt: skip
    assert rows.count() == 9
    assert {(row.author, row.judge, row.target) for row in rows} == {(None, None, None)}
    assert (reasons(rows[0])["empathy_expression"], rows[2].reason) == ("so", "no answer")
    assert (rows[0].updated_at, rows[1].updated_at) == (None, datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC))
    assert rows[0].codebook_version == version()


def test_storing_them_again_adds_nothing(stored):
    keys = set(Judgment.objects.values_list("pk", flat=True))
    version_stored.send(sender=DatasetVersion, version=stored)
    assert imports.store_judgments(stored) == 9
    assert set(Judgment.objects.values_list("pk", flat=True)) == keys


def test_a_copy_of_the_dataset_has_rows_of_its_own(stored, researcher):
    copy = fork(version=stored, name="copy", by=researcher)
    assert imports.store_judgments(copy) == 9
    assert Judgment.objects.outside().count() == 18
    delete_dataset(dataset=copy.dataset)
    assert Judgment.objects.outside().count() == 9


ODD = {
    "an unknown codebook": (outside("a", 0, values(1), codebook="theirs"), None),
    "an unknown version": (outside("a", 0, values(1), codebook_version=99), None),
    "no such seat": (outside("a", 2, values(1)), None),
    "off the scale": (outside("a", 0, {**values(1), "mutual_benefit": 11}), "mutual_benefit: choose a value: 0 to 10"),
    "another dimension": (outside("a", 0, {"luck": 1}), "luck: fine-grained v2 has no label of this name"),
    "no value at all": (outside("a", 0, {}), "no label"),
    "no reason": (outside("a", 0, None), "gives no reason"),
}


@pytest.mark.parametrize("record, why", ODD.values(), ids=ODD)
def test_what_does_not_fit_has_no_values_or_no_row(researcher, record, why):
    imported(researcher, conversation(0, (record,)))
    if why is None:
        assert not Judgment.objects.exists()
    else:
        row = Judgment.objects.get()
        assert row.numbers is None
        assert why in row.reason
    (line,) = lines_of(DatasetVersion.objects.get())
    assert line.conversations[0].judgments == (record,), "the dataset keeps it as it came"


def test_some_dimensions_alone_are_kept_and_a_second_opinion_gets_a_number(researcher):
    some = {"mutual_benefit": 3.0}
    imported(researcher, conversation(0, (outside("a", 0, some), outside("a", 0, values(9)), outside(" ", 1, some))))
    rows = Judgment.objects.order_by("pk")
    assert [(row.outside_author, row.numbers) for row in rows] == [
        ("a", some), ("a (2)", values(9)), (imports.UNNAMED, some),
    ]  # fmt: skip


def test_a_decision_and_a_judgment_of_one_author_keep_the_same_name(researcher):
    """An adjudicator who annotated as well has one number in an export, and keeps it where the export is imported."""
    judged = outside("person:2", 0, values(3))
    imported(researcher, conversation(0, (judged, judged.model_copy(update={"decides": True}))))
    rows = Judgment.objects.order_by("pk").values_list("outside_author", "decides")
    assert list(rows) == [("person:2", False), ("person:2", True)]


def test_a_queue_over_a_dataset_is_judged_like_any_other(stored, client_of, researcher, annotator):
    client = client_of(researcher)
    page = client.get(reverse("judgments:of-version", args=["imported", 1])).content.decode()
    link = reverse("judgments:queue-new") + f"?version={stored.pk}"
    assert link in page
    assert f'<option value="{stored.pk}" selected>imported v1: 3 conversations' in client.get(link).content.decode()
    data = {
        "name": "q",
        "codebook_version": version().pk,
        "version": stored.pk,
        "most": 2,
        "annotators": [annotator.pk],
        "order": "position",
    }
    assert client.post(reverse("judgments:queue-new"), data).status_code == 302
    queue = Queue.objects.get()
    assert [(t.conversation.position, t.seat) for t in queue.targets.order_by("position")] == [
        (0, 0), (0, 1), (1, 0), (1, 1),
    ]  # fmt: skip
    address = reverse("judgments:annotate", args=[queue.pk])
    page = client_of(annotator).get(address).content.decode()
    assert "Judge <strong>Ann</strong>" in page
    assert "One pen is enough for me." in page
    assert GPT not in page
    answer = {"target": queue.targets.order_by("position")[0].pk, **{f"value-{name}": "3" for name in FIVES}}
    client_of(annotator).post(address, answer)
    row = Judgment.objects.get(author=annotator)
    assert (row.conversation.position, row.match, row.episode, row.numbers) == (0, None, None, values(3))


def test_no_dataset_is_offered_to_a_person_who_may_not_see_it(stored, client_of, annotator, researcher):
    assert client_of(annotator).get(reverse("judgments:of-version", args=["imported", 1])).status_code == 404
    assert client_of(researcher).get(reverse("judgments:of-version", args=["imported", 2])).status_code == 404
    queue = conversation_queue(researcher, stored, [annotator])
    row = queue.targets.first().conversation.scenario
    address = reverse("scenarios:scenario", args=["imported", 1, row.key])
    assert client_of(annotator).get(address).status_code == 404, "the conversation alone is theirs to judge"
    assert (
        "datasets/imported"
        not in client_of(annotator).get(reverse("judgments:own_judgments", args=[queue.pk])).content.decode()
    )


def test_a_judge_model_reads_the_conversation(stored, researcher):
    target = conversation_queue(researcher, stored).targets.with_games().first()
    game = games.judgeable(target)
    text = transcript_of(game.scenario, game.moves).quoted()
    assert "One pen is enough for me." in text
    assert (game.source, game.players) == ("file:0", ("imported v1", "imported v1"))


def test_authors_are_compared_on_the_datasets_page(stored, client_of, researcher, annotator):
    queue = conversation_queue(researcher, stored, [researcher])
    client, address = client_of(researcher), reverse("judgments:of-version", args=["imported", 1])
    page = client.get(address)
    assert (page.context["comparisons"], "once you have judged" in page.content.decode()) == ([], True)
    for target in queue.targets.all():
        annotate(target=target, by=researcher, values=values(5) if target.seat == 0 else None, reason="short")
    (compared,) = client.get(address).context["comparisons"]
    coverage = [(author.name, author.kind, author.scored, author.answered) for author in compared.authors]
    assert coverage == [
        (GPT, "named in the import", 3, 6), (RATER, "named in the import", 3, 3),
        (f"annotator 1 of queue {queue.pk}", "person", 3, 6),
    ]  # fmt: skip
    # By hand: the model's values 4, 6 and 8 of three games: mean 6, standard error 2/sqrt(3), t(0.975, 2) = 4.30265.
    first = compared.authors[0].estimates[0]
    assert (first.mean, first.games) == (6, 3)
    assert first.half == pytest.approx(4.30265 * 2 / math.sqrt(3), rel=1e-5)
    assert compared.authors[2].estimates[0].mean == 5
    # Pairs of model and rater: (4, 5), (6, 6), (8, 10). Within: (2 x 1/2 + 0 + 2 x 2) / 6 = 5/6; all six values have
    # the mean 6.5 and the squares 6.25 + 2.25 + 0.25 + 0.25 + 2.25 + 12.25 = 23.5, over 5: 4.7.
    pair = next(pair for pair in compared.pairs if (pair.first, pair.second) == (GPT, RATER))
    assert pair.agreements[0].value == pytest.approx(1 - (5 / 6) / 4.7)
    assert (pair.agreements[0].seats, pair.agreements[0].games) == (3, 3)
    text = client.get(address).content.decode()
    assert "3 could not be scored" in text
    assert "3 of 6" in text


def test_the_queues_page_compares_with_other_authors_of_the_same_seats(stored, client_of, researcher):
    other = imported(researcher, conversation(9, (outside("nobody here", 0, values(1)),)), name="other")
    queue = conversation_queue(researcher, stored)
    for target in queue.targets.all():
        annotate(target=target, by=researcher, values=values(4 + 2 * target.conversation.position))
    compared = comparison.of_queue(queue)
    assert [author.name for author in compared.authors] == [GPT, RATER, "annotator 1"]
    pair = next(pair for pair in compared.pairs if (pair.first, pair.second) == (GPT, "annotator 1"))
    assert {agreement.value for agreement in pair.agreements} == {1.0}
    page = client_of(researcher).get(reverse("judgments:queue", args=[queue.pk])).content.decode()
    assert RATER in page
    assert "imported v1, pens, conversation 1" in page
    assert list(estimates.of_queue(queue)) == ["imported v1"]
    assert comparison.of_version(other, researcher)[0].authors[0].name == "nobody here"


def test_comparing_takes_the_same_queries_however_many_conversations(researcher, django_assert_num_queries):
    for name, amount in (("few", 1), ("many", 5)):
        rows = [conversation(number, (outside(GPT, 0, values(3)),)) for number in range(amount)]
        made = imported(researcher, *rows, name=name)
        with django_assert_num_queries(6):  # three of them ask whether anything is withheld from the reader
            comparison.of_version(made, researcher)


def test_an_export_keeps_outside_authors_licence_and_times(stored, researcher):
    queue = conversation_queue(researcher, stored)
    for target in queue.targets.order_by("seat", "position"):
        score = values(7) if target.seat == 0 else None
        annotate(target=target, by=researcher, values=score, reason="" if score else "short")
    made, left_out = export.store(queue=queue, name="judged", by=researcher)
    assert (left_out, made.conversation_count, made.dataset.licence) == ([], 3, "CC-BY-4.0")
    (line,) = lines_of(made)
    records = line.conversations[0].judgments
    assert [(record.author, record.seat, record.numbers) for record in records] == [
        ("person:1", 0, values(7)), ("person:1", 1, None), (GPT, 0, values(4)), (RATER, 0, values(5)), (GPT, 1, None),
    ]  # fmt: skip
    saved = Judgment.objects.filter(author=researcher).earliest("pk").updated_at
    assert datetime.fromisoformat(records[0].judged_at) == saved.replace(microsecond=0)
    assert [record.judged_at for record in records[2:]] == ["", "2026-01-02T03:04:05+00:00", ""]
    assert [made.source for made in line.conversations] == ["file:0", "file:1", "file:2"]


def test_numbers_of_people_leave_out_those_that_came_with_the_import(researcher, annotator):
    stored = imported(researcher, conversation(0, (outside("person:1", 0, values(2)),)))
    queue = conversation_queue(researcher, stored, [researcher, annotator])
    target = queue.targets.get(seat=0)
    for user in (annotator, researcher):
        annotate(target=target, by=user, values=values(7))
    for open_target in queue.targets.open_for(researcher):
        annotate(target=open_target, by=researcher, values=values(1))
    made, _ = export.store(queue=queue, name="judged", by=researcher)
    (line,) = lines_of(made)
    authors = {record.author for record in line.conversations[0].judgments if record.seat == 0}
    assert authors == {"person:1", "person:2", "person:3"}


def test_the_api_names_the_conversation(stored, researcher, annotator):
    queue = conversation_queue(researcher, stored, [researcher])
    (first, *_) = Caller(researcher).get("judgments/targets").json()["items"]
    row = StoredConversation.objects.order_by("pk")[0]
    assert (first["match"], first["episode"], first["conversation"], first["queue"]) == (None, None, row.pk, queue.pk)
    answer = Caller(researcher).post("judgments", target=first["id"], labels=sent(values(2)))
    assert (answer.status_code, answer.json()["conversation"]) == (201, row.pk)
    for target in queue.targets.open_for(researcher):
        annotate(target=target, by=researcher, values=values(2))
    theirs = Caller(researcher).get("judgments?limit=100").json()["items"]
    assert {item["author"] for item in theirs} == {GPT, RATER, "annotator:1"}


def test_imported_judgments_are_hidden_from_an_annotator_until_their_own(stored, researcher, other_researcher):
    queue = conversation_queue(researcher, stored, [researcher])
    readable = Judgment.objects.readable_by(researcher)
    assert (readable.count(), Judgment.objects.readable_by(other_researcher).count()) == (0, 9)
    first = queue.targets.order_by("position")[0]
    annotate(target=first, by=researcher, values=values(1))
    assert {(row.conversation.position, row.seat) for row in readable} == {(0, 0)}


def test_a_conversation_with_roles_is_asked_about_by_role(researcher):
    """The codebook of Werewolf asks nothing about seats without a role: the refusal says so."""
    stored = imported(researcher, conversation(0))
    with pytest.raises(BadInput, match="roles that nobody had"):
        conversation_queue(researcher, stored, codebook="werewolf-behaviours")
    assert CodebookVersion.objects.filter(queues__isnull=False).count() == 0


def test_authors_who_share_fewer_than_two_seats_are_not_compared(monkeypatch):
    """Their agreement is not defined; a thousand such authors would make half a million pairs."""
    codebook = version().record()
    a, b, c, d = (("named in the import", name) for name in "abcd")
    first, second, third = (((None, None, 7), 0), ((None, None, 7), 1), ((None, None, 8), 0))
    both = {first: values(5), second: values(7)}
    answers = {a: both, b: both, c: {third: values(5)}, d: {first: values(5), second: None}}
    compared = []
    pair = comparison._pair
    monkeypatch.setattr(comparison, "_pair", lambda *arguments: compared.append(1) or pair(*arguments))
    pairs = list(comparison._pairs(codebook, sorted(answers), answers))
    assert [(pair.first, pair.second) for pair in pairs] == [("a", "b")]
    assert len(compared) == len(codebook.labels)


def games_of(kind, owner):
    """The games of a new queue: one of this kind."""
    if kind == "matches":
        return {kind: [rated(finished_match(owner), owner)]}
    if kind == "episodes":
        record = {**RECORD, "episode": {**conversation().episode.to_dict(), "traces": []}}
        return {kind: [make_episode(make_run(owner), record=record)]}
    return {kind: StoredConversation.objects.filter(scenario__version=imported(owner, conversation(0)))}


def queue_over(owner, annotator, name="seats", **judged):
    return queues.create_queue(name=name, owner=owner, codebook_version=version(), annotators=[annotator], **judged)


def visible_counts(queue, user, client):
    """How much the queue's page and the API show a person: results, authors, judgments, and those of the API."""
    shown = client.get(reverse("judgments:queue", args=[queue.pk])).context
    listed = Caller(user).get(f"judgments?queue={queue.pk}").json()["items"]
    summary = shown["analysis"].result
    return len(summary.estimates), len(summary.comparison.authors), len(shown["judgments"]), len(listed)


@pytest.mark.parametrize("kind", ["conversations", "episodes", "matches"])
def test_a_queue_tells_nothing_of_seats_that_wait_in_another_queue(kind, client_of, researcher, other_researcher):
    """Nobody is to know, before they judge a seat, what others have said of it."""
    judged = games_of(kind, researcher)
    queue = queue_over(researcher, researcher, **judged)
    for target in queue.targets.with_games():
        annotate(target=target, by=researcher, values=values(5))
    client = client_of(other_researcher)
    assert 0 not in visible_counts(queue, other_researcher, client)
    theirs = queue_over(researcher, other_researcher, **judged)
    assert visible_counts(queue, other_researcher, client) == (0, 0, 0, 0)
    assert 0 not in visible_counts(queue, researcher, client_of(researcher))
    for target in theirs.targets.with_games():
        annotate(target=target, by=other_researcher, values=values(3))
    assert 0 not in visible_counts(queue, other_researcher, client)


@pytest.mark.parametrize("kind", ["conversations", "episodes", "matches"])
def test_nothing_is_exported_of_seats_that_wait_in_another_queue(kind, client_of, researcher, other_researcher):
    judged = games_of(kind, researcher)
    queue = queue_over(researcher, researcher, **judged)
    for target in queue.targets.with_games():
        annotate(target=target, by=researcher, values=values(5))
    theirs = queue_over(researcher, other_researcher, name="theirs", **judged)
    client, address = client_of(other_researcher), reverse("judgments:queue-export", args=[queue.pk])
    refused = client.post(address, {"name": "judged"})
    assert refused.status_code == 400
    assert "judge your remaining seats of queue “theirs” first" in refused.content.decode()
    assert not Dataset.objects.filter(name="judged").exists()
    for target in theirs.targets.with_games():
        annotate(target=target, by=other_researcher, values=values(3))
    assert client.post(address, {"name": "judged"}).status_code == 302


def test_only_an_export_by_those_who_may_change_the_queue_ends_corrections(
    client_of, researcher, annotator, other_researcher, admin
):
    queue = queue_over(researcher, annotator, **games_of("episodes", researcher))
    for target in queue.targets.with_games():
        annotate(target=target, by=annotator, values=values(5))
    says = "its judgments may still change after your export"
    for number, (user, final) in enumerate(((other_researcher, False), (researcher, True), (admin, True))):
        page = client_of(user).get(reverse("judgments:queue", args=[queue.pk])).content.decode()
        assert (says in page) != final
        Queue.objects.filter(pk=queue.pk).update(exported_at=None)
        export.store(queue=queue, name=f"judged-{number}", by=user)
        queue.refresh_from_db()
        assert (queue.exported_at is not None) == final
        target = queue.targets.with_games().first()
        if final:
            with pytest.raises(BadInput, match="stays as it is"):
                annotate(target=target, by=annotator, values=values(number))
        else:
            assert annotate(target=target, by=annotator, values=values(number)).history


def test_what_one_judged_alone_is_exported_though_the_seats_wait_in_another_queue(researcher):
    judged = games_of("episodes", researcher)
    queue, _other = (queue_over(researcher, researcher, **judged) for _ in range(2))
    for target in queue.targets.with_games():
        annotate(target=target, by=researcher, values=values(5))
    assert export.store(queue=queue, name="judged", by=researcher)


@pytest.mark.parametrize("kind", ["conversations", "episodes", "matches"])
def test_after_the_last_seat_nothing_is_compared_that_waits_in_another_queue(
    kind, client_of, researcher, annotator, other_researcher
):
    judged = games_of(kind, researcher)
    queue = queue_over(researcher, annotator, **judged)
    queue.annotators.add(other_researcher)
    for target in queue.targets.with_games():
        annotate(target=target, by=annotator, values=values(5))
        annotate(target=target, by=other_researcher, values=values(4))
    again = queue_over(researcher, annotator, name="once more", **judged)
    client, address = client_of(annotator), reverse("judgments:annotate", args=[queue.pk])
    assert [author.name for author in client.get(address).context["analysis"].result.comparison.authors] == [
        "annotator 1"
    ]
    for target in again.targets.with_games():
        annotate(target=target, by=annotator, values=values(5))
    assert len(client.get(address).context["analysis"].result.comparison.authors) == 2


@pytest.mark.parametrize("kind", ["conversations", "episodes", "matches"])
def test_ones_own_judgment_is_read_though_the_seat_waits_in_another_queue(kind, researcher):
    judged = games_of(kind, researcher)
    queue, _other = (queue_over(researcher, researcher, **judged) for _ in range(2))
    answer = Caller(researcher).post("judgments", target=queue.targets.first().pk, labels=sent(values(2)))
    assert (answer.status_code, answer.json()["author"]) == (201, "annotator:1")


def test_a_queue_compares_nothing_of_seats_that_wait_in_another_queue(stored, client_of, researcher, other_researcher):
    """Nobody is to know, before they judge a seat, what others have said of it."""
    queue = conversation_queue(researcher, stored)
    address = reverse("judgments:queue", args=[queue.pk])
    assert GPT in client_of(other_researcher).get(address).content.decode()
    conversation_queue(researcher, stored, annotators=[other_researcher])
    page = client_of(other_researcher).get(address)
    summary = page.context["analysis"].result
    assert (summary.comparison.authors, GPT in page.content.decode()) == ([], False)
    annotate(target=queue.targets.with_games().first(), by=researcher, values=values(5))
    assert analyses.of_queue(queue, "summary", researcher).result.estimates
    assert analyses.of_queue(queue, "summary", other_researcher).result.estimates == {}


def test_a_summary_that_was_computed_for_all_is_not_shown_to_who_has_yet_to_judge_a_seat_of_it(
    stored, client_of, researcher, other_researcher, monkeypatch
):
    sent = []
    monkeypatch.setattr(hints, "publish", lambda task, *args, **options: sent.append(args) or True)
    monkeypatch.setattr(background, "FEW", -1)
    queue = conversation_queue(researcher, stored)
    client, address = client_of(other_researcher), reverse("judgments:queue", args=[queue.pk])

    def compute():
        queue_id, name, *reader = sent.pop()
        analyses.compute(queue_id=queue_id, name=name, reader_id=next(iter(reader), None))

    def shown():
        page = client.get(address, {"results": "1"}, headers={"HX-Request": "true"}).content.decode()
        return GPT in page, "A worker is computing" in page

    assert shown() == (False, True)
    assert sent == [(queue.pk, "summary")], "nothing is withheld"
    compute()
    assert shown() == (True, False)
    conversation_queue(researcher, stored, annotators=[other_researcher])
    assert shown() == (False, True)
    assert sent == [(queue.pk, "summary", other_researcher.pk)]
    compute()
    assert shown() == (False, False)


def another_version(version, name, by):
    return add_version(dataset=version.dataset, by=by, lines=list(lines_of(version)), note=name)


COPIES = {
    "the same": lambda version, name, by: version,
    "a fork": lambda version, name, by: fork(version=version, name=name, by=by),
    "another version": another_version,
    "a fork of another version": lambda version, name, by: fork(
        version=another_version(version, name, by), name=name, by=by
    ),
}


def text_of(answer):
    """A stream, the reason of a refusal by the API, or a page."""
    if answer.streaming:
        return b"".join(answer).decode()
    return answer.json()["why"] if "json" in answer["Content-Type"] else answer.content.decode()


def answers(version, user, client):
    """What the site and the API answer a reader of a version: rows of judgments on its pages and in the API, and each
    export, as its status and text.
    """
    of = [version.dataset.name, version.number]
    shown = 0
    for key in version.scenarios.values_list("key", flat=True):
        page = client.get(reverse("scenarios:scenario", args=[*of, key]))
        shown += sum(len(conversation["judgments"]) for conversation in page.context["conversations"])
    compared = client.get(reverse("judgments:of-version", args=of)).context["comparisons"]
    rows = set(StoredConversation.objects.filter(scenario__version=version).values_list("pk", flat=True))
    listed = [item for item in Caller(user).get("judgments?limit=100").json()["items"] if item["conversation"] in rows]
    exports = [client.get(reverse("scenarios:export", args=of))]
    exports.append(Caller(user).get(f"datasets/{of[0]}/versions/{of[1]}/export"))
    return shown, len(compared), len(listed), [(answer.status_code, text_of(answer)) for answer in exports]


def assert_withheld(version, user, client, queue):
    *shown, exports = answers(version, user, client)
    assert shown == [0, 0, 0]
    for status, text in exports:
        assert status == 409
        assert f"judge your remaining seats of queue “{queue.name}” first" in text
        assert '"judgments":' not in text
        assert 'name="q"' not in text.partition('<dialog id="palette"')[0], (
            "a search from here would search at the export's address"
        )


def assert_shown(version, user, client):
    *shown, exports = answers(version, user, client)
    assert 0 not in shown
    for status, text in exports:
        assert status == 200
        assert '"judgments":[{' in text


def judge_all(queue, user):
    for target in queue.targets.with_games():
        annotate(target=target, by=user, values=values(3))


@pytest.mark.parametrize("copy", COPIES.values(), ids=COPIES)
def test_a_copy_of_a_dataset_tells_nothing_of_seats_that_wait(copy, stored, client_of, researcher, other_researcher):
    """Versions and forks copy conversations: the game is the same, its row is another."""
    copied, client = copy(stored, "copied", researcher), client_of(other_researcher)
    assert_shown(copied, other_researcher, client)
    queue = conversation_queue(researcher, stored, [other_researcher])
    assert_withheld(copied, other_researcher, client, queue)
    assert_shown(copied, researcher, client_of(researcher))
    judge_all(queue, other_researcher)
    assert_shown(copied, other_researcher, client)


@pytest.mark.parametrize("copy", [COPIES["the same"], COPIES["a fork"]], ids=["the same", "a fork"])
@pytest.mark.parametrize("kind", ["conversations", "episodes", "matches"])
def test_a_dataset_of_judged_games_tells_nothing_of_seats_that_wait(
    kind, copy, client_of, researcher, other_researcher
):
    judged = games_of(kind, researcher)
    theirs = queue_over(researcher, other_researcher, name="theirs", **judged)
    queue = queue_over(researcher, researcher, **judged)
    judge_all(queue, researcher)
    made, _ = export.store(queue=queue, name="judged", by=researcher)
    copied, client = copy(made, "copied", researcher), client_of(other_researcher)
    assert_withheld(copied, other_researcher, client, theirs)
    judge_all(theirs, other_researcher)
    assert_shown(copied, other_researcher, client)


@pytest.mark.parametrize("kind", ["conversations", "episodes", "matches"])
def test_a_queue_tells_and_exports_nothing_of_seats_that_wait_as_a_copy(kind, client_of, researcher, other_researcher):
    queue = queue_over(researcher, researcher, **games_of(kind, researcher))
    judge_all(queue, researcher)
    made, _ = export.store(queue=queue, name="judged", by=researcher)
    client, address = client_of(other_researcher), reverse("judgments:queue-export", args=[queue.pk])
    assert 0 not in visible_counts(queue, other_researcher, client)
    copies = conversation_queue(researcher, made, [other_researcher])
    assert visible_counts(queue, other_researcher, client) == (0, 0, 0, 0)
    assert "queue “imported” first" in client.post(address, {"name": "again"}).content.decode()
    judge_all(copies, other_researcher)
    assert 0 not in visible_counts(queue, other_researcher, client)
    assert client.post(address, {"name": "again"}).status_code == 302


def test_a_game_with_other_moves_is_another_game(researcher, other_researcher):
    """Also where two files name their conversations alike."""
    first = imported(researcher, conversation(0, (outside(GPT, 0, values(1)),)))
    other = conversation(1, (outside(GPT, 0, values(2)),)).model_copy(update={"source": "file:0"})
    second = imported(researcher, other, name="other")
    conversation_queue(researcher, first, [other_researcher])
    readable = Judgment.objects.readable_by(other_researcher)
    assert {row.conversation.scenario.version for row in readable} == {second}


def test_an_export_is_checked_after_the_judgments_that_are_being_saved(stored, researcher):
    """They would be in the export, and not in what was checked."""
    queue = conversation_queue(researcher, stored)
    judge_all(queue, researcher)
    with CaptureQueriesContext(connection) as captured:
        export.store(queue=queue, name="judged", by=researcher)
    statements = [query["sql"] for query in captured]
    lock = next(number for number, sql in enumerate(statements) if "FOR UPDATE" in sql and "judgments_target" in sql)
    check = next(number for number, sql in enumerate(statements) if "judgments_queue_annotators" in sql)
    assert lock < check
