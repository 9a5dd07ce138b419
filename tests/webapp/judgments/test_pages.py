"""Pages of the judgments, as researchers, annotators and players use them."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from tests.webapp.judgments.make import finished_match, people_queue, version
from training.rewards.rubrics import CONDUCT
from webapp.core import choices
from webapp.judgments import services
from webapp.judgments.models import Guess, Judgment, Queue, Rubric
from webapp.scenarios.models import Dataset

pytestmark = pytest.mark.django_db
NAMES = [dimension.name for dimension in CONDUCT.dimensions]


def test_empty_lists_name_the_next_step(client_of, researcher, annotator):
    page = client_of(researcher).get(reverse("judgments:list")).content.decode()
    assert reverse("judgments:queue-new") in page
    assert "No game is queued yet" in page
    assert "Nothing is assigned to you" in client_of(annotator).get(reverse("judgments:list")).content.decode()


def test_the_list_costs_the_same_however_many_queues(client_of, researcher, annotator, django_assert_num_queries):
    match, client = finished_match(researcher), client_of(annotator)
    people_queue(researcher, match, [annotator])
    client.get(reverse("judgments:list"))
    with CaptureQueriesContext(connection) as once:
        client.get(reverse("judgments:list"))
    for _ in range(5):
        people_queue(researcher, match, [annotator])
    with django_assert_num_queries(len(once)):
        page = client.get(reverse("judgments:list")).content.decode()
    assert page.count("Judge: 2 left") == 6
    values = dict.fromkeys(NAMES, 3)
    services.annotate(target=Queue.objects.first().targets.first(), by=annotator, values=values)
    services.annotate(target=Queue.objects.last().targets.first(), by=researcher, values=values)
    assert client.get(reverse("judgments:list")).content.decode().count("Judge: 1 left") == 1


def test_a_researcher_makes_a_queue_of_a_match(client_of, researcher, annotator):
    match = finished_match(researcher)
    address = reverse("judgments:queue-new")
    data = {"name": "first", "rubric_version": version().pk, "match": [match.pk], "most": 20,
            "annotators": [annotator.pk]}  # fmt: skip
    page = client_of(researcher).post(address, data, follow=True).content.decode()
    assert "0 of 2 scored" in page
    assert Queue.objects.get().targets.count() == 2


def test_a_new_queue_lists_the_latest_and_what_is_asked_for(client_of, researcher, annotator, monkeypatch):
    monkeypatch.setattr(choices, "MOST", 2)
    oldest, *_, newest = matches = [finished_match(researcher) for _ in range(4)]
    client, address = client_of(researcher), reverse("judgments:queue-new")

    def listed(query):
        return [pk for pk, _ in client.get(address + query).context["form"].fields["match"].choices]

    assert listed("") == [newest.pk, matches[2].pk]
    assert listed(f"?match={oldest.pk}&match=x") == [newest.pk, matches[2].pk, oldest.pk]
    data = {"name": "old", "rubric_version": version().pk, "match": [oldest.pk], "most": 20}
    again = client.post(address, data)
    assert again.status_code == 400
    assert f'<option value="{oldest.pk}" selected>' in again.content.decode(), "an old match stays chosen"
    client.post(address, {**data, "annotators": [annotator.pk]})
    assert {target.match for target in Queue.objects.get().targets.all()} == {oldest}


@pytest.mark.parametrize("missing, why", [("match", "Choose finished matches"), ("annotators", "either a judge")])
def test_a_queue_without_games_or_judges_is_refused(client_of, researcher, missing, why):
    match = finished_match(researcher)
    data = {"name": "first", "rubric_version": version().pk, "match": [match.pk], "most": 20,
            "annotators": [researcher.pk]}  # fmt: skip
    del data[missing]
    response = client_of(researcher).post(reverse("judgments:queue-new"), data)
    assert response.status_code == 400
    assert why in response.content.decode()
    assert Queue.objects.count() == 0


def test_an_annotator_judges_one_after_the_other(client_of, researcher, annotator):
    queue = people_queue(researcher, finished_match(researcher), [annotator])
    client, address = client_of(annotator), reverse("judgments:annotate", args=[queue.pk])
    first = client.get(address)
    page = first.content.decode()
    assert "Judge <strong>Ann</strong>" in page
    assert 'value="10"' in page
    wrong = client.post(address, {"target": first.context["target"].pk, f"value-{NAMES[0]}": "3"})
    assert wrong.status_code == 400
    assert Judgment.objects.count() == 0
    values = {f"value-{name}": "3" for name in NAMES}
    second = client.post(address, {"target": first.context["target"].pk, **values}, follow=True)
    assert "Judge <strong>Ben</strong>" in second.content.decode()
    data = {"target": second.context["target"].pk, "unscored": "1", "reason": "too short"}
    assert "Nothing is left" in client.post(address, data, follow=True).content.decode()
    assert sorted(Judgment.objects.values_list("reason", flat=True)) == ["", "too short"]


def test_an_annotator_sees_only_what_is_assigned(client_of, researcher, annotator, person):
    queue = people_queue(researcher, finished_match(researcher), [annotator])
    other = person("annotator", "someone")
    assert client_of(other).get(reverse("judgments:annotate", args=[queue.pk])).status_code == 404
    foreign = people_queue(researcher, finished_match(researcher), [other])
    data = {"target": foreign.targets.first().pk, **{f"value-{name}": "3" for name in NAMES}}
    assert client_of(annotator).post(reverse("judgments:annotate", args=[queue.pk]), data).status_code == 404


def test_results_and_export_stand_on_the_queue_page(client_of, researcher):
    queue = people_queue(researcher, finished_match(researcher))
    for target in queue.targets.all():
        services.annotate(target=target, by=researcher, values=dict.fromkeys(NAMES, 4))
    client = client_of(researcher)
    page = client.get(reverse("judgments:queue", args=[queue.pk])).content.decode()
    assert "2 of 2 scored" in page
    assert "Empathy expression" in page
    client.post(reverse("judgments:queue-export", args=[queue.pk]), {"name": "judged"})
    assert Dataset.objects.get().newest().conversation_count == 1


def test_an_export_that_cannot_be_made_says_why(client_of, researcher):
    queue = people_queue(researcher, finished_match(researcher))
    response = client_of(researcher).post(reverse("judgments:queue-export", args=[queue.pk]), {"name": "judged"})
    assert response.status_code == 400
    assert "not scored" in response.content.decode()
    assert Dataset.objects.count() == 0


def rubric_data(**changes):
    data = {"title": "Fair play", "dimensions-TOTAL_FORMS": "1", "dimensions-INITIAL_FORMS": "0"}
    first = {"name": "fairness", "title": "Fairness", "low": "0", "high": "4", "question": "Fair?"}
    first["anchors"] = "0 = no\n4 = yes"
    return {**data, **{f"dimensions-0-{name}": value for name, value in {**first, **changes}.items()}}


def test_a_rubric_is_made_and_edited(client_of, researcher):
    client = client_of(researcher)
    page = client.post(reverse("judgments:rubric-new"), rubric_data(), follow=True).content.decode()
    assert "Saved as fair-play v1" in page
    record = Rubric.objects.get(name="fair-play").newest().record()
    assert [(anchor.value, anchor.text) for anchor in record.dimensions[0].anchors] == [(0, "no"), (4, "yes")]
    edited = {**rubric_data(high="5"), "dimensions-INITIAL_FORMS": "1"}
    client.post(reverse("judgments:rubric-edit", args=["fair-play"]), edited)
    assert Rubric.objects.get(name="fair-play").newest().number == 2


@pytest.mark.parametrize(
    "change, why", [({"anchors": "no"}, "Write value = meaning"), ({"low": "9"}, "low end"), ({"name": "A b"}, "valid")]
)
def test_a_wrong_rubric_says_what_is_wrong(client_of, researcher, change, why):
    response = client_of(researcher).post(reverse("judgments:rubric-new"), rubric_data(**change))
    assert response.status_code == 400
    assert why in response.content.decode()
    assert not Rubric.objects.filter(name="fair-play").exists()


def test_editing_a_shipped_rubric_makes_a_copy(client_of, researcher):
    address = reverse("judgments:rubric-edit", args=["fine-grained"])
    assert "makes a copy" in client_of(researcher).get(address).content.decode()
    client_of(researcher).post(address, rubric_data())
    assert Rubric.objects.get(name="fair-play").owner == researcher
    assert Rubric.objects.get(name="fine-grained").versions.count() == 1


def test_a_player_rates_and_then_sees_who_it_was(client_of, researcher, player):
    match = finished_match(researcher, player)
    client, address = client_of(player), reverse("judgments:rate", args=[match.pk])
    before = client.get(address).content.decode()
    assert "Person or model?" in before
    assert "rosa" not in before
    assert client.post(address, {}).status_code == 400
    data = {**{f"seat0-{name}": "5" for name in NAMES}, "guess0-person": "no"}
    after = client.post(address, data, follow=True).content.decode()
    assert "rosa" in after
    assert "✗ wrong" in after
    client.post(address, data)
    assert (Judgment.objects.count(), Guess.objects.count()) == (1, 1)


def test_only_who_sat_there_rates(client_of, researcher, other_researcher):
    match = finished_match(researcher)
    assert client_of(other_researcher).get(reverse("judgments:rate", args=[match.pk])).status_code == 404
