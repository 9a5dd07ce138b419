"""Decisions of adjudicators: who makes them, what they are made of, and where they count."""

import json

import pytest
from django.urls import reverse

from tests.webapp.api.test_api import Caller
from tests.webapp.judgments.make import annotate, conversation, conversation_queue, imported
from tests.webapp.judgments.test_queue_agreement import TYPES, judge, label_type, queue_over
from training.errors import BadInput
from training.records import Label
from webapp.judgments.annotating import services as annotating
from webapp.judgments.datasets import export
from webapp.judgments.models import Judgment, Target
from webapp.judgments.results import analyses, background, comparison, decisions, estimates

pytestmark = pytest.mark.django_db
WARM = label_type("warm", "yes_no", "seat", required=True)
NUMBER = {"label": "number", "turn": 1}


@pytest.fixture
def queue(researcher, annotator, person):
    """Three games that two annotators judged; they disagree on the first most, on the second less, not on the third."""
    other = person("annotator", "bert")
    made = queue_over(researcher, [annotator, other], 3, [*TYPES, WARM])
    first, second, third = made.targets.with_games().order_by("position")
    seats = [Label(label="warm", value=True, seat=0), Label(label="warm", value=False, seat=1)]
    other_seats = [Label(label="warm", value=False, seat=0), Label(label="warm", value=False, seat=1)]
    judge(first, annotator, {"fair": True, "mood": 2.0}, [*seats, Label(**NUMBER, start=0, end=4)])
    judge(first, other, {"fair": False, "mood": 2.0}, [*other_seats, Label(**NUMBER, start=12, end=15)])
    judge(second, annotator, {"fair": True, "mood": 1.0}, seats)
    judge(second, other, {"fair": True, "mood": 5.0}, seats)
    for author in (annotator, other):
        judge(third, author, {"fair": True, "mood": 3.0}, seats)
    return made


@pytest.fixture
def first(queue):
    return queue.targets.with_games().order_by("position").first()


def page_of(client, target):
    return client.get(reverse("judgments:decide", args=[target.queue_id, target.pk]))


def post(client, target, **data):
    return client.post(reverse("judgments:decide", args=[target.queue_id, target.pk]), data)


def row(label, *place):
    """The name of a row in the form."""
    return "row-" + ":".join([label, *("" if part is None else str(part) for part in place)])


def of_game(label):
    return row(label, None, None, None, None, None)


def of_seat(label, seat):
    return row(label, seat, None, None, None, None)


FIRST_MARK, SECOND_MARK = row("number", None, 1, 0, 4, None), row("number", None, 1, 12, 15, None)
PICKS = {of_game("fair"): "2", of_game("mood"): "1", of_seat("warm", 0): "1", of_seat("warm", 1): "1",
         FIRST_MARK: "0", SECOND_MARK: "2"}  # fmt: skip


def test_the_list_begins_with_the_largest_disagreement(client_of, researcher, queue):
    client, address = client_of(researcher), reverse("judgments:decisions", args=[queue.pk])
    rows = client.get(address).context["rows"]
    targets = list(queue.targets.order_by("position"))
    assert [each.target.pk for each in rows] == [targets[0].pk, targets[1].pk]
    assert rows[0].disagreement > rows[1].disagreement
    post(client, targets[0], take="1")
    assert [each.target.pk for each in client.get(address).context["rows"]] == [targets[1].pk]
    assert [each.target.pk for each in client.get(f"{address}?show=decided").context["rows"]] == [targets[0].pk]
    assert "The gold set is empty" in client.get(f"{address}?show=gold").content.decode()


def test_the_labels_stand_side_by_side_and_what_differs_is_marked(client_of, researcher, first):
    response = page_of(client_of(researcher), first)
    sheet = response.context["sheet"]
    rows = {each.name: each for each in sheet.rows}
    said = {name: ([cell.words for cell in each.cells], each.differs, each.chosen) for name, each in rows.items()}
    assert said[of_game("fair")] == (["yes", "no"], True, "")
    assert said[of_game("mood")] == (["2", "2"], False, "1")
    assert said[of_seat("warm", 0)] == (["yes", "no"], True, "")
    assert said[FIRST_MARK] == (["marked", ""], True, "")
    assert (rows[SECOND_MARK].quote, rows[SECOND_MARK].place) == ("two", "turn 2")
    assert sheet.differing == 4
    page = response.content.decode()
    assert "<mark>yes</mark>" in page
    assert "anna" not in page.split("<main")[1], "annotators are numbers"


