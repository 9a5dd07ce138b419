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
from training.records import SPECTATOR
from webapp.accounts.services import create_key
from webapp.arena import services
from webapp.arena.consumers import Held, frame_of

pytestmark = pytest.mark.django_db(transaction=True)
STEPS = 4


def two_of(game):
    """A game's first and last scenarios with secrets, each with its secrets."""
    found = [SECRETS[game][at].scenario for at in (0, -1)]
    chosen = found if found[0] != found[1] else found[:1]
    return [[secret for secret in SECRETS[game] if secret.scenario == scenario] for scenario in chosen]


TABLES = [pytest.param(secrets, id=f"{game}-{at}") for game in SECRETS for at, secrets in enumerate(two_of(game))]


class Viewer:
    """One person at the table: all that the site answers them during the game."""

    def __init__(self, match, place, people, client_of):
        self.match, self.place = match, place
        self.user = viewer_named(place, people)
        self.client = client_of(self.user)
        self.key = create_key(user=self.user, name="canary")[1]
        self.replayed = {}

    def replay(self, **query):
        answer = self.client.get(f"/play/{self.match.pk}/replay/", query)
        assert answer.status_code == 200
        shown = {name: answer.context[name] for name in ("viewer", "rows", "phase", "board")}
        return shown | {"private": answer.context["scene"].private}, answer.content.decode()

    def everything(self):
        """The text of all that they get at this step."""
        pages = [self.client.get(address) for address in ("/play/", f"/play/{self.match.pk}/")]
        if self.place != SPECTATOR:
            pages.append(self.client.get(f"/play/{self.match.pk}/consent/"))
        bearer = {"Authorization": f"Bearer {self.key}"}
        pages.append(self.client.get(reverse("api:get_match", kwargs={"pk": self.match.pk}), headers=bearer))
        assert {page.status_code for page in pages} == {200}
        self.replayed[self.match.step], replay = self.replay()
        frame, _ = frame_of(self.user, self.match.pk, self.place, Held(last=0))
        texts = [*(page.content.decode() for page in pages), replay, frame]
        return html.unescape("\n".join(texts + refusals(self.match, self.place, self.user)))


@pytest.mark.parametrize("secrets", TABLES)
def test_a_secret_is_told_to_nobody_else(secrets, client_of, db):
    match, people = seated(secrets[0].scenario)
    viewers = [Viewer(match, place, people, client_of) for place in (SPECTATOR, *range(len(people)))]
    found = 0
    for _ in range(STEPS):
        match.refresh_from_db()
        if not services.fold(match).game.to_act():
            break
        for viewer in viewers:
            text = viewer.everything()
            for secret in secrets:
                found += secret.text in text
                assert secret.text not in text or viewer.place in secret.readers, f"{viewer.place}: {secret.text}"
        play_on(match, moves_by_chance(match))
    assert found, "who may read them must get them, or the search would prove nothing"
    services.abort(match_id=match.pk, why="enough")
    one = viewers[1]
    for viewer in viewers:
        for step, shown in viewer.replayed.items():
            again, page = one.replay(viewer=viewer.place, step=step)
            assert again == shown
            hidden = [secret.text for secret in secrets if viewer.place not in secret.readers]
            assert not [text for text in hidden if text in html.unescape(page)]
