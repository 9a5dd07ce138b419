"""People who judge are numbers of a queue for everybody but those who may change it."""

import pytest
from django.urls import reverse

from tests.trust.withdrawn import canary_match, reveal
from tests.webapp.judgments.make import FIVES, annotate, people_queue
from webapp.accounts.services import create_key
from webapp.arena.setup import waiting_room
from webapp.judgments.datasets import export
from webapp.judgments.naming import numbers_in
from webapp.scenarios.services import lines_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def judged(researcher, player, person):
    """Two matches in a queue that zoe judged first and anna second; only zoe judged the first match."""
    zoe, anna = person("annotator", "zoe"), person("annotator", "anna")
    first, second = canary_match(researcher, player), canary_match(researcher, player, "another word")
    for match in (first, second):
        reveal(match, researcher)
    queue = people_queue(researcher, first, annotators=[zoe, anna])
    targets = list(queue.targets.order_by("position"))
    for seat, target in enumerate(targets):
        queue.targets.create(match=second, seat=seat, position=len(targets) + seat)
        annotate(target=target, by=zoe, values=FIVES)
    for target in queue.targets.filter(match=second):
        annotate(target=target, by=anna, values=FIVES)
    return queue, first, zoe, anna


def authors(client, user, queue):
    key = {"Authorization": f"Bearer {create_key(user=user, name='k')[1]}"}
    return [row["author"] for row in client.get(f"/api/v1/judgments?queue={queue.pk}", headers=key).json()["items"]]


def test_other_researchers_read_numbers_on_pages_and_over_the_api(judged, other_researcher, client_of, client):
    queue, _, zoe, anna = judged
    page = client_of(other_researcher).get(reverse("judgments:queue", args=[queue.pk])).content.decode()
    assert "annotator 1" in page
    assert "annotator 2" in page
    assert "2 annotators" in page
    assert not {name for name in (zoe.username, anna.username) if f">{name}<" in page or f" {name}" in page}
    assert authors(client, other_researcher, queue) == ["annotator:1", "annotator:1", "annotator:2", "annotator:2"]


def test_the_owner_reads_whom_they_invited(judged, researcher, client_of):
    page = client_of(researcher).get(reverse("judgments:queue", args=[judged[0].pk])).content.decode()
    assert page.index('1 <span class="quiet">zoe</span>') < page.index('2 <span class="quiet">anna</span>')
    assert "annotator 1" in page


def test_a_number_stays_after_a_withdrawal_and_in_exports(judged, researcher, player, client):
    """zoe was the first to judge, only games that are withdrawn: anna is still the second."""
    queue, first, zoe, anna = judged
    waiting_room.answer_consent(match=first, user=player, agreed=False)
    assert numbers_in(queue.pk) == {zoe.pk: 1, anna.pk: 2}
    assert authors(client, researcher, queue) == ["annotator:2", "annotator:2"]
    stored, _ = export.store(queue=queue, name="judged", by=researcher)
    names = {row.author for line in lines_of(stored) for each in line.conversations for row in each.judgments}
    assert names == {"person:2"}
