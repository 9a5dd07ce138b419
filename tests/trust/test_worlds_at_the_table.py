"""Every game's worlds at the table: what a viewer may not know changes no page and no frame that they get.

The worlds are those of the games' own contract tests, with as many seats and boards as a game has; a person sits at
every seat. The clock stands still, and what belongs to a request or a row is removed before comparing.
"""

import pytest

from tests.games.play import random_move
from tests.games.worlds import WORLDS
from tests.trust.test_non_interference import NOW, plain
from training.records import SPECTATOR, Scenario
from training.seeding import derive
from webapp.accounts.models import User
from webapp.arena import services, tables
from webapp.arena.consumers import Held, frame_of
from webapp.arena.models import Match

pytestmark = pytest.mark.django_db(transaction=True)
MOST_STEPS = 8
MOST_WORLDS = 5
"""Of one game, taken evenly from all that it has."""


def few(found):
    return found[:: -(-len(found) // MOST_WORLDS)]


PAIRS = [pytest.param(pair, id=f"{game}-{pair.name}-{pair.viewer}") for game in WORLDS for pair in few(WORLDS[game])]


@pytest.fixture(autouse=True)
def standing_clock(monkeypatch):
    monkeypatch.setattr(services, "database_now", lambda: NOW)


def seated(scenario: Scenario) -> tuple[Match, list[User]]:
    """A running match with a person at every seat, open to whoever watches."""
    names = [f"person-{number}" for number in range(len(scenario.seats))]
    people = [User.objects.get_or_create(username=name, role="player")[0] for name in names]
    places = [tables.Place(user=user) for user in people]
    match = tables.create(host=people[0], scenario=scenario, places=places, visibility="open")
    for user in people:
        tables.answer_consent(match=match, user=user, agreed=True)
    match.refresh_from_db()
    if match.state == Match.State.OPEN:
        tables.fill(match=match)
        match.refresh_from_db()
    return match, people


class Looker:
    """One viewer of one match: every page, and the frames that a tab of theirs would get."""

    def __init__(self, match, user, viewer, client):
        self.match, self.user, self.viewer, self.client = match, user, viewer, client
        self.held = Held(last=0)

    def look(self):
        address = f"/play/{self.match.pk}/"
        got = [self.client.get(address), self.client.get(f"{address}replay/")]
        got.append(self.client.post(f"{address}move/", {"step": "0", "choice": "fly:away"}))
        frame, self.held = frame_of(self.user, self.match.pk, self.viewer, self.held)
        return [(answer.status_code, plain(answer.content.decode())) for answer in got], plain(frame)


def play_on(match, moves):
    match.refresh_from_db()
    step = match.step
    for seat, move in sorted(moves.items()):
        services.submit(match_id=match.pk, seat=seat, step=step, move=move)


@pytest.mark.parametrize("pair", PAIRS)
def test_what_is_hidden_changes_nothing_at_the_table(pair, person, client_of):
    lookers = []
    for scenario in (pair.a, pair.b):
        match, people = seated(scenario.with_seed(11))
        user = (
            User.objects.get_or_create(username="watcher", role="player")[0]
            if pair.viewer == SPECTATOR
            else people[pair.viewer]
        )
        lookers.append(Looker(match, user, pair.viewer, client_of(user)))
    first, second = lookers
    for step in range(MOST_STEPS):
        game = services.fold(first.match).game
        if pair.until(game):
            assert step > 0, "a world that is told at once hides nothing"
            return
        if not game.to_act():
            return  # afterwards everybody may see all of it
        assert first.look() == second.look()
        moves = {seat: random_move(game, seat, derive(3, seat, step)) for seat in sorted(game.to_act())}
        others = pair.across(game, services.fold(second.match).game, moves)
        play_on(first.match, moves)
        play_on(second.match, others)
