"""A yes that is taken back: from then on nobody reads or scores the match for judging, person or model."""

import re

import pytest
from django.urls import reverse

from tests.stub import Stub
from tests.webapp.judgments.make import annotate, finished_match, people_queue, version
from training.errors import BadInput
from webapp.arena.setup import waiting_room
from webapp.judgments import judging
from webapp.judgments.codebooks import services as codebooks
from webapp.judgments.models import Judgment, Target
from webapp.judgments.queues import services as queues
from webapp.serving.models import RemoteModel

pytestmark = pytest.mark.django_db


def taken_back(match, user):
    waiting_room.answer_consent(match=match, user=user, agreed=False)


def test_a_judge_model_is_never_sent_a_match_after_a_no(researcher, player, admin, monkeypatch):
    with Stub() as stub:
        monkeypatch.setenv("MODEL_ADDRESSES", stub.url)
        remote = RemoteModel.objects.create(name="stub", address=stub.url, model="stub-1", added_by=admin)
        judge = codebooks.add_judge(name="judge", remote=remote, temperature=0)
        match = finished_match(researcher, player)
        queue = queues.create_queue(
            name="m", owner=researcher, codebook_version=version(), matches=[match], judge=judge
        )
        taken_back(match, player)
        targets = Target.everything.filter(queue=queue)
        for target in targets:
            judging.judge_target(target.pk)
        assert stub.requests == []
    assert len(targets) == 2
    assert not queue.targets.exists()
    assert not Judgment.everything.exists()


def test_an_annotator_no_longer_reads_a_match_after_a_no(researcher, player, annotator, client_of):
    match = finished_match(researcher, player)
    queue = people_queue(researcher, match, annotators=[annotator], how=queues.QueueSettings(shows_hidden=True))
    client = client_of(annotator)
    addresses = [reverse(f"arena:{name}", args=[match.pk]) for name in ("table", "replay", "result")]
    judging_page = reverse("judgments:annotate", args=[queue.pk])
    assert re.search(r"\bpen\b", client.get(judging_page).content.decode())
    assert all(client.get(address).status_code == 200 for address in addresses)
    taken_back(match, player)
    assert not re.search(r"\bpen\b", client.get(judging_page).content.decode())
    assert all(client.get(address).status_code == 404 for address in addresses)


def test_an_annotator_no_longer_scores_a_match_after_a_no(researcher, player, annotator):
    match = finished_match(researcher, player)
    target = people_queue(researcher, match, annotators=[annotator]).targets.first()
    values = {label_type.name: 5 for label_type in version().record().labels}
    taken_back(match, player)
    for answer in (values, None):
        with pytest.raises(BadInput, match="consent was withdrawn"):
            annotate(target=target, by=annotator, values=answer, reason="taken back")
    assert not Judgment.everything.exists()
    assert not Target.objects.open_for(annotator).exists()  # so that the queue can go on
