"""Which replies can be listed, and how they are written."""

import pytest

from training.records import Action, Argument
from training.text.choices import count, replies

CARD = Action(name="answer", args=(Argument(name="choice", kind="choice", choices=("BET", "PASS"), marked=True),))
SILENT = {"text": "private"}


def private(action):
    return action.model_copy(update=SILENT)


WAIT = Action(name="wait", text="none")
BID = Action(name="bid", args=(Argument(name="level", kind="integer", low=0, high=2),), text="private")
PAIR = Action(
    name="offer",
    args=(
        Argument(name="food", kind="integer", low=1, high=2),
        Argument(name="side", kind="choice", choices=("left", "right")),
    ),
    text="none",
)


@pytest.mark.parametrize(
    "actions, listed",
    [
        ([private(CARD)], ["<answer><BET></answer>", "<answer><PASS></answer>"]),
        ([WAIT, BID], ["<wait/>", "<bid>0</bid>", "<bid>1</bid>", "<bid>2</bid>"]),
        (
            [PAIR],
            [
                "<offer>food 1, side left</offer>",
                "<offer>food 1, side right</offer>",
                "<offer>food 2, side left</offer>",
                "<offer>food 2, side right</offer>",
            ],
        ),
    ],
)
def test_every_legal_reply_is_listed(actions, listed):
    assert list(replies(actions)) == listed
    assert count(actions) == len(listed)


@pytest.mark.parametrize(
    "action",
    [
        Action(name="talk", text="required", bare=True),
        Action(name="accept"),  # words beside it are heard by others
        Action(name="say", args=(Argument(name="what", kind="text"),), text="none"),
        Action(name="pass", text="none", bare=True),  # a reply without a tag, whatever it says
    ],
    ids=lambda action: action.name,
)
def test_where_others_read_free_text_nothing_can_be_listed(action):
    assert count([WAIT, action]) == 0
    assert count([WAIT]) == 1


def test_large_ranges_are_counted_without_being_listed():
    wide = BID.model_copy(update={"args": (Argument(name="level", kind="integer", low=-(10**9), high=10**9),)})
    assert count([wide]) == 2 * 10**9 + 1
    assert count([]) == 0
