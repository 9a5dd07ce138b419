"""How many queries a page takes must not depend on how much there is."""

import pytest
from django.urls import reverse

from tests.webapp.runs.making import make_checkpoint, make_episode, make_run
from webapp.runs.models import Metric

pytestmark = pytest.mark.django_db

SESSION_AND_PERSON = 2


@pytest.fixture
def client(researcher, client_of):
    return client_of(researcher)


@pytest.fixture(params=[1, 12])
def amount(request):
    return request.param


@pytest.fixture
def run(researcher, amount):
    """One run among several, each with metrics, episodes and a checkpoint."""
    for number in range(amount):
        made = make_run(researcher, name=f"run {number}", state="running", steps=50, step=amount)
        make_checkpoint(made, step=5)
        for step in range(1, amount + 1):
            Metric.objects.create(run=made, step=step, fence=1, at="2026-01-01T00:00:00Z", values={"reward": 1.0})
    for step in range(1, amount + 1):
        make_episode(made, step=step)
    return made


@pytest.mark.parametrize(
    "name, queries",
    [
        ("detail", 9),
        ("live", 3),
        ("metrics", 4),
        ("conversations", 8),
        ("evaluation", 6),
        ("log", 5),
        ("configuration", 4),
        ("lineage", 8),
    ],
)
def test_a_run_page(client, run, name, queries, django_assert_max_num_queries):
    with django_assert_max_num_queries(SESSION_AND_PERSON + queries):
        assert client.get(reverse(f"runs:{name}", args=[run.pk])).status_code == 200


@pytest.mark.parametrize("name, queries", [("list", 5), ("checkpoints", 4), ("new", 6)])
def test_a_list(client, run, name, queries, django_assert_max_num_queries):
    with django_assert_max_num_queries(SESSION_AND_PERSON + queries):
        assert client.get(reverse(f"runs:{name}")).status_code == 200


def test_a_comparison(client, run, researcher, django_assert_max_num_queries):
    several = "&".join(f"run={pk}" for pk in researcher.runs.values_list("pk", flat=True)[:7])
    other = make_run(researcher)
    with django_assert_max_num_queries(SESSION_AND_PERSON + 3):
        assert client.get(reverse("runs:compare") + f"?{several}&run={other.pk}").status_code == 200


def test_a_checkpoint(client, run, django_assert_max_num_queries):
    with django_assert_max_num_queries(SESSION_AND_PERSON + 10):
        assert client.get(reverse("runs:checkpoint", args=[run.checkpoints.get().pk])).status_code == 200
