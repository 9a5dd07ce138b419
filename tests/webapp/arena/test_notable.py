"""Finished games that the lobby shows: which, to whom, and in the order of scores that are worked out here."""

from datetime import timedelta

import pytest

from tests.labelled import labels
from tests.webapp.judgments.make import SCENARIO, finished_match, people_queue
from training.games import lookup
from training.labels.codebooks import CONDUCT
from webapp.arena.models import Match
from webapp.arena.play import services
from webapp.arena.watching import notable
from webapp.arena.watching.notable import Score
from webapp.judgments.annotating.services import store_labels
from webapp.judgments.models import CodebookVersion, Judgment

pytestmark = pytest.mark.django_db


@pytest.fixture
def over(player, ben):
    """Makes a public negotiation of two people that is over, with these fields."""

    def make(**fields):
        match = finished_match(player, partner=ben)
        fields = {"visibility": "public", "ended_at": services.database_now(), **fields}
        Match.objects.filter(pk=match.pk).update(**fields)
        match.refresh_from_db()
        return match

    return make


@pytest.fixture
def ben(person):
    return person("player", "ben")


def praised(match, value):
    """The first player says of the other: this much mutual benefit."""
    version = CodebookVersion.objects.get(codebook__name="fine-grained", number=CONDUCT.version)
    judgment = Judgment.objects.create(
        codebook_version=version,
        match=match,
        seat=1,
        author=match.host,
        author_seat=match.seats.get(seat=0),
    )
    store_labels(judgment, labels(1, {"mutual_benefit": value}))


def test_a_score_is_the_sum_of_its_shares(over):
    even, uneven = over(returns={"0": 0.5, "1": 0.5}, step=8), over(returns={"0": 1.0, "1": 0.25}, step=2)
    assert lookup("negotiation").range_of(SCENARIO.settings) == (0, 1)
    scores = notable.scores([even, uneven], {even.pk: [1.0, 0.5]})
    # one of two games was not longer than two steps
    assert scores == {
        even.pk: Score(rating=0.75, closeness=1.0, length=1.0),
        uneven.pk: Score(rating=0.5, closeness=0.25, length=0.5),
    }
    assert [score.total for score in scores.values()] == [2.75, 1.25]


def test_ratings_are_shares_of_their_scale(over):
    match = over()
    praised(match, 4)  # of a scale from 0 to 10
    assert notable.ratings_of([match]) == {match.pk: [0.4]}


def test_a_game_without_results_or_of_equal_bounds_is_not_close(over):
    assert notable.closeness(over(returns={})) == 0


@pytest.mark.parametrize(
    "fields",
    [
        {"visibility": "open"},
        {"visibility": "private"},
        {"state": "aborted"},
        {"state": "running"},
        {"shown_as": "person"},
        {"task": "x"},
        {"ended_at": "long ago"},
    ],
)
def test_other_games_are_not_shown(over, annotator, fields):
    if "ended_at" in fields:
        fields = {"ended_at": services.database_now() - notable.RECENT - timedelta(minutes=1)}
    shown, hidden = over(), over(**fields)
    assert [game.match for game in notable.games(annotator, most=9)] == [shown]
    assert hidden != shown


def test_who_has_not_rated_or_judged_a_game_is_not_shown_it(over, player, ben, annotator, researcher, client_of):
    match = over()
    people_queue(researcher, match, [annotator])
    assert notable.games(player, most=9) == []
    assert notable.games(annotator, most=9) == []
    assert [game.match for game in notable.games(researcher, most=9)] == [match]
    page = client_of(researcher).get("/play/").content.decode()
    section = page.split("Worth a look")[1].split("<h2>")[0]
    assert f"/play/{match.pk}/replay/" in section
    assert ben.username not in section
    assert player.username not in section
    assert "Worth a look" not in client_of(player).get("/play/").content.decode()


def test_the_best_of_each_kind_come_before_second_ones(over, researcher):
    first = over(returns={"0": 0.5, "1": 0.5}, step=9)
    second = over(returns={"0": 0.5, "1": 0.4}, step=8)
    third = over(returns={"0": 0.5, "1": 0.3}, step=7)
    assert [game.match for game in notable.games(researcher, most=2)] == [first, second]
    Match.objects.filter(pk=third.pk).update(game="dialogue")
    candidates = notable.candidates(researcher)
    assert {match.pk for match in candidates} == {first.pk, second.pk, third.pk}


def test_it_shows_the_public_end_of_the_game(over, researcher):
    over()
    (game,) = notable.games(researcher, most=1)
    assert game.view.headline
    assert game.view.brief is None
