"""Labels as rewards and filters: parts, returns and passes of hand-made episodes against sums worked by hand."""

import asyncio
import re
from dataclasses import dataclass, field

import pytest

from tests.rewards.samples import episode, negotiation
from tests.rewards.test_judge import VALUES, answer
from training import config as configs
from training import games
from training.engines.base import ChatReply
from training.engines.pooling import Pooling
from training.errors import BadInput, JudgeError
from training.labels.info import ClassifierInfo
from training.labels.prevalence import Agreement, ErrorRates, Rate
from training.reward_section import LabelReward, RewardSection
from training.rewards import build, lowest
from training.rewards.base import Score
from training.rewards.judge import Judge
from training.rewards.labels import measured

F1 = {"offers": 0.8, "rude": 0.4}


def rate(share):
    return Rate(share=share, low=share - 0.1, high=share + 0.1, n=50)


INFO = ClassifierInfo(
    labels=tuple(F1),
    base="any",
    pooling=Pooling(layer=1, how="mean", context="none"),
    strength=1.0,
    thresholds=(0.5, 0.3),
    accuracy=(ErrorRates(sensitivity=rate(0.8), specificity=rate(0.8)),) * 2,
    agreement=tuple(Agreement(f1=rate(value), right=rate(0.8), kappa=0.5, share=0.3) for value in F1.values()),
    data="",
    turns=100,
    dialogues=20,
    seed=0,
)


@dataclass
class Words:
    """A classifier that sees a label in turns that contain its first word, with these probabilities."""

    probabilities: dict = field(default_factory=lambda: {"offers": 0.5, "rude": 0.3})
    info: ClassifierInfo = INFO
    read: list = field(default_factory=list)

    async def label(self, texts, dialogues=None):
        self.read.append(list(texts))
        return [[value if name in text else 0.29 for name, value in self.probabilities.items()] for text in texts]


class Believes:
    """A judge model that gives each seat a value of believability; without values it answers in prose."""

    def __init__(self, *values):
        self.values = values

    async def reply(self, messages, sampling, seed):
        target, seat = re.search(r"Target (\w+), seat (\d+)", messages[-1].content).groups()
        if not self.values:
            return ChatReply("I liked it.", 1, 1)
        values = VALUES | {"believability": self.values[int(seat)]}
        return ChatReply(answer(values, target, int(seat)), 1, 1)

    async def close(self):
        pass


def score(played, *labels, judge=None, labeller=None, **section):
    section = RewardSection(labels=labels, scale="raw", **section)
    reward = build(section, games.lookup(played.scenario.game), judge, {"c": labeller or Words()})
    return asyncio.run(reward.score(played, 0))


def of_classifier(label, **fields):
    return LabelReward(label=label, classifier="c", **fields)


TALK = ("Ann offers food", "Ben is rude", "Ann offers and is rude", ("<broken", "no such action"), "Ben says hello")
# attempts: 0 Ann, 1 Ben, 2 Ann, 3 Ben (refused), 4 Ben


def talk():
    return episode(negotiation(), *TALK, returns={0: 1.0, 1: 2.0})


def test_every_turn_with_the_label_earns_its_weight():
    result = score(talk(), of_classifier("offers", weight=0.5), of_classifier("rude", weight=-2.0))
    assert result.parts == {"label_offers": (0.5, 0.0, 0.5, 0.0, 0.0), "label_rude": (0.0, -2.0, -2.0, 0.0, 0.0)}
    assert result.turn_rewards == (0.5, -2.0, -1.5, 0.0, 0.0)
    assert result.returns == {0: 1.0, 1: 2.0}
    assert result.seat_parts == {}


def test_a_seats_return_rises_by_the_share_of_its_spoken_turns():
    # Ann: 2 of 2 turns offer; Ben: 1 of 2 spoken turns is rude, the refused attempt is no turn of the game
    result = score(
        talk(), of_classifier("offers", per="seat", weight=3.0), of_classifier("rude", per="seat", weight=-1.0)
    )
    assert result.seat_parts == {"label_offers": {0: 3.0, 1: 0.0}, "label_rude": {0: -0.5, 1: -0.5}}
    assert result.returns == {0: 1.0 + 3.0 - 0.5, 1: 2.0 + 0.0 - 0.5}
    assert result.parts == {}
    assert Score.from_dict(result.to_dict()) == result


def test_filters_mask_turns_and_pay_nothing():
    result = score(talk(), of_classifier("rude", use="exclude"), format=False, repetition=1.0, overlap=1.0)
    assert result.passed == (True, False, False, True, True)
    assert result.parts == {}
    result = score(talk(), of_classifier("offers", use="require"), format=False, repetition=1.0, overlap=1.0)
    assert result.passed == (True, False, True, False, False)
    assert score(talk(), of_classifier("rude", use="exclude")).passed[3] is False  # the other filters still count


