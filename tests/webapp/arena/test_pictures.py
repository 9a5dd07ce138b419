"""Pictures of a replay: who may have them, what they show, and that nothing but text and shapes is in them."""

import re
from base64 import b64encode
from hashlib import sha256
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from django.contrib.staticfiles import finders

from tests.games.cases.strategic import strategic
from tests.webapp.arena.conftest import dialogue
from tests.webapp.arena.test_analysis import game, play, resign
from training.games.base import FORFEIT
from training.records import ALL, SPECTATOR, Move
from training.views import Line
from webapp.arena.models import Match
from webapp.arena.pictures import drawing, scenes
from webapp.arena.pictures.frames import Frame, Picture
from webapp.arena.play import services
from webapp.arena.setup import tables, waiting_room

SVG = {"svg": drawing.SVG}
PAGES = ("embed/", "picture.svg", "animation.svg")


def parsed(svg):
    return ET.fromstring(svg)  # noqa: S314 (it was written here)


def texts(svg):
    return [element.text for element in parsed(svg).iter(f"{{{drawing.SVG}}}text")]


def spoken(*words):
    return [Line(kind="speech", seat=at % 2, text=text) for at, text in enumerate(words)]


def picture():
    return Picture("Nim: Ada, Ben", ("Ada", "Ben"))


def test_colours_of_seats_are_those_of_the_style_sheet():
    css = Path(finders.find("css/table.css")).read_text("utf-8").split("@media")[0]
    assert tuple(re.findall(r"--parley-seat-\d+: (#\w{6});", css)) == drawing.SEATS


def test_lines_are_as_wide_as_they_may_be_and_lose_nothing():
    text = "one two three " + "x" * 90 + " 漢字" * 20
    lines = drawing.wrapped(text, 120, 13)
    assert "".join("".join(lines).split()) == "".join(text.split())
    assert all(drawing.width(line, 13) <= 120 for line in lines)
    assert drawing.wrapped("one two three", 1000, 13) == ["one two three"]
    assert drawing.wrapped(" ", 100, 13) == []


def test_text_of_people_is_text():
    hostile = '</text><script>alert(1)</script><a xlink:href="javascript:x">& \u202egnp.exe\x07\ufffe'
    frame = Frame(1, 1, (), spoken(hostile), hostile)
    for svg in (picture().still(frame), picture().animation([frame, Frame(2, 2, (), spoken(hostile, hostile))])):
        kinds = {element.tag.split("}")[1] for element in parsed(svg).iter()}
        shapes = {"svg", "title", "desc", "defs", "symbol", "g", "rect", "circle", "path", "text", "use", "set"}
        assert kinds <= {*shapes, "style"}
        assert "<script" not in svg
        assert "U+202E" in svg
        assert "U+0007" in svg
        values = [value for element in parsed(svg).iter() for value in element.attrib.values()]
        assert not [value for value in values if "//" in value or "javascript" in value or "url(" in value]
        assert not [name for element in parsed(svg).iter() for name in element.attrib if name.startswith("on")]


def test_the_newest_words_that_fit_are_shown_in_their_order():
    frame = Frame(9, 9, (), spoken(*(f"line {number}" for number in range(40))))
    shown = [text for text in texts(picture().still(frame)) if text.startswith("line ")]
    assert shown == [f"line {number}" for number in range(40 - len(shown), 40)]
    assert 5 < len(shown) < 12
    long = texts(picture().still(Frame(1, 1, (), spoken("word " * 2000))))
    assert long[-1].endswith(" …")


def test_positions_follow_each_other_and_the_last_one_stays():
    frames = [Frame(step, 3, (), spoken(*["x" * 40] * shown)) for step, shown in enumerate((0, 1, 1, 2))]
    root = parsed(picture().animation(frames))
    groups = [group for group in root.findall("svg:g", SVG) if "visibility" in group.attrib]
    assert [group.get("visibility") for group in groups] == ["visible", "hidden", "hidden"], "two look alike"
    timing = [[(each.get("to"), each.get("begin")) for each in group.findall("svg:set", SVG)] for group in groups]
    # by hand: 1.2 s, and 0.03 s for each of 40 new characters
    assert timing == [
        [("hidden", "1.2s")],
        [("visible", "1.2s"), ("hidden", "3.6s")],
        [("visible", "3.6s")],
    ]
    assert root.find("svg:title", SVG).text == "Nim: Ada, Ben, game step 0 to game step 3"


