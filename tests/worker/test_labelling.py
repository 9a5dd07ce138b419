"""A worker trains a classifier and labels a queue in processes: progress, refusal, crash, shutdown and damage."""

import sys
import threading

import pytest
from django.db import connections

from tests.toy_models import write_random_llama
from tests.webapp.judgments.make import conversation, imported, version
from tests.worker.conftest import wait_until
from training.labels.info import INFO
from training.records import Judgment as JudgmentRecord
from training.records import Label as LabelRecord
from webapp.core import files
from webapp.judgments.codebooks import services as codebooks
from webapp.judgments.models import Classifier, Suggestion, SuggestionRun
from webapp.judgments.queues import services as queues
from webapp.judgments.suggesting import services
from webapp.runs.reward_labels import measured_labels
from webapp.scenarios.models import StoredConversation
from worker import labelling, lifecycle

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.process, pytest.mark.usefixtures("home")]
SLOW = "tests.worker.slow_labels"
"""`python -m training` that stands still once it has reported progress."""
MOVES = [
    {"name": "offers", "title": "Offers", "kind": "yes_no", "about": "turn", "definition": "D.", "required": False}
]


@pytest.fixture(autouse=True)
def quick(settings, monkeypatch, tmp_path):
    settings.RUN_LEASE_SECONDS = 2.0
    settings.MEDIA_ROOT = tmp_path / "files"
    monkeypatch.setattr(labelling, "POLL_SECONDS", 0.05)
    monkeypatch.setattr(labelling, "BEAT_SECONDS", 0.05)
    lifecycle.leaving.clear()
    yield settings
    lifecycle.leaving.clear()


@pytest.fixture
def slow(quick):
    quick.RUN_COMMAND = [sys.executable, "-m", SLOW]


@pytest.fixture
def labelled(researcher):
    """A dataset version of twenty conversations in which a person labelled the first turn."""
    codebooks.save_codebook(name="moves", title="Moves", labels=MOVES, by=researcher)
    judgment = JudgmentRecord(
        codebook="moves", codebook_version=1, episode="e", author="Ann",
        labels=(LabelRecord(label="offers", value=True, turn=0),),
    )  # fmt: skip
    return imported(researcher, *(conversation(number, (judgment,)) for number in range(20)))


@pytest.fixture
def classifier(labelled, researcher, tmp_path):
    base = str(write_random_llama(tmp_path / "base", layers=1))  # a registered model takes longer
    trained_on = {"base": base, "queues": [], "versions": [labelled.pk], "sources": []}
    return Classifier.objects.create(
        name="moves", owner=researcher, codebook_version=version("moves"), trained_on=trained_on
    )


def now(row):
    return type(row).objects.get(pk=row.pk)


def in_background(work, row):
    def run():
        try:
            work(row.pk)
        finally:
            connections.close_all()

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def test_from_labels_to_suggestions_and_a_reward(classifier, labelled, researcher):
    labelling.train(classifier.pk)
    ready = now(classifier)
    assert (ready.state, ready.why) == ("ready", "")
    (source,) = ready.trained_on["sources"]
    assert (source["kind"], source["games"], len(source["sha256"])) == ("dataset", 20, 64)
    assert ready.info.labels == ("offers",)
    assert (ready.info.codebook, ready.info.codebook_version) == ("moves", 1)
    assert files.local(ready.folder).joinpath(INFO).is_file()
    queue = queues.create_queue(
        name="q", owner=researcher, codebook_version=version("moves"), annotators=[researcher],
        conversations=StoredConversation.objects.filter(scenario__version=labelled).order_by("position")[:3],
    )  # fmt: skip
    run = services.suggest(queue=queue, source="classifier:moves")
    labelling.suggest(run.pk)
    assert (now(run).state, now(run).done, now(run).refused) == ("ready", 3, [])
    made = Suggestion.objects.all()
    assert {(each.name, each.value, each.source) for each in made} <= {("offers", True, "classifier:moves")}
    assert all(0 <= each.score <= 1 for each in made)
    entry = {"label": "offers", "classifier": "moves"}
    from training.config import parse

    (label,) = measured_labels(parse({"model": {"base": "tiny"}, "reward": {"labels": [entry]}}))
    assert label.agreement == ready.info.agreement[0].f1.share


def test_a_damaged_folder_fails_the_suggestions_with_its_name(classifier, labelled, researcher):
    labelling.train(classifier.pk)
    info = files.local(now(classifier).folder) / INFO
    info.write_text(info.read_text().replace("offers", "offerz"))
    queue = queues.create_queue(
        name="q", owner=researcher, codebook_version=version("moves"), annotators=[researcher],
        conversations=StoredConversation.objects.filter(scenario__version=labelled)[:1],
    )  # fmt: skip
    run = services.suggest(queue=queue, source="classifier:moves")
    labelling.suggest(run.pk)
    assert now(run).state == "failed"
    assert INFO in now(run).why
    assert not Suggestion.objects.exists()


def test_too_few_labels_are_the_reason_of_the_failure(classifier):
    StoredConversation.objects.filter(position__gte=9).delete()
    labelling.train(classifier.pk)
    assert now(classifier).state == "failed"
    assert "9 dialogues have a turn with it; training needs 10" in now(classifier).why
    services.retry_classifier(classifier=now(classifier))
    assert (now(classifier).state, now(classifier).why) == ("queued", "")


def test_a_worker_that_leaves_gives_the_work_back_and_a_dead_one_loses_it(slow, classifier):
    thread = in_background(labelling.train, classifier)
    wait_until(lambda: now(classifier).done == 1)
    lifecycle.leaving.set()
    thread.join(20)
    assert (now(classifier).state, now(classifier).tries) == ("queued", 0)
    lifecycle.leaving.clear()
    dead = services.claim(waiting=Classifier.objects.waiting(), pk=classifier.pk)
    assert not Classifier.objects.waiting().exists()
    wait_until(Classifier.objects.waiting().exists)  # its lease lapses
    services.claim(waiting=Classifier.objects.waiting(), pk=classifier.pk)
    with pytest.raises(services.Superseded):
        services.beat(work=dead, done=1, total=2)


def test_deleting_a_classifier_stops_its_process(slow, classifier):
    thread = in_background(labelling.train, classifier)
    wait_until(lambda: now(classifier).done == 1)
    services.delete_classifier(classifier=classifier)
    thread.join(20)
    assert not thread.is_alive()
    assert not Classifier.objects.exists()


def test_a_crash_is_tried_again_a_bounded_number_of_times(quick, classifier):
    quick.RUN_COMMAND = [sys.executable, "-c", "import sys; print('no memory'); sys.exit(9)"]
    for _ in range(services.TRIES):
        assert now(classifier).state == "queued"
        labelling.train(classifier.pk)
    assert "code 9. no memory" in now(classifier).why
    labelling.train(classifier.pk)
    assert now(classifier).state == "failed"
    assert not SuggestionRun.objects.exists()
