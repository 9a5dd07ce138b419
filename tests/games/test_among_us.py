"""The rules of Among Us, with rounds, returns and witnesses worked out by hand, and what must hold in every game."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.games.cases.among_us import CREW, among_us
from tests.games.play import steps
from training.errors import BadInput, IllegalMove
from training.games import REGISTRY, make
from training.games.among_us.meeting import ejected
from training.games.among_us.rooms import ROOMS, room_name
from training.games.among_us.settings import MOST, draw
from training.games.base import FORFEIT
from training.records import ALL, SPECTATOR, Move
from training.text.parsing import parse

EAST = [[1, 0]]
"""One task, in the room east of the first."""


def ship(seats=CREW, imposter=1, rooms=None, **more):
    """Two rooms, one task each (in the eastern room), kills from round 3 on, 3 rounds apart."""
    return make(among_us(seats, imposter, rooms or [EAST] * len(seats), tasks=1, **{"rounds": 40, **more}))


def step(game, **replies):
    """One joint step; `!` = nobody answers."""
    moves = {}
    for name, text in replies.items():
        seat = game.names.index(name)
        moves[seat] = game.default(seat) if text == "!" else parse(text, game.observe(seat))[0]
    game.step(moves)


def asked(game):
    return [game.names[seat] for seat in sorted(game.to_act())]


def last(game, viewer):
    return game.observe(game.names.index(viewer) if isinstance(viewer, str) else viewer).messages[-1].text


def lines(game, name, since=0):
    return [m.text for m in game.observe(game.names.index(name)).messages[since:] if m.author is None]


def choices(game, name, action):
    actions = [a for a in game.observe(game.names.index(name)).actions if a.name == action]
    return actions[0].args[0].choices if actions else None


def talk(game, words="Hm."):
    while "speech" in game.show(ALL).phase:
        (seat,) = game.to_act()
        game.step({seat: Move(action="talk", text=words)})


def to_meeting(**more):
    """Ben kills Cleo in the east in round 3 before Eva's eyes; she reports in round 4."""
    game = ship(**more)
    step(game, Ada="<wait/>", Ben="<go>east</go>", Cleo="<go>east</go>", Dan="<wait/>", Eva="<go>east</go>")
    step(game, Ada="<wait/>", Dan="<wait/>")
    step(game, Ben="<kill>Cleo</kill>", Cleo="<task/>", Eva="<wait/>")
    step(game, Ben="<go>west</go>", Eva="<report>Cleo</report>")
    return game


# --- time ---


def test_going_and_working_take_three_rounds_and_a_waiting_player_is_asked_at_an_event():
    game = ship()
    assert asked(game) == list(CREW)
    step(game, Ada="<go>east</go>", Ben="<wait/>", Cleo="<go>east</go>", Dan="<wait/>", Eva="<wait/>")
    assert game.world.round == 1  # three saw two leave
    assert asked(game) == ["Ben", "Dan", "Eva"]
    step(game, Ben="<wait/>", Dan="<wait/>", Eva="<wait/>")
    assert game.world.round == 3
    assert asked(game) == ["Ada", "Ben", "Cleo"]  # two have arrived; Ben may kill from now on, and has company
    assert last(game, "Ada") == (
        "Round 3: you are in room (1,0), with Cleo. Your open tasks: (1,0). You may go west, wait or task."
    )
    step(game, Ada="<task/>", Ben="<wait/>", Cleo="<wait/>")
    assert asked(game) == ["Cleo"]  # she alone saw Ada begin
    assert last(game, "Cleo").startswith("Round 4: you are in room (1,0), with Ada (at work).")
    step(game, Cleo="<wait/>")
    assert game.world.round == 6
    assert asked(game) == ["Ada"]  # 3 + 3; that her work is done is not to be seen
    assert "Your open tasks: none." in last(game, "Ada")
    assert choices(game, "Ada", "go") == ("west",)
    assert "task" not in [action.name for action in game.observe(0).actions]
    step(game, Ada="<wait/>")
    assert game.world.round == 11  # Dan and Eva have waited for ten rounds since round 1; Ben since 3, Cleo since 4
    assert asked(game) == ["Dan", "Eva"]


def test_crewmates_at_work_or_on_the_way_see_nothing_and_a_pretending_imposter_sees_all():
    game = ship(imposter=0, rooms=[[[0, 0]]] * 5)
    step(game, Ada="<task/>", Ben="<task/>", Cleo="<go>east</go>", Dan="<wait/>", Eva="<wait/>")
    leaves = "Round 0, room (0,0): Cleo leaves to the east."
    assert leaves in lines(game, "Ada")
    assert leaves in lines(game, "Dan")
    assert leaves not in lines(game, "Ben")
    step(game, Dan="<go>east</go>", Eva="<wait/>")
    assert last(game, "Cleo") == "<go>east</go>"
    assert asked(game) == ["Eva"]
    assert "at work" in last(game, "Eva")