def test_a_classifier_is_asked_once_for_all_its_labels_and_reads_the_moves():
    labeller = Words()
    score(talk(), of_classifier("offers"), of_classifier("rude", use="exclude"), labeller=labeller)
    assert labeller.read == [["Ann offers food", "Ben is rude", "Ann offers and is rude", "Ben says hello"]]


def test_a_game_without_words_has_no_label():
    silent = episode(negotiation(), ("<broken", "no such action"), returns={0: 0.0, 1: 0.0})
    result = score(silent, of_classifier("offers"), of_classifier("rude", per="seat"))
    assert result.parts == {"label_offers": (0.0,)}
    assert result.returns == {0: 0.0, 1: 0.0}


def test_a_judges_value_counts_by_its_place_on_the_scale():
    # believability has the scale 0 to 10: 7 counts 0.7, 4 counts 0.4
    judge = Judge(Believes(7, 4), "m")
    entry = LabelReward(label="believability", codebook="sotopia", per="seat", weight=2.0, agreement=0.7)
    result = score(talk(), entry, judge=judge)
    assert result.returns == {0: pytest.approx(1.0 + 1.4), 1: pytest.approx(2.0 + 0.8)}
    assert [judgment.seat for judgment in result.judgments] == [0, 1]


def test_a_judge_without_a_usable_answer_gives_no_default():
    judge = Judge(Believes(), "m")
    entry = LabelReward(label="believability", codebook="sotopia", per="seat")
    with pytest.raises(JudgeError, match="no usable answer"):
        score(talk(), entry, judge=judge)


def test_lower_bounds_count_every_penalty():
    section = RewardSection(
        labels=(of_classifier("rude", weight=-2.0), of_classifier("offers", per="seat", weight=-3.0)), malformed=-1.0
    )
    spec = games.lookup("negotiation")
    # a turn may lose 2, the return (from 0 to 1) 3
    assert lowest(section, spec, {}, 100) == -3.0
    assert lowest(RewardSection(labels=(of_classifier("rude", weight=-2.0),)), spec, {}, 100) == -2.0
    assert lowest(RewardSection(labels=(of_classifier("rude", use="exclude", weight=-2.0),)), spec, {}, 100) == 0.0


@pytest.mark.parametrize(
    "entry, why",
    [
        ({"label": "x"}, "either a classifier or a codebook"),
        ({"label": "x", "classifier": "c", "codebook": "sotopia"}, "either a classifier or a codebook"),
        ({"label": "x", "codebook": "sotopia"}, "one value per seat"),
        ({"label": "x", "classifier": "c", "agreement": 0.9}, "states its own"),
    ],
)
def test_entries_that_cannot_be(entry, why):
    with pytest.raises(BadInput, match=why):
        LabelReward.from_dict(entry)


def test_the_place_of_what_is_wrong_is_named():
    with pytest.raises(BadInput, match="has no label 'haste'; it has offers, rude") as error:
        score(talk(), of_classifier("offers"), of_classifier("haste"))
    assert error.value.where == "reward.labels.1.label"
    base = {"model": {"base": "tiny"}}
    entry = {"label": "believability", "codebook": "sotopia", "per": "seat"}
    with pytest.raises(BadInput, match="needs a judge"):
        configs.parse(base | {"reward": {"labels": [entry]}})
    judge = {"address": "http://127.0.0.1:1/v1", "model": "m"}
    for change, where in (({"label": "x"}, "x"), ({"codebook": "negotiation-moves", "label": "empathy"}, "codebook")):
        with pytest.raises(BadInput) as error:
            configs.parse(base | {"judge": judge, "reward": {"labels": [entry | change]}})
        assert error.value.where == f"reward.labels.0.{where}"
    with pytest.raises(BadInput, match="two rewards are named offers"):
        RewardSection.from_dict(
            {"labels": [{"label": "offers", "classifier": "a"}, {"label": "offers", "classifier": "b"}]}
        )


def test_low_agreement_is_a_warning_and_unknown_agreement_is_one():
    assert measured(of_classifier("offers"), 0.6, INFO).warning == ""
    low = measured(of_classifier("rude"), 0.6, INFO)
    assert (low.measure, low.agreement, low.low, low.high) == ("F1", 0.4, 0.30000000000000004, 0.5)
    assert "F1 0.40, less than 0.6" in low.warning
    assert measured(of_classifier("rude"), 0.4, INFO).warning == ""
    unknown = INFO.model_copy(update={"agreement": ()})
    assert "is not known" in measured(of_classifier("offers"), 0.6, unknown).warning
    judged = LabelReward(label="believability", codebook="sotopia", per="seat", agreement=0.3)
    assert "κ or α 0.30" in measured(judged, 0.6).warning
    assert "is not known" in measured(judged.model_copy(update={"agreement": None}), 0.6).warning
