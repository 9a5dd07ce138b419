"""The household: the generator and its plans, what commands do, subgoals by hand, the script."""

import random
from collections import Counter, deque
from hashlib import sha256
from itertools import product

import pytest

from tests.games.cases.household import STUDY, home, household
from tests.games.play import reply
from training import samples
from training.errors import BadInput, ParseError
from training.games import make
from training.games.actions import canonical
from training.games.base import FORFEIT
from training.games.household import words
from training.games.household.commands import ACTIONS, BY_NAME, offered
from training.games.household.generated import FAMILIES, generate, tasks
from training.games.household.kinds import LAMP, OBJECTS, OPENABLE, RECEPTACLES, TOOLS, kind
from training.games.household.planner import plan
from training.games.household.script import read_task
from training.games.household.settings import Home, HouseholdSettings, Task
from training.games.household.world import KNOWN, World
from training.records import ALL, SPECTATOR
from training.seeding import derive
from training.store import dumps
from training.text.parsing import parse
from training.views import news


def generated(seed, **settings):
    return generate(HouseholdSettings(**settings), seed)


def things(drawn):
    return [thing for listed in drawn.receptacles.values() for thing in listed]


# --- what is where ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("room, ranges", RECEPTACLES.items())
def test_rooms_are_as_large_as_those_of_alfworld(room, ranges):
    assert 15 <= sum(least for least, _ in ranges.values()) <= sum(most for _, most in ranges.values()) <= 35
    assert set(ranges) <= KNOWN


@pytest.mark.parametrize("name", OBJECTS)
def test_every_object_has_places_in_each_of_its_rooms(name):
    """At least two that are always there, so that it can be brought from one to the other; a towel hangs or lies."""
    for room in OBJECTS[name].rooms:
        sure = [place for place in OBJECTS[name].places if RECEPTACLES[room].get(place, (0, 0))[0]]
        assert len(sure) >= (1 if name == "towel" else 2), room
    assert all(any(place in RECEPTACLES[room] for room in OBJECTS[name].rooms) for place in OBJECTS[name].places)


def test_there_are_tasks_of_every_family_where_their_tools_are():
    rooms = {family: {entry.room for entry in tasks() if entry.task.family == family} for family in FAMILIES}
    assert rooms["heat"] == rooms["cool"] == {"kitchen"}
    assert rooms["clean"] == {"kitchen", "bathroom"}
    assert rooms["look_under_light"] == {"bedroom", "living_room"}
    assert rooms["pick_and_place"] == rooms["two_objects"] == set(RECEPTACLES)
    assert len(set(tasks())) == len(tasks()) >= 1000


# --- the generator ---------------------------------------------------------------------------------------------------


def test_generated_homes_never_change():
    """Stored games hold the seed alone. A changed generator must keep making these homes under these settings."""
    whole = sha256()
    for seed in range(1, 101):
        whole.update(dumps(generated(seed)[0].model_dump()).encode())
    assert whole.hexdigest() == "6f693e3a94ba41af94b4074133f3a1b4276fb5d8d5cfd21da2a329c8b1228408"


@pytest.mark.parametrize("family", FAMILIES)
def test_every_generated_home_can_be_solved_by_its_plan(family):
    """The plan, played through the game itself, returns 1.0; nothing is solved before."""
    for seed in range(1, 101):
        scenario = household(family=family).with_seed(seed)
        drawn, steps = generated(seed, family=family)
        game = make(scenario)
        for action, args in steps:
            assert game.returns() == {0: None}
            game.step({0: parse(canonical(BY_NAME[action], args), game.observe(0))[0]})
        assert game.returns() == {0: 1.0}
        assert game.metrics()["nothing"] == 0
        assert drawn.task.family == family


@pytest.mark.parametrize("seed", range(1, 41))
def test_a_generated_home_keeps_its_rules(seed):
    drawn, _ = generated(seed)
    room = next(name for name, ranges in RECEPTACLES.items() if fits(drawn, ranges))
    assert 15 <= len(drawn.receptacles) <= 35
    listed = things(drawn)
    assert len(listed) == len(set(listed))
    wanted = sum(kind(thing) == drawn.task.object for thing in listed)
    lamps = sum(kind(thing) == LAMP for thing in listed)
    assert wanted in ((2, 3) if drawn.task.family == "two_objects" else (1, 2))
    assert len(listed) - wanted - lamps == 25
    for receptacle, inside in drawn.receptacles.items():
        assert all(kind(receptacle) in OBJECTS[kind(thing)].places for thing in inside)
        assert all(room in OBJECTS[kind(thing)].rooms for thing in inside)
        if drawn.task.family in ("pick_and_place", "two_objects") and kind(receptacle) == drawn.task.receptacle:
            assert not [thing for thing in inside if kind(thing) == drawn.task.object]
    for name, count in Counter(map(kind, listed)).items():
        assert {f"{name} {number}" for number in range(1, count + 1)} <= set(listed)


