"""Files of questions: both forms are read, and a wrong line is reported with its number and field."""

import json

import pytest

from training.errors import BadInput
from training.evaluate.transfer import questions

NUMBER = {"question": "What is 40 + 32?", "answer": "40 + 32 = 72\n#### 72"}
CHOICE = {"question": "Which is blue?", "choices": ["grass", "the sky"], "answer": "B"}


def write(path, *lines):
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_both_forms_are_read(tmp_path):
    number, choice = questions.read(write(tmp_path / "q.jsonl", NUMBER, CHOICE))
    assert (number.id, number.kind, number.gold, number.letters) == ("1", "number", "72", "")
    assert (choice.id, choice.kind, choice.gold, choice.letters) == ("2", "letter", "B", "AB")
    assert number.accepts("72.0")
    assert not number.accepts("73")
    assert choice.accepts("B")
    assert not choice.accepts("A")


def test_the_prompt_has_the_question_its_choices_and_never_the_solution(tmp_path):
    number, choice = questions.read(write(tmp_path / "q.jsonl", NUMBER, CHOICE))
    assert number.prompt().startswith("What is 40 + 32?\n")
    assert "72" not in number.prompt()
    assert "A. grass\nB. the sky\n" in choice.prompt()
    assert all("\\boxed{}" in question.prompt() for question in (number, choice))


def test_the_first_ones_are_taken(tmp_path):
    path = write(tmp_path / "q.jsonl", NUMBER, CHOICE, {"wrong": 1})
    assert [question.id for question in questions.read(path, 2)] == ["1", "2"]


@pytest.mark.parametrize(
    "line, where, why",
    [
        ([], "line 2", "expected an object"),
        ({**NUMBER, "extra": 1}, "line 2, extra", "there is no such field"),
        ({"question": "Q?"}, "line 2, answer", "required"),
        ({**NUMBER, "question": ""}, "line 2, question", "at least 1"),
        ({**NUMBER, "answer": "72"}, "line 2", "no number directly after ####"),
        ({**CHOICE, "answer": "C"}, "line 2", "a letter from A to B"),
        ({**CHOICE, "answer": "b"}, "line 2", "a letter from A to B"),
        ({**CHOICE, "answer": "AB"}, "line 2", "a letter from A to B"),
        ({**CHOICE, "choices": ["one"], "answer": "A"}, "line 2", "at least two"),
        ({**CHOICE, "choices": ["x"] * 11}, "line 2, choices", "at most 10"),
        ({**NUMBER, "id": "1"}, "line 2, id", "second question"),
    ],
)
def test_a_wrong_line_is_reported(tmp_path, line, where, why):
    with pytest.raises(BadInput) as error:
        questions.read(write(tmp_path / "q.jsonl", NUMBER, line))
    assert error.value.where == f"q.jsonl {where}"
    assert why in error.value.why


def test_a_file_without_questions_is_refused(tmp_path):
    (tmp_path / "q.jsonl").write_text("\n")
    with pytest.raises(BadInput, match="no question"):
        questions.read(tmp_path / "q.jsonl")
    with pytest.raises(BadInput, match="No such file"):
        questions.read(tmp_path / "none.jsonl")
