"""Patterns in private reasoning: the paper's own examples (MARS, table 2) are counted, plain solutions are not."""

import pytest

from training.evaluate.transfer.patterns import reasoning

ROLE = (
    "Okay, so I am playing the game of Tic-Tac-Toe as the mark O... As the second-move player, I should prioritize",
    "The affirmative side just argued for 4. As the negative side assistant, I should try to find an alternative",
)
INTENT = (
    "Player 0 just revealed my only red card. Wait, but the rank remains unknown. Maybe they want me to play this card",
    "… did not end the conversation with 'TERMINATE'. Maybe the assistant is not sure with this answer? ...",
)
NEITHER = (
    "Janet eats 3 eggs, and she wants to sell the rest. The player scores 5. He thinks of a number.",
    "The affirmative side just argued for 4, and the assistant gave 17.5 m/s. I should check the sum as well.",
)


@pytest.mark.parametrize(
    "text, role, intent",
    [*((text, True, False) for text in ROLE), *((text, False, True) for text in INTENT)]
    + [(text, False, False) for text in NEITHER],
)
def test_the_papers_examples_are_counted(text, role, intent):
    counted = reasoning(f"<think>{text}</think> \\boxed{{4}}", "number", "")
    assert (counted.think, counted.role, counted.intent) == (True, role, intent)


def test_only_what_is_private_or_before_the_answer_counts():
    public = reasoning(f"<think>4 + 4</think> {ROLE[1]} \\boxed{{4}}", "number", "")
    before = reasoning(f"{ROLE[1]} \\boxed{{4}}", "number", "")
    after = reasoning(f"\\boxed{{4}} {ROLE[1]}", "number", "")
    assert [(counted.think, counted.role) for counted in (public, before, after)] == [
        (True, False),
        (False, True),
        (False, False),
    ]
