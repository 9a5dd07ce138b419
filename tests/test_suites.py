"""The section `suite`: what it refuses, by field; its starts; and the suite of MARS with the source of its numbers."""

import pytest

from training import config, suites
from training.errors import BadInput
from training.evaluate.nashconv import points, uniform
from training.games.prose import NAMES
from training.players import table
from training.players.strategic import POKERS
from training.samples import for_game
from training.store import read_lines
from training.suites import FOLDER, Scale, SuiteTask, starts, write_starts

TASK = {"game": "tic_tac_toe", "opponent": "mcts:10"}
CREW = {"game": "among_us", "side": ["crewmate"], "opponent": "scripted", "partner": "scripted", "seats": 5}
BARGAIN = {"game": "negotiation", "opponent": "scripted"}
EXACT = {"game": "kuhn_poker", "opponent": "best_response"}
UNUSED = {
    "settings": {"opening": [0]},
    "seats": 2,
    "path": "starts.jsonl",
    "side": ["any"],
    "games": 5,
    "scale": {"low": [0], "high": [1]},
}
SPLIT = {"low": [0, 1, 2], "high": [3]}


def suite(*tasks, **section):
    return config.parse({"kind": "suite", "suite": {"tasks": list(tasks), **section}})


@pytest.mark.parametrize(
    "tasks, section, where, why",
    [
        ([], {}, "suite.tasks", "at least one"),
        ([TASK], {"games": 0}, "suite.games", "at least 1"),
        ([TASK, {**TASK, "games": -1}], {}, "suite.tasks.1.games", "at least 0"),
        ([{**TASK, "game": "go"}], {}, "suite.tasks.0.game", "unknown game 'go'"),
        ([{**TASK, "game": "dialogue"}], {}, "suite.tasks.0.game", "no result of its own"),
        ([{**TASK, "settings": {"size": "mini"}}], {}, "suite.tasks.0.settings", "no setting 'size'"),
        ([TASK, {**TASK, "game": "kuhn_poker"}], {}, "suite.tasks.1.opponent", "mcts does not play 'kuhn_poker'"),
        ([{**TASK, "opponent": "nash"}], {}, "suite.tasks.0.opponent", "nash plays kuhn_poker, not tic_tac_toe"),
        ([{**TASK, "opponent": "cfr"}], {}, "suite.tasks.0.opponent", "cfr plays leduc_poker, not tic_tac_toe"),
        ([{**TASK, "opponent": "best_response"}], {}, "suite.tasks.0.opponent", "NashConv is known for"),
        *(
            ([TASK, {**EXACT, name: value}], {}, f"suite.tasks.1.{name}", f"standard game: leave {name} out")
            for name, value in UNUSED.items()
        ),
        ([{**TASK, "opponent": ""}], {}, "suite.tasks.0.opponent", "at least 1 character"),
        ([{**TASK, "scale": SPLIT}], {}, "suite.tasks.0.scale.low", "one for each of 2, not 3"),
        ([{**TASK, "scale": {"low": [1], "high": [1]}}], {}, "suite.tasks.0.scale.high", "1 is not above 1"),
        ([{**TASK, "scale": {"low": [0, 5], "high": [4]}}], {}, "suite.tasks.0.scale.high", "4 is not above 5"),
        ([{**TASK, "name": "x"}], {}, "suite.tasks.0.name", "there is no such field"),
        ([{**CREW, "seats": 2}], {}, "suite.tasks.0.seats", "among_us has 3 to 12 players"),
        ([{**CREW, "partner": "mirror"}], {}, "suite.tasks.0.partner", "no other player"),
        ([{**CREW, "side": []}], {}, "suite.tasks.0.partner", "name its roles in side"),
        ([{**CREW, "opponent": "mirror"}], {}, "suite.tasks.0.side", "plays every seat"),
        ([{**CREW, "partner": "nash"}], {}, "suite.tasks.0.partner", "nash plays kuhn_poker, not among_us"),
        ([{**CREW, "partner": "mcts:9"}], {}, "suite.tasks.0.partner", "mcts does not play 'among_us'"),
        ([{**CREW, "side": ["crew"]}], {}, "suite.tasks.0.side", "has these roles; it has crewmate, imposter"),
        ([{**CREW, "side": ["crewmate", "imposter"]}], {}, "suite.tasks.0.side", "nobody opposes"),
        ([{**CREW, "side": ["imposter"]}], {}, "suite.tasks.0.partner", "one seat of the side"),
        ([{**TASK, "side": ["x"]}], {}, "suite.tasks.0.side", "has these roles; it has none"),
        ([{**BARGAIN, "opponent": "mcts:9"}], {}, "suite.tasks.0.opponent", "mcts does not play 'negotiation'"),
        ([{**BARGAIN, "side": ["x"]}], {}, "suite.tasks.0.side", "has these roles; it has none"),
        ([{**TASK, "measured": "mirror"}], {}, "suite.tasks.0.measured", "no other player"),
        ([{**TASK, "measured": "nash"}], {}, "suite.tasks.0.measured", "nash plays kuhn_poker, not tic_tac_toe"),
        ([{**BARGAIN, "measured": "speaker"}], {}, "suite.tasks.0.measured", "has no speaker"),
        ([{**CREW, "scale": {"low": [0] * 12, "high": [1]}}], {}, "suite.tasks.0.scale", "one number"),
    ],
)
def test_a_wrong_suite_is_refused_by_its_field(tasks, section, where, why):
    with pytest.raises(BadInput, match=why) as caught:
        suite(*tasks, **section)
    assert caught.value.where == where


