"""How many queries the pages of judgments take must not depend on how many queues and targets there are."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from tests.webapp.judgments.make import finished_match, version
from webapp.judgments.codebooks import services as codebooks
from webapp.judgments.models import Codebook
from webapp.judgments.queues import services as queues

pytestmark = pytest.mark.django_db
MOST = 32
"""Of a queue's page; six of them ask whether any queue names the reader."""


def queue(owner, annotator, games):
    matches = [finished_match(owner) for _ in range(games)]
    arguments = {"codebook_version": version(), "matches": matches, "annotators": [annotator]}
    return queues.create_queue(name=f"of {games}", owner=owner, **arguments)


def counted(client, address):
    with CaptureQueriesContext(connection) as captured:
        assert client.get(address).status_code == 200
    return len(captured)


@pytest.mark.parametrize("who", ["researcher", "annotator"])
def test_the_list_takes_the_same_queries_however_many_queues(client_of, researcher, annotator, who):
    client = client_of({"researcher": researcher, "annotator": annotator}[who])
    queue(researcher, annotator, 1)
    first = counted(client, reverse("judgments:list"))
    for _ in range(4):
        queue(researcher, annotator, 1)
    assert counted(client, reverse("judgments:list")) == first <= MOST


@pytest.mark.parametrize("name", ["queue", "annotate"])
def test_a_queue_takes_the_same_queries_however_many_games(client_of, researcher, annotator, name):
    client = client_of(researcher if name == "queue" else annotator)
    counts = [counted(client, reverse(f"judgments:{name}", args=[queue(researcher, annotator, n).pk])) for n in (1, 5)]
    assert counts[0] == counts[1] <= MOST


def test_lists_load_the_newest_version_of_each_codebook_alone(researcher, django_assert_num_queries):
    for number in range(3):
        types = [
            {"name": "fair", "title": "Fair", "kind": "yes_no", "about": "game", "definition": f"Version {number}."}
        ]
        codebooks.save_codebook(name="moves", title="Moves", labels=types, by=researcher)
    with django_assert_num_queries(2):
        loaded = {codebook.name: codebook for codebook in Codebook.objects.with_newest()}
        assert str(loaded["moves"].newest()) == "moves v3"
    assert [version.number for version in loaded["moves"].versions.all()] == [3]
    assert loaded.keys() == set(Codebook.objects.values_list("name", flat=True)), "every codebook has one"
