"""Refused replies stand where they happened, and what a seat sees only grows."""

from itertools import pairwise

from training.records import Message, Observation
from training.text.refusals import Refusal, with_refusals


def seen(*texts):
    return Observation(messages=tuple(Message(author=None, text=text) for text in texts), max_chars=9)


FIRST = Refusal(seat=0, after=1, reply="<think>why</think> <dance/>", why="No such action.")
SECOND = Refusal(seat=0, after=1, reply="", why="Empty.")
THIRD = Refusal(seat=0, after=3, reply="again", why="Too late.")


def lines(observation):
    return [(message.author, message.text) for message in observation.messages]


def test_refusals_are_merged_at_their_place():
    merged = with_refusals(seen("rules", "one", "two", "three"), [FIRST, SECOND, THIRD])
    assert lines(merged) == [
        (None, "rules"),
        (0, "<dance/>"),
        (None, "No such action."),
        (0, ""),
        (None, "Empty."),
        (None, "one"),
        (None, "two"),
        (0, "again"),
        (None, "Too late."),
        (None, "three"),
    ]
    assert merged.max_chars == 9
    assert "why" not in str(lines(merged)[1])


def test_without_refusals_nothing_changes():
    observation = seen("rules")
    assert with_refusals(observation, []) is observation


def test_what_a_seat_sees_only_grows():
    stages = [
        with_refusals(seen("rules"), []),
        with_refusals(seen("rules"), [FIRST]),
        with_refusals(seen("rules"), [FIRST, SECOND]),
        with_refusals(seen("rules", "one", "two"), [FIRST, SECOND]),
        with_refusals(seen("rules", "one", "two"), [FIRST, SECOND, THIRD]),
        with_refusals(seen("rules", "one", "two", "three"), [FIRST, SECOND, THIRD]),
    ]
    for before, after in pairwise(stages):
        assert after.messages[: len(before.messages)] == before.messages
        assert len(after.messages) > len(before.messages)
