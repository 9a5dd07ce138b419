"""Question sets: what is read of each format, what is kept, and the place of whatever is wrong."""

import json
from copy import deepcopy

import pytest

from tests.question_sets import files
from training.errors import BadInput
from training.games import make
from training.question_sets import SETS, read, scenario
from training.question_sets.popqa import PopqaOptions
from training.question_sets.pubmedqa import PubmedqaOptions


def questions(tmp_path, name, content, file="file.json", options=None):
    path = tmp_path / file
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return read(SETS[name], path, options)


def refused(tmp_path, name, content, **more):
    with pytest.raises(BadInput) as raised:
        questions(tmp_path, name, content, **more)
    return raised.value


ALL = PopqaOptions(popularity=1)


def test_popqa_has_relation_and_popularity_beside_its_aliases(tmp_path):
    first, second, *_ = questions(tmp_path, "popqa", files.table(*files.ROWS), options=ALL)
    assert (first.id, first.text, first.answers) == (
        "popqa-11",
        "Which river runs through Prague?",
        ("Vltava", "the Moldau"),
    )
    assert first.metadata == {"relation": "river", "popularity": "90"}
    assert second.text == 'Who wrote "The Grey Harbour"?'  # a line break inside quotes


@pytest.mark.parametrize(
    "quantile, ids",
    [  # by hand: 7, 30, 30, 90, 400
        (0.5, ["12", "13", "14"]),  # the median is 30
        (0.75, ["11", "12", "13", "14"]),  # 90
        (0.8, ["11", "12", "13", "14"]),  # 90 + 0.2 · 310 = 152
        (0.1, ["12"]),  # 7 + 0.4 · 23 = 16.2
        (1, ["11", "12", "13", "14", "15"]),
    ],
)
def test_popqa_keeps_what_is_at_or_below_a_quantile_of_popularity(tmp_path, quantile, ids):
    kept = questions(tmp_path, "popqa", files.table(*files.ROWS), options=PopqaOptions(popularity=quantile))
    assert [question.id.removeprefix("popqa-") for question in kept] == ids


def test_popqa_may_have_tabs_and_a_byte_order_mark(tmp_path):
    text = "\ufeff" + files.table(*files.ROWS, delimiter="\t")
    assert questions(tmp_path, "popqa", text) == questions(tmp_path, "popqa", files.table(*files.ROWS))


ROW = files.ROWS[0]


@pytest.mark.parametrize(
    "row, message",
    [
        (("16", "Why?", "[]", "x", "1"), "possible_answers: the list is empty"),
        (("16", "Why?", '["a", " "]', "x", "1"), "possible_answers: one of the strings is empty"),
        (("16", "Why?", "", "x", "1"), "possible_answers: empty"),
        (("16", "Why?", "['a']", "x", "1"), "possible_answers: not JSON"),
        (("16", " ", '["a"]', "x", "1"), "question: empty"),
        (("16", "Why?", '["a"]', "x", "-1"), "s_pop: expected a whole number, not '-1'"),
        (("16", "Why?", '["a"]', "x", "9" * 19), "s_pop: expected a whole number"),
        (("", "Why?", '["a"]', "x", "1"), "id: empty"),
        (("16", "Why?", '["a"]', "x"), " expected 5 columns, not 4"),
    ],
)
def test_a_wrong_row_of_popqa_is_named(tmp_path, row, message):
    error = refused(tmp_path, "popqa", files.table(ROW, row), file="pop.csv")
    assert str(error).startswith("pop.csv line 3")
    assert message in str(error)


def test_the_line_of_a_row_is_where_it_begins(tmp_path):
    rows = [files.ROWS[1], ("16", "Why?", "[]", "x", "1")]  # the first one has two lines
    assert refused(tmp_path, "popqa", files.table(*rows)).where == "file.json line 4, possible_answers"


def test_popqa_needs_its_columns_whole_quotes_and_unique_ids(tmp_path):
    header = (*files.HEADER[:-1], "views")
    assert refused(tmp_path, "popqa", files.table(ROW, header=header)).where == "file.json line 1, s_pop"
    assert refused(tmp_path, "popqa", files.table(ROW) + '"16,Why').why.startswith("not a table")
    assert refused(tmp_path, "popqa", files.table(ROW, ROW)).where == "file.json line 3, id"


def test_entity_questions_know_their_relation(tmp_path):
    parsed = questions(tmp_path, "entityquestions", files.RELATION, file="P19.dev.json")
    assert [(each.id, each.answers) for each in parsed] == [
        ("entityquestions-P19.dev-0", ("Linz",)),
        ("entityquestions-P19.dev-1", ("Graz", "Gratz")),
    ]
    assert {each.metadata["relation"] for each in parsed} == {"P19"}


