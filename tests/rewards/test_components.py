"""What games pay on the way, and what turns earn by their form and length, against numbers worked by hand."""

import asyncio

import pytest

from tests.rewards.samples import episode, negotiation
from training import games
from training.errors import BadInput
from training.games.base import FORFEIT
from training.players.base import Reply
from training.records import Episode, Scenario, SeatMove, Trace
from training.reward_section import RewardSection
from training.rewards import build
from training.rewards.components import of_length
from training.rollout import RolloutPolicy, play

MARS = {"scale": "span", "forfeit": "nothing", "malformed": -10.0, "well_formed": 0.05}


class Says:
    """A player that gives the listed replies."""

    def __init__(self, *texts):
        self.texts = list(texts)

    async def act(self, seat, seen, seed):
        return Reply(self.texts.pop(0))

    def traces(self):
        return ()


def hanabi(*replies, rules=None, **settings):
    """A game with the cards of `fixed`; the seats take turns to give the replies."""
    scenario = Scenario(id="h", game="hanabi", settings=settings, seats=("A", "B"))
    texts = [text if "<" in text else f"<answer><{text}></answer>" for text in replies]
    return asyncio.run(play(scenario, [Says(*texts[::2]), Says(*texts[1::2])], rules=rules or RolloutPolicy()))


def score(played, **section):
    return asyncio.run(build(RewardSection(**section), games.lookup(played.scenario.game)).score(played, 0))


# seat 0 holds R1 R2 R1, seat 1 Y1 Y2 Y1; every reply plays the next card of a stack
PERFECT = ("Play card 0",) * 4
CARDS = [0, 1, 0, 2, 3, 2]


def test_a_point_counts_for_the_latest_turn_of_both_seats():
    played = hanabi(*PERFECT, size="mini", fixed=CARDS)
    assert played.returns == {0: 4.0, 1: 4.0}
    # seat 1 has not moved when the first card is played: that point counts for its first turn
    assert played.earned == {0: 2.0, 1: 3.0, 2: 2.0, 3: 1.0}
    result = score(played, scale="raw")
    assert result.parts == {"earned": (2.0, 3.0, 2.0, 1.0)}
    assert result.turn_rewards == (2.0, 3.0, 2.0, 1.0)
    assert result.at_end(played) == {0: 0.0, 1: 0.0}
    assert result.returns == {0: 4.0, 1: 4.0}


def test_the_last_life_takes_the_points_back():
    wrong = {"size": "simple", "fixed": [0, 3, 1, 0, 2, 5, 0, 4, 4, 4]}
    played = hanabi(*["Play card 0"] * 4, **wrong)
    assert played.returns == {0: 0.0, 1: 0.0}
    # the first card is right, each other costs a life; with the last (turn 3) the latest turns lose the point
    assert played.earned == {0: 1.0, 1: 1.0, 2: -1.0, 3: -1.0}


def test_scales_apply_to_what_is_paid_on_the_way_without_their_shift():
    played = hanabi(*PERFECT, size="mini", fixed=CARDS)
    unit = score(played)
    assert unit.returns == {0: 1.0, 1: 1.0}
    assert unit.parts["earned"] == (0.5, 0.75, 0.5, 0.25)
    doubled = score(played, scale="span", span=8.0)
    assert doubled.turn_rewards == (4.0, 6.0, 4.0, 2.0)
    assert doubled.at_end(played) == {0: 0.0, 1: 0.0}


def test_an_episode_that_earned_nothing_on_the_way_has_no_such_part():
    played = episode(negotiation(), "Hi", "Hello", returns={0: 0.25, 1: 1.0})
    assert "earned" not in played.to_dict()
    assert score(played).parts == {}
    earned = hanabi(*PERFECT, size="mini", fixed=CARDS)
    assert Episode.from_dict(earned.to_dict()) == earned


