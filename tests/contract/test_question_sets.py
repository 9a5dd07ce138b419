"""Every question set reads a small file of its format as scenarios that can be played, and names what is wrong."""

import json

import pytest

from tests.question_sets import files
from training.errors import BadInput
from training.games import make
from training.question_sets import SETS, read, scenario

SAMPLES = {
    "popqa": (files.table(files.ROWS[1]), "Ilse Brandt"),
    "entityquestions": (json.dumps(files.RELATION[:1]), "Linz"),
    "nq-open": (files.lines(files.OPEN[0]), "Anton Gall"),
    "pubmedqa": (json.dumps({"902": files.ARTICLES["902"]}), "No difference in speed was seen."),
}
"""A file with one question in the format of each set, and the question's first right answer."""
every_set = pytest.mark.parametrize("questions", SETS.values(), ids=SETS)


def written(tmp_path, questions):
    path = tmp_path / "questions.json"
    path.write_text(SAMPLES[questions.name][0], encoding="utf-8")
    return path


def test_every_set_has_a_sample():
    assert set(SAMPLES) == set(SETS)


@every_set
def test_a_file_becomes_scenarios_for_which_the_right_answer_is_right(tmp_path, questions):
    options = questions.options()
    [question] = read(questions, written(tmp_path, questions), options)
    game = make(scenario(questions, question, options))
    assert game.settings.question == question.text
    assert game.settings.answers[0] == SAMPLES[questions.name][1]
    assert len(game.settings.answers[0]) <= game.settings.max_chars, "the game accepts no reply as long as the answer"


@every_set
def test_ids_say_which_set_a_question_is_of(tmp_path, questions):
    [question] = read(questions, written(tmp_path, questions))
    assert question.id.startswith(f"{questions.name}-")
    assert question.where.startswith("questions.json")


@every_set
def test_options_are_described_for_forms(questions):
    schema = questions.options.model_json_schema()
    assert schema["additionalProperties"] is False
    for field, content in schema["properties"].items():
        assert content.get("description"), field


@every_set
@pytest.mark.parametrize("content", ["[[[", "5", "[5]\n[5]", '{"a": 5}', "\x00"])
def test_what_is_no_question_is_refused_with_its_file(tmp_path, questions, content):
    path = tmp_path / "questions.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(BadInput) as refusal:
        read(questions, path)
    assert refusal.value.where.startswith("questions.json")


@every_set
def test_a_folder_is_read_by_the_sets_of_several_files_alone(tmp_path, questions):
    written(tmp_path, questions)
    if questions.several:
        assert len(read(questions, tmp_path)) == 1
    else:
        with pytest.raises(BadInput):
            read(questions, tmp_path)