def fits(drawn, ranges):
    counts = Counter(map(kind, drawn.receptacles))
    return set(counts) <= set(ranges) and all(
        least <= counts[name] <= most for name, (least, most) in ranges.items() if name != drawn.task.receptacle
    )


def test_settings_choose_what_is_drawn():
    for seed in range(1, 20):
        drawn, _ = generated(seed, family="clean", room="bathroom", receptacles=21, distractors=0)
        assert (drawn.task.family, len(drawn.receptacles)) == ("clean", 21)
        assert {kind(thing) for thing in things(drawn)} == {drawn.task.object}
        assert any(kind(name) == "toilet" for name in drawn.receptacles)


@pytest.mark.parametrize("room", RECEPTACLES)
def test_every_fifth_task_is_for_tests(room):
    for_tests = {entry.task for entry in tasks()[::5] if entry.room == room}
    to_train = {entry.task for entry in tasks() if entry.room == room} - for_tests
    drawn = {
        split: {generated(seed, room=room, split=split, distractors=0)[0].task for seed in range(1, 101)}
        for split in ("train", "test")
    }
    assert len(drawn["test"]) >= 20
    assert drawn["test"] <= for_tests
    assert len(drawn["train"]) >= 20
    assert drawn["train"] <= to_train


@pytest.mark.parametrize(
    "settings, where, why",
    [
        ({"family": "heat", "room": "bedroom"}, "room", "a bedroom has no tasks of the family heat"),
        (
            {"room": "bathroom", "receptacles": 35},
            "receptacles",
            "rooms with such tasks have at least 15 and at most 27",
        ),
        ({"room": "kitchen", "receptacles": 15}, "receptacles", "rooms with such tasks have at least 18"),
        ({"turn_limit": 14}, "turn_limit", "at least 15"),
        ({"home": home(drawer_2=["yeti 1"])}, "home.receptacles.drawer 2", "'yeti 1' is none of"),
        ({"home": home(drawer_2=["mug 1"])}, "home.receptacles", "'mug 1' is listed twice"),
        ({"home": home(cave_1=["mug 9"])}, "home.receptacles", "no receptacle 'cave 1'"),
        ({"home": home(wanted="desklamp")}, "home.task.object", "not an object that can be carried"),
        ({"home": home(target="toaster")}, "home.task.receptacle", "is no place for an apple"),
        ({"home": home(wanted="knife", target="drawer")}, "home.task.object", "nobody can heat a knife"),
        ({"home": home("look_under_light", "watch", "shelf")}, "home.task.receptacle", "is no desklamp"),
        ({"home": home("pick_and_place", "mug", "countertop")}, "home.task", "done before the first turn"),
        (
            {"home": home(drawer_2=[f"apple {number}" for number in range(5, 16)])},
            "home.receptacles",
            "at most 10 of 'apple', not 1[1-9]",
        ),
        ({"home": home(drawer_2=[])}, "home", "no plan does the task within 40 turns"),
        ({"home": STUDY, "alfworld": "train"}, "home", "cannot be combined with settings.alfworld"),
        ({"alfworld": "../secret"}, "alfworld", "pattern"),
    ],
)
def test_settings_that_do_not_fit_are_explained(settings, where, why):
    with pytest.raises(BadInput, match=why) as refusal:
        make(household(**settings).with_seed(1))
    assert refusal.value.where.startswith(f"settings.{where}")


# --- plans -----------------------------------------------------------------------------------------------------------


def shortest_by_search(drawn):
    """The length of a shortest plan, found by breadth-first search through the world itself."""
    queue, seen = deque([()]), set()
    while queue:
        done = queue.popleft()
        world = World(drawn)
        for action, args in done:
            world.act(action, args)
        if world.won:
            return len(done)
        state = world.state
        mark = (
            state.at,
            state.carried,
            *map(frozenset, (state.places.items(), state.opened, state.lit)),
            frozenset((thing, *sorted(made)) for thing, made in state.made.items()),
        )
        if mark in seen:
            continue
        seen.add(mark)
        for action, values in world.choices().items():
            if action not in ("examine", "close"):
                names = [arg.name for arg in BY_NAME[action].args]
                queue.extend((*done, (action, dict(zip(names, each, strict=True)))) for each in product(*values))
    return None


