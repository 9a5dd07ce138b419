"""What a model's server answered, its address and our folders are for researchers, not for players."""

import pytest
from django.urls import reverse

from tests.webapp.judgments.make import finished_match
from training.records import ALL
from webapp.arena.models import DueSeat, Match, MatchMove
from webapp.arena.play import model_seats
from webapp.judgments.models import Guess

pytestmark = pytest.mark.django_db
SAID = "stub-1 at 10.1.2.3: status 401: key sk-abc*** is wrong"


def test_a_replay_says_only_that_no_answer_came(player, admin, client_of):
    match = finished_match(player)
    MatchMove.objects.filter(match=match, seat=1).update(attempts=[{"reply": "", "error": SAID, "after": 1}])
    mine, other = match.seats.order_by("seat")
    Guess.objects.create(by=mine, about=other, person=False)
    address = reverse("arena:replay", args=[match.pk])
    page = client_of(player).get(address, {"viewer": ALL}).content.decode()
    assert "no answer was received" in page
    assert "10.1.2.3" not in page
    assert "sk-abc" not in page
    assert "10.1.2.3" in client_of(admin).get(address, {"viewer": ALL}).content.decode()


def test_a_match_that_no_model_could_join_does_not_say_why_in_our_words(player, researcher):
    from tests.trust.matrix.scenarios import SCENARIO
    from webapp.arena.setup import tables
    from webapp.runs.models import Checkpoint
    from webapp.serving.models import Deployment

    checkpoint = Checkpoint.objects.create(name="x", kind="base", base="x", path="/nowhere")
    deployment = Deployment.objects.create(checkpoint=checkpoint)
    places = [tables.Place(deployment=deployment), tables.Place(user=player)]
    match = tables.create(host=player, start=tables.Start(SCENARIO), places=places, consent=True)
    assert match.state == Match.State.RUNNING
    assert DueSeat.objects.filter(match=match, deadline=None).exists()
    Deployment.objects.update(state=Deployment.State.FAILED, error="/secret/folder: no such file")
    _, broken = model_seats.start_clocks()
    assert broken == [(match.pk, "a model could not be started")]
