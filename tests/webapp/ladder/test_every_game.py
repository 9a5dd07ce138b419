"""Trust 26 for every game: the stored ladder is what the stored moves give, with many seats and roles, too.

The matches are whole games by chance, played at the table; the second reading replays their moves.
"""

from collections import Counter

import pytest
from django.utils import timezone

from tests.games.play import played
from tests.games.worlds import CASES
from training.evaluate import ratings
from training.evaluate.ratings import LEAST_GAMES, RatedGame, RatedSeat
from training.games import REGISTRY, replay
from webapp.arena.models import Match
from webapp.arena.play import services as arena
from webapp.arena.setup import tables
from webapp.ladder import log, services
from webapp.ladder.models import Standing

pytestmark = pytest.mark.django_db


def play(scenario, number, person):
    """A game at the table; one person and two scripts, who sit one seat further in every match."""
    seats = range(len(scenario.seats))
    scripts = ("random", "scripted")
    places = [tables.Place(scripted=scripts[(seat + number) % 2]) for seat in seats]
    places[number % len(seats)] = tables.Place(user=person)
    _, moves = played(scenario, number + 1)
    match = tables.create(host=person, start=tables.Start(scenario.with_seed(number + 1)), places=places, consent=True)
    for entry in moves:
        match.refresh_from_db()
        arena.submit(match_id=match.pk, seat=entry.seat, step=match.step, move=entry.move)
    match.refresh_from_db()
    assert match.state == Match.State.FINISHED
    return match, [f"person:{person.pk}" if place.user else f"scripted:{place.scripted}" for place in places]


def role(name, game, seat):
    """The seat's role, with the number of seats in a game of variable size; games without roles have none."""
    low, high = REGISTRY[name].players
    size = "" if low == high else f" of {len(game.roles())}"
    return f"{game.roles()[seat]}{size}" if game.roles() else ""


def result(game, seat):
    """In a game of sides whether the seat's has won: within a side returns differ, by tasks done or who has died."""
    return game.seat_metrics().get(seat, {}).get("won", game.returns()[seat])


def read_again(match, names):
    """What the log should say of a match, from its scenario and moves alone."""
    moves = arena.moves_of(match)
    game = replay(arena.scenario_of(match), moves)
    made = [Counter(entry.move.origin for entry in moves if entry.seat == seat) for seat in range(len(names))]
    seats = [
        RatedSeat(
            who=who,
            role=role(match.game, game, seat),
            value=result(game, seat),
            moves=made[seat].total(),
            default=made[seat]["default"],
            timeout=made[seat]["timeout"],
            forfeit=made[seat]["forfeit"],
        )
        for seat, who in enumerate(names)
    ]
    return RatedGame(id=match.pk, seats=tuple(seats))


def is_alone(game):
    return REGISTRY[game].players == (1, 1)


@pytest.mark.parametrize("game", [game for game in REGISTRY if is_alone(game)])
def test_games_of_one_seat_are_on_no_ladder(game, player):
    match, _ = play(CASES[game][0], 0, player)
    Match.objects.update(ended_at=timezone.now() - log.HELD_BACK)
    assert match.returns
    assert log.numbers(game) == []


@pytest.mark.parametrize("game", [game for game in REGISTRY if not is_alone(game)])
def test_the_ladder_is_that_of_the_replayed_moves(game, player):
    matches = [play(CASES[game][0], number, player) for number in range(LEAST_GAMES)]
    Match.objects.update(ended_at=timezone.now() - log.HELD_BACK)  # nobody rates them
    again = [read_again(match, names) for match, names in matches]
    assert log.read(log.numbers(game)) == again
    fit = services.refit(game=game)
    expected = ratings.fit(again)
    assert (fit.log_digest, fit.matches) == (expected.digest, LEAST_GAMES)
    stored = {row.who: (row.rating, row.low, row.high) for row in fit.standings.all()}
    assert stored == {
        rating.who: (rating.points.mean, rating.points.low, rating.points.high) if rating.points else (None,) * 3
        for rating in expected.ratings
    }
    assert services.differences(game) == []
    assert Standing.objects.get(user=player).played == LEAST_GAMES
    roles = {seat.role for match in again for seat in match.seats}
    alike = REGISTRY[game].cooperative and len(CASES[game][0].seats) > 2  # all have one result: nobody is compared
    assert set(fit.roles) == (set() if alike else roles - {""})
