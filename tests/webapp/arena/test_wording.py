"""What people read of a game: its pages and its refusals have no tags that models write."""

import pytest

from tests.games.cases.werewolf import dealt
from tests.webapp.arena.conftest import negotiation
from training.errors import BadInput
from training.games import make
from training.records import ALL, SPECTATOR, Message
from training.views import Line
from webapp.arena.models import Match, ViewerRow
from webapp.arena.play import moves, services
from webapp.arena.setup import tables
from webapp.arena.templatetags import table


def test_a_move_that_is_not_offered_is_refused_with_the_labels_of_the_form():
    observation = make(negotiation(first_seat=0)).observe(0)
    with pytest.raises(BadInput) as refused:
        moves.read_move({"turn": "0", "action": "fly"}, observation)
    assert str(refused.value) == (
        "choose one of: Say something; Propose a split, naming what you keep; Walk away without a deal"
    )


@pytest.mark.parametrize(
    "words, author, viewer, answers, named",
    [
        ("ben, and you?", 0, 1, True, True),
        ("Benny will not.", 0, 1, True, False),
        ("I am Ben.", 1, 1, False, False),
        ("Ben?", 0, SPECTATOR, False, False),
        ("Ben has left.", None, 1, False, False),
    ],
)
def test_who_can_answer_a_line_and_whom_it_names(words, author, viewer, answers, named):
    line = Line(kind="news" if author is None else "speech", text=words, seat=author)
    row = ViewerRow(number=1, message=Message(author=author, text=words, lines=(line,)).to_dict())
    assert table.answerable(row, viewer) is answers
    assert table.mentions(row, ("Ada", "Ben"), viewer) is named


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
    for place in (0, SPECTATOR, ALL):
        replay = client_of(player).get(f"/play/{match.pk}/replay/", {"viewer": place}).content.decode()
        for_people, _, for_models = replay.partition("What a model at this place would read")
        assert "&lt;" not in for_people
        assert "&lt;vote&gt;" in for_models
    for address in (f"/play/{match.pk}/result/", f"/judgments/rate/{match.pk}/"):
        assert "&lt;" not in client_of(player).get(address).content.decode()