SMALL = {
    "an object from its own tool": (("cool", "egg", "countertop"), {"fridge 1": ["egg 1"], "countertop 1": []}),
    "a target that is closed": (("heat", "mug", "cabinet"), {"cabinet 1": [], "desk 1": ["mug 1"], "microwave 1": []}),
    "the nearer of two": (
        ("clean", "mug", "shelf"),
        {"cabinet 1": ["mug 1"], "sinkbasin 1": ["mug 2"], "shelf 1": []},
    ),
    "where it lies already": (("clean", "mug", "shelf"), {"shelf 1": ["mug 1"], "sinkbasin 1": []}),
    "two from one place": (("two_objects", "pen", "drawer"), {"desk 1": ["pen 1", "pen 2"], "drawer 1": []}),
    "one of two is there": (
        ("two_objects", "pen", "drawer"),
        {"desk 1": ["pen 1"], "drawer 1": ["pen 2"], "drawer 2": []},
    ),
    "two that lie apart": (
        ("two_objects", "pen", "drawer"),
        {"desk 1": ["pen 1"], "drawer 1": ["pen 2"], "drawer 2": ["pen 3"]},
    ),
    "a lamp beside it": (("look_under_light", "pen", LAMP), {"desk 1": ["pen 1", "desklamp 1"], "shelf 1": ["pen 2"]}),
    "a lamp elsewhere": (("look_under_light", "pen", LAMP), {"drawer 1": ["pen 1"], "shelf 1": ["desklamp 1"]}),
}


@pytest.mark.parametrize("case", SMALL.values(), ids=SMALL)
def test_plans_are_the_shortest(case):
    (family, wanted, target), receptacles = case
    drawn = Home(receptacles=receptacles, task=Task(family=family, object=wanted, receptacle=target))
    assert len(plan(drawn, 40)) == shortest_by_search(drawn)


def test_a_home_that_cannot_be_solved_has_no_plan():
    drawn = Home(receptacles={"desk 1": ["pen 1"]}, task=Task(family="two_objects", object="pen", receptacle="drawer"))
    assert shortest_by_search(drawn) is None
    with pytest.raises(BadInput, match="no plan"):
        plan(drawn, 40)


# --- commands --------------------------------------------------------------------------------------------------------


def say(game, *texts):
    for text in texts:
        game.step({0: parse(text, game.observe(0))[0]})
    return game.observe(0).messages[-1].text


def test_a_visit_by_hand():
    game = make(household(home=home()))
    assert game.observe(0).messages[-1].text == (
        "You are in the middle of a room. Looking quickly around you, you see a countertop 1, a diningtable 1, "
        "a drawer 1, a drawer 2, a fridge 1, a microwave 1, and a sinkbasin 1."
    )
    assert say(game, "go to drawer 2") == "You arrive at drawer 2. The drawer 2 is closed."
    assert say(game, "open drawer 2") == "You open the drawer 2. The drawer 2 is open. In it, you see an apple 7."
    assert say(game, "take apple 7 from drawer 2") == "You pick up the apple 7 from the drawer 2."
    assert say(game, "go to microwave 1") == "You arrive at microwave 1. The microwave 1 is closed."
    assert say(game, "heat apple 7 with microwave 1") == "You heat the apple 7 using the microwave 1."
    assert say(game, "go to diningtable 1") == "You arrive at diningtable 1. On the diningtable 1, you see nothing."
    end = "You put the apple 7 in/on the diningtable 1. The task is done in 7 turns. Score 1."
    assert say(game, "put apple 7 in/on diningtable 1") == end
    assert game.returns() == {0: 1.0}
    assert game.metrics() == {"success": 1, "subgoals": 1, "turns": 7, "nothing": 0, "shortest": 7, "forfeit": 0}


def shown(game, viewer=0):
    """The entries of each zone by title, each as its name, its facts and what pressing it does."""
    return {zone.title: [(e.name, *e.detail, *pressed(e)) for e in zone.entries] for zone in game.show(viewer).zones}


def pressed(entry):
    buttons = [f"[{option.label}: {option.choice}]" for option in entry.options]
    return [*(["picked"] if entry.picked else []), *([f"[{entry.choice}]"] if entry.choice else []), *buttons]


