"""The step to judgments of imported conversations keeps every judgment of an older database, and can be taken back."""

import hashlib
from functools import partial

import pytest
from django.db import IntegrityError, connection
from django.db.migrations.executor import MigrationExecutor

from tests.webapp.judgments.make import FIVES, annotate, conversation, conversation_queue, imported, outside, version
from training.records import Label
from webapp.judgments.models import CodebookVersion, GameRating, Judgment, Target
from webapp.judgments.rating import services as rating
from webapp.scenarios.models import DatasetVersion, StoredConversation
from webapp.scenarios.services import lines_of

pytestmark = pytest.mark.django_db(transaction=True)
OLD, RUBRICS = (("judgments", name) for name in ("0001_initial", "0005_rules"))


def migrate(name):
    """Go to a state of the judgments' tables; returns its models."""
    executor = MigrationExecutor(connection)
    executor.migrate([name])
    return MigrationExecutor(connection).loader.project_state([name, ("arena", "0004_rules")]).apps


def migrate_to_newest():
    executor = MigrationExecutor(connection)
    executor.migrate(executor.loader.graph.leaf_nodes())


@pytest.fixture
def newest():
    yield
    migrate_to_newest()


def test_judgments_of_an_older_database_stay_and_imported_ones_become_rows(newest, researcher, annotator, player):
    from tests.webapp.judgments.make import finished_match, people_queue

    match = finished_match(researcher, player)
    queue = people_queue(researcher, match, [annotator])
    target = queue.targets.order_by("position")[0]
    annotate(target=target, by=annotator, values=FIVES, reason="kept")
    rating.rate(
        by=match.seats.get(user=player), version=version(), values={0: FIVES}, guesses={0: rating.Answer(person=True)}
    )
    stored = imported(researcher, conversation(0, (outside("gpt-4", 0, dict.fromkeys(FIVES, 2.0)),)))
    annotate(target=conversation_queue(researcher, stored).targets.first(), by=researcher, values=FIVES)
    on_matches = Judgment.objects.filter(conversation=None).order_by("pk")
    kept = [(row.pk, row.numbers, row.reason, row.created_at) for row in on_matches]
    assert len(kept) == 2

    older = migrate(OLD)
    rows = older.get_model("judgments", "Judgment").objects.order_by("pk")
    stored_before = list(rows.values_list("pk", "values", "reason", "created_at"))
    assert stored_before == kept, "the old tables hold what they can hold"
    assert older.get_model("judgments", "Target").objects.count() == 2

    as_imported = {
        "rubric": "fine-grained", "rubric_version": 2, "episode": "e", "seat": 0, "author": "gpt-4",
        "values": dict.fromkeys(FIVES, 2.0), "reasons": {}, "reason": "", "turn": None, "span": None,
    }  # fmt: skip
    StoredConversation.objects.update(judgments=[as_imported])  # as the older release stored it

    migrate_to_newest()  # the models below are those of today
    rows = Judgment.objects.filter(conversation=None).order_by("pk")
    assert [(row.pk, row.numbers, row.reason, row.created_at) for row in rows] == kept
    assert [row.updated_at for row in rows] == [created_at for *_, created_at in kept]
    assert [(row.history, row.rule) for row in rows] == [([], ""), ([], "")]
    assert (GameRating.objects.get().by, GameRating.objects.get().voted) == (match.seats.get(user=player), True)
    assert Target.objects.filter(match=match).count() == 2
    (imported_row,) = Judgment.objects.outside()
    assert (imported_row.outside_author, imported_row.seat, set(imported_row.numbers.values())) == ("gpt-4", 0, {2.0})
    version_row = DatasetVersion.objects.get(pk=stored.pk)
    text = "".join(line.dumps() + "\n" for line in lines_of(version_row))
    assert hashlib.sha256(text.encode()).hexdigest() == version_row.sha256, "what is exported has the stored hash"
    assert '"rubric"' not in text


