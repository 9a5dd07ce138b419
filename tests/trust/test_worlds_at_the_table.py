"""Every game's worlds at the table: what a viewer may not know changes no page, no frame and no API answer they get.

The worlds are those of the games' own contract tests, with as many seats and boards as a game has; a person sits at
every seat. The clock stands still, and what belongs to a request or a row is removed before comparing.
"""

import pytest

from tests.games.play import random_move
from tests.games.worlds import WORLDS
from tests.trust.seated import play_on, refusals, seated, viewer_named
from tests.trust.test_non_interference import NOW, api_of, plain
from training.seeding import derive
from webapp.accounts.services import create_key
from webapp.arena.live.feed import ClientVersions, MatchFeed
from webapp.arena.play import services

pytestmark = pytest.mark.django_db(transaction=True)
MOST_STEPS = 8
MOST_WORLDS = 5
"""Of one game, taken evenly from all that it has."""


def few(parameters):
    return parameters[:: -(-len(parameters) // MOST_WORLDS)]


PAIRS = [pytest.param(pair, id=f"{game}-{pair.name}-{pair.viewer}") for game in WORLDS for pair in few(WORLDS[game])]


@pytest.fixture(autouse=True)
def standing_clock(monkeypatch):
    monkeypatch.setattr(services, "database_now", lambda: NOW)


class Looker:
    """One viewer of one match: every page, what the API says, and the frames that a tab of theirs would get."""

    def __init__(self, match, user, viewer, client):
        self.match, self.user, self.viewer, self.client = match, user, viewer, client
        self.key = create_key(user=user, name="k")[1]
        self.watch, self.versions = MatchFeed(match.pk, viewer), ClientVersions(last=0)

    def look(self):
        address = f"/play/{self.match.pk}/"
        got = [self.client.get(f"{address}{page}") for page in ("", "replay/", "analysis/")]
        got.append(self.client.post(f"{address}move/", {"turn": "0", "choice": "fly:away"}))
        frame, self.versions = self.watch.see().frame_for(self.user, self.versions)
        pages = [(answer.status_code, plain(answer.content.decode())) for answer in got]
        answers = api_of(self.client, self.match, self.key)
        return pages, plain(frame), answers, refusals(self.match, self.viewer, self.user)


@pytest.mark.parametrize("pair", PAIRS)
def test_what_is_hidden_changes_nothing_at_the_table(pair, person, client_of):
    lookers = []
    for scenario in (pair.a, pair.b):
        match, people = seated(scenario.with_seed(11))
        user = viewer_named(pair.viewer, people)
        lookers.append(Looker(match, user, pair.viewer, client_of(user)))
    first, second = lookers
    for step in range(MOST_STEPS):
        game = services.fold(first.match).game
        if pair.until(game):
            assert step > 0, "a world that is public from the start hides nothing"
            return
        if not game.to_act():
            return  # afterwards everybody may see all of it
        assert first.look() == second.look()
        moves = {seat: random_move(game, seat, derive(3, seat, step)) for seat in sorted(game.to_act())}
        others = pair.across(game, services.fold(second.match).game, moves)
        play_on(first.match, moves)
        play_on(second.match, others)
