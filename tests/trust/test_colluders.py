"""Trust 26: what people who work together, or who press twice at once, can do to the ladder of a real database."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from django.db import connections
from django.urls import reverse
from django.utils import timezone

from tests.webapp.judgments.make import finished_match
from tests.webapp.ladder.conftest import good, league  # noqa: F401  (fixtures)
from tests.webapp.ladder.make import played
from training.evaluate import ratings
from training.records import Move
from webapp.arena.models import Match, MatchMove
from webapp.arena.play import services as arena
from webapp.judgments.models import GameRating, Guess
from webapp.ladder import log, services
from webapp.ladder.models import Standing

pytestmark = pytest.mark.django_db
GAME = "negotiation"
AT_ONCE = 8


def standing(user):
    return Standing.objects.get(user=user)


def stored_is_recomputed():
    """Whether the stored ladder is the one that the log gives."""
    fit = services.refit(game=GAME)
    again = ratings.fit(log.read(log.numbers(GAME)))
    rows = {row.who: (row.rating, row.games) for row in fit.standings.all()}
    expected = {rating.who: (rating.points.mean if rating.points else None, rating.games) for rating in again.ratings}
    return (fit.log_digest, rows) == (again.digest, expected) and services.differences(GAME) == []


@pytest.mark.usefixtures("league")
def test_losing_on_purpose_carries_at_most_half_a_win_however_often(player, researcher, person, request):
    """Second accounts that play nobody else; five times as many lost games add nothing but their own fall."""
    model = request.getfixturevalue("good")
    assert stored_is_recomputed()
    before = standing(player).rating - Standing.objects.get(deployment=model).rating
    puppet = person("player", "puppet")
    gains, falls = [], []
    for games in (10, 50):
        for number in range(games):
            players = (player, puppet) if number % 2 else (puppet, player)
            played(*players, returns=(0.9, 0.1) if number % 2 else (0.1, 0.9), host=player)
        assert stored_is_recomputed()
        gains.append(standing(player).rating - Standing.objects.get(deployment=model).rating - before)
        falls.append(standing(puppet).rating)
    half_a_win = 0.5 / (8 / 4) * ratings.POINTS  # the player's eight games in the league, as if they were even
    assert 0 <= gains[0] <= half_a_win * 1.2
    assert 0 <= gains[1] <= half_a_win * 1.2
    assert falls[1] < falls[0] < standing(player).rating - 400


@pytest.mark.usefixtures("league")
def test_a_ring_that_meets_nobody_else_has_no_rating(person, player):
    ring = [person("player", f"ring{number}") for number in range(3)]
    for number in range(30):
        played(ring[number % 3], ring[(number + 1) % 3], returns=(1.0, 0.0), host=ring[0])
    before = services.refit(game=GAME)
    assert stored_is_recomputed()
    assert {(row.rating, row.why) for row in before.standings.filter(user__in=ring)} == {(None, "apart")}
    assert standing(player).rating is not None


def at_once(work):
    """Do it from many threads in the same moment; return what came of each."""
    together = Barrier(AT_ONCE)

    def request(_):
        together.wait(20)
        try:
            return work()
        finally:
            connections.close_all()

    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(request, range(AT_ONCE)))


@pytest.mark.django_db(transaction=True)
def test_a_vote_that_is_sent_many_times_at_once_counts_once(researcher, player, client_of):
    match = finished_match(researcher, player)
    clients = [client_of(player) for _ in range(AT_ONCE)]
    address, data = reverse("judgments:rate", args=[match.pk]), {"guess0-person": "no"}
    answers = at_once(lambda: clients.pop().post(address, data))
    assert {answer.status_code for answer in answers} == {302}
    assert (Guess.objects.count(), GameRating.objects.count()) == (1, 1)


@pytest.mark.django_db(transaction=True)
def test_a_last_move_that_is_sent_many_times_at_once_ends_one_game_that_counts_once(researcher, player):
    match = finished_match(researcher, player)
    last = match.moves.order_by("number").last()
    MatchMove.objects.filter(pk=last.pk).delete()
    Match.objects.filter(pk=match.pk).update(state="running", step=last.step, returns={}, ended_at=None)
    moves = at_once(
        lambda: arena.submit(match_id=match.pk, seat=last.seat, step=last.step, move=Move.from_dict(last.move))
    )
    assert len({move.pk for move in moves}) == 1
    Match.objects.update(ended_at=timezone.now() - log.HELD_BACK)
    assert [(game.id, [seat.moves for seat in game.seats]) for game in log.read(log.numbers("negotiation"))] == [
        (match.pk, [1, 1])
    ]
