"""Pages of the judgments, as researchers, annotators and players use them."""

import html
import re
from datetime import timedelta

import pytest
from django.db import connection
from django.db.models.signals import pre_save
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from tests.webapp.judgments.make import (
    FIVES,
    annotate,
    finished_match,
    judged_by_a_model,
    people_queue,
    rated,
    version,
    village_match,
)
from tests.webapp.runs.making import make_episode, make_run, village
from training.games import REGISTRY as GAMES
from training.games.base import FORFEIT
from training.labels.codebooks import CODEBOOKS, CONDUCT
from training.labels.rated import rated_after
from training.records import ALL, Scenario
from webapp.accounts.models import User
from webapp.arena.models import Match
from webapp.arena.play import services as arena
from webapp.arena.setup import tables
from webapp.core import choices
from webapp.judgments.codebooks import services as codebooks
from webapp.judgments.models import Codebook, Guess, JudgeModel, Judgment, Queue
from webapp.judgments.queues import services as queues
from webapp.judgments.queues import views as queue_views
from webapp.judgments.rating import services as rating
from webapp.scenarios.models import Dataset
from webapp.serving import services as serving
from webapp.serving.models import RemoteModel

pytestmark = pytest.mark.django_db
NAMES = [label_type.name for label_type in CONDUCT.labels]


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
    annotate(target=Queue.objects.first().targets.first(), by=annotator, values=values)
    annotate(target=Queue.objects.last().targets.first(), by=researcher, values=values)
    assert client.get(reverse("judgments:list")).content.decode().count("Judge: 1 left") == 1


def test_a_researcher_makes_a_queue_of_a_match(client_of, researcher, annotator):
    match = finished_match(researcher)
    address = reverse("judgments:queue-new")
    data = {"name": "first", "codebook_version": version().pk, "match": [match.pk], "most": 20,
            "annotators": [annotator.pk]}  # fmt: skip
    page = client_of(researcher).post(address, data, follow=True).content.decode()
    assert "0 of 2 scored" in page
    assert Queue.objects.get().targets.count() == 2


def test_a_queue_for_a_match_begins_with_its_name_and_its_codebook(client_of, researcher):
    match = finished_match(researcher)
    client, address = client_of(researcher), reverse("judgments:queue-new")
    form = client.get(f"{address}?match={match.pk}&annotators={researcher.pk}").context["form"]
    data = {name: form[name].value() for name in ("name", "most", "annotators", "match")}
    assert data["name"] == match.title
    assert form["codebook_version"].value() == version().pk
    client.post(address, {**data, "codebook_version": version().pk})
    assert Queue.objects.get().targets.count() == 2, "created without a further entry"
    for query in ("", "?match=0", "?match=x"):
        assert not client.get(address + query).context["form"]["name"].value()


def test_a_new_queue_lists_the_latest_and_what_is_asked_for(client_of, researcher, annotator, monkeypatch):
    monkeypatch.setattr(choices, "MOST", 2)
    oldest, *_, newest = matches = [finished_match(researcher) for _ in range(4)]
    client, address = client_of(researcher), reverse("judgments:queue-new")

    def listed(query):
        return [pk for pk, _ in client.get(address + query).context["form"].fields["match"].choices]

    assert listed("") == [newest.pk, matches[2].pk]
    assert listed(f"?match={oldest.pk}&match=x") == [newest.pk, matches[2].pk, oldest.pk]
    data = {"name": "old", "codebook_version": version().pk, "match": [oldest.pk], "most": 20}
    again = client.post(address, data)
    assert again.status_code == 400
    assert f'<option value="{oldest.pk}" selected>' in again.content.decode(), "an old match stays chosen"
    client.post(address, {**data, "annotators": [annotator.pk]})
    assert {target.match for target in Queue.objects.get().targets.all()} == {oldest}


