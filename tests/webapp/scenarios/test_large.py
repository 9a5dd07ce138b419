"""Pages of a dataset of ten thousand scenarios: as many queries as for a few, and each finds its rows by an index."""

import json

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from tests.trust.matrix.scenarios import SCENARIO
from training.dataset import DatasetLine
from webapp.scenarios import services
from webapp.scenarios.models import StoredConversation, StoredScenario

pytestmark = pytest.mark.django_db
MANY = 10_000
FEW = 3

COPIES = """
INSERT INTO scenarios_storedscenario (version_id, position, key, game, title, data)
SELECT version_id, n, 'pens-' || n, game, title, data FROM scenarios_storedscenario, generate_series(1, %s) n
WHERE version_id = %s AND position = 0
"""
TALKS = """
INSERT INTO scenarios_storedconversation (scenario_id, position, source, data, episode_sha256, judgments)
SELECT id, n, 'made', '{}', md5(id || '/' || n), '[]'
FROM scenarios_storedscenario, generate_series(0, 1) n WHERE position > 0
"""


@pytest.fixture
def versions(researcher):
    """A small dataset and one of `MANY` scenarios with two conversations each, among each other in the tables."""
    made = []
    for name, count in (("small", FEW), ("large", MANY)):
        version = services.create_dataset(name=name, owner=researcher, lines=[DatasetLine(scenario=SCENARIO)])
        with connection.cursor() as cursor:
            cursor.execute(COPIES, [count - 1, version.pk])
        made.append(version)
    with connection.cursor() as cursor:
        cursor.execute(TALKS)
        cursor.execute("ANALYZE scenarios_storedscenario, scenarios_storedconversation")
    assert StoredScenario.objects.count() == MANY + FEW
    assert StoredConversation.objects.count() == 2 * (MANY + FEW - 2)
    return made


def scans(plan):
    """Every node of a plan, as (what it does, on which table, how many rows it really gave in all)."""
    nodes = [(plan["Node Type"], plan.get("Relation Name", ""), plan["Actual Rows"] * plan["Actual Loops"])]
    return nodes + [scan for part in plan.get("Plans", []) for scan in scans(part)]


PAGES = {
    "first": ("version", [1], ""),
    "last": ("version", [1], "?page=99999"),
    "search": ("version", [1], "?q=nothing-like-it"),
    "scenario": ("scenario", [1, "pens-2"], ""),
    "edit": ("edit", [1, "pens-2"], ""),
}


@pytest.mark.parametrize("page", PAGES)
def test_a_large_dataset_takes_the_queries_of_a_small_one(client_of, researcher, versions, page):
    client = client_of(researcher)
    name, arguments, query = PAGES[page]
    counts = []
    for version in versions:
        StoredConversation.objects.filter(scenario__key="pens-2").delete()  # whose text is none
        address = reverse(f"scenarios:{name}", args=[version.dataset.name, *arguments]) + query
        with CaptureQueriesContext(connection) as captured:
            assert client.get(address).status_code == 200
        counts.append(len(captured))
    assert counts[0] == counts[1] <= 10


def test_the_list_of_datasets_does_not_read_their_scenarios(client_of, researcher, versions):
    client = client_of(researcher)
    with CaptureQueriesContext(connection) as captured:
        assert client.get(reverse("scenarios:list")).status_code == 200
    assert len(captured) <= 8
    assert not [query for query in captured if "storedscenario" in query["sql"]]


@pytest.mark.parametrize("start", [0, MANY - 24])
def test_a_page_reads_its_own_rows_by_an_index(versions, start):
    large = versions[1]
    page = large.scenarios.matching("").with_counts().order_by("position").filter(position__gte=start)[:24]
    (plan,) = json.loads(page.explain(format="json", analyze=True))
    nodes = scans(plan["Plan"])
    assert not [node for node in nodes if node[0] == "Seq Scan"]
    assert not [node for node in nodes if node[0] == "Sort" and node[2] > 24]
    talks = sum(rows for _, table, rows in nodes if table == "scenarios_storedconversation")
    assert 0 < talks <= 2 * 24  # the conversations of this page, and of no other


def test_neighbours_are_found_by_an_index(versions):
    large = versions[1]
    assert large.scenarios.around(5_000)["before"].position == 4_999
    following = large.scenarios.filter(position__gt=5_000).order_by("position")[:1]
    (plan,) = json.loads(following.explain(format="json", analyze=True))
    assert [node[0] for node in scans(plan["Plan"]) if "Scan" in node[0]] == ["Index Scan"]


def test_an_export_takes_few_queries_a_batch(versions, django_assert_max_num_queries):
    StoredConversation.objects.all().delete()
    with django_assert_max_num_queries(2 + MANY // services.BATCH):
        assert sum(1 for _ in services.lines_of(versions[1])) == MANY