def test_all_wait_and_time_passes_to_the_limit():
    for winner, value in (("imposter", -1), ("crew", 1)):
        game = ship(rounds=10, limit_winner=winner)
        step(game, **dict.fromkeys(CREW, "<wait/>"))
        # Ben is asked in round 3, when he may kill
        assert asked(game) == ["Ben"]
        step(game, Ben="<wait/>")
        assert not game.to_act()
        assert game.metrics()["end_limit"] == 1
        assert game.metrics()["rounds"] == 10
        assert game.returns() == {0: value, 1: -value, 2: value, 3: value, 4: value}


# --- kills ---


def test_kills_need_the_cooldown_and_company():
    game = ship(imposter=0, cooldown=2)
    assert choices(game, "Ada", "kill") is None
    step(game, Ada="<wait/>", Ben="<wait/>", Cleo="<wait/>", Dan="<wait/>", Eva="<wait/>")
    assert game.world.round == 2
    assert choices(game, "Ada", "kill") == ("Ben", "Cleo", "Dan", "Eva")
    step(game, Ada="<kill>Eva</kill>")
    assert game.world.round == 3
    assert choices(game, "Ada", "kill") is None
    with pytest.raises(IllegalMove):
        game.check(0, Move(action="kill", args={"player": "Dan"}))
    assert asked(game) == ["Ada", "Ben", "Cleo", "Dan"]  # all saw it
    step(game, Ada="<wait/>", Ben="<wait/>", Cleo="<wait/>", Dan="<wait/>")
    assert game.world.round == 4
    assert choices(game, "Ada", "kill") == ("Ben", "Cleo", "Dan")


def test_awake_people_in_the_room_see_a_kill_others_do_not():
    game = ship(CREW[:4], 0, [[[0, 0]]] * 4, cooldown=1)
    step(game, Ada="<wait/>", Ben="<task/>", Cleo="<wait/>", Dan="<go>east</go>")
    step(game, Ada="<kill>Ben</kill>", Cleo="<go>east</go>")
    seen = "Round 1, room (0,0): Ada kills Ben."
    assert seen in lines(game, "Cleo")  # also whoever leaves in that round
    assert seen in [message.text for message in game.observe(ALL).messages]
    for blind in ("Dan", SPECTATOR):
        assert "kills" not in last(game, blind)
    assert (
        last(game, "Ben") == "You are killed, Ben, and did not see by whom. From now on you only read what is public."
    )
    assert "Here lies the body of Ben." in last(game, "Ada")


def test_a_victim_that_is_awake_sees_its_killer_and_a_kill_comes_before_all_else():
    game = to_meeting()
    assert "Ben kills you. From now on you only read what is public." in lines(game, "Cleo")
    assert not any("Cleo begins" in message.text for message in game.observe(ALL).messages)


def test_the_imposter_finds_bodies_but_cannot_report_them():
    game = ship(CREW[:4], 0, cooldown=1)
    step(game, Ada="<wait/>", Ben="<wait/>", Cleo="<go>east</go>", Dan="<go>east</go>")
    step(game, Ada="<kill>Ben</kill>", Ben="<wait/>")
    assert "Here lies the body of Ben." in last(game, "Ada")
    assert choices(game, "Ada", "report") is None


# --- meetings ---


def elimination(game):
    """Whether each seat left before the last round, and in which."""
    return {seat: (of["eliminated"], of.get("eliminated_round")) for seat, of in game.seat_metrics().items()}


def test_a_meeting_by_hand():
    game = to_meeting()
    for viewer in (*range(5), SPECTATOR):
        assert "Round 4: Eva reports the body of Cleo in room (1,0)." in [
            message.text for message in game.observe(viewer).messages
        ]
    assert game.show(0).phase == "Meeting 1: speech 1 of 8"
    order = []
    for _ in range(8):
        (seat,) = game.to_act()
        assert all(game.acting(viewer) == {seat} for viewer in (0, 2, SPECTATOR))
        order.append(seat)
        game.step({seat: Move(action="talk", text=f"words of {seat}")})
    assert order[:4] == order[4:]
    assert set(order) == {0, 1, 3, 4}
    heard = [message.text for message in game.observe(2).messages if message.author is not None]
    assert heard[-8:] == [f"words of {seat}" for seat in order]  # the dead read what is public
    assert game.show(SPECTATOR).phase == "Meeting 1: the vote"
    assert game.acting(SPECTATOR) == {0, 1, 3, 4}
    assert choices(game, "Ada", "vote") == ("Ben", "Dan", "Eva", "skip")
    step(game, Ada="<vote>Ben</vote>", Ben="<vote>Ada</vote>", Dan="!", Eva="<vote>Ben</vote>")
    votes = "Votes: Ada for Ben, Ben for Ada, Dan does not vote, Eva for Ben. Ben is ejected."
    assert votes in lines(game, "Cleo")
    assert last(game, SPECTATOR) == "The crew wins: the imposter is ejected. The imposter was Ben."
    assert game.returns() == {0: 1, 1: -1, 2: 1, 3: 1, 4: 1}
    metrics = game.metrics()
    assert (metrics["kills"], metrics["meetings"], metrics["ejected_wrong"], metrics["rounds"]) == (1, 1, 0, 4)
    ben, cleo, dan = (game.seat_metrics()[seat] for seat in (1, 2, 3))
    assert (ben["won"], cleo["won"], ben["survived"], cleo["survived"]) == (0, 1, 1, 0)
    assert [game.seat_metrics()[seat]["votes_right"] for seat in (0, 4)] == [1, 1]
    assert "votes_right" not in dan
    assert elimination(game) == {0: (0, None), 1: (0, None), 2: (1, 3), 3: (0, None), 4: (0, None)}