def test_labels_are_picked_row_by_row_and_the_next_disagreement_follows(client_of, researcher, queue, first):
    second = queue.targets.order_by("position")[1]
    answer = post(client_of(researcher), first, **PICKS)
    assert answer["Location"] == reverse("judgments:decide", args=[queue.pk, second.pk])
    decision = Judgment.objects.get(decides=True)
    assert (decision.target, decision.author, decision.reason) == (first, researcher, "")
    assert set(decision.records()) == {
        Label(label="fair", value=False), Label(label="mood", value=2.0), Label(label="warm", value=True, seat=0),
        Label(label="warm", value=False, seat=1), Label(**NUMBER, start=12, end=15),
    }  # fmt: skip
    assert Judgment.objects.filter(decides=False).count() == 6, "nobody's judgment changed"


@pytest.mark.parametrize("number, fair, start", [("1", True, 0), ("2", False, 12)])
def test_all_labels_of_one_annotator_are_taken(client_of, researcher, first, number, fair, start):
    post(client_of(researcher), first, take=number)
    records = {record.label: record for record in Judgment.objects.get(decides=True).records()}
    assert (records["fair"].value, records["number"].start) == (fair, start)


def test_own_labels_need_a_reason(client_of, researcher, first):
    client = client_of(researcher)
    overridden = {**PICKS, of_game("mood"): "0", "own-game-mood": "5",
           "labels": json.dumps([{"label": "offer", "turn": 0}])}  # fmt: skip
    refused = post(client, first, **overridden)
    assert refused.status_code == 400
    assert "no annotator gave one of these labels" in refused.content.decode()
    assert not Judgment.objects.filter(decides=True).exists()
    assert {each.name: each.chosen for each in refused.context["sheet"].rows}[SECOND_MARK] == "2", "input stays"
    post(client, first, **overridden, note="both overlooked the offer")
    decision = Judgment.objects.get(decides=True)
    assert {Label(label="mood", value=5.0), Label(label="offer", value=True, turn=0)} <= set(decision.records())
    assert decision.reason == "both overlooked the offer"
    shown = page_of(client, first).context
    assert {each.name: each.chosen for each in shown["sheet"].rows}[of_game("mood")] == "0"
    assert json.loads(shown["sheet"].marks) == [{"label": "offer", "turn": 0}]


def test_a_row_that_differs_must_be_decided(client_of, researcher, first):
    picks = {name: value for name, value in PICKS.items() if name != SECOND_MARK}
    refused = post(client_of(researcher), first, **picks)
    assert (refused.status_code, "Number, turn 2: choose whose label counts" in refused.content.decode()) == (400, True)


def test_a_decision_changes_with_its_history_until_the_export(client_of, researcher, queue, first):
    client = client_of(researcher)
    post(client, first, take="1")
    post(client, first, take="1")
    decision = Judgment.objects.get(decides=True)
    assert decision.history == [], "sent twice it is the same"
    post(client, first, unscored="1", note="cut off")
    decision.refresh_from_db()
    assert (decision.unscored, len(decision.history)) == (True, 1)
    assert {"label": "fair", "value": True} in [
        {name: label[name] for name in ("label", "value")} for label in decision.history[0]["labels"]
    ]
    export.store(queue=queue, name="judged", by=researcher)
    refused = post(client, first, take="2")
    assert (refused.status_code, "it was exported" in refused.content.decode()) == (400, True)


def test_decisions_are_exported_as_such(researcher, queue, first):
    labels = decisions.annotators_of(first)[0].records()
    decisions.decide(target=first, by=researcher, labels=labels)
    decisions.set_gold(target=first, gold=True)
    (line,) = export.Export(queue, researcher).lines()
    written = [(record.author, record.decides) for record in line.conversations[0].judgments]
    assert sorted(written) == [("person:1", False), ("person:2", False), ("person:3", True)]


def test_a_decision_does_not_have_the_agreement_computed_anew(researcher, queue, first, monkeypatch):
    before = analyses.of_queue(queue, "agreement")
    decisions.decide(target=first, by=researcher, labels=None, note="nobody can tell")
    monkeypatch.setattr(background, "_computed", None)
    after = analyses.of_queue(queue, "agreement")
    assert after.current
    assert after.result == before.result


def test_who_owns_another_queue_decides_nothing(client_of, other_researcher, annotator, queue, first):
    for client in (client_of(other_researcher), client_of(annotator)):
        assert client.get(reverse("judgments:decisions", args=[queue.pk])).status_code == 404
        assert page_of(client, first).status_code == post(client, first, take="1").status_code == 404


