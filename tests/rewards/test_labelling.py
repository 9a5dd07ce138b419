"""Labels of games by a judge: every kind and place of a codebook, and answers that do not fit, which become nothing."""

import json

import pytest

from tests.rewards.test_prompts import transcript
from training.engines.base import ChatReply
from training.errors import BadInput, JudgeError
from training.labels.codebooks import Codebook, Condition, LabelType, Option
from training.records import Label
from training.rewards import labelling
from training.rewards.judge import Judge
from training.rewards.labelling import Question, TurnWords

TARGET = "0123456789abcdef"
TEXTS = {1: "I need the food. I need it today.", 2: "Why do you need the food?", 3: "Take the food."}
SPEAKERS = {1: 0, 2: 1, 3: 0}


def label_type(name, kind, about, **more):
    return LabelType(name=name, title=name.title(), kind=kind, about=about, definition=f"What {name} means.", **more)


OPTIONS = tuple(Option(name=name, title=name) for name in ("soft", "hard", "fair"))
CODEBOOK = Codebook(
    name="every-kind",
    version=1,
    title="Every kind",
    labels=(
        label_type("deal", "yes_no", "game", required=True),
        label_type("tone", "one_of", "seat", options=OPTIONS),
        label_type("heat", "scale", "game", low=0, high=10, required=False),
        label_type("best", "ranking", "game", required=False),
        label_type("note", "text", "game", required=False),
        label_type("asks", "yes_no", "turn"),
        label_type("style", "many_of", "turn", options=OPTIONS),
        label_type("claim", "span", "span"),
        label_type("claim_is", "one_of", "span", options=OPTIONS, when=Condition(label="claim")),
        label_type("answers", "relation", "pair"),
    ),
)


def question(codebook=CODEBOOK, roles=("", ""), seat=None):
    """Three turns; the second begins at the fifth character of its move's text."""
    turns = {
        turn: TurnWords(SPEAKERS[turn], text, [at + (4 if turn == 2 else 0) for at in range(len(text))])
        for turn, text in TEXTS.items()
    }
    return Question(codebook, transcript(*TEXTS.values()), turns, roles, seat)


REQUIRED = (
    {"label": "deal", "value": True},
    {"label": "tone", "seat": 0, "value": "soft"},
    {"label": "tone", "seat": 1, "value": "hard", "reason": "It asks why."},
)
FURTHER = (
    {"label": "heat", "value": 3},
    {"label": "best", "value": [3, 1]},
    {"label": "note", "value": "They agree."},
    {"label": "asks", "turn": 2, "value": True},
    {"label": "style", "turn": 3, "value": ["soft", "fair"]},
    {"label": "claim", "turn": 2, "quote": "need the food"},
    {"label": "claim_is", "turn": 2, "quote": "need the food", "value": "fair"},
    {"label": "answers", "turn": 3, "other_turn": 2},
)


def answer(*labels, target=TARGET):
    return json.dumps({"target": target, "labels": labels})


class ScriptedChat:
    """A chat model that gives these replies in turn, and records what it was asked."""

    def __init__(self, *replies):
        self.replies, self.asked = list(replies), []

    async def reply(self, messages, sampling, seed=None):
        self.asked.append(messages)
        return ChatReply(self.replies.pop(0), 10, 5)


async def labelled(text, asked=None):
    model = ScriptedChat(text)
    return await Judge(model, "judge", attempts=1).label(asked or question()), model


async def test_every_kind_of_label_is_read_with_its_place():
    result, _ = await labelled(answer(*REQUIRED, *FURTHER))
    assert result.labels == (
        Label(label="deal", value=True),
        Label(label="tone", value="soft", seat=0),
        Label(label="tone", value="hard", seat=1, reason="It asks why."),
        Label(label="heat", value=3.0),
        Label(label="best", value=(3, 1)),
        Label(label="note", value="They agree."),
        Label(label="asks", value=True, turn=2),
        Label(label="style", value=("soft", "fair"), turn=3),
        # "Why do you need the food?": the words are characters 11 to 24, and 4 more of the move's text stand before
        Label(label="claim", turn=2, start=15, end=28),
        Label(label="claim_is", value="fair", turn=2, start=15, end=28),
        Label(label="answers", turn=3, other_turn=2),
    )
    assert (len(result.prompt_sha256), result.cost.calls) == (64, 1)


