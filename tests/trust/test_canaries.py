"""Trust 1 for every game: nothing that the site answers holds a secret's words for somebody who may not read them.

People sit at every seat of the scenarios in which the games' own tests hide canaries, and one watches. Searched are
pages, frames, the API and the reasons of refused moves. Afterwards everybody who sat there may see all of it; then the
replay from a seat's own viewpoint is what that seat saw when its step was played, and no more.
"""

import html

import pytest
from django.urls import reverse

from tests.games.worlds import SECRETS
from tests.trust.seated import moves_by_chance, play_on, refusals, seated, viewer_named
from tests.webapp.arena.browser import ROW
from training.records import SPECTATOR
from webapp.accounts.services import create_key
from webapp.arena.live.feed import ClientVersions, MatchFeed
from webapp.arena.play import services

pytestmark = pytest.mark.django_db(transaction=True)
STEPS = 4


def two_of(game):
    """A game's first and last scenarios with secrets, each with its secrets."""
    candidates = [SECRETS[game][at].scenario for at in (0, -1)]
    chosen = candidates if candidates[0] != candidates[1] else candidates[:1]
    return [[secret for secret in SECRETS[game] if secret.scenario == scenario] for scenario in chosen]


TABLES = [pytest.param(secrets, id=f"{game}-{at}") for game in SECRETS for at, secrets in enumerate(two_of(game))]


class Viewer:
    """One person at the table: all that the site answers them during the game."""

    def __init__(self, match, place, people, client_of):
        self.match, self.place = match, place
        self.user = viewer_named(place, people)
        self.client = client_of(self.user)
        self.key = create_key(user=self.user, name="canary")[1]
        self.watch = MatchFeed(match.pk, place)
        self.saw = {}

    def replay(self, **query):
        """What the replay shows of one step from one viewpoint, and the page's text."""
        answer = self.client.get(f"/play/{self.match.pk}/replay/", query)
        assert answer.status_code == 200
        page, at = html.unescape(answer.content.decode()), answer.context
        return (ROW.findall(answer.content.decode()), at["view"].view), page

    def everything(self):
        """The text of all that they get at this step."""
        table = self.client.get(f"/play/{self.match.pk}/")
        rows = ROW.findall(table.content.decode())
        self.saw[self.match.step] = rows, services.fold(self.match).game.show(self.place)
        pages = [table, self.client.get("/play/")]
        if self.place != SPECTATOR:
            pages.append(self.client.get(f"/play/{self.match.pk}/consent/"))
        bearer = {"Authorization": f"Bearer {self.key}"}
        pages.append(self.client.get(reverse("api:get_match", kwargs={"pk": self.match.pk}), headers=bearer))
        assert {page.status_code for page in pages} == {200}
        assert self.client.get(f"/play/{self.match.pk}/replay/").status_code == 302, "while it runs, there is none"
        frame, _ = self.watch.see().frame_for(self.user, ClientVersions(last=0))
        texts = [*(page.content.decode() for page in pages), frame]
        return html.unescape("\n".join(texts + refusals(self.match, self.place, self.user)))


@pytest.mark.parametrize("secrets", TABLES)
def test_a_secret_reaches_nobody_else(secrets, client_of, db):
    match, people = seated(secrets[0].scenario)
    viewers = [Viewer(match, place, people, client_of) for place in (SPECTATOR, *range(len(people)))]
    occurrences = 0
    for _ in range(STEPS):
        match.refresh_from_db()
        if not services.fold(match).game.to_act():
            break
        for person in viewers:
            text = person.everything()
            for secret in secrets:
                occurrences += secret.text in text
                assert secret.text not in text or person.place in secret.readers, f"{person.place}: {secret.text}"
        play_on(match, moves_by_chance(match))
    assert occurrences, "who may read them must get them, or the search would prove nothing"
    services.abort(match_id=match.pk, why="enough")
    second = viewers[1]
    for person in viewers:
        hidden = [secret.text for secret in secrets if person.place not in secret.readers]
        for step, saw in person.saw.items():
            shown, page = second.replay(viewer=person.place, step=step)
            assert shown == saw
            assert not [text for text in hidden if text in page]
