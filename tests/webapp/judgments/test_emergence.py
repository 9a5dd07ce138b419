"""Behaviours of a run over its steps, and by outcome: what the page counts, by hand."""

import pytest
from django.core.cache import cache
from django.urls import reverse

from tests.webapp.judgments.make import annotate, conversation, version
from tests.webapp.runs.making import make_episode, make_run, village
from training.engines.pooling import Pooling
from training.labels.codebooks import BEHAVIOURS
from training.labels.info import ClassifierInfo
from training.labels.prevalence import ErrorRates
from training.records import Label as LabelRecord
from webapp.core import queue as hints
from webapp.judgments.codebooks import services as codebooks
from webapp.judgments.models import Classifier, Judgment, SuggestionRun
from webapp.judgments.queues import services as queues
from webapp.judgments.results import background, emergence
from webapp.judgments.search.games import index_games
from webapp.judgments.suggesting import services as suggesting
from webapp.judgments.suggesting.sources import Suggested
from worker.tasks import judged_results

pytestmark = pytest.mark.django_db
CONCEALS = "identity_concealment"
ROLES = ["werewolf", "werewolf", "seer", "witch", "villager", "villager"]


@pytest.fixture
def run(researcher, annotator):
    """Three games at step 1 and three at step 5; the first wolf survives, the second does not.

    At step 1 the survivor alone conceals who it is, in all games; at step 5 both do, but for the second in one game.
    """
    run = make_run(researcher)
    survived = {str(seat): {"survived": float(seat != 1)} for seat in range(6)}
    episodes = [make_episode(run, step, number, village()) for step in (1, 5) for number in range(3)]
    for episode in episodes:
        episode.summary |= {"roles": ROLES, "seat_metrics": survived}
        episode.save()
    queue = queues.create_queue(
        name="wolves", owner=researcher, codebook_version=version(BEHAVIOURS.name), episodes=episodes,
        annotators=[annotator],
    )  # fmt: skip
    for target in queue.targets.with_games():
        asked = [label_type.name for label_type in target.codebook().labels]
        conceals = target.seat == 0 or (target.episode.step == 5 and target.episode.number != 2)
        values = {name: float(name == CONCEALS and conceals) for name in asked}
        annotate(target=target, by=annotator, values=values)
    return run


def shown(run, user, outcome="survived"):
    codebook = emergence.versions(run, user, emergence.judged(run, user))[0]
    source = emergence.sources(run, codebook, user, emergence.judged(run, user))[0]
    analysis = emergence.of_run(run, codebook, source, outcome, user, emergence.judged(run, user))
    assert analysis.current
    return analysis.result, emergence.drawn(analysis.result, run, codebook, source)


def test_shares_by_step_are_those_of_the_seats_that_were_asked(run, researcher):
    result, curves = shown(run, researcher)
    assert (result.games, result.steps) == (6, 2)
    (curve,) = [curve for curve in curves if curve.label_type.name == CONCEALS]
    assert [(point.step, point.share, point.games, point.places) for point in curve.points] == [
        (1, 3 / 6, 3, 6),
        (5, 5 / 6, 3, 6),
    ]
    assert [(point.x, point.y) for point in curve.drawn] == [(0.0, 60.0), (320.0, 20.0)]
    assert all(point.low >= point.y >= point.high for point in curve.drawn), "upwards is smaller"


def test_survivors_are_compared_with_the_eliminated(run, researcher):
    rows = {row.step: row for row in shown(run, researcher)[0].rows if row.behaviour == CONCEALS}
    assert {row.role for row in rows.values()} == {"werewolf"}, "nobody else is asked"
    assert (rows[1].with_outcome.share, rows[1].without_outcome.share) == (1.0, 0.0)
    assert rows[1].difference.mean == 1.0
    assert rows[5].difference.mean == pytest.approx(1 - 2 / 3)
    assert rows[5].q >= rows[5].p
    assert all(row.difference is None for row in shown(run, researcher, outcome="won")[0].rows), "nobody has won"