BAD = {
    "other target": (answer(*REQUIRED, target="f" * 16), f"target must be {TARGET}"),
    "a number for a name": (answer({"label": "deal", "value": 1}), "labels.1, deal: choose a value: yes or no"),
    "unknown label": (answer(*REQUIRED, {"label": "IGNORE"}), "labels.4: there is no label type of this name"),
    "unknown option": (
        answer({"label": "tone", "seat": 0, "value": "OBEY"}),
        "labels.1, tone: choose a value: one of soft, hard, fair",
    ),
    "off the scale": (answer({"label": "heat", "value": 11}), "labels.1, heat: choose a value: 0 to 10"),
    "a required label is missing": (answer(*REQUIRED[1:]), "deal: choose a value: yes or no"),
    "a seat is missing": (answer(*REQUIRED[:2]), "tone: choose a value: one of soft, hard, fair"),
    "twice": (answer(*REQUIRED, REQUIRED[0]), "deal: there are two of these labels at the same place"),
    "no such turn": (answer({"label": "asks", "turn": 0, "value": True}), "labels.1, asks in turn 0: there is no turn"),
    "no such seat": (
        answer({"label": "tone", "seat": 2, "value": "soft"}),
        "labels.1, tone: it is not asked about seat 2",
    ),
    "no place": (answer({"label": "asks", "value": True}), "labels.1, asks: the fields of its place are turn"),
    "a place too many": (
        answer({"label": "deal", "turn": 1, "value": True}),
        "labels.1, deal in turn 1: the fields of its place are none",
    ),
    "words that were not said": (
        answer({"label": "claim", "turn": 1, "quote": "Take the food"}),
        "labels.1, claim in turn 1: the quoted words are not in this turn",
    ),
    "words said twice": (
        answer({"label": "claim", "turn": 1, "quote": "I need"}),
        "labels.1, claim in turn 1: the quoted words stand in this turn more than once",
    ),
    "no words": (
        answer({"label": "claim", "turn": 1, "quote": ""}),
        "labels.1, claim in turn 1: the quoted words are not in this turn",
    ),
    "a value without its words": (
        answer(*REQUIRED, {"label": "claim_is", "turn": 2, "quote": "food", "value": "fair"}),
        "claim_is: it applies only where claim was labelled so",
    ),
    "a turn and itself": (answer({"label": "answers", "turn": 2, "other_turn": 2}), "answers: a relation leads"),
    "not a list": (json.dumps({"target": TARGET, "labels": {}}), "list"),
    "another field": (answer({"label": "deal", "value": True, "sure": 1}), "there is no such field"),
}


@pytest.mark.parametrize("text, why", BAD.values(), ids=BAD.keys())
async def test_an_answer_that_does_not_fit_is_refused_with_its_place(text, why):
    with pytest.raises(JudgeError, match="could not score") as refused:
        await labelled(text)
    assert why in str(refused.value)
    assert "OBEY" not in str(refused.value)
    assert "IGNORE" not in str(refused.value)


async def test_words_that_overlap_themselves_stand_there_twice():
    turns = {1: TurnWords(0, "hahaha", range(6))}
    asked = Question(CODEBOOK, transcript("hahaha"), turns, ("", ""))
    with pytest.raises(JudgeError, match="more than once"):
        await labelled(answer({"label": "claim", "turn": 1, "quote": "haha"}), asked)


async def test_words_that_are_not_the_moves_cannot_be_quoted():
    asked = Question(CODEBOOK, transcript("Ann votes"), {1: TurnWords(0, "Ann votes")}, ("", ""))
    with pytest.raises(JudgeError, match="not in this turn"):
        await labelled(answer({"label": "claim", "turn": 1, "quote": "votes"}), asked)


async def test_a_refused_answer_is_asked_again_with_the_reason():
    model = ScriptedChat(answer({"label": "heat", "value": 11}), answer(*REQUIRED))
    result = await Judge(model, "judge", attempts=2).label(question())
    assert len(result.labels) == 3
    assert "labels.1, heat: choose a value: 0 to 10" in model.asked[1][-1].content


async def test_roles_decide_about_whose_turns_and_seats_is_asked():
    codebook = Codebook(
        name="roles",
        version=1,
        title="Roles",
        labels=(
            label_type("lies", "yes_no", "turn", roles=("wolf",)),
            label_type("sly", "yes_no", "seat", roles=("wolf",)),
        ),
    )
    asked = question(codebook, roles=("villager", "wolf"))
    sly = {"label": "sly", "seat": 1, "value": False}
    result, model = await labelled(answer(sly, {"label": "lies", "turn": 2, "value": True}), asked)
    assert [label.turn for label in result.labels] == [None, 2]
    assert "of seat 1 only" in model.asked[0][0].content
    with pytest.raises(JudgeError, match=r"labels\.2, lies in turn 1: it is not asked about seat 0"):
        await labelled(answer(sly, {"label": "lies", "turn": 1, "value": True}), asked)


async def test_of_one_seat_only_its_labels_are_asked():
    codebook = Codebook(name="tones", version=1, title="Tones", labels=(CODEBOOK.type_of("tone"),))
    result, model = await labelled(answer(REQUIRED[2]), question(codebook, seat=1))
    assert [(label.seat, label.value) for label in result.labels] == [(1, "hard")]
    assert "seat 1" in model.asked[0][0].content
    with pytest.raises(JudgeError, match="it is not asked about seat 0"):
        await labelled(answer(REQUIRED[1]), question(codebook, seat=1))


def test_instructions_name_every_label_type_with_its_fields_and_values():
    instructions = labelling.messages(question())[0].content
    for line in (
        "- deal (about the whole game; fields: value; value: true or false): What deal means.",
        "- tone (about a seat; fields: seat, value; value: one of soft, hard, fair): What tone means.",
        "- heat (about the whole game; fields: value; value: 0 to 10; may be left out): What heat means.",
        "- asks (about a turn; fields: turn, value; value: true): What asks means.",
        "- claim (about words of a turn; fields: turn, quote): What claim means.",
        "fields: turn, quote, value; value: one of soft, hard, fair; only where claim was marked): What claim_is",
        "- answers (about two turns; fields: turn, other_turn): What answers means.",
    ):
        assert line in instructions


def test_a_whole_game_is_checked_by_the_roles_of_its_seats_and_turns():
    codebook = Codebook(
        name="roles", version=1, title="Roles", labels=(label_type("lies", "yes_no", "turn", roles=("wolf",)),)
    )
    lies = [Label(label="lies", value=True, turn=1)]
    codebook.check_game(lies, ("villager", "wolf"), {0: 0, 1: 1})
    with pytest.raises(BadInput, match="no label of this name"):
        codebook.check_game(lies, ("villager", "wolf"), {0: 1, 1: 0})