def test_after_a_vote_that_changes_nothing_all_are_in_the_first_room_and_the_cooldown_begins_again():
    game = to_meeting()
    talk(game)
    step(game, Ada="<vote>Eva</vote>", Ben="<vote>Eva</vote>", Dan="<vote>skip</vote>", Eva="<vote>skip</vote>")
    assert "Nobody is ejected." in next(line for line in lines(game, "Ada") if line.startswith("Votes"))
    assert asked(game) == ["Ada", "Ben", "Dan", "Eva"]
    assert last(game, "Ben").startswith(
        "Round 4: you are in room (0,0), with Ada, Dan and Eva. You may kill from round 7"
    )
    assert choices(game, "Ada", "report") is None
    step(game, Ada="<wait/>", Ben="<wait/>", Dan="<wait/>", Eva="<wait/>")
    assert game.world.round == 7
    assert choices(game, "Ben", "kill") == ("Ada", "Dan", "Eva")


def test_a_meeting_stops_work_and_it_must_be_begun_again():
    game = ship(CREW[:4], 0, [[[0, 0]]] * 4, cooldown=1)
    step(game, Ada="<go>east</go>", Ben="<wait/>", Cleo="<wait/>", Dan="<go>east</go>")
    step(game, Ben="<wait/>", Cleo="<go>east</go>")
    assert game.world.round == 2
    step(game, Ben="<task/>")  # until round 5
    step(game, Ada="<kill>Dan</kill>", Dan="<wait/>")
    assert game.world.round == 4
    step(game, Ada="<wait/>", Cleo="<report>Dan</report>")
    talk(game)
    step(game, Ada="!", Ben="!", Cleo="!")
    assert "Your open tasks: (0,0)." in last(game, "Ben")
    step(game, Ada="<wait/>", Ben="<task/>", Cleo="<task/>")  # until round 7
    assert game.world.round == 5
    step(game, Ada="<wait/>")
    assert (game.metrics()["end_tasks"], game.metrics()["rounds"]) == (1, 7)
    assert game.returns() == pytest.approx({0: -1, 1: 1.2, 2: 1.2, 3: 1})
    assert elimination(game) == {0: (0, None), 1: (0, None), 2: (0, None), 3: (1, 3)}


def test_a_wrong_vote_can_end_the_game():
    game = to_meeting(seats=CREW[:5])
    talk(game)
    step(game, Ada="<vote>Eva</vote>", Ben="<vote>Eva</vote>", Dan="<vote>Eva</vote>", Eva="<vote>Ben</vote>")
    assert "Eva was not the imposter." in lines(game, "Ada")
    assert asked(game) == ["Ada", "Ben", "Dan"]  # two of the crew are left
    step(game, Ada="<wait/>", Ben="<wait/>", Dan="<wait/>")
    step(game, Ben="<kill>Dan</kill>")
    assert last(game, SPECTATOR) == "The imposter wins: only one crewmate is left. The imposter was Ben."
    # Cleo is killed in round 3 and Eva ejected in round 4; Dan is killed in round 7, the last
    assert elimination(game) == {0: (0, None), 1: (0, None), 2: (1, 3), 3: (0, None), 4: (1, 4)}


def test_the_open_tasks_of_the_dead_do_not_count():
    game = ship(CREW[:4], 0, [[[0, 0]], [[0, 0]], [[0, 0]], [[1, 0]]], cooldown=4)
    step(game, Ada="<wait/>", Ben="<task/>", Cleo="<task/>", Dan="<wait/>")
    step(game, Ada="<wait/>", Dan="<wait/>")
    assert game.world.round == 3
    step(game, Ben="<wait/>", Cleo="<wait/>")
    assert asked(game) == ["Ada"]
    step(game, Ada="<kill>Dan</kill>")
    assert game.metrics()["end_tasks"] == 1
    assert game.returns() == pytest.approx({0: -1, 1: 1.2, 2: 1.2, 3: 1})