def test_a_folder_of_entity_questions_is_read_by_name(tmp_path):
    folder = tmp_path / "dev"
    folder.mkdir()
    for name in ("P50.dev.json", "P19.dev.json"):
        (folder / name).write_text(json.dumps(files.RELATION[:1]))
    ids = [question.id for question in read(SETS["entityquestions"], folder)]
    assert ids == ["entityquestions-P19.dev-0", "entityquestions-P50.dev-0"]


def test_an_unscorable_answer_is_left_out(tmp_path):
    (only,) = questions(tmp_path, "nq-open", files.lines(*files.OPEN), file="nq.jsonl")
    assert (only.id, only.answers, only.metadata) == ("nq-open-1", ("Anton Gall", "A. Gall"), {})


@pytest.mark.parametrize(
    "name, content, message",
    [
        ("nq-open", '{"question": "who"}\n', "file.json line 1, answer: missing"),
        ("nq-open", '{"question": "who", "answer": "me"}\n', "file.json line 1, answer: expected a list of strings"),
        ("nq-open", '{"question": "who", "answer": ["me"]}\n{"que', "file.json line 2: not JSON"),
        ("nq-open", "[1]\n", "file.json line 1: expected an object"),
        ("entityquestions", {"question": "who"}, "file.json: expected a list"),
        ("entityquestions", [{"question": "who", "answers": []}], "file.json, entry 0, answers: the list is empty"),
        ("entityquestions", [{"question": 3, "answers": ["x"]}], "file.json, entry 0, question: expected a string"),
        ("entityquestions", '[\n{"question"]', "file.json line 2 column 12: not JSON"),
        ("pubmedqa", [1], "file.json: expected an object"),
        ("pubmedqa", {"901": {"QUESTION": "Why?"}}, "file.json, 901, LONG_ANSWER: missing"),
        ("pubmedqa", {"901": {"QUESTION": "Why?", "LONG_ANSWER": " "}}, "file.json, 901, LONG_ANSWER: empty"),
        ("pubmedqa", {"901": 1}, "file.json, 901: expected an object"),
        ("pubmedqa", '{"901": {}, "901": {}}', "file.json: not JSON: the key '901' stands twice"),
    ],
)
def test_a_wrong_entry_is_named(tmp_path, name, content, message):
    assert str(refused(tmp_path, name, content)).startswith(message)


def test_the_gold_of_pubmedqa_is_the_conclusion_and_the_decision_is_metadata(tmp_path):
    first, second = questions(tmp_path, "pubmedqa", files.ARTICLES)
    assert first.answers == ("Cold tea shortened hiccups in half of the volunteers.",)
    assert (first.metadata, second.metadata) == ({"decision": "maybe"}, {"decision": "no"})


def test_the_decision_of_pubmedqa_is_the_gold_only_where_it_is_asked_for(tmp_path):
    options = PubmedqaOptions(gold="decision")
    assert [each.answers for each in questions(tmp_path, "pubmedqa", files.ARTICLES, options=options)] == [
        ("maybe",),
        ("no",),
    ]
    articles = deepcopy(files.ARTICLES)
    del articles["902"]["final_decision"]
    assert refused(tmp_path, "pubmedqa", articles, options=options).where == "file.json, 902, final_decision"
    assert len(questions(tmp_path, "pubmedqa", articles)) == 2
    articles["902"]["final_decision"] = "perhaps"
    assert refused(tmp_path, "pubmedqa", articles).why == "expected yes, no, maybe, not 'perhaps'"


def first_scenario(tmp_path, name, content, **options):
    chosen = SETS[name].options(**options)
    return scenario(SETS[name], questions(tmp_path, name, content, options=chosen)[0], chosen)


def test_a_question_is_answered_by_a_helper_for_each_tool(tmp_path):
    made = first_scenario(tmp_path, "pubmedqa", files.ARTICLES, tools="wiki, pubmed, atlas")
    assert (made.game, made.id, made.seats) == ("qa_society", "pubmedqa-901", ("Ada", "Ben", "Cleo", "Dan"))
    game = make(made)
    assert game.roles() == ("asker", "helper_wiki", "helper_pubmed", "helper_atlas")
    assert game.settings.max_chars == 1000
    assert game.settings.metadata == {"decision": "maybe"}


def test_without_tools_an_agent_is_alone(tmp_path):
    made = first_scenario(tmp_path, "nq-open", files.lines(*files.OPEN), tools=" ")
    assert make(made).roles() == ("agent",)


def test_a_tool_that_the_game_refuses_is_named_with_the_question(tmp_path):
    with pytest.raises(BadInput, match=r"file.json line 1, settings\.tools\.0"):
        first_scenario(tmp_path, "nq-open", files.lines(*files.OPEN), tools="my wiki")
