"""Boards, phases, choices, channels and roles on the table's pages, in a small game that has all of them."""

import re

import pytest
from django.template.loader import render_to_string

from tests.webapp.arena import vigil
from training.records import ALL, SPECTATOR, Action, Argument, Message, Observation
from webapp.arena.live import client_state, controls
from webapp.arena.play import moves, services
from webapp.arena.setup import tables, waiting_room
from webapp.arena.templatetags.table import speech

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("registered")]
registered = vigil.registered


@pytest.fixture
def three(player, ben, annotator):
    """Three people; seat 1 (ben) is the watcher."""
    people = (player, ben, annotator)
    places = [tables.Place(user=user) for user in people]
    match = tables.create(host=player, start=tables.Start(vigil.vigil(seed=1)), places=places, consent=True)
    for user in people[1:]:
        waiting_room.answer_consent(match=match, user=user, agreed=True)
    for user in people:
        waiting_room.say_ready(match=match, user=user)
    match.refresh_from_db()
    return match


def html(client, match):
    return client.get(f"/play/{match.pk}/").content.decode()


def play(client, match, **data):
    turn = match.moves.filter(seat__in=match.seats.filter(user=client.session["_auth_user_id"]).values("seat")).count()
    return client.post(f"/play/{match.pk}/move/", {"turn": str(turn), **data})


def by_day(client_of, match, ben):
    assert play(client_of(ben), match, choice="name:Ada").status_code == 302
    match.refresh_from_db()


def test_a_hidden_phase_offers_only_its_seat_anything_and_a_clock(client_of, player, ben, three):
    watcher, sleeper = html(client_of(ben), three), html(client_of(player), three)
    assert '<span class="phase">Night</span>' in watcher
    assert '<span class="phase">Night</span>' in sleeper
    assert re.findall(r'value="(name:\w+)"', watcher) == ["name:Ada", "name:Cy"]
    assert '<textarea id="say"' not in watcher, "words beside a private choice would be read by nobody"
    assert 'value="name:' not in sleeper
    assert "chair-acting" not in sleeper
    assert 'data-until="' in watcher
    assert "data-until" not in sleeper, "a clock that starts anew would tell of each hidden step"


def test_the_clock_does_not_reveal_who_has_moved(client_of, ben, player, three):
    by_day(client_of, three, ben)
    before = {viewer: client_state.read(three, viewer).deadline for viewer in (0, 1, 2, SPECTATOR)}
    assert len(set(before.values())) == 1
    assert play(client_of(player), three, choice="answer:A").status_code == 302
    three.refresh_from_db()
    assert {viewer: client_state.read(three, viewer).deadline for viewer in (0, 1, 2, SPECTATOR)} == before


def test_lines_of_a_channel_say_whose_they_are(client_of, player, ben, three):
    by_day(client_of, three, ben)
    assert html(client_of(ben), three).count("watchers only</span>") == 2
    assert "watchers" not in html(client_of(player), three)


def test_a_board_is_a_table_whose_choices_are_buttons(client_of, player, ben, three):
    by_day(client_of, three, ben)
    page = html(client_of(player), three)
    assert '<table class="zone board"><caption>Lamps</caption>' in page
    assert re.findall(r'<button form="move" name="choice" value="(answer:\w)"', page) == [
        "answer:A", "answer:B", "answer:C", "answer:D",
    ]  # fmt: skip
    assert '<span class="unseen">lamp B</span>' in page
    assert 'aria-label="Names"' in page
    assert "At most 3 words" in page
    play(client_of(player), three, choice="answer:C", text="so be it")
    stored = three.moves.get(seat=0).move
    assert (stored["action"], stored["args"]) == ("answer", {"lamp": "C"})
    assert stored["text"] == "so be it <answer><C></answer>"


