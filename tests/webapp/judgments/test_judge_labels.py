"""Judge models under codebooks about games, turns and words: what they are asked, and what becomes of their answers."""

import json

import pytest

from tests.webapp.judgments.make import conversation, imported
from training.records import Label as LabelRecord
from webapp.judgments import judging
from webapp.judgments.annotating import services as annotating
from webapp.judgments.codebooks import services as codebooks
from webapp.judgments.models import Judgment
from webapp.judgments.queues import services as queues
from webapp.judgments.results import calibration
from webapp.scenarios.models import StoredConversation
from webapp.serving.models import Deployment, RemoteModel

pytestmark = pytest.mark.django_db


@pytest.fixture
def judge(admin, stub):
    remote = RemoteModel.objects.create(name="stub", address=stub.url, model="stub-1", added_by=admin)
    Deployment.objects.create(remote=remote)
    return codebooks.add_judge(name="stub judge", remote=remote, temperature=0)


WHOLE = (
    {"name": "agreed", "title": "Agreed", "kind": "yes_no", "about": "game", "definition": "Do they agree?"},
    {"name": "asks", "title": "Asks", "kind": "yes_no", "about": "turn", "definition": "Does the turn ask?"},
    {"name": "share", "title": "Share", "kind": "span", "about": "span", "definition": "Words about a share."},
)
"""A codebook about games, turns and words."""


def whole_queue(owner, judge, count=1):
    """A queue of whole conversations of four turns; in the second somebody takes two."""
    book = codebooks.save_codebook(name="whole", title="Whole", labels=list(WHOLE), by=owner)
    stored = imported(owner, *(conversation(number) for number in range(count)))
    return queues.create_queue(
        name="whole", owner=owner, codebook_version=book, judge=judge,
        conversations=StoredConversation.objects.filter(scenario__version=stored),
    )  # fmt: skip


def labels_listed(body, *labels):
    """An answer that lists labels about the target that was asked about."""
    target = body["messages"][1]["content"].split("Target ")[1].split(",")[0]
    return json.dumps({"target": target, "labels": labels})


def test_a_judge_model_labels_the_turns_and_words_of_a_whole_game(researcher, judge, stub):
    words = {"label": "share", "turn": 1, "quote": "I take two"}
    stub.answer = lambda body: labels_listed(
        body, {"label": "agreed", "value": True}, {"label": "asks", "turn": 1, "value": True}, words
    )
    queue = whole_queue(researcher, judge)
    target = queue.targets.get()
    assert target.seat is None
    judging.judge_target(target.pk)
    target.refresh_from_db()
    judgment = Judgment.objects.get()
    assert (target.state, judgment.seat, judgment.judge) == ("scored", None, judge)
    rows = [(label.name, label.value, label.turn, label.start, label.end) for label in judgment.labels.all()]
    # "Then I take two, number 0.": the words are characters 5 to 15
    assert rows == [("agreed", True, None, None, None), ("asks", True, 1, None, None), ("share", None, 1, 5, 15)]
    assert target.turns == [0, 1, 2, 3], "the turns that it did not mark are a no"
    shown = stub.requests[0].messages
    assert "The private side of Ann" in shown[1]["content"]
    assert '1. "Ben": "Then I take two, number 0."' in shown[1]["content"]
    assert "- share (about words of a turn; fields: turn, quote): Words about a share." in shown[0]["content"]


def test_an_answer_outside_of_the_codebook_is_no_judgment_and_says_where(researcher, judge, stub):
    stub.answer = lambda body: labels_listed(
        body, {"label": "agreed", "value": True}, {"label": "share", "turn": 1, "quote": "I give two"}
    )
    queue = whole_queue(researcher, judge)
    judging.judge_target(queue.targets.get().pk)
    judgment = Judgment.objects.get()
    assert (judgment.unscored, judgment.labels.count(), queue.targets.get().state) == (True, 0, "unscored")
    assert "labels.2, share in turn 1: the quoted words are not in this turn" in judgment.reason
    assert "I give two" not in judgment.reason
    stub.answer = lambda body: labels_listed(body, {"label": "agreed", "value": False})
    queues.retry(queue=queue)
    judging.judge_target(queue.targets.get().pk)
    assert [label.value for label in Judgment.objects.get().labels.all()] == [False]


def test_a_judge_model_stands_beside_people_who_labelled_the_same_turns(researcher, other_researcher, judge, stub):
    """People mark turn 1 of three games and turn 3 of one, the judge turn 1 of all: of 12 turns both agree on 11."""
    stub.answer = lambda body: labels_listed(
        body, {"label": "agreed", "value": True}, {"label": "asks", "turn": 1, "value": True}
    )
    theirs = whole_queue(researcher, judge, count=3)
    ours = queues.create_queue(
        name="people", owner=researcher, codebook_version=theirs.codebook_version, annotators=[other_researcher],
        conversations=StoredConversation.objects.filter(targets__queue=theirs),
    )  # fmt: skip
    for target in theirs.targets.all():
        judging.judge_target(target.pk)
    for number, target in enumerate(ours.targets.order_by("position")):
        turns = (1, 3) if number == 0 else (1,)
        marks = [
            LabelRecord(label="agreed", value=True),
            *(LabelRecord(label="asks", value=True, turn=t) for t in turns),
        ]
        annotating.annotate(target=target, by=other_researcher, labels=marks)
    (measured,) = calibration.compute(ours, lambda *_: None).judges
    assert (measured.asked, measured.scored) == (3, 3)
    (asks,) = (row for row in measured.labels if row.label == "asks")
    assert asks.equal.value == pytest.approx(11 / 12)
    assert asks.sensitivity.share == pytest.approx(3 / 4)
    assert asks.specificity.share == 1
    assert len(measured.wrong) == 1
