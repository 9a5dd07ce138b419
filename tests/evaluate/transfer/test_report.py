"""The numbers of a form: a hand-computed case with a right, a wrong, an unparsed and a failed question."""

import pytest

from training.evaluate.transfer.patterns import Reasoning
from training.evaluate.transfer.report import differences, summarise
from training.evaluate.transfer.transcript import AgentReply, Scored, Transcript


def scored(question, correct, answer, *, texts=("x",), tokens=(10, 5), role=False, rule="last"):
    replies = tuple(
        AgentReply(agent="a", text=text, prompt_tokens=tokens[0], completion_tokens=tokens[1]) for text in texts
    )
    failed = correct is None
    transcript = Transcript(
        question=question, replies=replies, ended="" if failed else "reply", error="broken" if failed else ""
    )
    shown = tuple(Reasoning(think=at == 0, role=role, intent=False) for at in range(len(texts)))
    return Scored(transcript=transcript, gold="1", answer=answer, rule=rule, correct=correct, reasoning=shown)


FOUR = [
    scored("1", True, "1", role=True, texts=("x", "y"), rule="boxed"),
    scored("2", False, "2", tokens=(10, 20)),
    scored("3", False, None, rule="none"),
    scored("4", None, None),
]


def test_the_numbers_of_a_form():
    result = summarise(FOUR, max_tokens=20)
    assert (result.questions, result.errors, result.correct, result.unparsed) == (4, 1, 1, 1)
    assert result.accuracy.mean == pytest.approx(1 / 3)
    assert result.accuracy.n == 3
    assert result.found == {"boxed": 1, "last": 1, "none": 1}
    assert result.ended == {"reply": 3}
    assert (result.replies, result.cut, result.think) == (5, 1, 4)
    # 5 prompts of 10 tokens; 4 replies of 5 and one of 20: 90 tokens for 4 questions and one right answer
    assert (result.tokens.prompt, result.tokens.completion) == (50, 40)
    assert (result.tokens.per_question, result.tokens.per_correct) == (22.5, 90.0)
    assert (result.role.replies, result.role.questions.mean) == (2, pytest.approx(1 / 3))
    assert result.intent.replies == 0


def test_the_interval_of_an_accuracy_is_exact():
    """None of 20 right: the upper end solves (1 - p)^20 = 0.025 (Clopper-Pearson)."""
    result = summarise([scored(str(number), False, "2") for number in range(20)], max_tokens=20)
    assert (result.accuracy.mean, result.accuracy.low) == (0, 0)
    assert result.accuracy.high == pytest.approx(1 - 0.025 ** (1 / 20))
    assert result.tokens.per_correct is None


def test_questions_that_all_failed_have_no_accuracy():
    result = summarise([scored("1", None, None, texts=())], max_tokens=20)
    assert result.accuracy is None
    assert result.role.questions is None
    assert (result.tokens, result.cut) == (None, None)


def test_unreported_tokens_are_unknown_not_zero():
    result = summarise([FOUR[0], scored("2", True, "1", tokens=(0, 0))], max_tokens=20)
    assert (result.tokens, result.cut) == (None, None)


def test_forms_are_compared_on_the_questions_that_both_answered():
    better = [scored("1", None, None), scored("2", True, "1"), scored("3", True, "1"), scored("4", True, "1")]
    ((name, lead),) = differences({"single": FOUR, "debate": better}).items()
    assert name == "debate - single"
    assert (lead.mean, lead.n) == (1.0, 2)  # questions 2 and 3
    assert differences({"single": FOUR}) == {}
