"""What lies on a table as the templates of its zones draw it: buttons, fields, labels, nothing hidden."""

import re
from html.parser import HTMLParser

import pytest

from tests.games.cases.dialogue import dialogue
from tests.games.cases.negotiation import items, price
from tests.games.cases.qa_society import society
from training.analysis import Frontier, Proposal
from training.games import make
from training.records import ALL, SPECTATOR, Move, Scenario
from training.views import Circle, Map, Place, Room
from webapp.arena.live.controls import presses
from webapp.core.stage import Stage
from webapp.core.templatetags.zones import arrows, draw, plotted, seated


def strategic(game, *choices, **settings):
    """A game of Ada and Ben after some choices."""
    made = make(Scenario(id="x", game=game, settings=settings, seats=("Ada", "Ben")))
    for choice in choices:
        (seat,) = made.to_act()
        made.step({seat: Move(action="answer", args={"choice": choice})})
    return made


def drawn(game, viewer):
    """All zones of a view as a page has them."""
    actions = game.observe(viewer).actions
    forms = {action.name: action for action in actions}
    stage = Stage(game.names, viewer, presses(actions), forms, thinking=game.acting(viewer))
    return "".join(draw(zone, stage) for zone in game.show(viewer).zones)


class Buttons(HTMLParser):
    """The buttons of a page as (what is pressed, accessible name)."""

    def __init__(self, html):
        super().__init__()
        self.all, self._open = [], None
        self.feed(html)

    def handle_starttag(self, name, attrs):
        attrs = dict(attrs)
        if name == "button" and "disabled" not in attrs:
            self._open = [attrs["value"], attrs.get("aria-label", "")]

    def handle_data(self, data):
        if self._open is not None and not self._open[1]:
            self._open[1] = data.strip()

    def handle_endtag(self, name):
        if name == "button" and self._open is not None:
            self.all.append(tuple(self._open))
            self._open = None


def test_every_empty_square_is_a_button_with_its_place_as_name():
    game = strategic("tic_tac_toe", "X(1,1)", "O(0,0)")
    buttons = Buttons(drawn(game, 0)).all
    assert len(buttons) == 7
    assert ("answer:X(2,2)", "in the bottom right corner: empty") in buttons
    assert not Buttons(drawn(game, 1)).all
    assert not Buttons(drawn(game, SPECTATOR)).all


def test_pieces_differ_by_shape_and_the_newest_is_marked_once():
    html = drawn(strategic("tic_tac_toe", "X(1,1)", "O(0,0)"), SPECTATOR)
    assert re.findall(r'class="piece seat-(\d)" [^>]*><(\w+)', html) == [("1", "circle"), ("0", "path")]
    assert html.count("spot last") == 1
    assert "in the top left corner: nought of Ben, the newest" in html


def test_a_line_that_won_is_drawn_from_end_to_end():
    game = strategic("tic_tac_toe", "X(0,2)", "O(0,0)", "X(1,1)", "O(0,1)", "X(2,0)")
    html = drawn(game, 1)
    assert re.findall(r'<line x1="(\d)" y1="(\d)" x2="(\d)" y2="(\d)"', html) == [("2", "0", "0", "2")]
    assert 'viewBox="-0.5 -0.5 3 3"' in html
    assert html.count(" won ") == 3


def test_a_full_column_has_no_button():
    game = strategic("connect_four", opening=[3, 3, 3, 3, 3, 3])
    assert [name for _, name in Buttons(drawn(game, 0)).all] == [f"Column {at}" for at in (1, 2, 3, 5, 6, 7)]
    assert not Buttons(drawn(game, 1)).all


@pytest.mark.parametrize("viewer, labels", [(0, ["face down", "King"]), (1, ["face down", "Jack"])])
def test_the_others_card_lies_face_down(viewer, labels):
    html = drawn(strategic("kuhn_poker", fixed=[2, 0]), viewer)
    assert re.findall(r'<svg class="playing-card[^>]*aria-label="([^"]*)"', html) == labels
    assert html.count("face-down") == 1