def test_plurality_with_ties_and_skips():
    assert ejected({0: 1, 1: 2, 2: 1}) == 1
    assert ejected({0: 1, 1: 2}) is None
    assert ejected({0: 1, 1: None, 2: None}) is None
    assert ejected({0: 1, 1: None, 2: 1}) == 1
    assert ejected({}) is None


@pytest.mark.parametrize("skip", [True, False])
def test_the_rules_say_that_skips_compete_and_that_silence_skips(skip):
    """One vote for Eva, three players silent: with skips it is one against three, else it is the only vote."""
    game = to_meeting(skip=skip, discussion=0)
    rules = game.observe(SPECTATOR).messages[0].text
    assert ("more than there are skips" in rules) == ("whoever does not vote skips" in rules) == skip
    assert "The player with more votes than any other" in rules
    step(game, Ada="<vote>Eva</vote>", Ben="!", Dan="!", Eva="!")
    result = next(line for line in lines(game, "Ada") if line.startswith("Votes"))
    assert result.endswith("Nobody is ejected." if skip else "Eva is ejected.")


def test_without_skip_silence_counts_for_nobody():
    game = to_meeting(skip=False, discussion=0)
    assert choices(game, "Ada", "vote") == ("Ben", "Dan", "Eva")
    step(game, Ada="!", Ben="!", Dan="!", Eva="<vote>Ben</vote>")
    assert game.metrics()["end_ejected"] == 1
    game = to_meeting(discussion=0)  # with skip: three against one
    step(game, Ada="!", Ben="!", Dan="!", Eva="<vote>Ben</vote>")
    assert game.to_act()


def test_probes_before_the_discussion_and_after_every_message_for_each_living_crewmate():
    game = to_meeting()
    for _ in range(9):
        probes = game.probes()
        assert set(probes) == {0, 3, 4}
        assert probes[0].choices == ("Ben", "Dan", "Eva")
        assert all(probe.truth == ("Ben",) for probe in probes.values())
        assert probes[0].replies == ("<vote>Ben</vote>", "<vote>Dan</vote>", "<vote>Eva</vote>")  # as it would vote
        if game.show(ALL).phase == "Meeting 1: the vote":
            break
        (seat,) = game.to_act()
        game.step({seat: Move(action="talk", text="Hm.")})
    assert game.show(ALL).phase == "Meeting 1: the vote"
    step(game, Ada="!", Ben="!", Dan="!", Eva="!")
    assert not game.probes()
    assert not to_meeting(probes=False).probes()
    probed = REGISTRY["among_us"].probed
    assert probed({})
    assert not probed({"probes": False})


# --- who gives up ---


def test_a_player_who_gives_up_waits_says_nothing_and_skips():
    game = to_meeting()
    order = [game.names.index(n) for n in last(game, SPECTATOR).split("order: ")[1].rstrip(".").split(", ")]
    game.step({order[0]: FORFEIT})
    name = game.names[order[0]]
    assert f"{name} gives up." in lines(game, "Cleo")
    talk(game)
    assert lines(game, "Cleo").count(f"{name} says nothing.") == 2
    assert game.to_act() == {0, 1, 3, 4} - {order[0]}


def test_when_all_give_up_the_game_runs_to_its_end():
    game = ship()
    game.step(dict.fromkeys(range(5), FORFEIT))
    assert not game.to_act()
    assert game.metrics()["end_limit"] == 1
    assert "You give up, and only wait." in lines(game, "Ada")
    assert "give up" not in str(game.observe(SPECTATOR).messages[1:])


# --- silence and waiting ---


def test_silence_and_waiting_are_counted_by_hand():
    game = to_meeting()
    lines = {"Ada": ["Ben!", "!"], "Ben": ["", "..."], "Dan": ["Ok.", "It was Ben."], "Eva": ["Ben", "1 2 3"]}
    while "speech" in game.show(ALL).phase:
        [name] = asked(game)
        text = lines[name].pop(0)
        seat = game.names.index(name)
        game.step({seat: game.default(seat) if text in ("", "!") else Move(action="talk", text=text)})
    step(game, Ada="<vote>Ben</vote>", Ben="!", Dan="<vote>Ben</vote>", Eva="<vote>Ben</vote>")
    metrics, seats = game.metrics(), game.seat_metrics()
    # nothing, nothing, three dots and a word of two letters
    assert metrics["silent"] == 4 / 8
    assert [seats[seat].get("silent") for seat in range(5)] == [0.5, 1.0, None, 0.5, 0.0]
    # in the rooms: Ada and Dan wait twice, Cleo and Ben never; Eva goes, waits, reports
    assert [seats[seat]["waits"] for seat in range(5)] == [1, 0, 0, 1, pytest.approx(1 / 3)]
    assert metrics["waits"] == 5 / 12


