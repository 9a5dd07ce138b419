"""Whoever writes a text cannot make its readers work for minutes: the time to read one grows with its length alone.

Each text is as long as somebody may write, or a model server send, and made so that a careless pattern goes through it
again from every place in it.
"""

from time import process_time

import pytest

from tests.games.cases.negotiation import items
from tests.games.cases.werewolf import dealt
from training.games import make
from training.games.dialogue.markup import render
from training.games.werewolf.claims import claimed
from training.games.werewolf.script.notes import Notes
from training.records import Message, Observation
from training.text.messages import neutralise
from training.text.parsing import split_private

NAMES = ("Ada", "Ben", "Cleo")
CLAIMS = "not-" * 1000 + ". " + "I'm a seer " * 350
REPORTS = "I am the seer. " + "say-" * 1000 + ". " + "Ada is good " * 330


def noted(text):
    heard = Message(author=1, text=text)
    seen = Observation(messages=(Message(author=None, text="You are Cleo. You are a villager."), heard))
    return Notes(seen, 2, NAMES)


def goal(text):
    return render(text, 0)


def villagers(text):
    return make(dealt("werewolf", "seer", "villager")).claims(0, text)


def bargainers(text):
    return make(items()).claims(0, text)


@pytest.mark.parametrize(
    "read, text",
    [
        (claimed, CLAIMS),
        (noted, REPORTS),
        (split_private, "<" + " " * 40_000),
        (neutralise, "<1" * 30_000),
        (goal, "<" + " " * 20_000),
        (goal, "<p viewer=" + " " * 20_000 + ">"),
        (goal, "<p>" * 10_000),
        (villagers, "." * 19_999 + "x"),
        (villagers, "Ada is " + "really " * 2800),
        (villagers, " 'a" * 6600),
        (villagers, "I voted for Ada and " * 1000),
        (bargainers, "I need " + "food and " * 2200),
        (bargainers, "second " * 2800),
    ],
    ids=[
        "claims",
        "notes",
        "private",
        "tokens",
        "tags of goals",
        "viewers of goals",
        "open tags of goals",
        *("stops", "adverbs", "quotes", "votes", "items", "ranks"),
    ],
)
def test_a_long_text_is_read_at_once(read, text):
    began = process_time()
    read(text)
    assert process_time() - began < 1
