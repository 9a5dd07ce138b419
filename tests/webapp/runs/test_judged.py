"""Judged conversations when their run is deleted, or resumes from an earlier step."""

import pytest
from django.core.files.storage import default_storage
from django.urls import reverse

from tests.webapp.judgments.make import FIVES, annotate, version
from tests.webapp.runs.making import make_checkpoint, make_episode, make_run
from training.errors import BadInput
from training.rewards.judge import Cost, Verdict
from webapp.core import files
from webapp.judgments.models import JudgeModel, Judgment
from webapp.judgments.queues import services as queues
from webapp.runs import attempts, services
from webapp.runs.models import Run
from webapp.serving.models import RemoteModel

pytestmark = pytest.mark.django_db


@pytest.fixture
def episode(researcher):
    return make_episode(make_run(researcher), step=3)


def judged_by_people(episode, *people):
    common = {"codebook_version": version(), "episodes": [episode], "annotators": people}
    target = queues.create_queue(name="q", owner=episode.run.owner, **common).targets.first()
    for user in people:
        annotate(target=target, by=user, values=FIVES)


def judged_by_a_model(episode, owner):
    remote = RemoteModel.objects.create(name="far", address="http://127.0.0.1:9/v1", model="m", added_by=owner)
    judge = JudgeModel.objects.create(name="the judge", remote=remote)
    queue = queues.create_queue(name="q", owner=owner, codebook_version=version(), episodes=[episode], judge=judge)
    verdict = Verdict(
        codebook=version().record(), seat=0, values=FIVES, reasons={}, prompt_sha256="0" * 64, cost=Cost(calls=1)
    )
    queues.record_verdict(target=queue.targets.first(), verdict=verdict)


def test_a_run_whose_conversations_others_have_judged_stays(researcher, annotator, client_of, episode):
    judged_by_people(episode, researcher, annotator)
    answer = client_of(researcher).post(reverse("runs:delete", args=[episode.run_id]), follow=True)
    assert "it cannot be deleted: other people have judged 1 of its conversations" in answer.content.decode()
    assert (Run.objects.count(), Judgment.objects.count()) == (1, 2)


def test_what_somebody_had_judged_by_a_model_is_theirs(other_researcher, episode):
    judged_by_a_model(episode, other_researcher)
    with pytest.raises(BadInput, match="other people"):
        services.delete_run(run=episode.run)
    assert Judgment.objects.count() == 1


def test_what_only_its_owner_has_judged_goes_with_the_run(researcher, episode):
    judged_by_people(episode, researcher)
    judged_by_a_model(episode, researcher)
    services.delete_run(run=episode.run)
    assert (Run.objects.count(), Judgment.objects.count()) == (0, 0)


def test_a_folder_that_cannot_be_deleted_does_not_keep_the_others(
    researcher, monkeypatch, caplog, django_capture_on_commit_callbacks
):
    run = make_run(researcher)
    names = [make_checkpoint(run, step=step, name=f"at-{step}").path for step in (1, 2, 3)]
    delete, tried = files.delete_folder, []

    def fails_once(name):
        tried.append(name)
        if name == names[1]:
            raise files.StorageError("the bucket is away")
        delete(name)

    monkeypatch.setattr(files, "delete_folder", fails_once)
    with django_capture_on_commit_callbacks(execute=True):
        services.delete_run(run=run)
    assert sorted(tried) == sorted([f"runs/{run.pk}", *names])
    assert [default_storage.exists(name) for name in names] == [False, True, False]
    assert "checkpoints/at-2 could not be deleted" in caplog.text
    assert "the bucket is away" in caplog.text


@pytest.mark.parametrize("start, lost", [(2, 2), (3, 0)])
def test_a_run_that_resumes_from_an_earlier_step_reports_deleted_judgments(researcher, annotator, episode, start, lost):
    judged_by_people(episode, researcher, annotator)
    run = episode.run
    Run.objects.filter(pk=run.pk).update(state="queued")
    for _ in range(2):  # the episode is of the first attempt
        attempt = attempts.claim(run_id=run.pk, worker="w:1:1", host="here")
        Run.objects.filter(pk=run.pk).update(state="queued")
    attempts.started(attempt=attempt, pid=1, pid_started=1.0, start_step=start, code_version="")
    assert Judgment.objects.count() == 2 - lost
    reasons = [f"judgments of conversations above step {start} were deleted ({lost}): they are replayed"]
    assert list(run.events.values_list("data__why", flat=True)) == (reasons if lost else [])