def test_what_nobody_had_to_do_has_no_share():
    game = ship()
    game.step(dict.fromkeys(range(5), FORFEIT))
    assert not {"silent", "waits"} & game.metrics().keys()
    assert "silent" not in game.seat_metrics()[0]


# --- what is hidden ---


def test_unseen_actions_change_nothing_for_players_elsewhere():
    """Whether Ben kills Cleo or Eva in the east, or nobody, or they leave again: Ada, in the west, reads the same."""
    views = []
    for ben, cleo, eva in (
        ("<kill>Cleo</kill>", "<wait/>", "<wait/>"),
        ("<kill>Eva</kill>", "<task/>", "<task/>"),
        ("<task/>", "<task/>", "<wait/>"),
        ("<wait/>", "<wait/>", "<wait/>"),
    ):
        game = ship(wait=4)
        step(game, Ada="<wait/>", Ben="<go>east</go>", Cleo="<go>east</go>", Dan="<go>east</go>", Eva="<go>east</go>")
        step(game, Ada="<wait/>")
        step(game, Ben=ben, Cleo=cleo, Dan="<task/>", Eva=eva)
        while 0 not in game.to_act():
            game.step({seat: game.default(seat) for seat in game.to_act()})
        looks = (
            game.acting(0),
            game.acting(SPECTATOR),
            game.show(0).phase,
            game.show(SPECTATOR).phase,
            game.show(0),
            game.show(SPECTATOR),
        )
        views.append((game.world.round, game.observe(0), game.observe(SPECTATOR), looks))
    assert len({str(view) for view in views}) == 1
    assert views[0][0] == 5  # she began to wait in round 1


def rooms(game, viewer):
    """Who, and how many bodies and own tasks, are in each room of the map; None without a map."""
    maps = [zone for zone in game.show(viewer).zones if zone.kind == "map"]
    return [(room.seats, room.bodies, room.tasks, room.here) for room in maps[0].rooms] if maps else None


def test_the_map_shows_the_own_room_and_tasks():
    game = ship()
    step(game, Ada="<wait/>", Ben="<go>east</go>", Cleo="<go>east</go>", Dan="<wait/>", Eva="<wait/>")
    assert rooms(game, 0) == [((0, 3, 4), (), 0, True), ((), (), 1, False)]
    west, east = game.show(0).zones[0].rooms
    assert (west.name, west.seen, east.name, east.seen) == ("Canteen", True, "Arsenal", False)
    assert rooms(game, 2) == [((), (), 0, False), ((), (), 1, False)]
    assert game.show(2).zones[0].note == "You are on the way to the Arsenal, and see nothing."
    assert rooms(game, ALL) == [((0, 3, 4), (), 0, False), ((), (), 0, False)]
    assert rooms(game, SPECTATOR) is None


def test_a_neighbouring_room_is_pressed_to_go_there():
    game = ship(width=3)
    assert [room.choice for room in game.show(0).zones[0].rooms] == ["", "east", ""]
    step(game, Ada="<go>east</go>", Ben="<wait/>", Cleo="<go>east</go>", Dan="<go>east</go>", Eva="<go>east</go>")
    assert [room.choice for room in game.show(0).zones[0].rooms] == ["", "", ""], "she is on the way"
    step(game, Ben="<wait/>")
    assert [room.choice for room in game.show(0).zones[0].rooms] == ["west", "", "east"]


def test_a_room_cannot_be_pressed_where_a_player_is_called_like_the_direction():
    game = ship(("Ada", "Ben", "east"), 0, cooldown=1)
    step(game, Ada="<wait/>", Ben="<go>east</go>", east="<wait/>")
    assert choices(game, "Ada", "kill") == ("east",)
    assert [room.choice for room in game.show(0).zones[0].rooms] == ["", ""]


def test_every_room_of_the_largest_ship_has_a_name_of_its_own():
    game = ship(width=8, height=8)
    assert len({room.name for room in game.show(0).zones[0].rooms}) == 64


def test_a_body_is_on_the_map_of_those_who_see_it_and_known_to_all_after_the_report():
    game = ship(CREW[:4], 0, cooldown=1)
    step(game, Ada="<wait/>", Ben="<wait/>", Cleo="<go>east</go>", Dan="<go>east</go>")
    step(game, Ada="<kill>Ben</kill>", Ben="<wait/>")
    assert rooms(game, 0)[0] == ((0,), (1,), 0, True)
    out = {viewer: [place.seat for place in game.show(viewer).zones[-1].places if place.out] for viewer in (1, 2, ALL)}
    assert out == {1: [1], 2: [], ALL: [1]}
    assert rooms(game, 1) is None
    for viewer in (0, 2, SPECTATOR):
        game = to_meeting()
        (circle,) = game.show(viewer).zones
        assert [(place.seat, place.left) for place in circle.places if place.out] == [(2, "dead, meeting 1")]
        assert [place.seat for place in circle.places if place.speaks] == list(game.to_act())