def test_an_adjudicator_with_a_seat_left_sees_nothing_and_decides_nothing(client_of, researcher, queue, first):
    queue.annotators.add(researcher)
    client = client_of(researcher)
    for page in (
        page_of(client, first),
        post(client, first, take="1"),
        client.get(f"/judgments/queues/{queue.pk}/decisions/"),
    ):
        assert page.status_code == 200
        assert "once you have judged your remaining seats" in page.content.decode()
        assert "<mark>" not in page.content.decode()
    with pytest.raises(BadInput, match="judge your remaining seats"):
        decisions.decide(target=first, by=researcher, labels=None, note="x")
    assert not Judgment.objects.filter(decides=True).exists()


def test_an_adjudicator_who_annotated_keeps_the_own_judgment_apart(client_of, researcher, queue, first):
    queue.annotators.add(researcher)
    for target in queue.targets.with_games():
        judge(target, researcher, {"fair": True})
    client = client_of(researcher)
    post(client, first, take="2")
    assert Judgment.objects.filter(target=first, author=researcher).count() == 2
    judgment = annotating.annotate(target=first, by=researcher, labels=None, reason="looked again")
    assert (judgment.decides, Judgment.objects.get(decides=True).unscored) == (False, False)
    assert client.get(reverse("judgments:own_judgments", args=[queue.pk])).content.decode().count("Open again") == 3


def test_results_use_decisions_in_place_of_the_authors(client_of, researcher, annotator):
    """A seat at 2 and 4 has mean 3; decided as 10 it has 10. Agreement and authors stay as they were."""
    queue = conversation_queue(researcher, imported(researcher, conversation()), [annotator])
    first, second = queue.targets.with_games().order_by("position")
    names = [each.name for each in first.codebook().labels]
    for author, value in ((annotator, 2), (researcher, 4)):
        for target in (first, second):
            annotate(target=target, by=author, values=dict.fromkeys(names, value))
    before = comparison.of_queue(queue)

    def means():
        return {estimate.mean for rows in estimates.of_queue(queue).values() for estimate in rows}

    assert means() == {3.0}
    ten = [Label(label=name, value=10.0, seat=first.seat) for name in names]
    decisions.decide(target=first, by=researcher, labels=ten, note="read it twice")
    assert means() == {6.5}, "10 and 3, of one game"
    assert comparison.of_queue(queue) == before
    assert analyses.of_queue(queue, "agreement").result.labels[0].coefficients[0].units == 2
    page = client_of(researcher).get(reverse("judgments:queue", args=[queue.pk])).content.decode()
    assert "<p>For 1 of" in page
    decisions.decide(target=first, by=researcher, labels=None, note="cut off")
    assert means() == {3.0}, "that it cannot be scored is the truth as well"


def test_gold_is_for_decided_targets(client_of, researcher, first):
    with pytest.raises(BadInput, match="decide on its labels first"):
        decisions.set_gold(target=first, gold=True)
    client = client_of(researcher)
    post(client, first, take="1", gold="1")
    assert Target.objects.get(pk=first.pk).gold
    listed = client.get(reverse("judgments:decisions", args=[first.queue_id]) + "?show=gold").context["rows"]
    assert [each.target.pk for each in listed] == [first.pk]
    client.post(reverse("judgments:gold", args=[first.queue_id, first.pk]), {})
    assert not Target.objects.get(pk=first.pk).gold
    client.post(reverse("judgments:gold", args=[first.queue_id, first.pk]), {"gold": "1"})
    assert Target.objects.get(pk=first.pk).gold
    first.refresh_from_db()
    decisions.decide(target=first, by=researcher, labels=None, note="cut off")
    assert not Target.objects.get(pk=first.pk).gold, "it has no known labels any more"


def test_the_api_lists_and_makes_decisions(researcher, other_researcher, annotator, queue, first):
    call, address = Caller(researcher), f"judgments/queues/{queue.pk}/decisions"
    labels = [record.to_dict() for record in decisions.annotators_of(first)[1].records()]
    made = call.post("judgments/decisions", target=first.pk, labels=labels)
    assert (made.status_code, made.json()["decides"]) == (201, True)
    refused = call.post("judgments/decisions", target=first.pk, labels=None)
    assert (refused.status_code, refused.json()["where"]) == (422, "note")
    listed = call.get(address).json()["items"]
    assert [(each["id"], each["author"]) for each in listed] == [(made.json()["id"], "adjudicator")]
    for user in (other_researcher, annotator):
        assert Caller(user).get(address).status_code == 404
        assert Caller(user).post("judgments/decisions", target=first.pk, labels=labels).status_code == 404