def test_the_table_shows_the_room_the_place_and_the_hand():
    game = make(household(home=home(), turn_limit=20))
    names = ["countertop 1", "diningtable 1", "drawer 1", "drawer 2", "fridge 1", "microwave 1", "sinkbasin 1"]
    places = {name: (name, f"[go to {name}]") for name in names}
    view = game.show(0)
    assert (view.phase, view.ask, view.story) == (
        "20 turns left",
        "Choose where to go.",
        "Put a hot apple on diningtable.",
    )
    assert shown(game) == {
        "Here": [("The middle of the room",)],
        "In the hand": [("Nothing",)],
        "Go to": list(places.values()),
    }
    say(game, "go to drawer 2")
    went = "You go to drawer 2. It is closed."
    assert shown(game)["Here"] == [("drawer 2", went, "[Open: open drawer 2]")]
    assert shown(game, SPECTATOR)["Here"] == [("drawer 2", "Ada goes to drawer 2. It is closed.")]
    assert game.show(0).ask == "Choose what to do at drawer 2, or where to go."
    say(game, "open drawer 2")
    assert shown(game)["In drawer 2"] == [("apple 7", "[Take: take apple 7 from drawer 2]")]
    say(game, "take apple 7 from drawer 2")
    places["drawer 2"] = ("drawer 2", "empty", "picked")
    assert shown(game) == {
        "Here": [("drawer 2", "You take apple 7 from drawer 2.", "[Close: close drawer 2]")],
        "In the hand": [("apple 7",)],  # an apple belongs in no drawer
        "Go to": list(places.values()),
    }
    assert game.show(0).phase == "17 turns left"
    say(game, "go to microwave 1", "heat apple 7 with microwave 1")
    assert shown(game)["In the hand"] == [("apple 7", "hot", "[Heat: heat apple 7 with microwave 1]")]
    say(game, "go to countertop 1")
    assert shown(game)["On countertop 1"] == [("knife 1",), ("mug 2",)]  # one thing is carried already
    assert shown(game)["In the hand"] == [("apple 7", "hot", "[Put on countertop 1: put apple 7 in/on countertop 1]")]


def test_a_lamp_is_turned_on_where_it_stands():
    game = make(household(home=STUDY))
    say(game, "go to desk 1")
    lamp, pen = shown(game)["On desk 1"]
    assert lamp == ("desklamp 1", "[Turn on: toggle desklamp 1]")
    assert pen == ("pen 2", "[Take: take pen 2 from desk 1]")
    say(game, "toggle desklamp 1")
    assert shown(game)["On desk 1"][0] == ("desklamp 1", "on", "[Switch: toggle desklamp 1]")


def test_the_end_says_which_step_completed_the_task():
    game = make(household(home=home()))
    say(game, "go to drawer 2", "open drawer 2", "take apple 7 from drawer 2", "go to microwave 1")
    say(game, "heat apple 7 with microwave 1", "go to diningtable 1", "put apple 7 in/on diningtable 1")
    view = game.show(0)
    assert (view.headline, view.ask, view.mood) == ("Done in 7 steps.", "", "over")
    assert view.moment == "You put apple 7 on diningtable 1 in step 7."
    assert game.show(SPECTATOR).moment == "Ada put apple 7 on diningtable 1 in step 7."
    assert list(view.choices()) == []
    lines = [(line.kind, line.text) for message in game.observe(SPECTATOR).messages for line in message.lines]
    assert lines == [
        ("deed", "goes to drawer 2"),
        ("news", "It is closed."),
        ("deed", "opens drawer 2"),
        ("news", "Inside: apple 7."),
        ("deed", "takes apple 7 from drawer 2"),
        ("deed", "goes to microwave 1"),
        ("news", "It is closed."),
        ("deed", "heats apple 7 with microwave 1"),
        ("deed", "goes to diningtable 1"),
        ("news", "It is empty."),
        ("deed", "puts apple 7 on diningtable 1"),
        ("news", "The task is done in 7 turns."),
    ]


