"""No page and no frame has a character that reorders or hides text, except in the values of form fields.

Names, texts and reasons with such characters are stored wherever text of people, models and files is kept; pages are
read by Python's own HTML parser.
"""

import re
from html.parser import HTMLParser

import pytest

from tests.browser import planting
from training.records import Move
from webapp.arena.live import client_state, fragments
from webapp.arena.models import Match
from webapp.arena.play import services

pytestmark = pytest.mark.django_db
RAW = re.compile("[\u0001-\u0008\u000b\u000c\u007f\u0085\u00ad\u200b\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff]")
NAME = "zo\u202ee\u200b"


class Reader(HTMLParser):
    """Collects the text and the attributes that a page shows."""

    def __init__(self):
        super().__init__()
        self.shown, self.element = [], ""

    def handle_starttag(self, tag, attributes):
        self.element = tag
        self.shown += [value or "" for name, value in attributes if name != "value"]

    def handle_endtag(self, tag):
        self.element = ""

    def handle_data(self, data):
        if self.element != "textarea":
            self.shown.append(data)


def read(html):
    reader = Reader()
    reader.feed(html)
    reader.close()
    return reader.shown


@pytest.fixture
def planted(researcher, player, person, settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path
    settings.RUNS_ROOT = tmp_path / "runs"
    person("player", "ben")
    person("player", "otto")
    return planting.everywhere()


def test_no_page_has_one(planted, researcher, player, admin, client_of):
    researcher.username = player.username = NAME + "x"
    researcher.save()
    player.username = NAME
    player.save()
    pages = [address for address, _ in planted["pages"]]
    pages += ["/play/", "/play/new/", "/play/matches/", "/accounts/", *planted["links"]]
    asked = {
        researcher: pages,
        admin: ["/accounts/people/", "/"],
        player: [f"/play/{planted['match']}/", "/play/", "/ladder/"],
    }
    numbers = 0
    for user, addresses in asked.items():
        client = client_of(user)
        for address in addresses:
            answer = client.get(address)
            assert answer.status_code == 200, address
            shown = read(answer.content.decode())
            assert [text for text in shown if RAW.search(text)] == [], address
            numbers += any("U+202E" in text for text in shown)
    assert numbers > len(planted["runs"]), "names with such characters are in the bar of every page"


def test_no_frame_has_one(planted, player):
    match = Match.objects.get(pk=planted["match"])
    move = Move(action="speak", text=f"{NAME} said so")
    services.submit(match_id=match.pk, seat=0, step=match.step, move=move)
    match.refresh_from_db()
    state, rows = client_state.read(match, 0, player), client_state.rows_after(match, 0, 0)
    shown = read(fragments.frame(fragments.render_parts(state), fragments.rows_html(state, rows), len(rows), "", {}))
    assert "U+202E" in shown
    assert [text for text in shown if RAW.search(text)] == []