def test_chips_are_drawn_one_by_one_for_each_seat():
    html = drawn(strategic("leduc_poker", "RAISE", "RAISE", fixed=[2, 0]), 1)
    piles = re.findall(r'<li class="pile pile-chip seat-(\d)">(.*?)</li>', html)
    assert [(seat, pile.count('class="icon')) for seat, pile in piles] == [("0", 3), ("1", 5)]
    assert "paid by Ben" in piles[1][1]


def test_a_card_of_ones_own_shows_what_one_was_told_and_its_buttons():
    game = strategic("hanabi", "Reveal player +1 color R", fixed=[0, 1, 2, 3, 0, 2])
    html = drawn(game, 1)
    assert 'aria-label="face down; red"' in html
    assert html.count(">red</text>") == 4, "Ada's two red cards, the empty stack, and one of Ben's own"
    buttons = Buttons(html).all
    assert ("answer:Play card 1", "Play card 2") in buttons
    assert ("answer:Discard card 1", "Discard card 2") in buttons
    assert ("answer:Reveal player +1 rank 2", "Point out 2s") in buttons
    other = drawn(game, 0)
    assert not Buttons(other).all
    assert other.count('class="resting" disabled') == html.count("<button"), "the places of the buttons stay"
    assert "<button" not in drawn(game, SPECTATOR)


def test_stacks_and_tokens_have_texts_beside_their_drawings():
    html = drawn(strategic("hanabi", "Play card 0", fixed=[0, 1, 2, 3, 0, 2]), SPECTATOR)
    assert 'aria-label="red: 1 of 2"' in html
    assert 'aria-label="yellow: 0 of 2"' in html
    assert '<strong>3</strong><span class="quiet"> of 3</span>' in html


def test_a_state_in_the_games_own_words_keeps_its_lines():
    game = strategic("openspiel:breakthrough")
    assert f">{str(game.state).strip()}</pre>" in drawn(game, 0)


