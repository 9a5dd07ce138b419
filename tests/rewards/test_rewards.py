"""The registry of rewards: declared bounds hold, judges are asked per seat, what could not be scored raises."""

import json
import math
import re

import pytest

from tests.rewards.samples import dialogue, episode, negotiation
from training.engines.base import ChatReply
from training.errors import BadInput, JudgeError, RemoteModelError
from training.games import REGISTRY as GAMES
from training.games import lookup, make
from training.games.base import FORFEIT
from training.labels.codebooks import SOTOPIA
from training.records import ALL, SeatMove
from training.reward_section import RewardSection
from training.rewards import REGISTRY, build, lowest, per_return
from training.rewards.goals import GoalCheck
from training.rewards.judge import Judge


class Answers:
    """A chat model that fills in the asked form by a rule: `values(seat, label_type)`, `passed(turn)`."""

    def __init__(self, values=None, passed=None, reached=None):
        self.values, self.passed, self.reached = values, passed, reached
        self.asked = []

    async def reply(self, messages, sampling, seed=None):
        self.asked.append(messages)
        form = json.loads(messages[0].content.splitlines()[-1])
        if "values" in form:
            form["values"] = {name: {"value": self.values(form["seat"], name)} for name in form["values"]}
        elif "turns" in form:
            listed = re.search(r"by number: ([\d, ]+)\.", messages[0].content)[1]
            form["turns"] = [{"turn": n, "passed": self.passed(n)} for n in map(int, listed.split(", "))]
        else:
            form["reached"] = self.reached
        return ChatReply(json.dumps(form), 10, 5)


class Silent:
    async def reply(self, messages, sampling, seed=None):
        raise RemoteModelError("nobody answers")


RANGES = {d.name: (d.low, d.high) for d in SOTOPIA.labels}


@pytest.mark.parametrize("scale", ["unit", "raw"])  # a share of what the side could reach already
async def test_outcome_is_the_games_own(scale):
    reward = build(RewardSection(scale=scale), GAMES["negotiation"])
    score = await reward.score(episode(negotiation(), "Hi", "Hello", returns={0: 0.25, 1: 1.0}), 0)
    assert score.returns == {0: 0.25, 1: 1.0}
    assert score.turn_rewards == (0, 0)
    assert score.passed == (True, True)


async def test_an_open_game_has_no_outcome():
    reward = build(RewardSection(), GAMES["negotiation"])
    with pytest.raises(JudgeError, match="seat 1"):
        await reward.score(episode(negotiation(), "Hi", returns={0: 0.5, 1: None}), 0)


async def test_malformed_replies_are_paid():
    reward = build(RewardSection(malformed=-0.5), GAMES["negotiation"])
    played = episode(negotiation(), ("<propose>", "unread"), "Hi", returns={0: 0.0, 1: 0.0})
    score = await reward.score(played, 0)
    assert score.turn_rewards == (-0.5, 0)
    assert score.passed == (False, True)


@pytest.mark.parametrize("end, unit", [(0, 0.0), (1, 1.0)], ids=["lowest", "highest"])
async def test_the_judged_mean_and_its_bounds(end, unit):
    model = Answers(values=lambda seat, name: RANGES[name][end])
    played = episode(dialogue(), "Hi", "Hello")
    raw = build(RewardSection(scale="raw"), GAMES["dialogue"], Judge(model, "j"))
    score = await raw.score(played, 0)
    expected = (-30 / 7, 40 / 7)[end]
    assert score.returns == pytest.approx({0: expected, 1: expected})
    scaled = build(RewardSection(), GAMES["dialogue"], Judge(model, "j"))
    assert (await scaled.score(played, 0)).returns == pytest.approx({0: unit, 1: unit})


async def test_each_seat_is_judged_by_its_own_values():
    model = Answers(values=lambda seat, name: {"goal": (10, 3)[seat]}.get(name, 0))
    reward = build(RewardSection(scale="raw"), GAMES["dialogue"], Judge(model, "j"))
    score = await reward.score(episode(dialogue(), "Hi", "Hello"), 0)
    assert score.returns == pytest.approx({0: 10 / 7, 1: 3 / 7})
    assert [(j.seat, j.numbers["goal"], j.author) for j in score.judgments] == [(0, 10, "j"), (1, 3, "j")]
    assert len({j.prompt_sha256 for j in score.judgments}) == 2
    text = model.asked[0][1].content
    assert "Has moved." in text  # the judge sees both briefs
    assert "Get the kitchen cleaned." in text


