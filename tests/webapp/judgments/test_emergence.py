"""Behaviours of a run over its steps, and by outcome: what the page counts, by hand."""

import pytest
from django.urls import reverse

from tests.webapp.judgments.make import annotate, version
from tests.webapp.runs.making import make_episode, make_run, village
from training.labels.codebooks import BEHAVIOURS
from webapp.judgments.queues import services as queues
from webapp.judgments.results import emergence

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


def shown(run, user, **options):
    codebook = emergence.versions(run, user)[0]
    source = emergence.sources(run, codebook, user)[0]
    return emergence.of_run(run, codebook, source, options.get("outcome", "survived"), user)


def test_shares_by_step_are_those_of_the_seats_that_were_asked(run, researcher):
    result = shown(run, researcher)
    assert (result.games, result.steps) == (6, 2)
    (curve,) = [curve for curve in result.curves if curve.label_type.name == CONCEALS]
    assert [(point.step, point.share, point.games, point.places) for point in curve.points] == [
        (1, 3 / 6, 3, 6),
        (5, 5 / 6, 3, 6),
    ]
    assert [(point.x, point.y) for point in curve.drawn] == [(0.0, 60.0), (320.0, 20.0)]
    assert all(point.low >= point.y >= point.high for point in curve.drawn), "upwards is smaller"


def test_survivors_are_compared_with_the_eliminated(run, researcher):
    rows = {row.step: row for row in shown(run, researcher).rows if row.behaviour == CONCEALS}
    assert {row.role for row in rows.values()} == {"werewolf"}, "nobody else is asked"
    assert (rows[1].with_outcome.share, rows[1].without_outcome.share) == (1.0, 0.0)
    assert rows[1].difference.mean == 1.0
    assert rows[5].difference.mean == pytest.approx(1 - 2 / 3)
    assert rows[5].q >= rows[5].p
    assert all(row.difference is None for row in shown(run, researcher, outcome="won").rows), "nobody has won"


def test_a_point_leads_to_its_labels(client_of, run, researcher):
    client = client_of(researcher)
    page = client.get(reverse("judgments:of-run", args=[run.pk])).content.decode()
    assert 'aria-label="Step 5: 83 % of 6' in page
    (curve,) = [curve for curve in shown(run, researcher).curves if curve.label_type.name == CONCEALS]
    assert curve.drawn[1].address.replace("&", "&amp;") in page
    labels = client.get(curve.drawn[1].address).content.decode()
    assert "<strong>5</strong> labels in <strong>3</strong> games" in labels


def test_who_has_yet_to_judge_sees_no_curve(client_of, run, researcher, admin):
    queue = run.episodes.first().targets.first().queue
    queue.annotators.add(researcher)
    page = client_of(researcher).get(reverse("judgments:of-run", args=[run.pk])).content.decode()
    assert "No game of this run is labelled yet" in page
    assert "Step 5: 83" in client_of(admin).get(reverse("judgments:of-run", args=[run.pk])).content.decode()