def test_a_point_leads_to_its_labels(client_of, run, researcher):
    client = client_of(researcher)
    page = client.get(reverse("judgments:of-run", args=[run.pk])).content.decode()
    assert 'aria-label="Step 5: 83 % of 6' in page
    (curve,) = [curve for curve in shown(run, researcher)[1] if curve.label_type.name == CONCEALS]
    assert curve.drawn[1].address.replace("&", "&amp;") in page
    labels = client.get(curve.drawn[1].address).content.decode()
    assert "<strong>5</strong> labels in <strong>3</strong> games" in labels


def test_who_has_yet_to_judge_sees_no_curve(client_of, run, researcher, admin):
    queue = run.episodes.first().targets.first().queue
    queue.annotators.add(researcher)
    page = client_of(researcher).get(reverse("judgments:of-run", args=[run.pk])).content.decode()
    assert "No game of this run is labelled yet" in page
    assert "Step 5: 83" in client_of(admin).get(reverse("judgments:of-run", args=[run.pk])).content.decode()


RATE = {"share": 0.8, "low": 0.7, "high": 0.9, "n": 90.0}
ACCURATE = {"sensitivity": RATE, "specificity": {"share": 0.9, "low": 0.85, "high": 0.95, "n": 200.0}}


@pytest.fixture
def classified(researcher):
    """Two games of four turns at steps 1 and 5; a classifier sees a question in one of four turns, then in two."""
    book = codebooks.save_codebook(
        name="asking", title="Asking", by=researcher, labels=[
            {"name": "asks", "title": "Asks", "kind": "yes_no", "about": "turn", "definition": "Does it ask?"},
            {"name": "vows", "title": "Vows", "kind": "yes_no", "about": "turn", "definition": "Does it vow?"},
        ],
    )  # fmt: skip
    info = ClassifierInfo(
        labels=("asks",), base="tiny", pooling=Pooling(layer=1, how="mean", context="none"),
        strength=0.01, thresholds=(0.5,),
        accuracy=(ErrorRates.from_dict(ACCURATE),), agreement=(), codebook="asking", codebook_version=1,
        data="0" * 64, turns=290, dialogues=30, seed=0,
    )  # fmt: skip
    Classifier.objects.create(
        name="asker", codebook_version=book, owner=researcher, state="ready", accuracy=info.to_dict()
    )
    run = make_run(researcher)
    episodes = [
        make_episode(run, step, number, {"episode": conversation(number).episode.to_dict()})
        for step in (1, 5)
        for number in (0, 1)
    ]
    queue = queues.create_queue(
        name="talk", owner=researcher, codebook_version=book, episodes=episodes, annotators=[researcher]
    )
    queue.annotators.clear()  # nobody has yet to judge
    work = suggesting.suggest(queue=queue, source="classifier:asker")
    answered = {}
    for target in queue.targets.with_games():
        turns = [1] if target.episode.step == 1 else [0, 1]
        suggesting.replace(
            target=target, source=work.source,
            labels=[Suggested(LabelRecord(label="asks", value=True, turn=turn), 0.75) for turn in turns],
        )  # fmt: skip
        index_games([target.game])
        answered[target.pk] = [0, 1, 2, 3]
    SuggestionRun.objects.filter(pk=work.pk).update(state="ready", answered=answered)
    return run


def test_a_classifiers_suggestions_are_a_source_with_its_errors(classified, researcher):
    (codebook,) = emergence.versions(classified, researcher, emergence.judged(classified, researcher))
    (source,) = emergence.sources(classified, codebook, researcher, emergence.judged(classified, researcher))
    assert (source.key, source.title) == ("classifier:asker", "the classifier asker, suggestions")
    result, (curve,) = shown(classified, researcher)
    assert (result.games, result.steps) == (4, 2)
    assert curve.label_type.name == "asks", "of a label that it does not know it says nothing"
    # Rogan and Gladen: (p + 0.9 - 1) / (0.8 + 0.9 - 1)
    assert [(point.step, point.seen, point.share) for point in curve.points] == [
        (1, 1 / 4, pytest.approx((1 / 4 - 0.1) / 0.7)),
        (5, 2 / 4, pytest.approx((2 / 4 - 0.1) / 0.7)),
    ]
    assert all(point.corrected and point.places == 8 for point in curve.points)
    assert {name: error.sensitivity.share for name, error in result.errors.items()} == {"asks": 0.8}