@pytest.mark.parametrize("laid, left", [("", ["A", "B"]), ("A", ["B"]), ("AB", [])])
def test_choices_that_the_zones_have_are_no_controls(laid, left):
    target = Argument(name="target", kind="choice", choices=("A", "B"))
    vote = Action(name="vote", args=(target,), label="Vote")
    [control] = controls.controls([vote], laid)
    page = render_to_string("arena/parts/act.html", {"actions": [control], "state": {"your_turn": True}})
    assert re.findall(r'value="vote:(\w)"', page) == left


def test_an_action_that_a_zone_edits_has_no_control():
    amount = Argument(name="price", kind="integer", low=0, high=9)
    actions = [Action(name="propose", args=(amount,)), Action(name="leave")]
    assert [control["action"].name for control in controls.controls(actions, edited={"propose"})] == ["leave"]


@pytest.mark.parametrize(
    "data, why",
    [
        ({"choice": "answer:Z"}, "must be one of"),
        ({"choice": "fly:A"}, "Choose one of"),
        ({"choice": "talk:A"}, "write something"),
        ({"choice": ":A"}, "write something"),
        ({"choice": "answer:A", "text": "one two three four"}, "at most 3 are allowed"),
    ],
)
def test_a_wrong_choice_is_explained_and_changes_nothing(client_of, player, ben, three, data, why):
    by_day(client_of, three, ben)
    answer = play(client_of(player), three, **data)
    assert answer.status_code == 400
    assert why in answer.content.decode()
    assert three.moves.count() == 1


def test_the_replay_shows_the_board_of_its_step(client_of, player, annotator, ben, three):
    by_day(client_of, three, ben)
    for user in (player, ben, annotator):
        play(client_of(user), three, choice="answer:B")
    address = f"/play/{three.pk}/replay/"
    shown = [client_of(player).get(address, {"viewer": ALL, "step": step}).content.decode() for step in (0, 1, 2)]
    assert ["Lamps" in page for page in shown] == [False, True, True]
    assert ["Night" in page for page in shown] == [True, False, False]
    assert [">lit<" in page for page in shown] == [False, False, True]
    assert not any('name="choice"' in page for page in shown)
    assert client_of(player).get(address, {"viewer": 0, "step": 1}).content.decode().count('class="zone board"') == 1


def test_the_result_names_the_roles(client_of, player, annotator, ben, three):
    by_day(client_of, three, ben)
    for user in (player, ben, annotator):
        play(client_of(user), three, choice="answer:B")
    page = client_of(player).get(f"/play/{three.pk}/result/").content.decode()
    assert re.findall(r'<p class="role">(\w+)</p>', page) == ["sleeper", "watcher", "sleeper"]
    three.refresh_from_db()
    assert three.roles == ["sleeper", "watcher", "sleeper"]


def test_a_match_that_cannot_be_folded_still_has_a_replay(client_of, player, ben, three):
    by_day(client_of, three, ben)
    services.abort(match_id=three.pk, why="a mistake")
    three.moves.update(seat=0)  # who was not to act
    assert client_of(player).get(f"/play/{three.pk}/replay/").status_code == 200


# --- controls by themselves ---


def choice(name, *choices):
    return Action(name=name, args=(Argument(name="x", kind="choice", choices=choices),))


def test_what_two_actions_offer_is_no_button_on_the_board():
    actions = (choice("kill", "Ann", "Ben"), choice("save", "Ann"))
    assert controls.presses(actions) == {"Ben": "kill:Ben"}
    kill, save = controls.controls(actions, ("Ann", "Ben"))
    assert kill["buttons"] == [("kill:Ann", "Ann")]
    assert save["buttons"] == [("save:Ann", "Ann")]


def test_many_choices_are_one_list():
    names = [str(number) for number in range(17)]
    few, many = controls.controls((choice("few", *names[:16]), choice("many", *names)))
    assert (len(few["buttons"]), len(many["buttons"])) == (16, 0)


