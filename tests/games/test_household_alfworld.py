"""Games of ALFWorld: through a small TextWorld of our own, and through the real one where it is installed."""

import json
import random
import re
import sys
from itertools import product
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from tests.games import alfred
from tests.games.cases.household import STUDY, home
from tests.games.play import reply
from training.errors import BadInput, OutsideError
from training.games import make
from training.games.actions import canonical
from training.games.household import alfworld, words
from training.games.household.commands import ACTIONS, BY_NAME
from training.games.household.generated import FAMILIES, generate
from training.games.household.settings import Home, HouseholdSettings
from training.games.household.world import World
from training.records import ALL, SPECTATOR, Scenario
from training.text.parsing import parse

INTRO = "-= Welcome to TextWorld, ALFRED! =-\n\n"


def as_theirs(command):
    """A command in the words of ALFWorld's newer versions."""
    return re.sub(r"^put (.*) in/on ", r"move \1 to ", command).replace("toggle ", "use ")


def as_ours(text):
    """What ALFWorld says, in our words: lists in order, articles before vowels, put for move."""
    text = re.sub(r"\ba ([aeiou])", r"an \1", text)
    text = re.sub(r"You move the (.*) to the", r"You put the \1 in/on the", text)
    return re.sub(
        r"you see (.*?)\.", lambda m: f"you see {sorted(re.split(r', and |, ', m[1]))}.", " ".join(text.split())
    )


def works(world):
    """The commands that work, as ALFWorld writes them."""
    listed = {
        canonical(BY_NAME[name], dict(zip((arg.name for arg in BY_NAME[name].args), each, strict=True)))
        for name, values in world.choices().items()
        for each in product(*values)
    }
    return {as_theirs(command) for command in (*listed, "look", "inventory")}


class Environment:
    """The part of TextWorld's interface that is used, over a `World`; with words and verbs of ALFWorld."""

    def __init__(self, path):
        data = json.loads(path.read_text("utf-8"))
        self.home = Home.model_validate(data["home"])
        self.task, self.old = data["task"], data.get("old", False)

    def reset(self):
        self.world = World(self.home)
        return self._state(f"{INTRO}{self.world.around()}\n\nYour task is to: {self.task}")

    def step(self, command):
        assert command in self.listed, "a command that TextWorld does not list has no effect there"
        name, args = self.listed[command]
        state = self._state(self.world.act(name, args))
        return state, float(state["won"]), state["won"]

    def _state(self, feedback):
        self.listed = {"help": ("look", {})}
        for name, values in {**self.world.choices(), "look": (), "inventory": ()}.items():
            names = [arg.name for arg in BY_NAME[name].args]
            for each in product(*values):
                args = dict(zip(names, each, strict=True))
                command = canonical(BY_NAME[name], args)
                self.listed[command.replace("toggle ", "use ") if self.old else as_theirs(command)] = (name, args)
        feedback = re.sub(r"\ban ([aeiou])", r"a \1", feedback)
        return {"feedback": feedback, "won": self.world.won, "admissible_commands": sorted(self.listed)}


@pytest.fixture
def installed(monkeypatch):
    """A TextWorld and an ALFWorld of our own, as if they were installed."""
    textworld, environments = ModuleType("textworld"), ModuleType("alfworld.agents.environment.alfred_tw_env")

    class AlfredDemangler:
        pass

    def start(path, request_infos, wrappers):
        assert (request_infos.won, request_infos.admissible_commands) == (True, True)
        assert wrappers == [AlfredDemangler]
        return Environment(Path(path))

    textworld.EnvInfos, textworld.start = SimpleNamespace, start
    environments.AlfredDemangler = AlfredDemangler
    names = ("alfworld", "alfworld.agents", "alfworld.agents.environment")
    modules = {name: ModuleType(name) for name in names} | {"textworld": textworld, environments.__name__: environments}
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)


@pytest.fixture
def folder(monkeypatch, tmp_path):
    monkeypatch.setenv("PARLEY_HOME", str(tmp_path))
    return tmp_path / "alfworld" / "train"