def test_who_knows_which_role():
    game = to_meeting()
    roles = {viewer: [place.role for place in game.show(viewer).zones[0].places] for viewer in (0, 1, SPECTATOR, ALL)}
    assert roles[0] == ["crewmate", "", "crewmate", "", ""]
    assert roles[SPECTATOR] == ["", "", "crewmate", "", ""]
    assert roles[1] == ["", "imposter", "crewmate", "", ""], "its card names the crew"
    assert roles[ALL] == ["crewmate", "imposter", *["crewmate"] * 3]


def test_votes_are_pressed_and_then_shown_until_one_has_moved_on():
    game = to_meeting()
    talk(game)
    (circle,) = game.show(0).zones
    assert (game.show(0).phase, game.show(0).mood) == ("Meeting 1: the vote", "vote")
    assert [place.choice for place in circle.places] == ["", "Ben", "", "Dan", "Eva"]
    assert [(option.label, option.choice) for option in circle.options] == [("Skip the vote", "skip")]
    assert game.show(2).zones[0].options == game.show(SPECTATOR).zones[0].options == ()
    step(game, Ada="<vote>Eva</vote>", Ben="<vote>Eva</vote>", Dan="!", Eva="<vote>skip</vote>")
    ship_map, circle = game.show(0).zones
    assert (ship_map.kind, circle.shape) == ("map", "circle")
    assert [(place.voted, place.note) for place in circle.places] == [
        *[(4, ""), (4, ""), (None, ""), (None, "did not vote"), (None, "skipped")]
    ]
    step(game, Ada="<wait/>", Ben="<wait/>", Dan="<wait/>", Eva="<wait/>")
    assert game.show(0).zones[1].shape == "row"
    assert game.show(SPECTATOR).zones[0].shape == "circle"


def test_the_card_says_what_one_is_and_what_is_left_to_do():
    game = make(among_us(CREW[:3], 1, [[[0, 0], [0, 0], [1, 0]]] * 3, tasks=3))
    crew, imposter = game.show(0).brief, game.show(1).brief
    assert (crew.title, crew.emblem) == ("You are a crewmate", "crew")
    assert crew.text[-1] == "Your tasks: 0 of 3 done. Still to do: Canteen (2) and Arsenal."
    assert (imposter.title, imposter.emblem) == ("You are the imposter", "imposter")
    assert imposter.text[-2:] == ("The crew: Ada and Cleo.", "You can kill from round 3 on.")
    step(game, Ada="<task/>", Ben="<wait/>", Cleo="<wait/>")
    assert game.show(0).zones[0].note == "You work on a task, and see nothing."
    while 0 not in game.to_act():
        game.step({seat: game.default(seat) for seat in game.to_act()})
    assert game.show(0).brief.text[-1] == "Your tasks: 1 of 3 done. Still to do: Canteen and Arsenal."
    assert (game.show(0).zones[0].done, game.show(0).zones[0].tasks) == (1, 3)
    assert game.show(SPECTATOR).brief is game.show(ALL).brief is None


def test_what_to_do_now_names_what_is_possible():
    game = ship(CREW[:4], 0, [[[0, 0]]] * 4, cooldown=1)
    assert game.show(0).ask == "Pretend to work, go to another room or wait."
    assert game.show(1).ask == "Work on your task here, go to another room or wait."
    step(game, Ada="<wait/>", Ben="<wait/>", Cleo="<wait/>", Dan="<go>east</go>")
    assert game.show(0).ask == "Kill somebody here, pretend to work, go to another room or wait."
    step(game, Ada="<kill>Ben</kill>", Ben="<wait/>", Cleo="<wait/>")
    assert game.show(2).ask == "Report the body, work on your task here, go to another room or wait."
    step(game, Ada="<wait/>", Cleo="<report>Ben</report>")
    (speaker,) = game.to_act()
    assert game.show(speaker).ask == "Say what you know and whom you suspect."
    talk(game)
    assert game.show(0).ask == "Vote for whom you suspect, or skip."
    assert game.show(1).ask == game.show(SPECTATOR).ask == ""


def read(game, viewer):
    """What people read."""
    return [line.text for message in game.observe(viewer).messages for line in message.lines]