def test_a_wrong_suite_is_no_concern_of_other_runs():
    assert config.parse({"suite": {"tasks": [{**TASK, "opponent": "nash"}]}}).kind == "train"


def test_the_total_counts_every_seat_and_a_mirror_or_a_side_once():
    alone = {"game": "among_us", "opponent": "scripted", "seats": 12}
    made = suite(TASK, {**TASK, "games": 3}, {"game": "hanabi", "opponent": "mirror"},
                 {"game": "kuhn_poker", "opponent": "best_response"}, CREW, alone, games=10).suite  # fmt: skip
    assert [made.count(task) for task in made.tasks] == [10, 3, 10, 0, 10, 10]
    assert made.total == 2 * 10 + 2 * 3 + 10 + 10 + 12 * 10


def test_a_start_has_as_many_players_as_the_task_says():
    assert [len(starts("among_us", seats)[0].seats) for seats in (0, 6)] == [3, 6]


def test_others_beside_a_side_are_replaced_in_every_task_with_one():
    section = suite(TASK, CREW).suite.to_dict()
    first, second = suites.beside_side(section, "random", "")["tasks"]
    assert first == section["tasks"][0]
    assert (second["opponent"], second["partner"]) == ("random", "scripted")
    assert suites.beside_side(section, "", "random")["tasks"][1]["partner"] == "random"
    with pytest.raises(BadInput, match="no task") as caught:
        suites.beside_side(suite(TASK).suite.to_dict(), "", "random")
    assert caught.value.where == "partner"


def test_a_scale_may_have_a_number_for_each_seat():
    scale = Scale(low=(-1.0, 0.0), high=(2.0,))
    assert [scale.ends(seat) for seat in (0, 1)] == [(-1.0, 2.0), (0.0, 2.0)]
    assert (scale.per_seat, Scale(low=(0.0,), high=(4.0,)).per_seat) == (2, 0)


def test_the_starts_are_the_games_own_with_the_settings_or_its_samples(tmp_path):
    hanabi = SuiteTask(game="hanabi", settings={"size": "simple"}, opponent="mirror")
    [start] = starts("hanabi", 2, {"size": "simple"})
    assert (start.settings, start.seats, start.seed) == ({"size": "simple"}, NAMES[:2], 0)
    [(written, _)] = read_lines(write_starts(hanabi, tmp_path))
    assert written == start.to_dict()
    bargain = SuiteTask(game="negotiation", opponent="scripted")  # it needs items and their values
    assert starts("negotiation") == for_game("negotiation")
    samples = [line for line, _ in read_lines(write_starts(bargain, tmp_path))]
    assert samples == [scenario.to_dict() for scenario in for_game("negotiation")]


# --- the suites of EPO ---


@pytest.mark.parametrize("name, game", [("epo", "negotiation"), ("epo_dialogue", "dialogue")])
def test_the_suites_of_epo_have_its_four_pairings_on_the_same_deals(name, game):
    epo = config.load(FOLDER / f"{name}.toml")
    pairings = [(task.measured, task.opponent) for task in epo.suite.tasks]
    assert pairings == [("speaker", "mirror"), ("", "speaker"), ("", "untrained"), ("", "mirror")]
    assert {(task.game, task.settings["turn_limit"], task.path) for task in epo.suite.tasks} == {(game, 20, "")}
    assert (epo.speaker.alone, epo.sampling.temperature) == ("react", 0.7)