async def test_the_judge_as_filter_only_fails_turns():
    model = Answers(passed=lambda turn: turn != 2)
    reward = build(RewardSection(judge_filter=True), GAMES["negotiation"], Judge(model, "j"))
    played = episode(negotiation(), "Hi", ("<x", "unread"), "Bye", "So?", "Food?", returns={0: 0.5, 1: 0.5})
    assert (await reward.score(played, 0)).passed == (True, False, False, True, True)
    assert len(model.asked) == 2  # one call a seat; the refused reply is not asked about


async def test_a_silent_judge_is_an_error_never_a_zero():
    played = episode(dialogue(), "Hi", "Hello")
    for section in (RewardSection(), RewardSection(judge_filter=True)):
        with pytest.raises(JudgeError, match="nobody answers"):
            await build(section, GAMES["dialogue"], Judge(Silent(), "j")).score(played, 0)


def test_what_does_not_fit_is_refused():
    with pytest.raises(BadInput, match="only a judge"):
        build(RewardSection(source="outcome"), GAMES["dialogue"])
    for section, game in ((RewardSection(), "dialogue"), (RewardSection(judge_filter=True), "negotiation")):
        with pytest.raises(BadInput, match="needs a judge"):
            build(section, GAMES[game])


@pytest.mark.parametrize("name", REGISTRY)
@pytest.mark.parametrize("game", GAMES)
def test_every_reward_declares_finite_bounds(name, game):
    low, high = REGISTRY[name].bounds(GAMES[game], {})
    assert -math.inf < low < high < math.inf


@pytest.mark.parametrize("scale, least", [("raw", -30 / 7), ("unit", 0.0)])
async def test_a_forfeit_gets_the_lowest_return_and_is_not_judged(scale, least):
    model = Answers(values=lambda seat, name: RANGES[name][1])
    played = episode(dialogue(), "Hi")
    gone = SeatMove(seat=1, move=FORFEIT)
    played = played.model_copy(update={"moves": (*played.moves, gone)})
    score = await build(RewardSection(scale=scale), GAMES["dialogue"], Judge(model, "j")).score(played, 0)
    assert score.returns[1] == pytest.approx(least)
    assert score.returns[0] == pytest.approx({"raw": 40 / 7, "unit": 1.0}[scale])
    assert [judgment.seat for judgment in score.judgments] == [0]


@pytest.mark.parametrize(
    "reached, report",
    [([False, False], "nobody"), ([True, False], "0"), ([False, True], "1"), ([True, True], "both")],
)
async def test_a_goal_check_is_a_legal_move_of_the_tool_seat(reached, report):
    game = make(dialogue(goal_check=True))
    while 2 not in (acting := game.to_act()):
        game.step({seat: episode(dialogue(), "Hi").moves[0].move for seat in acting})
    model = Answers(reached=reached)
    move = await GoalCheck(Judge(model, "j"))(game)
    assert (move.args["reached"], move.origin) == (report, "tool")
    game.step({2: move})
    assert bool(game.to_act()) is (report == "nobody")
    assert "Go out tonight." in model.asked[0][1].content
    assert game.observe(ALL).messages


async def test_a_goal_check_without_a_judge_raises():
    with pytest.raises(JudgeError):
        await GoalCheck(Judge(Silent(), "j"))(make(dialogue(goal_check=True)))


@pytest.mark.parametrize(
    "game, section, worth",
    [
        ("leduc_poker", {}, 1 / 26),  # from -13 to 13 chips
        ("leduc_poker", {"scale": "raw"}, 1.0),
        ("dialogue", {}, None),  # a judge's scores are rewarded
        ("dialogue", {"source": "outcome"}, 1 / 10),
        ("tic_tac_toe", {"scale": "span"}, 2.0),  # from -1 to 1, so that it spans 4
        ("kuhn_poker", {"scale": "span"}, 1.0),
        ("hanabi", {"scale": "span", "span": 1.0}, 1 / 4),  # the mini size, with at most 4 points
    ],
)
def test_what_one_unit_of_return_is_worth(game, section, worth):
    assert per_return(RewardSection(**section), lookup(game), {}) == (worth and pytest.approx(worth))


@pytest.mark.parametrize(
    "game, section, low",
    [
        ("tic_tac_toe", {}, 0.0),
        ("tic_tac_toe", {"scale": "span"}, -2.0),
        ("tic_tac_toe", {"scale": "span", "malformed": -10.0}, -10.0),
        ("hanabi", {"scale": "span"}, -4.0),  # all four points can be lost at once
        ("hanabi", {"scale": "unit"}, -1.0),
        ("tic_tac_toe", {"length": "penalty"}, -0.5 * 2048 / 2037),  # 4096 tokens: 1 - 4085/2037
        ("tic_tac_toe", {"length": "bonus"}, 0.0),
    ],
)
def test_the_lowest_reward(game, section, low):
    assert lowest(RewardSection(**section), lookup(game), {}, 4096) == pytest.approx(low)