def test_rubrics_become_codebooks_and_values_typed_labels(newest, researcher):
    """Written by hand as release 0.2 stored them: a scale, a question of yes or no, a correction and a failure."""
    from tests.webapp.judgments.make import finished_match

    match = finished_match(researcher)
    older = migrate(RUBRICS)
    model = partial(older.get_model, "judgments")
    scale = {
        "name": "warmth", "title": "Warmth", "low": 0.0, "high": 4.0, "question": "How warm?",
        "anchors": [{"value": 0.0, "text": "cold"}], "yes_no": False, "roles": [],
    }  # fmt: skip
    lied = {
        "name": "lied", "title": "Lied", "low": 0.0, "high": 1.0, "question": "Did it lie?", "yes_no": True,
        "anchors": [{"value": 0.0, "text": "no: it was honest"}, {"value": 1.0, "text": "yes: at least once"}],
        "roles": ["seller"],
    }  # fmt: skip
    rubric = model("Rubric").objects.create(name="tone", title="Tone", owner_id=researcher.pk)
    older_version = model("RubricVersion").objects.create(
        rubric=rubric, number=3, title="Tone", dimensions=[scale, lied]
    )
    common = {"rubric_version": older_version, "match_id": match.pk, "author_id": researcher.pk}
    history = [{"values": {"warmth": 1.0, "lied": 0.0}, "reason": "hasty", "at": "2026-01-01T00:00:00+00:00"}]
    judged = model("Judgment").objects.create(
        seat=1, values={"warmth": 3.0, "lied": 1.0}, reasons={"lied": "about the pens"}, history=history, **common
    )
    failed = model("Judgment").objects.create(seat=0, values=None, reason="too short", **common)

    migrate_to_newest()
    warmth, honesty = CodebookVersion.objects.get(pk=older_version.pk).record().labels
    assert (warmth.kind, warmth.bounds, warmth.definition) == ("scale", (0.0, 4.0), "How warm?")
    assert [(anchor.value, anchor.text) for anchor in warmth.anchors] == [(0.0, "cold")]
    assert (honesty.kind, honesty.roles, honesty.negative) == ("yes_no", ("seller",), ("it was honest",))
    assert honesty.positive == ("at least once",)
    row = Judgment.objects.get(pk=judged.pk)
    assert set(row.records()) == {
        Label(label="warmth", value=3.0, seat=1), Label(label="lied", value=True, seat=1, reason="about the pens"),
    }  # fmt: skip
    (earlier,) = row.history
    assert Label(label="lied", value=False, seat=1).to_dict() in earlier["labels"]
    assert (earlier["reason"], "values" in earlier) == ("hasty", False)
    empty = Judgment.objects.get(pk=failed.pk)
    assert (empty.unscored, empty.records(), empty.reason) == (True, None, "too short")

    again = migrate(RUBRICS)
    row = again.get_model("judgments", "Judgment").objects.get(pk=judged.pk)
    assert (row.values, row.reasons, row.history) == (judged.values, judged.reasons, history)
    assert again.get_model("judgments", "Judgment").objects.get(pk=failed.pk).values is None
    assert again.get_model("judgments", "RubricVersion").objects.get(pk=older_version.pk).dimensions == [scale, lied]


def test_judgments_of_an_older_database_get_the_queue_of_their_target(newest, researcher, annotator, player):
    queue = conversation_queue(researcher, imported(researcher, conversation(0, (outside("gpt-4", 0, FIVES),))))
    annotate(target=queue.targets.first(), by=annotator, values=FIVES)
    migrate(("judgments", "0019_labels_that_are_there"))
    migrate_to_newest()
    rows = Judgment.objects.order_by("outside_author").values_list("outside_author", "queue")
    assert list(rows) == [("", queue.pk), ("gpt-4", None)]


def test_a_judgment_is_in_the_queue_of_its_target_and_in_no_other(researcher, annotator):
    stored = imported(researcher, conversation(0), conversation(1))
    first, second = (conversation_queue(researcher, stored) for _ in range(2))
    judgment = annotate(target=first.targets.first(), by=annotator, values=FIVES)
    assert judgment.queue_id == first.pk
    for wrong in (second.pk, None):
        with pytest.raises(IntegrityError, match="judgment_in_queue_of_target"):
            Judgment.objects.filter(pk=judgment.pk).update(queue=wrong)
    with pytest.raises(IntegrityError, match="judgment_in_queue_of_target"):
        Target.objects.filter(pk=judgment.target_id).update(queue=second.pk, position=9)