def test_people_read_names_of_rooms_and_votes_in_words():
    game = to_meeting()
    talk(game)
    step(game, Ada="<vote>Ben</vote>", Ben="<vote>Ada</vote>", Dan="!", Eva="<vote>Ben</vote>")
    order = next(text for text in read(game, SPECTATOR) if text.startswith("All meet in the Canteen and speak in this"))
    assert [text for text in read(game, 0) if text not in ("Hm.", order)] == [
        "waits",
        *[f"{name} leaves the Canteen for the Arsenal." for name in ("Ben", "Cleo", "Eva")],
        "waits",
        "Eva reports the body of Cleo in the Arsenal.",
        "Everybody votes.",
        "Ada and Eva vote for Ben. Ben votes for Ada. Dan does not vote. Ben is ejected.",
        "The crew wins: the imposter is ejected. The imposter was Ben.",
    ]
    assert "Ben kills Cleo in the Arsenal." in read(game, 4)
    assert "goes to the Arsenal" in read(game, 1)
    assert "kills Cleo" in read(game, 1)


def test_people_read_names_of_rooms_in_what_is_said_and_models_the_words_as_they_are():
    game = to_meeting()
    (seat,) = game.to_act()
    speech = "I was in room (1,0), then in (0,0); the room (1, 0) was empty. (7,7) does not exist."
    game.step({seat: Move(action="talk", text=speech)})
    assert speech in [message.text for message in game.observe(SPECTATOR).messages]
    named = "I was in the Arsenal, then in Canteen; the Arsenal was empty. (7,7) does not exist."
    assert named in read(game, SPECTATOR)


@pytest.mark.parametrize(
    "written, for_models, for_people",
    [
        ("I was in the Arsenal.", "I was in room (1,0).", None),
        ("The Canteen was empty", "Room (0,0) was empty", None),
        ("Canteen, then Arsenal", "(0,0), then (1,0)", None),
        ("saw Ben in canteen", "saw Ben in (0,0)", "saw Ben in Canteen"),
        ("at the CANTEEN's door", "at room (0,0)'s door", "at the Canteen's door"),
        ("an arsenal of lies; Arsenals; Arsenal-like", "an arsenal of lies; Arsenals; Arsenal-like", None),
        ("nobody was in the Keel or the Hold", "nobody was in the Keel or the Hold", None),
        ("room (1,0), not (0, 0)", "room (1,0), not (0, 0)", "the Arsenal, not Canteen"),
    ],
)
def test_models_read_positions_of_the_rooms_that_a_person_names(written, for_models, for_people):
    """Whole words, rooms of this ship alone, as many words as before; what people read of it is what was written."""
    game = to_meeting()
    assert game.with_model_names(written) == for_models
    assert len(for_models.split()) == len(written.split())
    (seat,) = game.to_act()
    game.step({seat: Move(action="talk", text=for_models)})
    assert (for_people or written) in read(game, SPECTATOR)


def test_every_room_has_a_name_of_its_own():
    assert len(ROOMS) == MOST * MOST
    assert all(name == name.capitalize() and room_name(room) == name for name, room in ROOMS.items())


def ending(game, *viewers):
    """The headlines of these viewers, and the moment."""
    (moment,) = {game.show(viewer).moment for viewer in (0, 1, SPECTATOR, ALL)}
    return [game.show(viewer).headline for viewer in viewers], moment


def test_the_end_is_told_from_each_place_and_names_what_decided():
    game = to_meeting()
    assert ending(game, 0, SPECTATOR) == (["", ""], "")
    talk(game)
    step(game, Ada="<vote>Ben</vote>", Ben="<vote>Ada</vote>", Dan="!", Eva="<vote>Ben</vote>")
    headlines = ["You win with the crew.", "You lose. The crew wins.", "The crew wins. Ben was the imposter."]
    assert ending(game, 0, 1, SPECTATOR) == (headlines, "Meeting 1: the vote against Ben removed the imposter.")
    assert [zone.kind for zone in game.show(0).zones] == ["circle", "map"]
    assert [zone.kind for zone in game.show(SPECTATOR).zones] == ["circle"]
    game = ship(rounds=3)
    step(game, **dict.fromkeys(CREW, "<wait/>"))
    headlines = [
        "You lose. Ben was the imposter.",
        "You win as the imposter.",
        "The imposter wins. Ben was the imposter.",
    ]
    assert ending(game, 0, 1, SPECTATOR) == (headlines, "Round 3, the last, was over.")