def test_a_judged_game_needs_a_judge():
    section = {"tasks": [{"game": "dialogue", "opponent": "mirror"}]}
    judge = {"address": "http://127.0.0.1:1/v1", "model": "m"}
    assert config.parse({"kind": "suite", "judge": judge, "suite": section}).suite.tasks[0].game == "dialogue"


def test_a_player_without_a_model_speaks_alone_without_strategies():
    section = config.load(FOLDER / "epo.toml").speaker.to_dict()
    assert suites.spoken_by(section, "follower:60") == {**section, "source": "follower:60", "alone": "plain"}
    assert suites.spoken_by(section, "big") == {**section, "source": "big"}


# --- the suite of MARS ---


def test_the_suite_of_mars_has_the_papers_opponents():
    mars = config.load(FOLDER / "mars.toml")
    assert (mars.kind, mars.suite.games, mars.rollout.on_refused) == ("suite", 1000, "forfeit")
    tasks = [(task.game, task.settings.get("size", ""), task.opponent, task.held_out) for task in mars.suite.tasks]
    assert tasks == [
        ("tic_tac_toe", "", "mcts:100", False),
        ("tic_tac_toe", "", "mcts:1000", False),
        ("kuhn_poker", "", "nash", False),
        ("kuhn_poker", "", "best_response", False),
        ("hanabi", "mini", "mirror", False),
        ("connect_four", "", "mcts:10", True),
        ("connect_four", "", "mcts:100", True),
        ("leduc_poker", "", "cfr", True),
        ("leduc_poker", "", "best_response", True),
        ("hanabi", "simple", "mirror", True),
    ]
    ends = {task.settings.get("size") or task.game: task.scale for task in mars.suite.tasks if task.scale}
    assert [ends[name].ends(0) for name in ("tic_tac_toe", "connect_four", "mini", "simple")] == [
        (-1, 1), (-1, 1), (0, 4), (0, 6),
    ]  # fmt: skip
    line = "python -m training suite training/suites/mars.toml"
    assert line in (FOLDER / "mars.toml").read_text()


def value(state, policies):
    """The first seat's expected return, by the tree of the game."""
    if state.is_terminal():
        return state.returns()[0]
    if state.is_chance_node():
        return sum(chance * value(state.child(action), policies) for action, chance in state.chance_outcomes())
    seat = state.current_player()
    choices = policies[seat][state.information_state_string(seat)]
    return sum(chance * value(state.child(action), policies) for action, chance in choices.items() if chance)


@pytest.mark.parametrize("game, solve, exact", [("kuhn_poker", table.kuhn, 1e-12), ("leduc_poker", table.leduc, 1e-3)])
def test_the_scales_of_poker_are_the_random_policy_and_the_equilibrium(game, solve, exact):
    [task] = [t for t in config.load(FOLDER / "mars.toml").suite.tasks if t.game == game and t.scale]
    view = POKERS[game]
    start = view(view.model(), NAMES[:2]).load().new_initial_state()
    solved, random = solve().policy, uniform(points(game))
    solution = value(start, (solved, solved))
    assert [task.scale.ends(seat)[1] for seat in (0, 1)] == pytest.approx([solution, -solution], abs=exact)
    against = [value(start, (random, solved)), -value(start, (solved, random))]
    assert [task.scale.ends(seat)[0] for seat in (0, 1)] == pytest.approx(against, abs=exact)
    if game == "kuhn_poker":
        assert against == pytest.approx([-1 / 6, -1 / 9])


# --- the suite of Among Us ---


def test_the_suite_of_among_us_has_the_papers_environments():
    """Figure 4: shapes, two to six tasks, three to five crewmates, one of these at a time."""
    ours = config.load(FOLDER / "among_us.toml")
    points: dict = {}
    for task in ours.suite.tasks:
        assert (task.side, task.game) == (("crewmate",), "among_us")
        chosen = (task.settings["width"], task.settings["height"]), task.settings["tasks"], task.seats - 1
        for chart, point in task.charts:
            points.setdefault(chart, {})[point] = chosen
    base = (2, 2), 4, 4
    assert points == {
        "Rooms": {"1 × 3": ((1, 3), *base[1:]), "2 × 2": base, "2 × 3": ((2, 3), *base[1:])},
        "Tasks of each crewmate": {str(tasks): (base[0], tasks, base[2]) for tasks in range(2, 7)},
        "Crewmates": {str(crew): (*base[:2], crew) for crew in range(3, 6)},
    }
    assert len({str(task.settings) + str(task.seats) for task in ours.suite.tasks}) == len(ours.suite.tasks) == 9
