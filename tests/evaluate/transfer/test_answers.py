"""Answers in replies, by the rules of the field: expected values are read off the text by hand."""

import time

import pytest

from training.evaluate.transfer.answers import find, marked_number, same_number


@pytest.mark.parametrize(
    "reply, value, rule",
    [
        ("She has 3. So \\boxed{72} eggs, not 5.", "72", "boxed"),
        ("\\boxed{5}? No: \\boxed{9 \\times 8 = 72}", "72", "boxed"),
        ("\\boxed{\\text{$1{,}200.50}}", "1200.50", "boxed"),
        ("cut off in \\boxed{72", "72", "boxed"),
        ("\\boxed{unknown}\n#### 72", "72", "marked"),
        ("5\n#### $-1,234.\nthat is 6", "-1234", "marked"),
        ("#### none, so 8", "8", "marked"),
        ("The total is $70,000.00.", "70000.00", "last"),
        ("16-3 = 13", "13", "last"),
        ("20-13", "13", "last"),
        ("It fell to -5.", "-5", "last"),
        ("about .5", ".5", "last"),
        ("I do not know.", None, "none"),
        ("", None, "none"),
        ("\\boxed{", None, "none"),
    ],
)
def test_the_number_of_a_reply(reply, value, rule):
    answer = find(reply, "number")
    assert (answer.value, answer.rule) == (value, rule)


@pytest.mark.parametrize(
    "reply, value, rule",
    [
        ("(A) is wrong. \\boxed{B}", "B", "boxed"),
        ("\\boxed{\\text{(C)}}", "C", "boxed"),
        ("#### D", "D", "marked"),
        ("Not (A). The answer is: **C**, since (B) is red.", "C", "stated"),
        ("Either (A) or (B)", "B", "last"),
        ("B.", "B", "last"),
        ("A good thing is (E)", None, "none"),  # no such choice; "A" is an article
        ("The answer is Apple", None, "none"),
        ("\\boxed{E}", None, "none"),
        ("yes", None, "none"),
    ],
)
def test_the_letter_of_a_reply(reply, value, rule):
    answer = find(reply, "letter", "ABCD")
    assert (answer.value, answer.rule) == (value, rule)


def test_the_place_is_where_the_answer_begins():
    assert find("so \\boxed{72}", "number").begin == 3
    assert find("so 72", "number").begin == 3
    assert find("nothing", "number").begin == len("nothing")


def test_numbers_are_compared_by_value():
    assert same_number("72.00", "72")
    assert same_number("-.5", "-0.5")
    assert not same_number("72.5", "72")


def test_a_solution_ends_with_its_number():
    assert marked_number("half is 72\n#### 1,072") == "1072"
    assert marked_number("half is 72") is None
    assert marked_number("72 ####") is None


def test_a_reply_that_only_opens_boxes_is_read_in_linear_time():
    """As a model writes that repeats itself up to its limit; reading each box anew would take minutes."""
    began = time.process_time()
    assert find("\\boxed{" * 20_000, "number").value is None
    assert find("\\boxed{" * 20_000 + "B", "letter", "AB").value == "B"
    assert time.process_time() - began < 5