@pytest.mark.parametrize(
    "before, last, moment",
    [
        (("take watch 3 from drawer 1", "go to desk 1"), "toggle desklamp 1", "turned on desklamp 1 in step 5."),
        (
            ("go to desk 1", "toggle desklamp 1", "go to drawer 1", "take watch 3 from drawer 1"),
            "go to desk 1",
            "went to desk 1 in step 7.",
        ),
    ],
)
def test_the_light_may_come_to_the_thing_or_the_thing_to_the_light(before, last, moment):
    game = make(household(home=STUDY))
    say(game, "go to drawer 1", "open drawer 1", *before)
    assert game.show(0).headline == ""
    say(game, last)
    assert game.show(0).moment == f"You {moment}"


def test_a_thing_may_be_taken_where_the_light_is():
    study = {**STUDY, "receptacles": {**STUDY["receptacles"], "desk 1": ["desklamp 1", "watch 1"]}}
    game = make(household(home=study))
    say(game, "go to desk 1", "toggle desklamp 1", "take watch 1 from desk 1")
    assert game.show(0).moment == "You took watch 1 from desk 1 in step 3."


def test_the_end_says_why_the_task_was_not_done():
    late, left = make(household(home=home(), turn_limit=15)), make(household(home=home()))
    say(late, *["look"] * 15)
    say(left, "look")
    left.step({0: FORFEIT})
    for game, why in ((late, "You used up all 15 turns."), (left, "You gave up in step 2.")):
        assert (game.show(0).headline, game.show(0).moment) == ("Not done: reward 0 of 1.", why)
    assert late.observe(0).messages[-1].lines == news("All 15 turns are used up. The task is not done.")
    assert left.observe(0).messages[-1].lines == news("Ada gives up. The task is not done.")


@pytest.mark.parametrize(
    "command, deed, outcome",
    [
        ("look", "looks around", ""),
        ("inventory", "looks at what is in the hand", "In the hand: apple 7."),
        ("examine apple 7", "looks at apple 7", "There is nothing special about it."),
        ("examine drawer 2", "looks at drawer 2", "It is empty."),
        ("close drawer 2", "closes drawer 2", ""),
        ("open fridge 1", "tries “open fridge 1”", "Nothing happens."),
        ("go to countertop 1", "goes to countertop 1", "On it: knife 1, mug 2."),
    ],
)
def test_people_read_what_was_done_and_what_came_of_it(command, deed, outcome):
    game = make(household(home=home()))
    say(game, "go to drawer 2", "open drawer 2", "take apple 7 from drawer 2", command)
    did, happened = game.observe(0).messages[-2:]
    assert [(line.kind, line.text, line.seat) for line in did.lines] == [("deed", deed, 0)]
    assert happened.lines == (news(outcome) if outcome else ())


def test_people_read_who_did_not_answer():
    game = make(household(home=home()))
    game.step({0: game.default(0)})
    absent, _ = game.observe(0).messages[-2:]
    assert [(line.kind, line.text) for line in absent.lines] == [
        ("news", "Ada does not answer."),
        ("deed", "looks around"),
    ]


@pytest.mark.parametrize("seed", range(1, 5))
def test_the_table_offers_all_that_changes_something_and_nothing_that_does_not_work(seed):
    """Over a random play: the choices of its zones are the legal commands besides looks at things."""
    scenario = household().with_seed(seed)
    game = make(scenario)
    while game.to_act():
        listed = {
            canonical(action, dict(zip([arg.name for arg in action.args], values, strict=True)))
            for action in game.observe(0).actions
            if action.name not in ("examine", "look", "inventory")
            for values in product(*(arg.choices for arg in action.args))
        }
        assert set(game.show(0).choices()) == listed
        say(game, reply(scenario, 0, game.observe(0), len(game.observe(0).messages)))


@pytest.mark.parametrize("seed", range(1, 5))
def test_the_table_shows_only_what_was_seen(seed):
    """Over a random play: an object is on the table only after its name was in the text that its viewer read."""
    scenario = household(family="pick_and_place").with_seed(seed)
    game = make(scenario)
    while game.to_act():
        read = " ".join(message.text for message in game.observe(SPECTATOR).messages[1:])
        zones = {zone.title: zone for zone in game.show(SPECTATOR).zones}
        known = {fact for entry in zones["The room"].entries for fact in entry.detail} - {"empty"}
        known |= {entry.name for title, zone in zones.items() if title != "The room" for entry in zone.entries}
        known -= {"Nothing", "The middle of the room"}
        assert [name for name in known if name not in read] == []
        say(game, reply(scenario, 0, game.observe(0), len(game.observe(0).messages)))


BEFORE = ("go to drawer 2", "open drawer 2", "take apple 7 from drawer 2")