def test_a_point_of_suggestions_leads_to_the_very_words(client_of, classified, researcher):
    client = client_of(researcher)
    page = client.get(reverse("judgments:of-run", args=[classified.pk])).content.decode()
    assert "the classifier asker, suggestions" in page
    assert "nobody has judged" in page
    assert "80 %" in page, "its errors are stated"
    _, (curve,) = shown(classified, researcher)
    words = client.get(curve.drawn[1].address).content.decode()
    assert "<strong>4</strong> suggestions by classifier:asker" in words
    assert "One pen is enough for me." in words
    assert "Then I take two, number 1." in words
    assert "75 %" in words
    elsewhere = client.get(curve.drawn[0].address.replace("asks", "lies"))
    assert elsewhere.url == reverse("judgments:of-run", args=[classified.pk])


def test_games_without_a_usable_answer_are_no_zero(classified, researcher):
    work = SuggestionRun.objects.get()
    refused = work.queue.targets.get(episode__step=5, episode__number=1)
    work.answered.pop(str(refused.pk))
    work.save()
    _, (curve,) = shown(classified, researcher)
    assert [(point.step, point.games) for point in curve.points] == [(1, 2), (5, 1)]


def test_suggestions_are_withheld_from_who_has_yet_to_judge(client_of, classified, researcher, admin):
    SuggestionRun.objects.get().queue.annotators.add(researcher)
    page = client_of(researcher).get(reverse("judgments:of-run", args=[classified.pk])).content.decode()
    assert "No game of this run is labelled yet" in page
    assert "asker" in client_of(admin).get(reverse("judgments:of-run", args=[classified.pk])).content.decode()


def test_a_worker_computes_the_behaviours_of_many_labels_by_reader(client_of, run, researcher, admin, monkeypatch):
    asked = []
    monkeypatch.setattr(background, "FEW", 0)
    monkeypatch.setattr(hints, "publish", lambda task, *arguments, **_: asked.append((task, arguments)) or True)
    monkeypatch.setattr(judged_results, "close_old_connections", lambda: None)  # of this test, whose rows would be lost
    cache.clear()
    address = f"{reverse('judgments:of-run', args=[run.pk])}?outcome=won"

    def read(user):
        return client_of(user).get(address).content.decode()

    page = read(researcher)
    assert "A worker is computing the results." in page
    assert f'hx-get="{address}"' in page
    assert "labelled games" not in page
    (codebook,) = emergence.versions(run, researcher, emergence.judged(run, researcher))
    arguments = (run.pk, codebook.pk, "people", "won", researcher.pk)
    assert asked == [(hints.ANALYSE_RUN, arguments)]
    judged_results.analyse_run(*arguments)
    assert "6 labelled games at 2 training steps" in read(researcher)
    assert "computing" in read(admin), "others may read other labels"
    Judgment.objects.first().delete()
    page = read(researcher)
    assert "Judgments have changed" in page
    assert "6 labelled games" in page


def test_a_failure_is_shown_and_ends_the_waiting(client_of, run, researcher, monkeypatch):
    monkeypatch.setattr(background, "FEW", 0)
    monkeypatch.setattr(hints, "publish", lambda *_, **__: True)
    monkeypatch.setattr(judged_results, "close_old_connections", lambda: None)
    cache.clear()
    (codebook,) = emergence.versions(run, researcher, emergence.judged(run, researcher))
    monkeypatch.setattr(emergence, "curves", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        judged_results.analyse_run(run.pk, codebook.pk, "people", "survived", researcher.pk)
    page = client_of(researcher).get(reverse("judgments:of-run", args=[run.pk])).content.decode()
    assert "could not be computed" in page
    assert "every 3s" not in page
    judged_results.analyse_run(run.pk, codebook.pk, "people", "other", researcher.pk)  # of an address somebody typed
