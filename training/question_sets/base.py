"""What all question sets share: entries of a file, questions, and the society that is to answer them.

Every problem raises `BadInput` with file, line or entry, and field; nothing is skipped silently.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import Field

from training.errors import BadInput
from training.games import make
from training.games.actions import clean
from training.games.log import Settings, check_settings
from training.games.prose import NAMES
from training.games.qa_society import QaSocietySettings
from training.games.qa_society.scoring import tokens
from training.records import Scenario
from training.store import check_file, loads


class Entry(NamedTuple):
    """One entry of a file as it stands there, its place (`nq.jsonl line 7`), and what identifies it."""

    where: str
    key: str
    content: Any


class Question(NamedTuple):
    """A question with its right answers; `metadata` is what its source states besides. `where` is its place."""

    where: str
    id: str
    text: str
    answers: tuple[str, ...]
    metadata: Mapping[str, str]

    @property
    def scorable(self) -> bool:
        """Whether an answer has a word or a number, so that F1 can be computed: `---` has none."""
        return any(map(tokens, self.answers))


class SetOptions(Settings):
    """Options of an import that all question sets have."""

    tools: str = Field(
        default="wiki, pubmed",
        max_length=500,
        description="The corpora that can be searched, with commas between them: one helper for each. Empty: a single "
        "agent that cannot search.",
    )


@dataclass(frozen=True)
class QuestionSet:
    """A set of questions in its authors' format.

    `entries` yields the entries of a file or a folder, `question` reads one of them, `select` keeps those that the
    options ask for. `settings` are settings of the game that the set needs. `several`: it may be a folder of files.
    """

    name: str
    title: str
    licence: str
    entries: Callable[[Path], Iterator[Entry]]
    question: Callable[[Entry, Any], Question]
    select: Callable[[list[Question], Any], list[Question]] = lambda questions, _options: questions
    options: type[SetOptions] = SetOptions
    settings: Mapping[str, Any] | None = None
    several: bool = False

    @property
    def source(self) -> str:
        """What the set is called."""
        return self.title.partition(":")[0]


def read(questions: QuestionSet, path: Path, options: SetOptions | None = None) -> list[Question]:
    """Return the questions of a file that can be scored.

    Raises `BadInput` at the first one that is wrong, and for an id that repeats.
    """
    chosen = options or questions.options()
    seen: dict[str, Question] = {}
    for entry in questions.entries(path):
        add(seen, questions.question(entry, chosen))
    return questions.select([question for question in seen.values() if question.scorable], chosen)


def add(seen: dict[str, Question], question: Question) -> None:
    """Add a question by its id; raise `BadInput` if the id is taken."""
    if question.id in seen:
        raise BadInput(f"the id {question.id} is also used at {seen[question.id].where}", f"{question.where}, id")
    seen[question.id] = question


def scenario(questions: QuestionSet, question: Question, options: SetOptions) -> Scenario:
    """Return the scenario in which a society with the options' tools answers a question.

    Raises `BadInput` naming the question's place and the setting that the game refuses.
    """
    tools = [tool.strip() for tool in options.tools.split(",") if tool.strip()]
    settings = {
        "question": question.text,
        "answers": list(question.answers),
        "tools": tools,
        "asking": bool(tools),
        "metadata": dict(question.metadata),
        **(questions.settings or {}),
    }
    try:
        check_settings(QaSocietySettings, settings)
        made = Scenario.from_dict(
            {"id": question.id, "game": "qa_society", "settings": settings, "seats": list(NAMES[: len(tools) + 1])}
        )
        make(made)
    except BadInput as error:
        raise BadInput(error.why, f"{question.where}, {error.where}") from error
    return made


# --- files -----------------------------------------------------------------------------------------------------------


def text_of(path: Path) -> str:
    """Return a file's text without a byte order mark; raise `BadInput` for what is no regular file or not UTF-8."""
    try:
        check_file(path)
        return path.read_bytes().decode("utf-8-sig")
    except BadInput as error:
        raise BadInput(error.why, path.name) from error
    except UnicodeDecodeError as error:
        raise BadInput(f"not UTF-8 at byte {error.start}", path.name) from error


def json_file(path: Path) -> Any:
    """Return the content of a JSON file; raise `BadInput` with line and column."""
    content = text_of(path)
    try:
        return loads(content)
    except json.JSONDecodeError as error:
        raise BadInput(f"not JSON: {error.msg}", f"{path.name} line {error.lineno} column {error.colno}") from error
    except ValueError as error:
        raise BadInput(f"not JSON: {error}", path.name) from error


# --- fields ----------------------------------------------------------------------------------------------------------


def text(entry: Entry, field: str) -> str:
    """Return a text field on one line; raise `BadInput` if it is missing, no text or empty."""
    value = _field(entry, field)
    if not isinstance(value, str):
        raise BadInput("expected a string", f"{entry.where}, {field}")
    if not clean(value):
        raise BadInput("empty", f"{entry.where}, {field}")
    return clean(value)


def texts(entry: Entry, field: str) -> tuple[str, ...]:
    """Return a field that is a list of at least one text, without empty ones."""
    return as_texts(_field(entry, field), f"{entry.where}, {field}")


def as_texts(values: Any, where: str) -> tuple[str, ...]:
    """Return a list of at least one text, each on one line; raise `BadInput` naming `where`."""
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise BadInput("expected a list of strings", where)
    cleaned = tuple(map(clean, values))
    if not cleaned:
        raise BadInput("the list is empty", where)
    if not all(cleaned):
        raise BadInput("one of the strings is empty", where)
    return cleaned


def _field(entry: Entry, field: str) -> Any:
    if not isinstance(entry.content, dict):
        raise BadInput("expected an object", entry.where)
    if field not in entry.content:
        raise BadInput("missing", f"{entry.where}, {field}")
    return entry.content[field]


def in_order(paths: Iterable[Path]) -> list[Path]:
    """Return what is no folder among `paths`, by name."""
    return sorted(path for path in paths if not path.is_dir())