def fake(folder, drawn, variant=0, **more):
    task = words.task(drawn.task, variant)
    return alfred.write(folder, drawn, {"home": drawn.model_dump(mode="json"), "task": task, **more})


def scenario(sha256="", seed=1, name="train", **settings):
    chosen = {"alfworld": name, "sha256": sha256, **settings}
    return Scenario(id="alfworld", game="household", settings=chosen, seats=("Ada",), seed=seed)


def hashed(name="train"):
    """The hash that the error for a missing one names."""
    with pytest.raises(BadInput, match="which the scenario must state") as refusal:
        make(scenario(name=name))
    assert refusal.value.where == "settings.sha256"
    return re.search(r"[0-9a-f]{64}", refusal.value.why)[0]


def play(game):
    while game.to_act():
        seen = game.observe(0)
        game.step({0: parse(reply(game.scenario, 0, seen, len(seen.messages), "scripted"), seen)[0]})
    return game


@pytest.mark.parametrize("old", [False, True], ids=["move and use", "put and use as of old"])
@pytest.mark.parametrize("family", FAMILIES)
def test_the_script_plays_a_game_of_each_family(installed, folder, family, old):
    drawn, _ = generate(HouseholdSettings(family=family), 3)
    fake(folder / "trial_1", drawn, old=old)
    game = play(make(scenario(hashed())))
    assert game.returns() == game.in_reach() == {0: 1.0}
    assert game.metrics()["success"] == game.metrics()["subgoals"] == 1
    assert game.metrics()["nothing"] == 0
    assert "shortest" not in game.metrics()


def test_what_is_seen_is_what_textworld_says(installed, folder):
    fake(folder / "trial_1", Home.model_validate(home()))
    game = make(scenario(hashed()))
    rules, room = (message.text for message in game.observe(0).messages)
    assert "\nYour task is to: put a hot apple on diningtable.\n\n" in rules
    assert "train/trial_1" not in rules
    assert "This is ALFWorld's game train/trial_1." in game.observe(ALL).messages[0].text
    assert room.startswith(
        "You are in the middle of a room. Looking quickly around you, you see a countertop 1, a dining"
    )
    shown = []
    for text in ("go to drawer 2", "take apple 7 from drawer 2", "open drawer 2", "take apple 7 from drawer 2"):
        game.step({0: parse(text, game.observe(0))[0]})
        shown.append(game.observe(0).messages[-1].text)
    assert shown[:2] == ["You arrive at drawer 2. The drawer 2 is closed.", "Nothing happens."]
    assert shown[2] == "You open the drawer 2. The drawer 2 is open. In it, you see a apple 7."
    assert game.in_reach() == {0: pytest.approx(1 / 3)}
    offered = {action.name: [arg.choices for arg in action.args] for action in game.observe(0).actions}
    assert offered["put"] == [("apple 7",), ("drawer 2",)] or offered["put"] == [(), ()]
    assert offered["examine"] == [("apple 7", "drawer 2")]
    assert set(offered["go_to"][0]) == set(home()["receptacles"]) - {"drawer 2"}


def test_the_table_shows_what_textworld_lists(installed, folder):
    """What is at a place is known once something could be taken there; before, there is the sentence alone."""
    fake(folder / "trial_1", Home.model_validate(home()))
    game = make(scenario(hashed()))

    def known():
        zones = {zone.title: zone for zone in game.show(SPECTATOR).zones}
        return {entry.name: entry.detail for entry in zones["The room"].entries if entry.detail}, list(zones)

    def say(*commands):
        for text in commands:
            game.step({0: parse(text, game.observe(0))[0]})

    assert [entry.name for entry in game.show(0).zones[-1].entries] == sorted(home()["receptacles"])
    say("go to drawer 2")
    assert known() == ({}, ["Here", "In the hand", "The room"])  # it is closed
    say("open drawer 2")
    assert known() == ({"drawer 2": ("apple 7",)}, ["Here", "In drawer 2", "In the hand", "The room"])
    say("take apple 7 from drawer 2", "go to countertop 1")
    assert known()[0] == {"drawer 2": ("empty",)}
    seen = "On the countertop 1, you see a knife 1, and a mug 2."
    assert game.show(0).zones[0].entries[0].detail == (f"You go to countertop 1. You arrive at countertop 1. {seen}",)
    say("put apple 7 in/on countertop 1")
    things = ("apple 7", "knife 1", "mug 2")
    assert {place: set(facts) for place, facts in known()[0].items()} == {
        "drawer 2": {"empty"},
        "countertop 1": set(things),
    }
    take = [option.choice for entry in game.show(0).zones[1].entries for option in entry.options]
    assert sorted(take) == [f"take {thing} from countertop 1" for thing in things]