@pytest.mark.parametrize(
    "before, command",
    [
        ((), "open drawer 1"),  # not there
        ((), "examine drawer 1"),
        (("go to drawer 1",), "go to drawer 1"),
        (("go to drawer 1",), "close drawer 1"),  # it is closed
        (("go to drawer 1",), "take spoon 1 from drawer 1"),
        (("go to drawer 1", "open drawer 1"), "open drawer 1"),
        (("go to drawer 1", "open drawer 1", "close drawer 1"), "take spoon 1 from drawer 1"),
        (("go to drawer 1", "open drawer 1"), "take knife 1 from drawer 1"),
        (("go to drawer 1", "open drawer 1"), "take spoon 1 from drawer 2"),
        (("go to countertop 1",), "open countertop 1"),
        (("go to countertop 1", "take mug 2 from countertop 1"), "take knife 1 from countertop 1"),  # one hand
        (("go to countertop 1", "take mug 2 from countertop 1", "go to fridge 1"), "put mug 2 in fridge 1"),  # closed
        ((*BEFORE, "go to drawer 1", "open drawer 1"), "put apple 7 in drawer 1"),  # an apple belongs in no drawer
        (BEFORE, "put spoon 1 in drawer 2"),
        (BEFORE, "heat apple 7 with microwave 1"),
        ((*BEFORE, "go to fridge 1"), "heat apple 7 with fridge 1"),
        ((*BEFORE, "go to fridge 1"), "clean apple 7 with fridge 1"),
        (("go to microwave 1",), "heat apple 7 with microwave 1"),  # not carried
        ((), "use apple 7"),
        ((), "take the moon from the sky"),
    ],
)
def test_an_impossible_command_does_nothing_and_is_a_turn(before, command):
    game = make(household(home=home()))
    say(game, *before)
    choices = offered(game._room.choices())
    assert say(game, command) == words.NOTHING
    assert offered(game._room.choices()) == choices
    say(game, "look")
    while game.to_act():
        game.step({0: game.default(0)})
    assert (game.metrics()["nothing"], game.metrics()["turns"]) == (1, 40)


@pytest.mark.parametrize("seed", range(1, 9))
def test_what_is_offered_works_and_nothing_else_does(seed):
    """Of all commands with any things of the room, exactly those that are offered are answered with something."""
    chance = random.Random(seed)
    scenario = household(distractors=8).with_seed(seed)
    names = [*generated(seed, distractors=8)[0].receptacles, *things(generated(seed, distractors=8)[0])]
    moves = []
    for _ in range(8):
        game = make(scenario)
        say(game, *moves)
        listed = {
            canonical(action, dict(zip((arg.name for arg in action.args), values, strict=True)))
            for action in game.observe(0).actions
            for values in product(*(arg.choices for arg in action.args))
        }
        for _ in range(15):
            action = chance.choice(ACTIONS)
            near = [name for arg in action.args for name in arg.choices] or names
            text = canonical(action, {arg.name: chance.choice([chance.choice(names), *near]) for arg in action.args})
            game = make(scenario)
            say(game, *moves)
            assert (text in listed) == (not say(game, text).startswith(words.NOTHING)), (moves, text)
        moves.append(chance.choice(sorted(listed)))


def test_hot_and_cool_exclude_each_other_and_clean_stays():
    game = make(household(home=home()))
    say(
        game,
        *BEFORE,
        "go to sinkbasin 1",
        "clean apple 7 with sinkbasin 1",
        "go to fridge 1",
        "cool apple 7 with fridge 1",
    )
    assert say(game, "examine apple 7") == "This is a cool and clean apple 7."
    say(game, "go to microwave 1", "heat apple 7 with microwave 1")
    assert say(game, "examine apple 7") == "This is a hot and clean apple 7."


def test_a_word_in_part_of_another_is_no_preposition():
    game = make(household(home=home()))
    observation = game.observe(0)
    with pytest.raises(ParseError, match="Cool lacks: receptacle"):
        parse("cool apple 7 in/on fridge 1", observation)
    args = {"object": "apple 7", "receptacle": "fridge 1"}
    assert parse("cool apple 7 in fridge 1", observation)[0].args == args
    assert parse("put apple 7 in/on fridge 1", observation)[0].args == args


def test_a_cool_object_is_called_cold():
    game = make(household(home=home()))
    say(game, *BEFORE, "go to fridge 1", "cool apple 7 with fridge 1")
    assert say(game, "examine apple 7") == "This is a cold apple 7."