def test_the_last_kill_the_last_vote_and_the_last_task_are_named():
    game = ship(CREW[:3], 0, cooldown=1)
    step(game, Ada="<wait/>", Ben="<wait/>", Cleo="<wait/>")
    step(game, Ada="<kill>Ben</kill>")
    assert game.show(1).moment == "Round 1: the death of Ben left one crewmate."
    game = to_meeting(seats=CREW[:5], discussion=0)
    step(game, Ada="<vote>Eva</vote>", Ben="<vote>Eva</vote>", Dan="<vote>Eva</vote>", Eva="!")
    step(game, Ada="<wait/>", Ben="<wait/>", Dan="<wait/>")
    step(game, Ben="<kill>Dan</kill>")
    assert game.show(0).moment == "Round 7: the death of Dan left one crewmate."
    game = ship(CREW[:3], 0, [[[0, 0]]] * 3)
    step(game, Ada="<go>east</go>", Ben="<task/>", Cleo="<task/>")
    assert game.show(0).moment == "Round 3: Ben and Cleo did the last of the work."
    game = ship(CREW[:4], 0, [[[0, 0]], [[0, 0]], [[0, 0]], [[1, 0]]], cooldown=4)
    step(game, Ada="<wait/>", Ben="<task/>", Cleo="<task/>", Dan="<wait/>")
    step(game, Ada="<wait/>", Dan="<wait/>")
    step(game, Ben="<wait/>", Cleo="<wait/>")
    step(game, Ada="<kill>Dan</kill>")
    assert game.show(0).moment == "Round 4: the death of Dan left no work to do."


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**31), size=st.integers(3, 6), cooldown=st.integers(1, 6))
def test_in_every_game(seed, size, cooldown):
    """The dead never act; kills keep their distance; spectators read only what is public; roles are counted."""
    game = make(among_us((*CREW, "Finn")[:size], cooldown=cooldown, rounds=25).with_seed(seed))
    kills, living = [], set(range(size))
    resets = 0
    for moves in steps(game, seed):
        assert set(moves) <= living
        assert set(moves) <= set(game.world.living())
        living = set(game.world.living())
        if game.show(ALL).phase.startswith("In the rooms"):
            assert all(game.acting(seat) == ({seat} & set(moves)) for seat in range(size))
            assert not game.acting(SPECTATOR)
            for move in moves.values():
                if move.action == "kill":
                    assert game.world.round >= max([resets, *kills]) + cooldown
                    kills.append(game.world.round)
        else:
            resets = game.world.round
    metrics = game.metrics()
    assert metrics["kills"] == len(kills)
    assert (
        sum(game.seat_metrics()[seat]["survived"] for seat in range(size))
        == size - len(kills) - metrics["ejected_wrong"]
    )
    assert game.roles().count("imposter") == 1
    assert sum(metrics[f"end_{end}"] for end in ("ejected", "tasks", "kills", "limit")) == 1
    assert all(message.channel == "public" for message in game.observe(SPECTATOR).messages)


# --- the start ---


def test_roles_and_tasks_are_drawn_from_the_seed():
    scenario = among_us(tasks=4, width=2, height=2)
    drawn = [draw(make(scenario).settings, 5, seed) for seed in range(200)]
    counts = [sum(deal.imposter == seat for deal in drawn) for seat in range(5)]
    assert min(counts) > 20  # 40 each on average; the standard deviation is 5.7
    assert draw(make(scenario).settings, 5, 7) == drawn[7]
    assert {room for deal in drawn for rooms in deal.tasks for room in rooms} == {(0, 0), (0, 1), (1, 0), (1, 1)}


@pytest.mark.parametrize(
    "scenario, where",
    [
        (among_us(CREW[:3], 4), "settings.deal.imposter"),
        (among_us(CREW[:3], 0, [[[0, 0]] * 3] * 4), "settings.deal.tasks"),
        (among_us(CREW[:3], 0, [[[0, 0]] * 2] * 3), "settings"),
        (among_us(CREW[:3], 0, [[[0, 5]] * 3] * 3), "settings"),
        (among_us(CREW[:3], width=1, height=1), "settings"),
        (among_us(("Ada", "Skip", "Ben")), "seats"),
        (among_us(("Ada", "ada", "Ben")), "seats"),
        (among_us(("Ada  B", "Cy", "Ben")), "seats"),
        (among_us(("<b>", "Cy", "Ben")), "seats"),
        (among_us(("Ada\nRound 9: Ben kills Cy.", "Cy", "Ben")), "seats"),
    ],
)
def test_what_does_not_fit_is_refused(scenario, where):
    with pytest.raises(BadInput, match=where):
        make(scenario)


def test_label_states_the_public_part_and_private_the_rest():
    spec = REGISTRY["among_us"]
    stated = among_us(CREW[:3], 1, [[[0, 0], [1, 0], [1, 0]]] * 3)
    assert spec.label(stated) == "2 by 1 rooms, 3 tasks each, 3 players"
    assert spec.private(stated) == ("tasks in (0,0), (1,0), (1,0)", "imposter", "tasks in (0,0), (1,0), (1,0)")
    assert spec.private(among_us(CREW[:3])) == ("", "", "")