def test_a_choice_with_a_colon_is_read_whole():
    action = choice("go", "to: the hall")
    seen = Observation(messages=(), actions=(action,))
    assert moves.read_move({"choice": moves.press(action, "to: the hall")}, seen).args == {"x": "to: the hall"}


@pytest.mark.parametrize(
    "text, shown",
    [
        ("<answer><BET></answer>", '<span class="deed">BET</span>'),
        ("well <answer> <X(0,1)> </answer>", 'well <span class="deed">X(0,1)</span>'),
        ("<play>card <A>, to <B></play>", '<span class="deed">play: card A, to B</span>'),
        ("<a>x</a> <a>y</a>", '<span class="deed">a: x</span> <span class="deed">a: y</span>'),
        ("<accept/>", '<span class="deed">accept</span>'),
        ("<answer><b>hi</b></answer>", '&lt;answer&gt;<span class="deed">b: hi</span>&lt;/answer&gt;'),
        ("<answer><script></answer>", '<span class="deed">script</span>'),
        ("<answer><&lt;x></answer>", '<span class="deed">&amp;lt;x</span>'),
    ],
)
def test_deeds_are_labels(text, shown):
    assert speech(text) == shown


def commands(*names):
    objects = Argument(name="object", kind="choice", choices=names, open=True)
    places = Argument(name="place", kind="choice", choices=("shelf 2",), open=True, prepositions=("from",))
    take = Action(name="take", args=(objects, places), text="private", verbs=("take",), label="Take something")
    look = Action(name="look", text="private", verbs=("look",))
    return Observation(messages=(Message(author=None, text="x"),), actions=(take, look), max_chars=50)


def test_a_command_has_a_button_for_all_its_arguments():
    take, look = controls.controls(commands("mug 1", "cd 2").actions)
    assert take["buttons"] == [
        ("take:mug 1 from shelf 2", "take mug 1 from shelf 2"),
        ("take:cd 2 from shelf 2", "take cd 2 from shelf 2"),
    ]
    assert (look["buttons"], look["fields"]) == ([], [])
    page = render_to_string("arena/parts/act.html", {"actions": [take], "state": {"your_turn": True}})
    assert (
        '<button name="choice" value="take:cd 2 from shelf 2" class="secondary">Take cd 2 from shelf 2</button>' in page
    )
    assert "<fieldset" not in page
    take, _ = controls.controls(commands(*(f"mug {number}" for number in range(17))).actions)
    assert not take["buttons"]
    assert [field["name"] for field in take["fields"]] == ["take.object", "take.place"]


@pytest.mark.parametrize("size, laid", [(17, True), (200, True), (201, False)])
def test_a_command_on_the_board_is_a_button_there_alone(size, laid):
    actions = commands(*(f"mug {number}" for number in range(size))).actions
    commanded = [f"take mug {number} from shelf 2" for number in range(size)]
    presses = controls.presses(actions)
    assert [presses.get(command) for command in commanded[1:3]] == [
        f"take:mug {number} from shelf 2" if laid else None for number in (1, 2)
    ]
    assert "mug 1 from shelf 2" not in presses  # of a command the whole text is the choice
    context = {"actions": controls.controls(actions, commanded), "state": {"your_turn": True}}
    assert ("Take something" in render_to_string("arena/parts/act.html", context)) == (not laid)


def test_a_command_that_nothing_is_known_to_do_has_no_control():
    [look] = controls.controls(commands().actions)
    assert look["action"].name == "look"


@pytest.mark.parametrize(
    "data",
    [
        {"choice": "take:mug 1 from shelf 2"},
        {"action": "take", "take.object": "mug 1", "take.place": "shelf 2"},
    ],
)
def test_a_command_is_chosen_by_its_button_or_its_fields(data):
    move = moves.read_move(data, commands("mug 1"))
    assert (move.args, move.text) == ({"object": "mug 1", "place": "shelf 2"}, "take mug 1 from shelf 2")