def test_a_malformed_reply_ends_the_game_and_pays_the_other_nothing():
    scenario = Scenario(id="t", game="tic_tac_toe", seats=("A", "B"))
    replies = [Says("<answer><X(0,0)></answer>", "I pass"), Says("<answer><O(1,1)></answer>")]
    played = asyncio.run(play(scenario, replies, rules=RolloutPolicy(on_refused="forfeit")))
    assert played.returns == {0: -1.0, 1: 1.0}
    result = score(played, **MARS)
    # the loss of 1 spans 4 as 2; −10 on the malformed turn, 0.05 on the two others
    assert result.returns == {0: -2.0, 1: 0.0}
    assert result.parts == {"malformed": (0.0, 0.0, -10.0), "well_formed": (0.05, 0.05, 0.0)}
    assert result.turn_rewards == (0.05, 0.05, -10.0)
    assert score(played, **{**MARS, "forfeit": "win"}).returns == {0: -2.0, 1: 2.0}


def test_what_was_earned_before_a_forfeit_is_taken_back():
    played = hanabi(*PERFECT[:2], "nonsense", size="mini", fixed=CARDS, rules=RolloutPolicy(on_refused="forfeit"))
    assert played.returns == {0: 0.0, 1: 0.0}
    result = score(played, **MARS)
    by_seat = {
        seat: sum(r for turn, r in zip(played.turns, result.parts["earned"], strict=True) if turn.seat == seat)
        for seat in (0, 1)
    }
    assert by_seat == {0: 0.0, 1: 0.0}
    assert result.at_end(played) == {0: 0.0, 1: 0.0}


def test_without_a_forfeit_every_return_counts():
    played = episode(negotiation(), "Hi", "Hello", returns={0: 0.25, 1: 1.0})
    assert score(played, forfeit="nothing").returns == {0: 0.25, 1: 1.0}
    gave_up = played.model_copy(update={"moves": (*played.moves, SeatMove(seat=0, move=FORFEIT))})
    assert score(gave_up, forfeit="nothing").returns == {0: 0.25, 1: 0.0}


@pytest.mark.parametrize(
    "kind, tokens, reward",
    [
        ("penalty", 11, 0.0),
        ("penalty", 2048, 0.0),
        ("penalty", 4085, -0.5),  # 1 − 4074/2037 = −1
        ("bonus", 11, 0.5),
        ("bonus", 2048, 0.0),
        ("bonus", 4085, 0.0),
        ("bonus", 1, 0.5 * (1 + 10 / 2037)),  # the printed equation has no upper bound
    ],
)
def test_length_in_both_readings(kind, tokens, reward):
    assert of_length(tokens, RewardSection(length=kind)) == pytest.approx(reward)


def test_length_counts_a_turns_own_tokens_once():
    played = episode(negotiation(), "Hi", ("<propose>", "unread"), "Hello", returns={0: 0.0, 1: 0.0})
    traces = (
        Trace(seat=0, tokens=(1,) * 5, mask=(0, 1, 1, 1, 0), turn=(-1, 0, 0, 0, -1), logprobs=(0.0,) * 5),
        Trace(seat=1, tokens=(1,) * 4, mask=(0, 1, 1, 0), turn=(-1, 1, 1, -1), logprobs=(0.0,) * 4),
        Trace(seat=1, parent=(1, 3), tokens=(1,) * 4, mask=(0, 0, 0, 1), turn=(-1, -1, -1, 2), logprobs=(0.0,) * 4),
    )
    rewards = score(
        played.model_copy(update={"traces": traces}), length="bonus", length_min=1, length_max=5, length_coef=1.0
    ).parts["length"]
    assert rewards == pytest.approx((0.5, 0.0, 1.0))  # three tokens: 1 − 2/4; refused: nothing; one token: 1


def test_a_length_that_has_no_slope_is_refused():
    with pytest.raises(BadInput) as refused:
        RewardSection.from_dict({"length_min": 50, "length_max": 50})
    assert refused.value.where == "length_max"