@pytest.mark.django_db
def test_who_prefers_reduced_motion_sees_the_last_position_alone(client_of, player):
    match = game(player, strategic("tic_tac_toe"))
    play(match, "X(1,1)", "O(0,1)")
    resign(match)
    answer = client_of(player).get(f"/play/{match.pk}/animation.svg")
    root = parsed(answer.content)
    (style,) = root.findall("svg:style", SVG)
    rule = re.fullmatch(r"@media \(prefers-reduced-motion: reduce\) { (.*) }", style.text).group(1)
    assert rule == ".past { display: none } .last { display: inline; visibility: visible }"
    positions = [group.get("class") for group in root.findall("svg:g", SVG) if group.get("class")]
    assert positions == ["past", "past", "past", "last"]
    accepted = b64encode(sha256(style.text.encode()).digest()).decode()
    assert f"style-src 'self' 'sha256-{accepted}'" in answer["Content-Security-Policy"]
    assert "sha256" not in client_of(player).get(f"/play/{match.pk}/picture.svg")["Content-Security-Policy"]


@pytest.mark.django_db
def test_a_picture_shows_the_board_of_its_step_and_says_so(client_of, player):
    match = game(player, strategic("tic_tac_toe"))
    play(match, "X(1,1)", "O(0,1)")
    assert client_of(player).get(f"/play/{match.pk}/picture.svg").status_code == 404, "the game is not over"
    resign(match)
    answer = client_of(player).get(f"/play/{match.pk}/picture.svg", {"step": 1})
    assert answer["Content-Type"] == "image/svg+xml; charset=utf-8"
    root = parsed(answer.content)
    assert root.get("role") == "img"
    described = root.find("svg:desc", SVG).text
    assert described.startswith("in the middle: cross of Ada, the newest")
    assert described.endswith("Ada puts a cross in the middle.")
    assert len(root.findall(f".//svg:rect[@stroke='{drawing.EDGE}']", SVG)) == 9
    moving = client_of(player).get(f"/play/{match.pk}/animation.svg").content.decode()
    assert moving.count("<set ") == 6, "four positions"
    page = client_of(player).get(f"/play/{match.pk}/embed/", {"step": 1}).content.decode()
    assert f'src="/play/{match.pk}/picture.svg?viewer=-2&amp;step=1"' in page
    assert "&lt;img src=&quot;match-" in page or '&lt;img src="match-' in page


@pytest.mark.django_db
def test_positions_share_their_lines(player):
    """A line is made once for a picture of many positions, not once for each position that has it."""
    match = game(player, strategic("tic_tac_toe"))
    play(match, "X(1,1)", "O(0,1)")
    resign(match)
    first, second, third = scenes.frames_of(match, ALL, 0, 2)
    texts_of = [[line.text for line in frame.lines] for frame in (first, second, third)]
    assert texts_of[0] == []
    assert texts_of[1] == ["Ada puts a cross in the middle"]
    assert texts_of[2] == [*texts_of[1], "Ben puts a nought at the top"]
    assert second.lines[0] is third.lines[0]
    assert [line.seat for line in third.lines] == [0, 1]
    (alone,) = scenes.frames_of(match, ALL, 2, 2)
    assert alone == third


@pytest.mark.django_db
def test_pictures_have_the_permissions_of_the_replay(client_of, player, ben, annotator):
    places = [tables.Place(user=player), tables.Place(user=ben)]
    match = tables.create(host=player, start=tables.Start(dialogue()), places=places, consent=True, visibility="open")
    waiting_room.answer_consent(match=match, user=ben, agreed=True)
    services.submit(match_id=match.pk, seat=0, step=0, move=Move(action="speak", text="Quoth the raven."))
    services.submit(match_id=match.pk, seat=1, step=1, move=FORFEIT)
    match.refresh_from_db()
    for page in PAGES:
        assert client_of(ben).get(f"/play/{match.pk}/{page}", {"viewer": ALL}).status_code == 200
        assert client_of(annotator).get(f"/play/{match.pk}/{page}", {"viewer": SPECTATOR}).status_code == 200
        for place in (ALL, 0, 1, 9):
            assert client_of(annotator).get(f"/play/{match.pk}/{page}", {"viewer": place}).status_code == 404
    assert "Quoth the raven." in client_of(annotator).get(f"/play/{match.pk}/picture.svg").content.decode()
    Match.objects.filter(pk=match.pk).update(visibility="private")
    for page in PAGES:
        assert client_of(annotator).get(f"/play/{match.pk}/{page}").status_code == 404
        assert client_of(ben).get(f"/play/{match.pk}/{page}").status_code == 200
    assert "loads it from here" not in client_of(ben).get(f"/play/{match.pk}/embed/").content.decode()
    Match.objects.filter(pk=match.pk).update(visibility="public")
    page = client_of(annotator).get(f"/play/{match.pk}/embed/").content.decode()
    assert f"http://testserver/play/{match.pk}/picture.svg?viewer=-2&amp;amp;step=2" in page
