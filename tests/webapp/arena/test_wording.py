"""What people read of a game: its lines and its refusals without the tags that models write."""

import pytest

from tests.games.cases.werewolf import dealt
from tests.games.play import played, viewers
from tests.games.worlds import CASES
from tests.webapp.arena.conftest import negotiation
from training.errors import BadInput, ParseError
from training.games import make
from training.records import ALL, SPECTATOR
from training.text.parsing import parse
from webapp.arena.models import Match
from webapp.arena.play import moves, services
from webapp.arena.setup import tables
from webapp.arena.templatetags.table import announced, first_line


@pytest.mark.parametrize(
    "line, shown",
    [
        (
            "- Propose a price: <propose>300</propose> (price 0 to 600).",
            "- Propose a price (price 0 to 600).",
        ),
        (
            "- Vote to send a player away: <vote>Ada</vote> (target: Ada, nobody). What you write is private.",
            "- Vote to send a player away (target: Ada, nobody).",
        ),
        ("- Accept the proposal: <accept/>.", "- Accept the proposal."),
        ("- Talk: just write it, without a tag.", "- Talk: in the text field."),
        ("- Say why: <why/>. Write a sentence beside it.", "- Say why. Write a sentence with it."),
        (
            "Everybody votes now: <vote>name</vote>, with one of: Ada, Ben, nobody.",
            "Everybody votes now, with one of: Ada, Ben, nobody.",
        ),
        ("Bid for the floor now: <bid>0</bid> to <bid>4</bid>.", "Bid for the floor now: 0 to 4."),
        ("Ben makes no choice, so: <answer><PASS></answer>", "Ben makes no choice, so: PASS"),
        ("   - <Play card i>: if the card is the next", "   - Play card i: if the card is the next"),
        (
            "Think if you like, then end with exactly one of them: <answer><PASS></answer>. Nobody else reads it.",
            "Choose one of them.",
        ),
        ("Nothing was found. You can click: back to search.\nTurns left: 9.", "Nothing was found.\nTurns left: 9."),
        ("P7 A chair\nYou can click: features, buy now.\nTurns left: 9.", "P7 A chair\nTurns left: 9."),
        ("I <3 you, 2 > 1, <b>bold</b> <script>", "I <3 you, 2 > 1, <b>bold</b> <script>"),
    ],
)
def test_a_line_of_the_game_is_read_without_tags(line, shown):
    assert announced(line) == shown


@pytest.mark.parametrize("text, shown", [("Page 1:\nP7\nP8", "Page 1"), ("10:30\n", "10:30"), ("", "")])
def test_a_folded_line_ends_without_a_colon(text, shown):
    assert first_line(text) == shown


@pytest.mark.parametrize("game", CASES)
def test_no_game_shows_people_a_tag(game):
    for scenario in CASES[game]:
        over, _ = played(scenario, seed=3)
        lines = [m.text for viewer in viewers(scenario) for m in over.observe(viewer).messages if m.author is None]
        assert [line for line in map(announced, lines) if "<" in line] == []


@pytest.mark.parametrize("reply", ["<vote>Ada</vote>", "<propose>x</propose>", "<propose>", "", "<accept/> <accept/>"])
def test_a_refusal_names_moves_without_tags(reply):
    observation = make(negotiation(first_seat=0)).observe(0)
    with pytest.raises(ParseError) as refused:
        parse(reply, observation)
    refusal = announced(str(refused.value))
    assert "</" not in refusal
    assert "<propose>food" not in refusal


def test_a_move_that_is_not_offered_is_refused_with_the_labels_of_the_form():
    observation = make(negotiation(first_seat=0)).observe(0)
    with pytest.raises(BadInput) as refused:
        moves.read_move({"turn": "0", "action": "fly"}, observation)
    assert str(refused.value) == (
        "choose one of: Say something; Propose a split, naming what you keep; Walk away without a deal"
    )


@pytest.mark.django_db
def test_the_pages_of_a_village_show_no_tags(client_of, player):
    scenario = dealt("villager", "werewolf", "villager", first_night_kill=False, day_limit=1, wolf_talk=0)
    places = [tables.Place(user=player), tables.Place(scripted="scripted"), tables.Place(scripted="scripted")]
    match = tables.create(host=player, start=tables.Start(scenario), places=places, consent=True)
    match.refresh_from_db()
    assert match.state == Match.State.RUNNING
    while match.state == Match.State.RUNNING:
        page = client_of(player).get(f"/play/{match.pk}/").content.decode()
        assert "&lt;" not in page
        game = services.fold(match).game
        for seat in sorted(game.to_act()):
            services.submit(match_id=match.pk, seat=seat, step=match.step, move=game.default(seat))
        match.refresh_from_db()
    assert "Everybody votes now, with one of: " in page
    log = page[page.index('id="log"') :]
    assert log.index("play Werewolf. The roles: ") < log.index("The game begins."), "small screens begin with the story"
    assert "You are Ada" not in log[: log.index("The game begins.")], "the card is for its reader alone"
    for place in (0, SPECTATOR, ALL):
        assert "&lt;" not in client_of(player).get(f"/play/{match.pk}/replay/", {"viewer": place}).content.decode()
    for address in (f"/play/{match.pk}/result/", f"/judgments/rate/{match.pk}/"):
        assert "&lt;" not in client_of(player).get(address).content.decode()