@pytest.mark.parametrize("missing, why", [("match", "Choose finished matches"), ("annotators", "either a judge")])
def test_a_queue_without_games_or_judges_is_refused(client_of, researcher, missing, why):
    match = finished_match(researcher)
    data = {"name": "first", "codebook_version": version().pk, "match": [match.pk], "most": 20,
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
    assert "Nothing is left for you" in client.post(address, data, follow=True).content.decode()
    assert sorted(Judgment.objects.values_list("reason", flat=True)) == ["", "too short"]


def test_an_annotator_sees_only_what_is_assigned(client_of, researcher, annotator, person):
    queue = people_queue(researcher, finished_match(researcher), [annotator])
    other = person("annotator", "someone")
    assert client_of(other).get(reverse("judgments:annotate", args=[queue.pk])).status_code == 404
    foreign = people_queue(researcher, finished_match(researcher), [other])
    data = {"target": foreign.targets.first().pk, **{f"value-{name}": "3" for name in NAMES}}
    assert client_of(annotator).post(reverse("judgments:annotate", args=[queue.pk]), data).status_code == 404


def test_results_and_export_stand_on_the_queue_page(client_of, researcher):
    queue = people_queue(researcher, rated(finished_match(researcher), researcher))
    for target in queue.targets.all():
        annotate(target=target, by=researcher, values=dict.fromkeys(NAMES, 4))
    client = client_of(researcher)
    page = client.get(reverse("judgments:queue", args=[queue.pk])).content.decode()
    assert "2 of 2 scored" in page
    assert "Empathy expression" in page
    client.post(reverse("judgments:queue-export", args=[queue.pk]), {"name": "judged"})
    assert Dataset.objects.get().newest().conversation_count == 1


def test_a_judges_reasons_stand_on_the_queue_page_as_text(client_of, researcher):
    match = rated(finished_match(researcher), researcher)
    queue = judged_by_a_model(researcher, match, value=7.0, reason="<b>{}</b> & more")
    page = client_of(researcher).get(reverse("judgments:queue", args=[queue.pk])).content.decode()
    reasons = page.split("Judgments and their reasons")[1]
    assert reasons.count("&lt;b&gt;mutual_benefit&lt;/b&gt; &amp; more") == 2
    assert "<b>" not in reasons
    assert reasons.count("the judge, fine-grained v2") == 2
    assert reverse("arena:replay", args=[match.pk]) in reasons
    assert [text in reasons for text in ("seat 1", "seat 2", "seat 3")] == [True, True, False]


def test_a_match_that_one_may_not_see_shows_no_names(client_of, researcher, other_researcher):
    queue = judged_by_a_model(researcher, rated(finished_match(researcher), researcher))
    page = client_of(other_researcher).get(reverse("judgments:queue", args=[queue.pk])).content.decode()
    reasons = page.split("Judgments and their reasons")[1].split("As a dataset")[0]
    assert [f"<strong>{name}</strong>" in reasons for name in ("seat 1", "seat 2")] == [True, True]
    assert "Ann" not in reasons


def test_reasons_come_in_pages(client_of, researcher, monkeypatch):
    monkeypatch.setattr(queue_views, "JUDGMENTS", 1)
    queue = judged_by_a_model(researcher, rated(finished_match(researcher), researcher))
    address = reverse("judgments:queue", args=[queue.pk])
    for query, seat in (("", "Ann (seat 1)"), ("?page=2", "Ben (seat 2)")):
        reasons = client_of(researcher).get(address + query).content.decode().split("Judgments and their reasons")[1]
        assert (reasons.count("because of mutual_benefit"), f"<strong>{seat}</strong>" in reasons) == (1, True)


def test_a_judged_seat_has_its_name_while_its_game_can_be_read(client_of, researcher):
    played = make_episode(make_run(researcher), record=village())
    common = {"owner": researcher, "episodes": [played], "annotators": [researcher]}
    queue = queues.create_queue(name="q", codebook_version=version(), **common)
    second = queue.targets.get(seat=1)
    annotate(target=second, by=researcher, values=FIVES)
    client, address = client_of(researcher), reverse("judgments:own_judgments", args=[queue.pk])
    name = village()["episode"]["scenario"]["seats"][1]
    assert f"<strong>{name} (seat 2)</strong>" in client.get(address).content.decode()
    type(played).objects.update(file="runs/gone.jsonl")
    assert "<strong>seat 2</strong>" in client.get(address).content.decode()


def test_the_judged_seat_is_marked_in_words_too(client_of, researcher):
    queue = people_queue(researcher, finished_match(researcher))
    page = client_of(researcher).get(reverse("judgments:annotate", args=[queue.pk])).content.decode()
    assert "◆ is judged" in page
    talk = page.split('<ol class="talk">')[1].split("</ol>")[0]
    assert talk.count("(judged)") == talk.count('class="author">Ann') > 0
    rating = client_of(researcher).get(reverse("judgments:rate", args=[queue.targets.first().match_id]))
    assert "◆" not in rating.content.decode()


def test_what_others_said_is_withheld_with_its_reasons(client_of, researcher, annotator):
    match = rated(finished_match(researcher), researcher)
    queue = people_queue(researcher, match, [researcher, annotator])
    for target in queue.targets.all():
        annotate(target=target, by=annotator, values=dict.fromkeys(NAMES, 4), reason="COMMENT")
    client, address = client_of(researcher), reverse("judgments:queue", args=[queue.pk])
    assert "COMMENT" not in client.get(address).content.decode()
    for target in queue.targets.all():
        annotate(target=target, by=researcher, values=dict.fromkeys(NAMES, 4))
    assert client.get(address).content.decode().count("COMMENT") == 2


def test_judgments_are_a_layer_of_the_replay_for_those_who_may_read_them(client_of, researcher, player, admin, person):
    match = finished_match(researcher, player)
    judged_by_a_model(researcher, match, reason="<i>{}</i>")
    replay, layer = reverse("arena:replay", args=[match.pk]), reverse("judgments:of-match", args=[match.pk])

    def offered(user):
        page = client_of(user).get(replay)
        answer = client_of(user).get(layer)
        return page.status_code == 200 and layer in page.content.decode(), answer.status_code == 200

    assert offered(admin) == (True, True)
    assert offered(researcher) == (False, False), "who played rates first"
    seat = match.seats.get(user=researcher)
    rating.rate(by=seat, version=version(), values={1: FIVES}, guesses={1: rating.Answer(person=True)})
    assert offered(researcher) == (True, True)
    rating.rate(
        by=match.seats.get(user=player), version=version(), values={0: FIVES}, guesses={0: rating.Answer(person=True)}
    )
    assert offered(player) == (False, False), "a player does not judge"
    assert offered(person("researcher", "otto")) == (False, False), "the match is private"
    match.visibility = "open"
    match.save()
    assert offered(User.objects.get(username="otto")) == (False, False), "who only watched does not see all"
    shown = client_of(admin).get(layer, headers={"hx-request": "true"}).content.decode()
    assert "<html" not in shown
    assert shown.count("&lt;i&gt;mutual_benefit&lt;/i&gt;") == 2
    assert "<i>" not in shown
    assert shown.count("at the table") == 2, "what the players said of each other"


def test_an_annotator_reads_their_own_judgments_beside_the_replay(client_of, researcher, annotator):
    match = finished_match(researcher)
    judged_by_a_model(researcher, match, reason="SECOND OPINION")
    queue = people_queue(researcher, match, [annotator])
    layer, client = reverse("judgments:of-match", args=[match.pk]), client_of(annotator)
    assert client.get(layer).status_code == 404
    for target in queue.targets.all():
        annotate(target=target, by=annotator, values=dict.fromkeys(NAMES, 4), reason="MY OWN")
    shown = client.get(layer).content.decode()
    assert shown.count("MY OWN") == 2
    assert "SECOND OPINION" not in shown


def test_an_export_that_cannot_be_made_says_why(client_of, researcher, annotator):
    queue = people_queue(researcher, rated(finished_match(researcher), researcher), [annotator])
    client, address = client_of(researcher), reverse("judgments:queue-export", args=[queue.pk])
    page = client.get(reverse("judgments:queue", args=[queue.pk])).content.decode()
    assert "Nothing is scored yet" in page
    assert address not in page
    response = client.post(address, {"name": "judged"})
    assert response.status_code == 400
    assert "not scored" in response.content.decode()
    assert Dataset.objects.count() == 0


def test_an_annotator_with_seats_left_exports_nothing(client_of, researcher, annotator):
    queue = people_queue(researcher, rated(finished_match(researcher), researcher), [researcher, annotator])
    judge(queue, [annotator], [3])
    client, address = client_of(researcher), reverse("judgments:queue-export", args=[queue.pk])
    page = reverse("judgments:queue", args=[queue.pk])
    assert address not in client.get(page).content.decode()
    refused = client.post(address, {"name": "judged"})
    assert (refused.status_code, Dataset.objects.count()) == (400, 0)
    assert "judge your remaining seats first" in refused.content.decode()
    judge(queue, [researcher], [3])
    assert address in client.get(page).content.decode()
    assert client.post(address, {"name": "judged"}).status_code == 302


def test_a_player_reads_no_judgment_of_the_game_before_rating(client_of, researcher):
    match = finished_match(researcher)
    modelled = judged_by_a_model(researcher, match, reason="THE MODEL")
    unscored = people_queue(researcher, match)
    first, other = unscored.targets.order_by("position")
    annotate(target=first, by=researcher, values=None, reason="MY OWN")
    annotate(target=other, by=researcher, values=FIVES)
    somebody = people_queue(researcher, match, [User.objects.create(username="otto", role="annotator")])
    annotate(target=somebody.targets.first(), by=User.objects.get(username="otto"), values=None, reason="HIS")
    client = client_of(researcher)

    def shown():
        pages = [client.get(reverse("judgments:queue", args=[q.pk])) for q in (modelled, unscored, somebody)]
        return [word in page.content.decode() for page, word in zip(pages, ("THE MODEL", "MY OWN", "HIS"), strict=True)]

    export = reverse("judgments:queue-export", args=[modelled.pk])
    assert shown() == [False, True, False]
    assert "rate it first" in client.post(export, {"name": "judged"}).content.decode()
    rated(match, researcher)
    assert shown() == [True, True, True]
    assert client.post(export, {"name": "judged"}).status_code == 302


def codebook_data(**changes):
    data = {"title": "Fair play", "labels-TOTAL_FORMS": "1", "labels-INITIAL_FORMS": "0"}
    first = {"name": "fairness", "title": "Fairness", "kind": "scale", "about": "seat", "low": "0", "high": "4"}
    first |= {"definition": "Fair?", "required": "on"}
    first["anchors"] = "0 = no\n4 = yes"
    return {**data, **{f"labels-0-{name}": value for name, value in {**first, **changes}.items()}}


def test_a_codebook_is_made_and_edited(client_of, researcher):
    client = client_of(researcher)
    page = client.post(reverse("judgments:codebook-new"), codebook_data(), follow=True).content.decode()
    assert "Saved as fair-play v1" in page
    record = Codebook.objects.get(name="fair-play").newest().record()
    assert [(anchor.value, anchor.text) for anchor in record.labels[0].anchors] == [(0, "no"), (4, "yes")]
    edited = {**codebook_data(high="5"), "labels-INITIAL_FORMS": "1"}
    client.post(reverse("judgments:codebook-edit", args=["fair-play"]), edited)
    assert Codebook.objects.get(name="fair-play").newest().number == 2


def test_the_empty_form_for_another_label_is_no_label(client_of, researcher):
    """As a browser sends it: with the first option of each select, and the checkbox that is checked at first."""
    client = client_of(researcher)
    *_, empty = client.get(reverse("judgments:codebook-new")).context["formset"].forms
    data = {**codebook_data(), "labels-TOTAL_FORMS": "2"}
    for field in empty:
        value = field.value()
        data[field.html_name] = "on" if value is True else value or ""
    del data["labels-1-overlap"], data["labels-1-DELETE"]  # not checked
    assert client.post(reverse("judgments:codebook-new"), data).status_code == 302
    assert len(Codebook.objects.get(name="fair-play").newest().record().labels) == 1


def label_data(number, **fields):
    return {f"labels-{number}-{name}": value for name, value in {"definition": "What?", **fields}.items()}


@pytest.mark.parametrize("total", [{}, {"labels-TOTAL_FORMS": "9" * 5000}, {"labels-TOTAL_FORMS": "-1"}])
def test_a_label_is_added_to_a_form_that_was_sent_broken(client_of, researcher, total):
    sent = {"add": "1", "labels-INITIAL_FORMS": "0", **total}
    assert client_of(researcher).post(reverse("judgments:codebook-new"), sent).status_code == 200


def test_a_codebook_gets_as_many_labels_as_it_needs_before_it_is_saved(client_of, researcher):
    client, address = client_of(researcher), reverse("judgments:codebook-new")
    data = codebook_data(name="")  # what is not filled in yet is no error
    for total in (2, 3):
        page = client.post(address, {**data, "add": "1"})
        assert page.status_code == 200
        assert 'class="problem"' not in page.text
        assert 'value="Fair play"' in page.text
        assert len(page.context["formset"].forms) == total
        data["labels-TOTAL_FORMS"] = str(total)
        last = {field.html_name: field.value() for field in page.context["formset"].forms[-1]}
        data |= {name: "on" if value is True else value for name, value in last.items() if value}
    assert not Codebook.objects.filter(name="fair-play").exists()
    one = {**data, "title": "One label", "labels-0-name": "fairness"}
    assert client.post(address, one).status_code == 302, "labels that were added and stayed empty are none"
    data |= label_data(0, name="fairness")
    data |= label_data(1, name="promise", title="Promise", kind="span", about="seat")
    data |= label_data(2, name="reply", title="Reply", kind="relation", about="seat")
    client.post(address, data)
    labels = Codebook.objects.get(name="fair-play").newest().record().labels
    assert [(label.kind, label.about) for label in labels] == [
        ("scale", "seat"),
        ("span", "span"),
        ("relation", "pair"),
    ]


def test_an_error_of_a_label_is_shown_at_this_label(client_of, researcher):
    data = {**codebook_data(), "labels-TOTAL_FORMS": "3"}
    data |= label_data(1, name="gone", title="Gone", kind="yes_no", about="seat", DELETE="on")
    data |= label_data(2, name="order", title="Order", kind="ranking", about="turn")
    refused = client_of(researcher).post(reverse("judgments:codebook-new"), data)
    assert refused.status_code == 400
    assert not refused.context["form"].errors
    (error,) = refused.context["formset"].forms[2].non_field_errors()
    assert error == "A ranking orders the turns of a game or of a seat."


@pytest.mark.parametrize("name", CODEBOOKS)
def test_a_form_that_is_saved_as_it_came_keeps_every_field(client_of, researcher, name):
    """A copy under another title differs in name and title alone."""
    client, address = client_of(researcher), reverse("judgments:codebook-edit", args=[name])
    page = client.get(address)
    forms = [page.context["form"], *page.context["formset"].forms]
    data = {f"{page.context['formset'].prefix}-{part}_FORMS": len(forms) - 2 for part in ("TOTAL", "INITIAL")}
    for form in forms[:-1]:
        for field in form:
            value = field.value()
            if value is not None and value is not False:
                data[field.html_name] = "on" if value is True else value
    assert client.post(address, data).status_code == 302
    copy = Codebook.objects.get(owner=researcher).newest().record()
    original = CODEBOOKS[name]
    assert copy.model_copy(update={"name": name, "version": original.version, "title": original.title}) == original


@pytest.mark.parametrize(
    "change, why", [({"anchors": "no"}, "Write value = meaning"), ({"low": "9"}, "low end"), ({"name": "A b"}, "valid")]
)
def test_a_wrong_codebook_says_what_is_wrong(client_of, researcher, change, why):
    response = client_of(researcher).post(reverse("judgments:codebook-new"), codebook_data(**change))
    assert response.status_code == 400
    assert why in response.content.decode()
    assert not Codebook.objects.filter(name="fair-play").exists()


def test_a_codebook_without_labels_is_refused_in_the_words_of_the_page(client_of, researcher):
    data = {"title": "Fair play", "labels-TOTAL_FORMS": "1", "labels-INITIAL_FORMS": "0"}
    data |= {"labels-0-kind": "yes_no", "labels-0-about": "seat", "labels-0-required": "on"}  # as the form begins
    refused = client_of(researcher).post(reverse("judgments:codebook-new"), data)
    assert refused.status_code == 400
    assert "The codebook was not saved: correct the fields marked below." in refused.text
    assert "A codebook has at least one label." in refused.text


@pytest.mark.parametrize("title", ["公平", "7 ways"])
def test_a_title_that_makes_no_name_is_reported_at_the_title(client_of, researcher, title):
    for address in (reverse("judgments:codebook-new"), reverse("judgments:codebook-edit", args=["sotopia"])):
        refused = client_of(researcher).post(address, {**codebook_data(), "title": title})
        assert refused.status_code == 400
        assert "Begin the title with a Latin letter" in refused.context["form"].errors["title"][0]
    assert set(Codebook.objects.values_list("owner", flat=True)) == {None}


def test_a_copy_does_not_become_a_version_of_another_codebook(client_of, researcher):
    client, address = client_of(researcher), reverse("judgments:codebook-edit", args=["sotopia"])
    client.post(reverse("judgments:codebook-new"), codebook_data())
    refused = client.post(address, codebook_data(high="5"))
    assert refused.status_code == 400
    assert "has this name already" in refused.context["form"].errors["title"][0]
    assert Codebook.objects.get(name="fair-play").versions.count() == 1
    client.post(address, {**codebook_data(), "title": "Fair_play, too"})
    assert Codebook.objects.get(name="fair-play-too").owner == researcher


def test_a_number_has_its_label_and_its_meaning(client_of, researcher, annotator):
    data = codebook_data(low="0", high="100")
    client_of(researcher).post(reverse("judgments:codebook-new"), data)
    queue = queues.create_queue(
        name="long", owner=researcher, codebook_version=version("fair-play"), matches=[finished_match(researcher)],
        annotators=[annotator],
    )  # fmt: skip
    client, address = client_of(annotator), reverse("judgments:annotate", args=[queue.pk])
    target = queue.targets.first().pk
    page = client.post(address, {"target": target, "value-fairness": "101"}).content.decode()
    described = re.search(r'<input[^>]*name="value-fairness"[^>]*aria-describedby="([^"]*)"', page)[1]
    assert re.search(rf'<label for="id-{target}-value-fairness">Fairness</label>', page)
    assert described.split() == [f"id-{target}-value-fairness_{part}" for part in ("helptext", "error")]
    assert all(f'id="{name}"' in page for name in described.split())


def test_editing_a_shipped_codebook_makes_a_copy(client_of, researcher):
    address = reverse("judgments:codebook-edit", args=["fine-grained"])
    assert "makes a copy" in client_of(researcher).get(address).content.decode()
    client_of(researcher).post(address, codebook_data())
    assert Codebook.objects.get(name="fair-play").owner == researcher
    assert Codebook.objects.get(name="fine-grained").versions.count() == 1


def test_a_player_rates_and_then_sees_who_it_was(client_of, researcher, player):
    match = finished_match(researcher, player)
    client, address = client_of(player), reverse("judgments:rate", args=[match.pk])
    before = client.get(address).content.decode()
    order = (
        "A person or a model?",
        "surely a person",
        "Mutual benefit seeking",
        "More about how Ann",
        "Compromise seeking",
    )
    assert sorted(order, key=before.index) == list(order), "the guess comes first, then one question, then the others"
    assert "pen" in before.split('<ol class="talk">')[1].split("</ol>")[0], "what was said stands beside it"
    assert "rosa" not in before
    assert client.post(address, {}).status_code == 400
    wrong = client.post(address, {"guess0-person": "no", f"seat0-{NAMES[0]}": "11"})
    assert (wrong.status_code, Judgment.objects.count(), Guess.objects.count()) == (400, 0, 0)
    data = {**{f"seat0-{name}": "5" for name in NAMES}, "guess0-person": "no"}
    after = client.post(address, data, follow=True).content.decode()
    assert "rosa" in after
    assert '<span class="state state-failed">wrong</span>' in after
    client.post(address, data)
    assert (Judgment.objects.count(), Guess.objects.count()) == (1, 1)


def test_a_game_with_nothing_to_ask_offers_one_button(client_of, researcher):
    """The host chose the players, and the game names no codebook: there is no guess, and no question either."""
    start = tables.Start(Scenario(id="board", game="tic_tac_toe", seats=("Ada", "Ben")))
    places = [tables.Place(user=researcher), tables.Place(scripted="scripted")]
    match = tables.create(host=researcher, start=start, places=places, consent=True)
    match.refresh_from_db()
    arena.submit(match_id=match.pk, seat=0, step=match.step, move=FORFEIT)
    client, address = client_of(researcher), reverse("judgments:rate", args=[match.pk])
    form = client.get(address).content.decode().split('<form method="post" class="judging">')[1].split("</form>")[0]
    assert re.findall(r"<button[^>]*>([^<]+)", form) == ["See what they thought"]
    assert "no questions about how they played" in form
    after = client.post(address, follow=True).content.decode()
    assert "Who sat at the table" in after
    assert "You made no guess" not in after


def test_only_players_rate(client_of, researcher, other_researcher):
    match = finished_match(researcher)
    assert client_of(other_researcher).get(reverse("judgments:rate", args=[match.pk])).status_code == 404


def judge(queue, people, values):
    for user, value in zip(people, values, strict=True):
        for target in queue.targets.all():
            annotate(target=target, by=user, values=dict.fromkeys(NAMES, value + target.seat))


def test_what_others_said_is_shown_after_ones_own_judgment(client_of, researcher, other_researcher, annotator, player):
    match = finished_match(other_researcher, player)
    queue = people_queue(researcher, match, [researcher, annotator])
    judge(queue, [annotator], [3])
    client, address = client_of(researcher), reverse("judgments:queue", args=[queue.pk])
    before = client.get(address)
    assert before.context["analysis"] is None
    assert "once you have judged" in before.content.decode()
    assert "Judge: 2 left" in before.content.decode()
    assert "Agreement" in client_of(other_researcher).get(address).content.decode(), "who is not to judge may read"
    judge(queue, [researcher], [3])
    after = client.get(address)
    assert after.context["analysis"].result.comparison.overall == 1
    assert "left</a>" not in after.content.decode()
    assert list(after.context["analysis"].result.estimates) == ["person"]


def test_results_do_not_reveal_players_before_the_guess(client_of, researcher):
    match = finished_match(researcher)
    queue = people_queue(researcher, match)
    judge(queue, [researcher], [3])
    client, address = client_of(researcher), reverse("judgments:queue", args=[queue.pk])
    assert list(client.get(address).context["analysis"].result.estimates) == ["shown once you have rated the game"]
    mine, other = match.seats.get(seat=0), match.seats.get(seat=1)
    Guess.objects.create(by=mine, about=other, person=False)
    assert sorted(client.get(address).context["analysis"].result.estimates) == ["a scripted player", "person"]


def test_a_match_is_a_link_only_for_those_who_may_open_it(client_of, researcher, other_researcher, annotator):
    match = finished_match(researcher)
    queue = people_queue(researcher, match, [annotator])
    annotate(target=queue.targets.first(), by=annotator, values=None, reason="too short")
    link, address = reverse("arena:replay", args=[match.pk]), reverse("judgments:queue", args=[queue.pk])
    for user, status in ((researcher, 200), (other_researcher, 404)):
        page = client_of(user).get(address).content.decode()
        assert f"match {match.pk}" in page
        assert (f'href="{link}"' in page) == (status == 200)
        assert client_of(user).get(link).status_code == status


def test_coverage_offers_a_retry_to_those_who_may_change_the_queue(
    client_of, researcher, other_researcher, judge_queue
):
    address, retry = (reverse(f"judgments:{name}", args=[judge_queue.pk]) for name in ("queue", "queue-retry"))
    client, part = client_of(researcher), {"headers": {"HX-Request": "true"}}
    waiting = client.get(address, **part)
    assert waiting.status_code == 200
    assert "0 of 2 scored</strong>, 2 waiting." in waiting.content.decode()
    assert f'hx-get="{address}?left=2"' in waiting.content.decode()
    assert client.get(f"{address}?left=2", **part).status_code == 204, "nothing is new"
    for target in judge_queue.targets.all():
        queues.record_verdict(target=target, verdict=None, why="the judge does not answer")
    done = client.get(address, **part)
    assert done.status_code == 286, "the page stops asking"
    assert "0 of 2 scored</strong>, 2 could not be scored." in done.content.decode()
    assert "hx-get" not in done.content.decode()
    results = done.content.decode().split('<div id="queue-results" hx-swap-oob="true">')[1]
    assert "does not answer" in results
    assert '<button form="retry"' in results
    assert "<button form" not in client_of(other_researcher).get(address).content.decode()
    assert client_of(other_researcher).post(retry).status_code == 404
    assert "2 seats are judged again" in client.post(retry, follow=True).content.decode()
    assert set(judge_queue.targets.values_list("state", flat=True)) == {"pending"}


def test_what_a_person_could_not_score_is_not_retried(client_of, researcher):
    queue = people_queue(researcher, finished_match(researcher))
    annotate(target=queue.targets.first(), by=researcher, values=None, reason="too short")
    client = client_of(researcher)
    assert "<button form" not in client.get(reverse("judgments:queue", args=[queue.pk])).content.decode()
    client.post(reverse("judgments:queue-retry", args=[queue.pk]))
    assert queue.targets.first().state == "unscored"


@pytest.fixture
def judge_queue(researcher):
    address = "http://127.0.0.1:9/v1"
    remote = RemoteModel.objects.create(name="judge", address=address, model="m", added_by=researcher)
    judge = codebooks.add_judge(name="stub", remote=remote, temperature=0)
    match = rated(finished_match(researcher), researcher)
    return queues.create_queue(
        name="modelled", owner=researcher, codebook_version=version(), matches=[match], judge=judge
    )


def test_asking_how_far_a_judge_is_reads_no_game(client_of, researcher, judge_queue, django_assert_max_num_queries):
    client, address = client_of(researcher), reverse("judgments:queue", args=[judge_queue.pk])
    queues.record_verdict(target=judge_queue.targets.first(), verdict=None, why="SAID")
    with django_assert_max_num_queries(4):  # the session, the person, the queue, and time
        part = client.get(address, headers={"HX-Request": "true"}).content.decode()
    assert "0 of 2 scored</strong>, 1 could not be scored, 1 waiting." in part
    assert "SAID" not in part


def test_what_waits_is_cancelled_and_what_was_judged_stays(client_of, researcher, other_researcher, judge_queue):
    first = judge_queue.targets.order_by("position")[0]
    queues.record_verdict(target=first, verdict=None, why="SAID")
    cancel = reverse("judgments:queue-cancel", args=[judge_queue.pk])
    assert client_of(other_researcher).post(cancel).status_code == 404
    client = client_of(researcher)
    assert "Pending seats cancelled: 1." in client.post(cancel, follow=True).content.decode()
    assert list(judge_queue.targets.all()) == [first]
    assert "No seat was pending" in client.post(cancel, follow=True).content.decode()
    queues.retry(queue=judge_queue)
    client.post(cancel)
    assert judge_queue.targets.get().state == "unscored", "why it could not be scored is not lost"
    assert Judgment.objects.get().reason == "SAID"


def test_a_queue_without_judgments_is_deleted_and_then_its_judge(client_of, admin, researcher, judge_queue):
    page = client_of(admin).get(reverse("judgments:list")).content.decode()
    judge = JudgeModel.objects.get()
    remove = reverse("judgments:judge-delete", args=[judge.pk])
    assert re.search(rf'{remove}.*disabled title="A queue uses it', page)
    assert "queue “modelled” is judged by it" in client_of(admin).post(remove, follow=True).content.decode()
    delete = reverse("judgments:queue-delete", args=[judge_queue.pk])
    assert "modelled was deleted" in client_of(researcher).post(delete, follow=True).content.decode()
    assert client_of(researcher).post(remove).status_code == 404
    assert "was deleted" in client_of(admin).post(remove, follow=True).content.decode()
    serving.remove_remote(remote=RemoteModel.objects.get())
    assert (Queue.objects.count(), JudgeModel.objects.count()) == (0, 0)


def test_a_queue_with_judgments_is_not_deleted(client_of, researcher, judge_queue):
    queues.record_verdict(target=judge_queue.targets.first(), verdict=None, why="SAID")
    delete = reverse("judgments:queue-delete", args=[judge_queue.pk])
    assert "it has judgments" in client_of(researcher).post(delete, follow=True).content.decode()
    assert (Queue.objects.count(), Judgment.objects.count()) == (1, 1)


@pytest.mark.parametrize(
    "query, names",
    [
        ("", ["modelled", "by people"]),
        ("?sort=name", ["by people", "modelled"]),
        ("?sort=-name", ["modelled", "by people"]),
        ("?sort=-scored", ["by people", "modelled"]),
        ("?by=model", ["modelled"]),
        ("?by=people&sort=x", ["by people"]),
        ("?q=PEOPLE", ["by people"]),
        ("?left=1", ["modelled"]),
        ("?q=nothing", []),
    ],
)
def test_queues_are_filtered_and_sorted_by_their_address(client_of, researcher, judge_queue, query, names):
    judge(people_queue(researcher, finished_match(researcher)), [researcher], [3])
    people, modelled = Queue.objects.get(judge=None), judge_queue
    Queue.objects.filter(pk=people.pk).update(created_at=modelled.created_at - timedelta(days=1))
    answer = client_of(researcher).get(reverse("judgments:list") + query)
    assert [queue.name for queue in answer.context["page"]] == names
    assert ("No queue matches" in answer.content.decode()) == (not names)


def test_the_next_seat_is_loaded_beforehand(client_of, researcher, annotator):
    """A page asks for the seat after the one that it shows, and gets the one after that as the answer to a judgment."""
    queue = people_queue(researcher, finished_match(researcher), [annotator])
    client, address = client_of(annotator), reverse("judgments:annotate", args=[queue.pk])
    first, second = queue.targets.order_by("position")
    part = {"HX-Request": "true"}
    ahead = client.get(f"{address}?after={first.pk}", headers=part).content.decode()
    assert "Judge <strong>Ben</strong>" in ahead
    assert 'data-done="0" data-total="2"' in ahead
    wrong = client.post(address, {"target": first.pk, "shown": second.pk}, headers=part)
    assert wrong.status_code == 422
    assert "Judge <strong>Ann</strong>" in wrong.content.decode()
    assert "This field is required" in wrong.content.decode()
    values = {f"value-{name}": "3" for name in NAMES}
    saved = client.post(address, {"target": first.pk, "shown": second.pk, **values}, headers=part).content.decode()
    assert 'data-done="1" data-total="2"' in saved
    assert "Judge <strong>" not in saved, "the page shows the last one already"
    again = client.post(address, {"target": first.pk, **values}, headers=part).content.decode()
    assert "Judge <strong>Ben</strong>" in again, "a page that does not hold the seat gets it"
    assert Judgment.objects.count() == 1, "sent twice it is one judgment"
    client.post(address, {"target": second.pk, **values}, headers=part)
    assert "Nothing is left for you" in client.get(address).content.decode()


def rival(model):
    """Somebody else who stores a row of the same name in the moment before ours is stored."""

    def store(sender, instance, **kwargs):
        kept = {f.name: getattr(instance, f.name) for f in model._meta.concrete_fields if f.name != "id"}
        model.objects.bulk_create([model(**{**kept, "created_at": timezone.now()})])

    return store


@pytest.mark.parametrize("model", [Codebook, JudgeModel])
def test_saving_the_same_name_at_the_same_moment_is_reported(client_of, admin, model):
    RemoteModel.objects.create(name="judge", address="http://127.0.0.1:9/v1", model="m", added_by=admin)
    faster = rival(model)
    pre_save.connect(faster, sender=model)
    try:
        if model is Codebook:
            answer = client_of(admin).post(reverse("judgments:codebook-new"), codebook_data())
        else:
            data = {"name": "j", "remote": RemoteModel.objects.get().pk, "temperature": "0"}
            answer = client_of(admin).post(reverse("judgments:judge-new"), data)
    finally:
        pre_save.disconnect(faster, sender=model)
    assert answer.status_code == 400
    assert {Codebook: "a codebook of this name has just been created", JudgeModel: "already"}[
        model
    ] in answer.content.decode()


def test_anchors_have_an_end(client_of, researcher):
    response = client_of(researcher).post(reverse("judgments:codebook-new"), codebook_data(anchors="0 = " + "x" * 4000))
    assert response.status_code == 400
    assert "at most 4000 characters" in response.content.decode()


def entered(page, name):
    """The value that a judging form shows as chosen."""
    checked = re.search(rf'<input[^>]*name="value-{name}" value="(-?[0-9]+)"[^>]*checked', page)
    return checked and checked[1]


def test_agreement_is_hidden_from_an_annotator_until_the_last_seat(client_of, researcher, annotator, person):
    other = person("annotator", "olga")
    queue = people_queue(researcher, finished_match(researcher), [annotator, other])
    judge(queue, [other], [3])
    client, address = client_of(annotator), reverse("judgments:annotate", args=[queue.pk])
    first, second = queue.targets.order_by("position")
    for target in (first, second):
        page = client.get(address)
        assert (page.context["analysis"], "Agreement" in page.content.decode()) == (None, False)
        annotate(target=target, by=annotator, values=dict.fromkeys(NAMES, 3 + target.seat))
    page = client.get(address)
    assert page.context["analysis"].result.comparison.overall == 1
    assert "Agreement" in page.content.decode()


def test_a_saved_judgment_is_opened_again_and_changed(client_of, researcher, annotator):
    queue = people_queue(researcher, finished_match(researcher), [annotator])
    first, second = queue.targets.order_by("position")
    annotate(target=first, by=annotator, values=dict.fromkeys(NAMES, 3), reason="hasty")
    client, listing = client_of(annotator), reverse("judgments:own_judgments", args=[queue.pk])
    address = reverse("judgments:annotate", args=[queue.pk])
    listed = client.get(listing).content.decode()
    link = f"{address}?target={first.pk}"
    assert link in listed
    assert "hasty" in listed
    assert "<strong>Ann (seat 1)</strong>" in listed
    page = client.get(link).content.decode()
    assert {entered(page, name) for name in NAMES} == {"3"}
    assert 'value="hasty"' in page
    assert "data-reopened" in page.split('<form id="judge-')[1].split(">")[0], "the list follows, and no other seat"
    data = {"target": first.pk, "reopened": "1", "reason": "", **{f"value-{name}": "8" for name in NAMES}}
    wrong = client.post(address, {**data, f"value-{NAMES[0]}": "12"})
    assert wrong.status_code == 400
    assert 'name="reopened"' in wrong.content.decode()
    after = client.post(address, data, follow=True)
    assert after.redirect_chain == [(listing, 302)]
    row = Judgment.objects.get()
    assert (row.numbers, row.reason) == (dict.fromkeys(NAMES, 8.0), "")
    (earlier,) = row.history
    assert {label["label"]: label["value"] for label in earlier["labels"]} == dict.fromkeys(NAMES, 3.0)
    assert earlier["reason"] == "hasty"
    assert row.updated_at > row.created_at
    assert "changed 1 time" in after.content.decode()
    assert client.get(f"{address}?target={second.pk}").status_code == 404, "nothing is saved of it yet"
    assert client_of(researcher).get(link).status_code == 404


def test_what_was_exported_stays_as_it_is(client_of, researcher, annotator):
    match = rated(finished_match(researcher), researcher)
    queue = people_queue(researcher, match, [annotator])
    first, second = queue.targets.order_by("position")
    annotate(target=first, by=annotator, values=dict.fromkeys(NAMES, 3))
    client_of(researcher).post(reverse("judgments:queue-export", args=[queue.pk]), {"name": "judged"})
    client, address = client_of(annotator), reverse("judgments:annotate", args=[queue.pk])
    page = client.get(f"{address}?target={first.pk}").content.decode()
    assert "exported as part of a dataset" in page
    assert "Save the change" not in page
    data = {"target": first.pk, "reopened": "1", **{f"value-{name}": "8" for name in NAMES}}
    assert client.post(address, data).status_code == 400
    assert Judgment.objects.get(conversation=None).numbers == dict.fromkeys(NAMES, 3.0)
    annotate(target=second, by=annotator, values=dict.fromkeys(NAMES, 5))
    annotate(target=second, by=annotator, values=dict.fromkeys(NAMES, 6))
    assert Judgment.objects.get(target=second).numbers == dict.fromkeys(NAMES, 6.0), "it was judged after the export"


def test_the_same_answer_again_is_no_change(researcher, annotator):
    target = people_queue(researcher, finished_match(researcher), [annotator]).targets.first()
    first = annotate(target=target, by=annotator, values=dict.fromkeys(NAMES, 3))
    again = annotate(target=target, by=annotator, values=dict.fromkeys(NAMES, 3))
    assert (again.pk, again.updated_at, again.history) == (first.pk, first.updated_at, [])


def test_a_queue_over_two_games_takes_all_their_seats_or_says_which_it_leaves_out(client_of, researcher):
    small, large = rated(finished_match(researcher), researcher), village_match(researcher)
    address = reverse("judgments:queue-new")
    data = {"name": "q", "match": [small.pk, large.pk], "most": 20, "annotators": [researcher.pk]}
    client_of(researcher).post(address, {**data, "codebook_version": version("sotopia").pk})
    whole = Queue.objects.get()
    assert [whole.targets.filter(match=match).count() for match in (small, large)] == [2, 6]
    assert whole.excluded == []
    page = client_of(researcher).post(
        address, {**data, "codebook_version": version("werewolf-behaviours").pk}, follow=True
    )
    queue = Queue.objects.latest("pk")
    assert [queue.targets.filter(match=match).count() for match in (small, large)] == [0, 6]
    assert queue.excluded == [f"match {small.pk}, Negotiation: seat 1 (no role), 2 (no role)"]
    assert queue.excluded[0] in page.content.decode()
    assert "Some seats were excluded" in page.content.decode()


def test_every_seat_of_an_episode_is_taken_whatever_its_index_says(researcher):
    run = make_run(researcher)
    played = make_episode(run, record=village())
    played.summary = {**played.summary, "returns": {}}
    played.save()
    common = {"owner": researcher, "episodes": [played], "annotators": [researcher]}
    assert queues.create_queue(name="q", codebook_version=version(), **common).targets.count() == 6


def test_a_question_of_yes_or_no_needs_no_scale(client_of, researcher):
    data = codebook_data(kind="yes_no", low="", high="x", anchors="0 = no", positive="It shares.\nIt waits.")
    page = client_of(researcher).post(reverse("judgments:codebook-new"), data, follow=True)
    assert page.status_code == 200
    label_type = Codebook.objects.get(name="fair-play").newest().record().labels[0]
    assert (label_type.low, label_type.anchors, label_type.yes_no) == (None, (), True)
    assert label_type.positive == ("It shares.", "It waits.")
    refused = client_of(researcher).post(reverse("judgments:codebook-new"), codebook_data(low="", high=""))
    assert refused.content.decode().count("Enter a number, or choose another kind of value.") == 2
    order = [field.name for field in refused.context["formset"].forms[0]]
    assert order.index("kind") < order.index("low")


RATED = {"negotiation": "Compromise seeking", "werewolf": "Recognising deception"}


def test_a_game_is_rated_by_its_own_codebook_or_by_the_guess_alone(client_of, researcher):
    matches = {"negotiation": finished_match(researcher), "werewolf": village_match(researcher)}
    for game, title in RATED.items():
        page = client_of(researcher).get(reverse("judgments:rate", args=[matches[game].pk])).content.decode()
        assert [text in page for text in RATED.values()] == [text == title for text in RATED.values()], game
    Match.objects.filter(pk=matches["negotiation"].pk).update(game="kuhn_poker")
    page = client_of(researcher).get(reverse("judgments:rate", args=[matches["negotiation"].pk])).content.decode()
    assert "More about how" not in page
    assert 'name="guess1-person"' not in page, "who chose the players is not asked who they were"
    Match.objects.update(shuffled=True)
    page = client_of(researcher).get(reverse("judgments:rate", args=[matches["negotiation"].pk])).content.decode()
    assert 'name="guess1-person"' in page


def test_players_rate_by_the_codebook_that_their_game_names():
    named = {name: spec.rated_by for name, spec in GAMES.items() if spec.rated_by}
    assert named == {"negotiation": "fine-grained", "dialogue": "sotopia", "werewolf": "werewolf-behaviours"}
    assert {name: rated_after(name).name for name in named} == named
    assert rated_after("kuhn_poker") is rated_after("gone") is None


def test_revealing_without_rating_is_confirmed_and_excludes_a_later_vote(client_of, researcher, player):
    match = finished_match(researcher, player)
    client, address = client_of(player), reverse("judgments:rate", args=[match.pk])
    page = client.post(address, {"reveal": "1"}, follow=True).content.decode()
    assert "No guess was recorded" in page
    assert "rosa" in page
    assert "You made no guess" in page
    late = client.post(address, {"guess0-person": "yes"}, follow=True).content.decode()
    assert "a guess does not count any more" in late
    assert (Guess.objects.count(), Judgment.objects.count()) == (0, 0)


def test_a_game_that_the_present_rules_do_not_allow_is_rated_by_its_log_and_not_judged(client_of, researcher, player):
    """Stored moves of an earlier release, say: nobody can propose and accept in the other order."""
    match = finished_match(researcher, player)
    queue = people_queue(researcher, match)
    first, second = match.moves.order_by("number").values_list("move", flat=True)
    match.moves.filter(number=0).update(move=second)
    match.moves.filter(number=1).update(move=first)
    page = client_of(player).get(reverse("judgments:rate", args=[match.pk]))
    talk = page.content.decode().split('<ol class="talk">')[1].split("</ol>")[0]
    assert page.status_code == 200
    lines = [line for row in match.rows.filter(viewer=ALL) for line in row.lines]
    assert talk.count("<li") == len(lines) > 0
    page = client_of(researcher).get(reverse("judgments:annotate", args=[queue.pk]))
    assert page.status_code == 200
    assert "the present rules do not allow its moves" in page.content.decode()
    for target in queue.targets.with_games():
        annotate(target=target, by=researcher, values=FIVES)
    rated(match, researcher)
    answer = client_of(researcher).post(reverse("judgments:queue-export", args=[queue.pk]), {"name": "x"}, follow=True)
    assert "the present rules do not allow its moves" in answer.content.decode()


def test_the_reveal_has_what_a_model_thought_and_believed_beside_what_people_read_of_its_move(
    client_of, player, annotator
):
    match = finished_match(player, annotator)
    match.moves.update(private="Two of three will do. <b>")
    question = {"question": "Who gets more?", "choices": ["Ann", "Ben"], "truth": ["Ben"]}
    for step, answer in ((0, "Ann"), (1, "Ben")):
        match.beliefs.create(step=step, seat=0, answer=answer, **question)
    client = client_of(annotator)
    address = reverse("judgments:rate", args=[match.pk])
    assert "Two of three" not in client.get(address).content.decode(), "before the vote"
    source = client.post(address, {"reveal": "1"}, follow=True).content.decode()
    assert "will do. <b>" not in source
    page = html.unescape(source)
    summary = re.search(r'<p class="thought-said">(.*?)</p>', page, re.DOTALL)[1]
    assert re.sub(r"<.*?>", "", summary).strip() == "offers Ben pen × 2, and keeps pen × 1 (1 for Ann, 4 for Ben)"
    assert "Two of three will do. <b>" in page
    curve = re.search(r'<section class="belief">.*?</section>', page, re.DOTALL)[0]
    assert re.findall(r'data-value="([\d.]+)"', curve) == ["0", "0.0000", "0.5000", "1", "1.0000", "0.5000"]