def test_a_lamp_stays_on_as_alfworld_has_it(installed, folder):
    fake(folder / "trial_1", Home.model_validate(STUDY))
    game = make(scenario(hashed()))
    room = game._room
    for text in ("go to desk 1", "use desklamp 1", "use desklamp 1"):
        game.step({0: parse(text, game.observe(0))[0]})
    assert room.state.lit == {"desklamp 1"}


def test_a_game_is_drawn_by_the_seed_among_the_solvable_ones_of_a_folder(installed, folder):
    for number in range(4):
        drawn, _ = generate(HouseholdSettings(family=FAMILIES[number]), 1)
        fake(folder / f"room_{number}" / "trial", drawn, solvable=number != 2)
    sha256 = hashed()
    names = {make(scenario(sha256, seed))._room.name for seed in range(1, 40)}
    assert names == {f"train/room_{number}/trial" for number in (0, 1, 3)}
    assert hashed("train/room_1") != sha256
    assert make(scenario(hashed("train/room_1"), 1, "train/room_1"))._room.name == "room_1/trial"
    again = make(scenario(sha256, 5)), make(scenario(sha256, 5))
    assert again[0].observe(ALL) == again[1].observe(ALL)


def test_changed_files_are_refused(installed, folder):
    trial = fake(folder / "trial_1", Home.model_validate(home()))
    sha256 = hashed()
    assert make(scenario(sha256)).to_act()
    (trial / alfworld.TRAJECTORY).write_text(json.dumps(alfred.trajectory(Home.model_validate(STUDY).task)), "utf-8")
    with pytest.raises(BadInput, match="another one than the scenario states") as refusal:
        make(scenario(sha256))
    assert refusal.value.where == "settings.sha256"


def test_a_task_that_is_not_in_the_file_is_written_from_the_trajectory(installed, folder):
    drawn = Home.model_validate(home())
    alfred.write(folder / "trial_1", drawn, {"home": drawn.model_dump(mode="json"), "task": "UNKNOWN GOAL."})
    assert "Your task is to: put a hot apple on diningtable.\n" in make(scenario(hashed())).observe(0).messages[0].text


def test_without_the_package_the_error_says_what_to_install(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "textworld", None)
    fake(folder / "trial_1", Home.model_validate(home()))
    with pytest.raises(BadInput, match="pip install alfworld") as refusal:
        make(scenario(hashed()))
    assert refusal.value.where == "settings.alfworld"


def test_without_the_data_the_error_names_the_folder(folder):
    with pytest.raises(BadInput, match=r"no game\.tw-pddl below PARLEY_HOME/alfworld/train") as refusal:
        make(scenario("0" * 64))
    assert refusal.value.where == "settings.alfworld"


@pytest.mark.parametrize(
    "file, content, where, why",
    [
        (alfworld.GAME, "{", "trial_1/game.tw-pddl", "not JSON"),
        (alfworld.GAME, "[]", "trial_1/game.tw-pddl", "expected an object"),
        (alfworld.GAME, '{"solvable": false}', "settings.alfworld", "marked as not solvable"),
        (alfworld.GAME, "{}", "trial_1/game.tw-pddl", "TextWorld cannot play it"),
        (alfworld.TRAJECTORY, "{}", "trial_1/traj_data.json, task_type", "is none of"),
        (alfworld.TRAJECTORY, '{"task_type": "pick_and_place_simple"}', "pddl_params", "expected an object"),
        (
            alfworld.TRAJECTORY,
            '{"task_type": "pick_and_place_simple", "pddl_params": {"object_target": "Mug"}}',
            "trial_1/traj_data.json, pddl_params",
            "match pattern",
        ),
    ],
)
def test_files_that_do_not_fit_are_named(installed, folder, file, content, where, why):
    trial = fake(folder / "trial_1", Home.model_validate(home()))
    (trial / file).write_text(content, "utf-8")
    with pytest.raises(BadInput, match=why) as refusal:
        make(scenario(hashed()))
    assert refusal.value.where.endswith(where)