@pytest.mark.parametrize("name", ["tic_tac_toe", "connect_four", "kuhn_poker", "leduc_poker", "hanabi"])
def test_every_legal_choice_is_one_button_of_the_zones(name):
    game = strategic(name)
    for _ in range(60):
        if not game.to_act():
            break
        (seat,) = game.to_act()
        legal = game.observe(seat).actions[0].args[0].choices
        for viewer in (0, 1, SPECTATOR, ALL):
            pressed = [value for value, _ in Buttons(drawn(game, viewer)).all]
            assert sorted(pressed) == (sorted(f"answer:{choice}" for choice in legal) if viewer == seat else [])
        game.step({seat: Move(action="answer", args={"choice": legal[len(legal) // 2]})})
    assert not game.to_act()


def proposing(game, *moves):
    """A game after some moves, as (seat, action, arguments)."""
    for seat, action, args in moves:
        game.step({seat: Move(action=action, text="x" if action == "talk" else "", args=args)})
    return game


HALF = {"food": 2, "tent pegs": 2, "oil": 0}


def test_a_tray_edits_how_many_units_one_keeps():
    html = drawn(make(items()), 0)
    fields = re.findall(
        r'<input form="move" type="number"[^>]* name="([^"]*)" min="0" max="(\d)" step="1" value="(\d)"', html
    )
    assert fields == [("propose.food", "3", "2"), ("propose.tent pegs", "2", "1"), ("propose.oil", "1", "1")]
    assert re.findall(r'data-count="(\d)" data-name="([^"]*)" data-worth="(\d)"', html) == [
        ("3", "food", "5"),
        ("2", "tent pegs", "4"),
        ("1", "oil", "3"),
    ]
    assert '<button form="move" name="action" value="propose">' in html
    assert (html.count('class="unit seat-0"'), html.count('class="unit seat-1"')) == (4, 2)
    assert "No deal: 5" in html
    for viewer in (1, SPECTATOR):
        other = drawn(make(items()), viewer)
        assert "<button" not in other
        assert "<input" not in other
        assert other.count('class="unit"') == 6
    assert "data-worth" not in drawn(make(items()), SPECTATOR)


def test_a_unit_is_drawn_or_has_its_first_letter():
    html = drawn(make(items()), SPECTATOR)
    assert re.findall(r'icons.svg#(\w+)"/>(?:<text[^>]*>(\w)</text>)?', html) == [("food", "")] * 3 + [
        ("piece", "T")
    ] * 2 + [("piece", "O")]


@pytest.mark.parametrize("viewer, worth", [(0, "18 of 26"), (1, "11 of 17"), (SPECTATOR, "")])
def test_a_proposal_lies_on_two_sides(viewer, worth):
    """Ada keeps 2·5 + 2·4 = 18 of 26; Ben gets one food at 2 and the oil at 9: 11 of 17."""
    html = drawn(proposing(make(items()), (0, "propose", HALF)), viewer)
    sides = re.findall(r'<td class="tray-side">(\d)(.*?)</td>', html)
    assert [number for number, _ in sides] == ["2", "1", "2", "0", "0", "1"]
    assert [part.count("seat-0") for _, part in sides] == [2, 0, 2, 0, 0, 0]
    assert [part.count("seat-1") for _, part in sides] == [0, 1, 0, 0, 0, 1]
    assert (f"<strong>{worth}</strong> points for you" in html) == (viewer != SPECTATOR)
    assert ("points for you" in html) == (viewer != SPECTATOR)
    assert "Your proposal" in html if viewer == 0 else "Ada's proposal" in html.replace("&#x27;", "'")
    assert "The deal" in drawn(proposing(make(items()), (0, "propose", HALF), (1, "accept", {})), viewer)


def test_many_units_are_a_number():
    pool = {"kind": "items", "items": [{"name": "nails", "count": 40}], "sides": [{"values": {"nails": 1}}] * 2}
    game = make(Scenario(id="x", game="negotiation", settings={"deal": pool}, seats=("Ada", "Ben")))
    html = drawn(game, 0)
    assert "nails × 40" in html
    assert "unit" not in html.replace("units", "")


def test_a_price_has_a_field_a_slider_and_marks_that_the_viewer_may_know():
    game = make(price())
    html = drawn(game, 0)
    assert 'name="propose.price" min="0" max="600" step="1" value="300"' in html
    assert re.search(r'<input type="range"[^>]* min="0" max="600" step="1" value="300"', html)
    assert 'aria-label="From 0 to 600; listed at 300; you hope for 180"' in html
    assert "<input" not in drawn(game, 1)
    assert "you hope for 280" in drawn(game, 1)
    assert "hope" not in drawn(game, SPECTATOR)
    proposing(game, (0, "propose", {"price": 150}))
    assert 'cx="25.0"' in drawn(game, 1)
    assert "Ada's proposal: 150" in drawn(game, 1).replace("&#x27;", "'")
    assert "Your proposal: 150" in drawn(game, 0)
    assert "price-rejected" not in drawn(game, 0)
    proposing(game, (1, "reject", {}))
    assert '<path d="M25.0 17m-1.600 -1.600' in drawn(game, 0)
    assert "listed at 300; you hope for 180; rejected: 150 by Ada" in drawn(game, 0)


def test_portraits_show_gestures_and_what_the_viewer_knows():
    game = make(dialogue(relationship=2))
    proposing(game, (0, "nonverbal", {"what": "waves <b>"}))
    html = drawn(game, 1)
    assert '<p class="portrait-mood">waves &lt;b&gt;</p>' in html
    assert "public_info of Ada" in html
    assert "personality_and_values of Ada" not in html
    assert "secret" not in html
    assert "public_info" not in drawn(game, SPECTATOR)


def test_passages_have_a_heading_where_they_have_a_title():
    game = proposing(make(society()), (0, "ask", {}), (1, "search", {}))
    game.step({3: game.retrieval(["Prague: On the <i>Vltava</i>.", "No title"])})
    html = drawn(game, 1)
    assert re.findall(r"<h3>(.*?)</h3>", html) == ["Prague"]
    assert "On the &lt;i&gt;Vltava&lt;/i&gt;." in html
    named = proposing(make(society(deanon=True)), (0, "ask", {}), (1, "hedge", {"answer": "Elbe"}))
    named.step({2: named.default(2)})
    headings = [
        " ".join(re.sub(r"<[^>]*>", "", heading).split()) for heading in re.findall(r"<h3>(.*?)</h3>", drawn(named, 0))
    ]
    assert headings == ["Ben (wiki) guesses", "Cleo (pubmed) does not answer"]


def circle(seats=4, **votes):
    """A circle of seats; `_0=2`: seat 0 voted for seat 2."""
    voted = {int(voter[1:]): target for voter, target in votes.items()}
    return Circle(title="All", places=tuple(Place(seat=seat, voted=voted.get(seat)) for seat in range(seats)))


def test_seats_go_clockwise_from_the_viewers_own_at_the_bottom():
    around = seated(circle(), Stage(("Ada", "Ben", "Cleo", "Dan"), 1))
    assert [(item.place.seat, item.at, round(item.x), round(item.y)) for item in around] == [
        *[(1, 0, 50, 91), (2, 1, 9, 50), (3, 2, 50, 9), (0, 3, 91, 50)]
    ]
    assert seated(circle(), Stage(("Ada", "Ben", "Cleo", "Dan"), SPECTATOR))[0].place.seat == 0


def test_an_arrow_leads_from_each_voter_to_its_choice_and_ends_before_the_seat():
    stage = Stage(("Ada", "Ben", "Cleo", "Dan"), 0)
    # seat 0 is at (50, 91) and seat 2 at (50, 9); the arrow begins and ends 10.5 away, its head is 4 long and 3.6 wide
    assert arrows(seated(circle(_0=2), stage)) == [
        {"seat": 0, "x1": 50, "y1": 80.5, "x2": 50, "y2": 19.5, "left": "48.2 23.5", "right": "51.8 23.5"}
    ]
    html = draw(circle(_0=2, _1=2), stage)
    assert html.count('class="arrow seat-') == 2
    assert html.count("voted for Cleo") == 2


def test_arrows_between_neighbours_of_a_full_table_point_the_right_way():
    (arrow,) = arrows(seated(circle(12, _0=1), Stage(("A",) * 12, 0)))
    length = ((arrow["x2"] - arrow["x1"]) ** 2 + (arrow["y2"] - arrow["y1"]) ** 2) ** 0.5
    assert length == pytest.approx(0.4 * 82 * 0.2588, abs=0.1), "two fifths of a chord of 30 degrees"
    assert arrow["x2"] < arrow["x1"]
    assert arrow["y2"] < arrow["y1"]


def village(*moves):
    """Ada is the wolf, Ben the seer; after the moves of the first steps."""
    roles = ("werewolf", "seer", "villager", "villager")
    game = make(Scenario(id="x", game="werewolf", settings={"roles": roles, "deal": roles}, seats=("A", "B", "C", "D")))
    for step in moves:
        game.step({seat: Move(action=name, args={"target": target}) for seat, (name, target) in step.items()})
    return game


def test_a_target_is_chosen_by_its_seat_and_nobody_in_the_middle():
    game = village()
    assert Buttons(drawn(game, 0)).all == [
        *[("kill:nobody", "Attack nobody"), ("kill:B", "B"), ("kill:C", "C"), ("kill:D", "D")]
    ]
    assert [value for value, _ in Buttons(drawn(game, 1)).all] == [
        *["inspect:nobody", "inspect:C", "inspect:D", "inspect:A"]  # from her left around
    ]
    for viewer in (2, 3, SPECTATOR, ALL):
        assert not Buttons(drawn(game, viewer)).all


def test_a_circle_says_who_is_out_and_what_is_known():
    html = drawn(village({0: ("kill", "C"), 1: ("inspect", "A")}), 1)
    seats = [re.sub(r"<[^>]+>|\s+", " ", seat).split() for seat in html.split("<li ")[1:]]
    assert [word for word in seats[3] if word in ("A", "werewolf")] == ["A", "werewolf"]
    assert "icon-wolf" in html
    assert " ".join(seats[1]).endswith("C villager out: night 1")
    assert html.count("icon-skull") == 1


def test_a_wide_ship_scrolls_inside_its_map_and_a_small_one_does_not():
    stage = Stage(("Ada",), 0)
    for columns in (4, 5):
        rooms = tuple(Room(name=f"R{column}", row=0, column=column) for column in range(columns))
        assert ('tabindex="0"' in draw(Map(title="The ship", rooms=rooms), stage)) == (columns > 4)


def test_a_room_next_door_is_a_button_and_says_who_is_in_it():
    settings = {"width": 2, "height": 1, "tasks": 1, "deal": {"imposter": 1, "tasks": [[[1, 0]]] * 3}}
    game = make(Scenario(id="x", game="among_us", settings=settings, seats=("Ada", "Ben", "Cleo")))
    html = drawn(game, 0)
    assert Buttons(html).all == [("go:east", "Arsenal")]
    assert html.index("(you are here)") < html.index("Ada (you)") < html.index("Arsenal")
    assert "your tasks here: </span>1" in html
    assert not Buttons(drawn(game, SPECTATOR)).all


def test_an_imposter_presses_whom_it_kills():
    settings = {"width": 2, "height": 1, "tasks": 1, "cooldown": 1, "deal": {"imposter": 1, "tasks": [[[1, 0]]] * 4}}
    game = make(Scenario(id="x", game="among_us", settings=settings, seats=("Ada", "Ben", "Cleo", "Dan")))
    waiting = Move(action="wait", args={})
    game.step(dict.fromkeys(game.to_act(), waiting))
    while "kill" not in {action.name for action in game.observe(1).actions}:
        game.step(dict.fromkeys(game.to_act(), waiting))
    pressed = [(value, label) for value, label in Buttons(drawn(game, 1)).all if value.startswith("kill")]
    assert [value for value, _ in pressed] == ["kill:Ada", "kill:Cleo", "kill:Dan"]
    assert 'aria-label="Kill Ada"' in drawn(game, 1)
    assert "kill" not in drawn(game, 0).lower()


def test_names_are_no_markup():
    scenario = Scenario(id="x", game="kuhn_poker", settings={}, seats=("Ada", "B&amp;n\"'"))
    html = drawn(make(scenario), 0)
    assert "B&amp;amp;n&quot;&#x27;" in html
    assert 'B&amp;n"' not in html


def test_a_zone_edits_nothing_where_nothing_is_offered():
    """In a replay, and while the game is paused, the view is the same as at one's turn."""
    for game in (make(items()), make(price())):
        zones = game.show(0).zones
        assert any(zone.action for zone in zones)
        assert "<input" in drawn(game, 0)
        html = "".join(draw(zone, Stage(game.names, 0)) for zone in zones)
        assert not re.search("<input|<button", html)


def test_a_frontier_is_drawn_to_scale_and_said_in_words():
    frontier = Frontier(
        title="f",
        outcomes=((0, 6), (1, 3), (2, 0)),
        efficient=((0, 6), (1, 3), (2, 0)),
        proposals=(Proposal(by=0, points=(2, 0)), Proposal(by=1, points=(1, 3))),
        alone=(0.5, 0),
        most=(2, 6),
        agreed=True,
    )
    plot = plotted(frontier)
    assert plot["outcomes"] == [(0, 0), (50, 50), (100, 100)], "the origin is at the bottom left"
    assert (plot["front"], plot["alone"]) == ("0.0,0.0 50.0,50.0 100.0,100.0", (25, 100))
    assert [(mark["number"], mark["by"], mark["x"], mark["y"], mark["deal"]) for mark in plot["marks"]] == [
        (1, 0, 100, 100, False),
        (2, 1, 50, 50, True),
    ]
    html = draw(frontier, Stage(("Ada", "<b>Ben</b>"), ALL))
    assert "1 for Ada, 3 for &lt;b&gt;Ben&lt;/b&gt; <strong>agreed</strong>" in html
    assert html.count("<strong>agreed</strong>") == 1
