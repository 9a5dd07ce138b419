r"""Files of questions with known answers, JSONL: GSM8K's format, or multiple choice.

    {"question": "…", "answer": "Half of 144 is 144 / 2 = 72.\n#### 72"}
    {"question": "…", "choices": ["red", "blue"], "answer": "B"}

Every line may have an `id`; without one it is the line's number. Raises `BadInput` with file, line and field.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from string import ascii_uppercase
from typing import Any, Self

from pydantic import Field, model_validator

from training.errors import BadInput
from training.evaluate.transfer.answers import MARK, Kind, marked_number, same_number
from training.reading import Record
from training.store import from_json, numbered_lines

LETTERS = ascii_uppercase[:10]
"""The letters of choices, in order."""
INSTRUCTION = {
    "number": "Reason step by step, and put the final number within \\boxed{}.",
    "letter": "Reason step by step, and put the letter of the right choice within \\boxed{}.",
}


class Question(Record):
    """One question. Its `answer` is a worked solution that ends with `#### NUMBER`, or the letter of a choice."""

    id: str = Field(default="", max_length=200)
    question: str = Field(min_length=1, max_length=20_000)
    answer: str = Field(min_length=1, max_length=20_000)
    choices: tuple[str, ...] = Field(default=(), max_length=len(LETTERS))

    @model_validator(mode="after")
    def _has_an_answer(self) -> Self:
        if self.choices and len(self.choices) < 2:
            raise ValueError("choices: a question has at least two")
        if self.choices and self.answer not in tuple(self.letters):
            raise ValueError(f"answer: a letter from {self.letters[0]} to {self.letters[-1]} is expected")
        if not self.choices and marked_number(self.answer) is None:
            raise ValueError(f"answer: no number directly after {MARK}; for multiple choice, `choices` is missing")
        return self

    @property
    def kind(self) -> Kind:
        """Whether a number or a letter is asked for."""
        return "letter" if self.choices else "number"

    @property
    def letters(self) -> str:
        """The letters of the choices; empty without choices."""
        return LETTERS[: len(self.choices)]

    @property
    def gold(self) -> str:
        """The right answer: a number without separators, or a letter."""
        return self.answer if self.choices else str(marked_number(self.answer))

    def prompt(self) -> str:
        """Return the question as agents read it, with the choices and how to write the answer."""
        listed = [f"{letter}. {choice}" for letter, choice in zip(self.letters, self.choices, strict=True)]
        return "\n".join([self.question, *listed, "", INSTRUCTION[self.kind]])

    def accepts(self, answer: str) -> bool:
        """Return whether an extracted answer is the right one."""
        return answer == self.gold if self.choices else same_number(answer, self.gold)


def read(path: Path, limit: int | None = None) -> list[Question]:
    """Return the first `limit` questions of a file, all without a limit."""
    questions = []
    for question in _questions(path):
        questions.append(question)
        if len(questions) == limit:
            break
    if not questions:
        raise BadInput("the file has no question", str(path))
    return questions


def _questions(path: Path) -> Iterator[Question]:
    ids: set[str] = set()
    for number, text in numbered_lines(path):
        where = f"{path.name} line {number}"
        question = _question(from_json(text, where), number, where)
        if question.id in ids:
            raise BadInput(f"a second question with the id {question.id!r}", f"{where}, id")
        ids.add(question.id)
        yield question


def _question(data: Any, number: int, where: str) -> Question:
    if not isinstance(data, dict):
        raise BadInput("expected an object with question and answer", where)
    try:
        return Question.from_dict({"id": str(number), **data})
    except BadInput as error:
        raise BadInput(error.why, f"{where}, {error.where}" if error.where else where) from error