def test_the_last_turns_are_counted():
    game = make(household(home=home(), turn_limit=15))
    shown = [say(game, "look") for _ in range(15)]
    assert [text.rpartition("Turns left: ")[2].rstrip(".") for text in shown if "Turns left" in text] == [
        "10",
        "5",
        "2",
        "1",
    ]
    assert shown[-1].endswith("All 15 turns are used up. The task is not done. Score 0.")


# --- subgoals --------------------------------------------------------------------------------------------------------


def reached(game, *texts):
    """What is within reach before and after each command."""
    shares = [game.in_reach()[0]]
    for text in texts:
        say(game, text)
        shares.append(game.in_reach()[0])
    return [round(3 * share, 9) for share in shares]


def test_subgoals_of_a_change_by_hand():
    """Carried, hot, on the table: a third each; on the table while it is not hot counts nothing."""
    game = make(household(home=home()))
    assert reached(game, "go to drawer 2", "open drawer 2", "take apple 7 from drawer 2") == [0, 0, 0, 1]
    assert reached(game, "put apple 7 in diningtable 1", "go to microwave 1", "heat apple 7 with microwave 1") == [
        1,
        1,
        1,
        2,
    ]
    assert reached(game, "go to diningtable 1") == [2, 2]
    say(game, "put apple 7 on diningtable 1")
    assert game.in_reach() == game.returns() == {0: 1.0}


def test_what_is_lost_and_regained_counts_once():
    game = make(household(home=home("clean", "mug", "diningtable")))
    cool = (
        "go to sinkbasin 1",
        "take mug 1 from sinkbasin 1",
        "put mug 1 in sinkbasin 1",
        "take mug 1 from sinkbasin 1",
    )
    assert reached(game, *cool) == [0, 0, 1, 1, 1]
    game.step({0: parse("inventory", game.observe(0))[0].model_copy(update={"origin": "forfeit"})})
    assert game.in_reach() == game.returns() == {0: 0.0}
    assert game.metrics()["subgoals"] == pytest.approx(1 / 3)


def test_subgoals_of_two_objects_by_hand():
    """Each of the two counts a quarter when carried and two when it lies with the other; a third one counts nothing."""
    places = {"desk 1": ["pen 1", "pen 2", "pen 3"], "shelf 1": [], "shelf 2": []}
    task = {"family": "two_objects", "object": "pen", "receptacle": "shelf"}
    game = make(household(home={"receptacles": places, "task": task}))
    shares = []
    for number, shelf in ((1, 1), (2, 2), (3, 2)):
        for text in (f"take pen {number} from desk 1", f"put pen {number} on shelf {shelf}"):
            say(game, "go to desk 1" if "take" in text else f"go to shelf {shelf}", text)
            shares.append(4 * game.in_reach()[0])
    assert shares == [1, 2, 3, 3, 3, 4]
    assert game.returns() == {0: 1.0}


def test_subgoals_under_a_lamp_by_hand():
    game = make(household(home=STUDY))
    assert reached(game, "go to desk 1", "toggle desklamp 1", "go to drawer 1", "open drawer 1") == [0, 0, 1, 1, 1]
    assert reached(game, "take pen 1 from drawer 1", "put pen 1 in drawer 1", "take watch 3 from drawer 1") == [
        1,
        1,
        1,
        2,
    ]
    say(game, "go to desk 1")
    assert game.returns() == {0: 1.0}


def test_a_lamp_that_is_off_again_does_not_count():
    game = make(household(home=STUDY))
    say(game, "go to drawer 1", "open drawer 1", "take watch 3 from drawer 1", "go to desk 1")
    assert game.returns() == {0: None}
    assert say(game, "use desklamp 1").startswith("You turn on the desklamp 1.")
    game = make(household(home=STUDY))
    say(game, "go to desk 1", "use desklamp 1", "use desklamp 1", "go to drawer 1", "open drawer 1")
    say(game, "take watch 3 from drawer 1", "go to desk 1")
    assert game.returns() == {0: None}


# --- the script ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("entry", list(tasks()[::7]), ids=lambda entry: words.label(entry.task))
def test_the_script_reads_every_sentence_of_a_task(entry):
    for variant in (0, 1):
        sentence = words.task(entry.task, variant)
        assert read_task(f"Rules.\n\n{words.YOUR_TASK}{sentence}\n\nMore.") == entry.task