def test_a_game_without_its_trajectory_is_named(installed, folder):
    (fake(folder / "trial_1", Home.model_validate(home())) / alfworld.TRAJECTORY).unlink()
    with pytest.raises(BadInput, match=r"no traj_data\.json beside game\.tw-pddl") as refusal:
        make(scenario())
    assert refusal.value.where == "trial_1"


def test_a_failure_of_textworld_is_no_bad_move(installed, folder, monkeypatch):
    fake(folder / "trial_1", Home.model_validate(home()))
    game = make(scenario(hashed()))

    def fails(self, command):
        raise RuntimeError("the planner has crashed")

    monkeypatch.setattr(Environment, "step", fails)
    with pytest.raises(OutsideError, match="the planner has crashed"):
        game.step({0: parse("look", game.observe(0))[0]})


# --- the real one ----------------------------------------------------------------------------------------------------


def real(folder, drawn):
    """The home as a game of ALFWorld."""
    info = pytest.importorskip("alfworld.info", reason="ALFWorld is not installed")
    domain, grammar = (Path(path).read_text("utf-8") for path in (info.ALFRED_PDDL_PATH, info.ALFRED_TWL2_PATH))
    game = {"pddl_domain": domain, "grammar": grammar, "pddl_problem": alfred.problem(drawn)}
    return alfred.write(folder, drawn, game)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_script_plays_the_real_alfworld(folder, family):
    drawn, _ = generate(HouseholdSettings(family=family), 3)
    real(folder / "trial_1", drawn)
    assert play(make(scenario(hashed()))).returns() == {0: 1.0}


def some_command(world, names, chance):
    """A command that works, or any with things of the room; none of those that differ there."""
    known = [action for action in ACTIONS if action.name != "toggle" and (action.name != "look" or world.state.at)]
    if chance.random() < 0.7:
        name, values = chance.choice([each for each in world.choices().items() if each[0] != "toggle"])
        return name, {arg.name: chance.choice(each) for arg, each in zip(BY_NAME[name].args, values, strict=True)}
    near = [world.state.at or names[0], world.state.carried or names[-1], *world.state.inside(world.state.at)]
    action = chance.choice(known)
    return action.name, {arg.name: chance.choice(chance.choice([names, near])) for arg in action.args}


@pytest.mark.parametrize("seed", range(1, 9))
def test_our_rooms_behave_as_in_alfworld(folder, seed):
    """The same room here and there: the same commands work, and they are answered alike.

    It differs in three ways: there a lamp stays on, a look around from the middle of the room shows nothing, and
    things can be sliced.
    """
    drawn, steps = generate(HouseholdSettings(), seed)
    real(folder / "trial_1", drawn)
    theirs, ours, chance = make(scenario(hashed()))._room, World(drawn), random.Random(seed)
    assert as_ours(theirs.around()) == as_ours(ours.around())
    names = [*drawn.receptacles, *(thing for listed in drawn.receptacles.values() for thing in listed)]
    for number in range(40):
        admissible = {command for command in theirs._works.values() if not command.startswith("slice")}
        assert admissible == works(ours)
        name, args = steps[number] if seed % 2 and number < len(steps) else some_command(ours, names, chance)
        assert as_ours(theirs.act(name, args)) == as_ours(ours.act(name, args)), (name, args)
        assert theirs.won == ours.won
        if ours.won:
            return
    assert seed % 2 == 0, "the plan does the task there too"
