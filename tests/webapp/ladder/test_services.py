"""The stored ladder equals the fit of the log, number for number, after any sequence of fits."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from django.core.management import CommandError, call_command
from django.db import connections

from tests.webapp.arena.conftest import negotiation
from tests.webapp.ladder.make import played
from training.errors import BadInput
from training.evaluate import ratings
from webapp.arena.setup import tables, waiting_room
from webapp.core import clock, queue
from webapp.ladder import log, services
from webapp.ladder.models import Fit, Standing

pytestmark = pytest.mark.django_db
GAME = "negotiation"


def test_the_stored_ratings_are_those_that_the_log_gives(league):
    fit = services.refit(game=GAME)
    again = ratings.fit(log.read(log.numbers(GAME)))
    stored = {row.who: (row.rating, row.low, row.high, row.games) for row in fit.standings.all()}
    expected = {
        rating.who: (rating.points.mean, rating.points.low, rating.points.high, rating.games)
        for rating in again.ratings
    }
    assert stored == expected
    assert len(stored) == 3
    assert (fit.log_digest, fit.matches) == (again.digest, 12)
    assert services.differences(GAME) == []


def test_a_changed_row_and_a_new_match_are_found(league, player, good, researcher):
    fit = services.refit(game=GAME)
    Standing.objects.filter(user=player).update(rating=1500.0)
    assert services.differences(GAME) == [f"person:{player.pk}"]
    with pytest.raises(CommandError, match="differs from the log"):
        call_command("ratings", GAME, "--check")
    Fit.objects.update(seats={**fit.seats, "0": {**fit.seats["0"], "mean": 7.0}}, matches=11)
    assert services.differences(GAME) == [f"person:{player.pk}", "matches", "seats"]
    played(player, good, returns=(1.0, 0.0), host=researcher)
    assert services.refit(game=GAME).log_digest != fit.log_digest
    call_command("ratings", GAME, "--check")


def test_ranks_counts_and_pairs(league, player, good):
    services.refit(game=GAME)
    rows = {row.who: row for row in Standing.objects.all()}
    person, machine, script = rows[f"person:{player.pk}"], rows[f"model:{good.pk}"], rows["scripted:scripted"]
    assert person.rating == machine.rating > script.rating, "they did the same from the same seats"
    assert (person.rank, machine.rank, script.rank) == (1, 1, 3)
    assert (person.games, person.won) == (8, 6.0)
    assert person.against == {f"model:{good.pk}": [4, 2.0], "scripted:scripted": [4, 4.0]}
    assert script.against[person.who] == [4, 0.0]
    assert (person.played, person.moves) == (8, 8)


def test_games_with_forced_moves_are_counted_once_each(researcher, player, good):
    garbled = [{"reply": "?", "error": "unknown action", "after": 1}] * 3
    moves = [(1, "default", garbled), (0, "seat", []), (1, "default", garbled), (1, "timeout", []), (0, "forfeit", [])]
    played(player, good, returns=(0.0, 1.0), host=researcher, moves=moves)
    played(player, good, returns=(0.0, 1.0), host=researcher, moves=[(1, "seat", [])])
    services.refit(game=GAME)
    row = Standing.objects.get(deployment=good)
    assert (row.played, row.default_games, row.timeout_games, row.forfeit_games) == (2, 1, 1, 0)
    assert (row.moves, row.default_moves, row.timeout_moves) == (4, 2, 1)
    assert Standing.objects.get(user=player).forfeit_games == 1
    assert (row.rating, row.why) == (None, "few")


def test_an_unchanged_log_is_not_fitted_again(league):
    before = services.refit(game=GAME)
    assert services.refit(game=GAME).fitted_at == before.fitted_at
    assert set(before.standings.values_list("pk", flat=True)) == set(Standing.objects.values_list("pk", flat=True))


def test_colluders_gain_nothing_by_guests_and_a_second_seat(league, researcher, player, person):
    services.refit(game=GAME)
    before = Standing.objects.get(user=player)
    for number in range(10):
        played(player, person("guest", f"guest-{number}"), returns=(1.0, 0.0), host=player)
    after_fit = services.refit(game=GAME)
    after = Standing.objects.get(user=player)
    assert after_fit.matches == 22
    assert (after.rating, after.games, after.won) == (before.rating, before.games, before.won)
    assert not Standing.objects.filter(user__role="guest").exists()
    with pytest.raises(BadInput, match="two seats"):
        tables.create(
            host=player,
            start=tables.Start(negotiation()),
            places=[tables.Place(user=player), tables.Place(user=player)],
        )


def test_the_clock_notifies_workers_of_a_changed_log_until_it_is_fitted(league, player, monkeypatch):
    sent = []
    monkeypatch.setattr(queue, "publish", lambda task, *args, **_: sent.append((task, args)))
    step = clock.STEPS["ladder.refit"].work
    assert step() == 1
    assert step() == 1
    assert sent == [(queue.RATE, (GAME,))] * 2
    services.refit(game=GAME)
    assert step() == 0
    waiting_room.answer_consent(match=player.match_seats.first().match, user=player, agreed=False)
    assert step() == 1, "a yes that was taken back changes the log, too"


def test_the_last_match_to_leave_the_log_takes_the_ladder_along(researcher, player, good):
    match = played(player, good, returns=(1.0, 0.0), host=researcher)
    assert services.refit(game=GAME).standings.count() == 2
    waiting_room.answer_consent(match=match, user=player, agreed=False)
    assert services.stale(GAME)
    fit = services.refit(game=GAME)
    assert (fit.matches, fit.standings.count()) == (0, 0)
    assert not services.stale(GAME)


@pytest.mark.django_db(transaction=True)
def test_fits_that_start_at_once_leave_one_set_of_rows(league):
    together = Barrier(4)

    def start(_):
        together.wait()
        try:
            services.refit(game=GAME)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(start, range(4)))
    assert Fit.objects.count() == 1
    assert Standing.objects.count() == 3
    assert services.differences(GAME) == []