def test_the_script_reads_alfworlds_sentences():
    """The templates of its goal library, without articles for receptacles and with either preposition."""
    read = {
        "put a mug in desk": ("pick_and_place", "mug", "desk"),
        "put some mug on desk.": ("pick_and_place", "mug", "desk"),
        "put a clean mug in desk.": ("clean", "mug", "desk"),
        "clean some mug and put it in desk.": ("clean", "mug", "desk"),
        "put a hot mug in desk.": ("heat", "mug", "desk"),
        "heat some mug and put it in desk.": ("heat", "mug", "desk"),
        "put a cool mug in desk.": ("cool", "mug", "desk"),
        "cool some mug and put it in desk.": ("cool", "mug", "desk"),
        "put two mug in desk.": ("two_objects", "mug", "desk"),
        "find two mug and put them in desk.": ("two_objects", "mug", "desk"),
        "look at mug under the desklamp.": ("look_under_light", "mug", "desklamp"),
        "examine the mug with the desklamp.": ("look_under_light", "mug", "desklamp"),
    }
    for sentence, (family, wanted, target) in read.items():
        assert read_task(words.YOUR_TASK + sentence) == Task(family=family, object=wanted, receptacle=target)
    assert read_task(f"{words.YOUR_TASK}wash the dog") is None


def play(scenario, seed, name="scripted", before=()):
    game = make(scenario.with_seed(seed))
    say(game, *before)
    while game.to_act():
        say(game, reply(game.scenario, 0, game.observe(0), derive(seed, len(game.observe(0).messages)), name))
    return game


@pytest.mark.parametrize("family", FAMILIES)
def test_the_script_solves_every_family(family):
    for seed in range(1, 26):
        game = play(household(family=family), seed)
        assert game.returns() == {0: 1.0}, seed
        assert game.metrics()["nothing"] == 0
        assert game.metrics()["turns"] >= game.metrics()["shortest"]


def test_chance_rarely_solves_a_task():
    assert sum(play(household(), seed, "random").returns()[0] for seed in range(1, 41)) <= 4


@pytest.mark.parametrize(
    "before",
    [
        ("go to countertop 1", "take knife 1 from countertop 1", "go to fridge 1"),  # what it does not need
        (
            "go to drawer 2",
            "open drawer 2",
            "take apple 7 from drawer 2",
            "go to fridge 1",
            "open fridge 1",
            "close fridge 1",
        ),
        ("go to drawer 2", "open drawer 2", "close drawer 2"),
        ("look", "inventory", "take apple 7 from drawer 2"),
    ],
)
def test_the_script_goes_on_from_anywhere(before):
    assert play(household(home=home()), 1, before=before).returns() == {0: 1.0}


def test_the_script_looks_into_everything_for_a_task_that_it_cannot_read():
    game = make(household(home=home()))
    while game.to_act():
        seen = game.observe(0)
        rules = seen.messages[0].model_copy(update={"text": f"{words.YOUR_TASK}wash the dog."})
        changed = seen.model_copy(update={"messages": (rules, *seen.messages[1:])})
        answer = reply(game.scenario, 0, changed, 1, "scripted")
        say(game, answer)
    visited = {message.text for message in game.observe(0).messages if message.author == 0}
    assert visited >= {f"go to {name}" for name in home()["receptacles"]}
    assert visited >= {"open drawer 1", "open drawer 2", "open fridge 1", "open microwave 1"}
    assert answer == "look"
    assert game.metrics()["nothing"] == 0


def test_samples_cover_families_rooms_and_settings():
    listed = samples.load("household")
    assert len(listed) >= 16
    settings = [HouseholdSettings.model_validate(scenario.settings) for scenario in listed]
    drawn = [each.family for each in settings if each.home is None]
    assert {*drawn, *(each.home.task.family for each in settings if each.home)} >= set(FAMILIES)
    assert {each.room for each in settings} >= set(RECEPTACLES)
    assert len({dumps(scenario.settings) for scenario in listed}) == len(listed)
    assert len({each.turn_limit for each in settings}) >= 3


def test_everything_hidden_is_shown_to_all():
    game = make(household(home=home()))
    shown = game.observe(ALL).messages[0].text
    assert "drawer 2: apple 7; fridge 1: egg 1; microwave 1: nothing" in shown
    assert "A shortest plan: go to drawer 2; open drawer 2; take apple 7 from drawer 2; go to microwave 1;" in shown


def test_tools_and_closed_receptacles_are_known():
    assert {*TOOLS.values(), *OPENABLE} <= KNOWN
