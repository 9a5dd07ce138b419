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
        ("#### \\$72 a week, not 80", "72", "marked"),
        ("#### 72 eggs in 2 days", "72", "marked"),
        ("#### **72**", "72", "marked"),
        ("####\n72", "72", "marked"),
        ("#### 3 * 24 = 72", "72", "marked"),
        ("#### $12 x 6 = $72", "72", "marked"),
        ("#### 1/2", "0.5", "marked"),
        ("#### 72 (= 6 * 12)", "72", "marked"),
        ("#### 10^3\nSo 1000", "1000", "last"),
        ("#### none, so 8", "8", "last"),
        ("#### Step 1\n#### Step 2: money\n13*2=26\nSo she earns 26 dollars.", "26", "last"),
        ("#### 1. Count the eggs\n#### 2) Sell them\nShe earns 26 dollars.", "26", "last"),
        ("##### 5\nSo 26", "26", "last"),
        ("The total is $70,000.00.", "70000.00", "last"),
        ("16-3 = 13", "13", "last"),
        ("20-13", "13", "last"),
        ("It fell to -5.", "-5", "last"),
        ("about .5", ".5", "last"),
        ("so it lost −42", "-42", "last"),
        ("16 - 3", "3", "last"),
        ("16−3", "3", "last"),
        ("it costs 1.5e3", "1.5e3", "last"),
        ("a field of 72 m^2", "72", "last"),
        ("I do not know.", None, "none"),
        ("", None, "none"),
        ("\\boxed{", None, "none"),
    ],
)
def test_the_number_of_a_reply(reply, value, rule):
    answer = find(reply, "number")
    assert (answer.value, answer.rule) == (value, rule)


@pytest.mark.parametrize(
    "content, value",
    [
        ("−42", "-42"),
        ("-\\$42", "-42"),
        ("\\$-42", "-42"),
        ("\\$72", "72"),
        ("1\\,200", "1200"),
        ("1,\\!200", "1200"),
        ("1.5e3", "1.5e3"),
        ("x = -5", "-5"),
        ("\\frac{144}{2}", "72"),
        ("-\\dfrac{1}{2}", "-0.5"),
        ("\\frac{-1}{2}", "-0.5"),
        ("$144/2$", "72"),
        ("\\frac{3}{4} \\text{ cups}", "0.75"),
        ("x = \\frac{1{,}440}{20} = 72", "72"),
        ("72 \\approx x", "72"),
        ("60 \\frac{\\text{miles}}{\\text{hour}}", "60"),
        ("\\frac{3}{4}\\,\\text{cup}", "0.75"),
        ("\\frac{3}{4} cup", "0.75"),
        ("\\displaystyle\\frac{ 3 }{ 4 }", "0.75"),
        ("\\frac{1}{2}\\%", "0.5"),
        ("72 \\text{ km/h}^2", "72"),
        ("72 \\text{ m}^{2}", "72"),
        ("72 m^2", "72"),
        ("\\$72/hour", "72"),
        ("72^\\circ", "72"),
        ("72^{\\circ}", "72"),
        ("72\\%", "72"),
    ],
)
def test_the_number_in_a_box(content, value):
    answer = find(f"Of 5: \\boxed{{{content}}}, not 6", "number")
    assert (answer.value, answer.rule) == (value, "boxed")


@pytest.mark.parametrize(
    "content",
    [
        "\\frac{1}{0}",
        "\\frac{0}{0}",
        f"\\frac{{{'9' * 1_000_001}}}{{1}}",
        "\\frac{1}{72 + 1}",
        "3\\frac{1}{2}",
        "\\frac12",
        "1/2/3",
        "1.5 \\times 10^3",
        "10^{3}",
        "\\sqrt{72}",
        "40 + 32",
        "9 \\times 8",
        "72 = 9 \\cdot 8",
        "80 - 8",
    ],
)
def test_an_expression_in_a_box_has_no_value(content):
    """Neither has its last number, which the text around it would give as well."""
    answer = find(f"Of 72: \\boxed{{{content}}}, not 72", "number")
    assert (answer.value, answer.rule, answer.begin) == (None, "none", 7)


def test_a_fraction_equals_its_decimals():
    assert same_number(find("\\boxed{\\frac{1}{8}}", "number").value, "0.125")
    assert not same_number(find("\\boxed{\\frac{1}{72}}", "number").value, "72")
    assert same_number(find("1.5e3", "number").value, "1500")


@pytest.mark.parametrize(
    "reply, value, rule",
    [
        ("(A) is wrong. \\boxed{B}", "B", "boxed"),
        ("\\boxed{\\text{(C)}}", "C", "boxed"),
        ("\\boxed{B. A dog}", "B", "boxed"),
        ("\\boxed{\\text{C: Vitamin A}}", "C", "boxed"),
        ("\\boxed{E} or \\boxed{B}", "B", "boxed"),
        ("\\boxed{E}: (A)", "A", "last"),
        ("#### D", "D", "marked"),
        ("#### B) Vitamin A", "B", "marked"),
        ("#### **(B)**", "B", "marked"),
        ("#### Vitamin A\nThe answer is B", "B", "stated"),
        ("#### A closer look\nThe answer is B", "B", "stated"),
        ("#### A. Red\nNo.\n#### B. Blue\nYes.\n#### C. Green\nNo.\nThe answer is B.", "B", "stated"),
        ("#### A. Red\nNo.\n#### B. Blue\nYes.\n#### B", "B", "marked"),
        ("A. Red is wrong. B. Blue is right.", None, "none"),
        ("D.C. is the capital", None, "none"),
        ("Not (A). The answer is: **C**, since (B) is red.", "C", "stated"),
        ("the answer is option B", "B", "stated"),
        ("Answer: Choice (C)", "C", "stated"),
        ("Either (A) or (B)", "B", "last"),
        ("B.", "B", "last"),
        ("B. the sky", "B", "last"),
        ("B) the sky", "B", "last"),
        ("**B: the sky**, since A is green", "B", "last"),
        ("B. the sky. No: (C)", "C", "last"),
        ("A. grass\nB. the sky\nIt is blue.", None, "none"),  # goes through the choices
        ("A dog", None, "none"),
        ("I like B. the sky", None, "none"),
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
    assert marked_number("#### 8\n#### about 72") is None


def test_a_reply_that_only_opens_boxes_is_read_in_linear_time():
    """As a model writes that repeats itself up to its limit; reading each box anew would take minutes."""
    began = time.process_time()
    assert find("\\boxed{" * 20_000, "number").value is None
    assert find("\\boxed{" * 20_000 + "B", "letter", "AB").value == "B"
    assert time.process_time() - began < 5


@pytest.mark.parametrize("piece", ["#### ", "\\boxed{1 ", "1,", "^ ", "- $", "= ", "A.\n", " "])
def test_a_reply_that_repeats_itself_is_read_in_linear_time(piece):
    began = time.process_time()
    for begin in ("", "#### ", "\\boxed{1/"):
        find(begin + piece * 20_000, "number")
        find(begin + piece * 20_000, "letter", "AB")
    assert time.process_time() - began < 5
    assert find("1" * 100_000, "number").rule == "last"  # longer than Python's limit for an int
    assert find("\\boxed{1/" + "1" * 100_000 + "}", "number").rule == "boxed"
