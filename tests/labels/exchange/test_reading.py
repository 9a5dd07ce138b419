"""External files: what their labels become, and every wrong field named with its task or line."""

import json

import pytest

from tests.labels.exchange.make import CODEBOOK, LABELS, judged, judgment, labelled, line
from training.dataset import Conversation
from training.errors import BadInput
from training.games.actions import clean, plain
from training.labels.codebooks import Codebook
from training.labels.exchange import FORMATS, doccano, external, label_studio_reading
from training.labels.exchange.base import Utf16
from training.records import Episode, Label, Move, Scenario, SeatMove

WORDS = Codebook.from_dict(
    {"name": "words", "version": 2, "title": "Words", "labels": [
        {"name": "person", "title": "PER", "kind": "span", "about": "span", "definition": "A person?"},
        {"name": "place", "title": "Place", "kind": "span", "about": "span", "definition": "A place?", "overlap": True},
        {"name": "rude", "title": "Rude", "kind": "yes_no", "about": "turn", "definition": "Rude?", "required": False},
        {"name": "tone", "title": "Tone", "kind": "one_of", "about": "game", "definition": "Which?", "required": False,
         "options": [{"name": "warm", "title": "Warm"}, {"name": "cold", "title": "Ice cold"}]},
        {"name": "score", "title": "Score", "kind": "scale", "about": "seat", "low": 0, "high": 5, "definition": "?",
         "required": False},
        {"name": "summary", "title": "Summary", "kind": "text", "about": "game", "definition": "?", "required": False},
        {"name": "answers", "title": "Answers", "kind": "relation", "about": "pair", "definition": "?"},
    ]}
)  # fmt: skip
FOX = "🦊 Ann  saw\n<b>Ben</b> in Rome."


def conversation(texts):
    moves = tuple(SeatMove(seat=0, move=Move(action="speak", text=text)) for _, text in texts)
    return Conversation(
        source="x", episode=Episode(scenario=Scenario(id="t", game="dialogue", seats=("a", "b")), moves=moves)
    )


def judged_as(task):
    return external.judgments(task, conversation(task.texts), WORDS)


def label_studio(tmp_path, *tasks, **options):
    path = tmp_path / "export.json"
    path.write_text(json.dumps(tasks, ensure_ascii=False), encoding="utf-8")
    return list(label_studio_reading.read(path, WORDS, **options))


def lines(tmp_path, *records, **options):
    path = tmp_path / "all.jsonl"
    path.write_text("\n".join(json.dumps(record, ensure_ascii=False) for record in records), encoding="utf-8")
    return list(doccano.read(path, WORDS, **options))


def annotation(*results, **fields):
    return {"id": 1, "completed_by": 3, "result": list(results), **fields}


def result(value, control="label", kind="labels", **fields):
    return {"id": "r", "from_name": control, "to_name": "text", "type": kind, "value": value, **fields}


def text_task(*results, text=FOX, **fields):
    return {"id": 7, "data": {"text": text}, "annotations": [annotation(*results, **fields)]}


def words(label, texts):
    return texts[label.turn][1][label.start : label.end]


def test_a_text_is_a_turn_in_the_form_of_turns_with_the_same_words(tmp_path):
    """Code points by hand: “Ann” 2-5, “Ben” 14-17 and “<b>Ben</b>” 11-21 of the raw text."""
    (task,) = label_studio(tmp_path, text_task(
        result({"start": 2, "end": 5, "labels": ["PER"]}), result({"start": 14, "end": 17, "labels": ["person"]}),
        updated_at="2026-01-02T03:04:05Z", lead_time=4.5, ground_truth=True,
    ))  # fmt: skip
    assert task.texts == (("", "🦊 Ann saw (b)Ben(/b) in Rome."),)
    assert plain(task.texts[0][1]) == clean(task.texts[0][1]) == task.texts[0][1]
    (judged_so,) = judged_as(task)
    assert [words(label, task.texts) for label in judged_so.labels] == ["Ann", "Ben"]
    assert (judged_so.author, judged_so.judged_at, judged_so.seconds, judged_so.decides) == (
        "label-studio:3", "2026-01-02T03:04:05Z", 4.5, True,
    )  # fmt: skip


@pytest.mark.parametrize(
    "value, expected",
    [
        ({"start": 2, "end": 5, "text": "Ann"}, "Ann"),
        ({"start": 3, "end": 6, "text": "Ann"}, "Ann"),  # UTF-16, as releases before 1.5 counted
        ({"start": 3, "end": 6}, "nn"),
    ],
)
def test_offsets_in_a_text_are_code_points_unless_only_utf16_fits_the_words(tmp_path, value, expected):
    (task,) = label_studio(tmp_path, text_task(result({**value, "labels": ["person"]})))
    ((label,),) = (each.labels for each in judged_as(task))
    assert words(label, task.texts) == expected


def dialogue_task(*results, **fields):
    data = {"chat": [{"speaker": "A", "content": "Hi 🦊 Ann."}, {"speaker": "B", "content": "Hi Ben."}]}
    return {"id": 9, "data": data, "annotations": [annotation(*results, **fields)]}


def paragraph(number, start, end, **value):
    return {"start": str(number), "end": str(number), "startOffset": start, "endOffset": end, **value}


def test_offsets_in_a_paragraph_are_utf16(tmp_path):
    """In JavaScript, "Hi 🦊 Ann.".indexOf("Ann") is 6, and the length 10."""
    (task,) = label_studio(tmp_path, dialogue_task(
        result(paragraph(0, 6, 9, paragraphlabels=["person"]), kind="paragraphlabels"),
        result(paragraph(0, 0, 10, choices=["yes"]), "rude", "choices"),
        result({"choices": ["Ice cold"]}, "Tone", "choices"), result({"rating": 4}, "score-seat1", "rating"),
        result({"text": ["They", "greet."]}, "summary", "textarea"),
    ))  # fmt: skip
    assert task.texts == (("A", "Hi 🦊 Ann."), ("B", "Hi Ben."))
    (judged_so,) = judged_as(task)
    assert judged_so.labels == (
        Label(label="person", turn=0, start=5, end=8), Label(label="rude", value=True, turn=0),
        Label(label="tone", value="cold"), Label(label="score", value=4, seat=1),
        Label(label="summary", value="They\ngreet."),
    )  # fmt: skip


def test_a_relation_leads_between_turns_in_its_direction(tmp_path):
    regions = [
        {**result(paragraph(0, 0, 2, paragraphlabels=["place"]), kind="paragraphlabels"), "id": "a"},
        {**result(paragraph(1, 0, 2, paragraphlabels=["place"]), kind="paragraphlabels"), "id": "b"},
    ]
    link = {"type": "relation", "from_id": "a", "to_id": "b", "direction": "left", "labels": ["answers"]}
    (task,) = label_studio(tmp_path, dialogue_task(*regions, link))
    assert judged_as(task)[0].labels[-1] == Label(label="answers", turn=1, other_turn=0)
    for change, where in (({"to_id": "c"}, "to_id"), ({"direction": "bi"}, "direction"), ({"labels": ["x"]}, "labels")):
        with pytest.raises(BadInput) as error:
            label_studio(tmp_path, dialogue_task(*regions, link | change))
        assert error.value.where == f"export.json, task 9, annotations.0, result.2, {where}"


def test_what_was_skipped_is_a_judgment_without_labels(tmp_path):
    (task,) = label_studio(tmp_path, text_task(was_cancelled=True))
    (judged_so,) = judged_as(task)
    assert (judged_so.labels, judged_so.reason) == (None, "skipped in Label Studio")


@pytest.mark.parametrize(
    "results, fields, why, where",
    [
        ([result({"start": 2, "end": 5, "labels": ["Dog"]})], {}, "no label 'Dog'", "result.0, value.labels"),
        ([result({"start": 2, "end": 99, "labels": ["PER"]})], {}, "no span of a text of 30", "result.0, value"),
        ([result({"start": 5, "end": 5, "labels": ["PER"]})], {}, "is no span", "result.0, value"),
        ([result({"start": -1, "end": 5, "labels": ["PER"]})], {}, "is no span", "result.0, value"),
        ([result({"start": 5, "end": 7, "labels": ["PER"]})], {}, "holds no word", "result.0, value"),
        ([result({"start": 2.5, "end": 5, "labels": ["PER"]})], {}, "expected int or str", "value, start"),
        ([result({"start": "/p[1]", "end": "/p[1]", "labels": ["PER"]})], {}, "HTML", "value, start"),
        ([result({"start": 2, "end": 5, "labels": "PER"})], {}, "expected list", "value, labels"),
        ([result({"choices": ["hot"]}, "tone", "choices")], {}, "'hot' is no value of tone", "value.choices"),
        ([result({"choices": ["warm", "cold"]}, "tone", "choices")], {}, "one value, not 2", "value.choices"),
        ([result({"number": 6}, "score", "number")], {}, "0 to 5", "value.number"),
        ([result({"number": "6"}, "score", "number")], {}, "expected int or float", "value, number"),
        ([result({"number": True}, "score", "number")], {}, "not bool", "value, number"),
        ([result({"number": 3}, "tone", "number")], {}, "no value of tone", "result.0, type"),
        ([result({"number": 3}, "colour", "number")], {}, "no label 'colour'", "from_name"),
        ([result({"choices": ["Rude"]}, "x", "choices")], {"completed_by": "a@b.org"}, "number", "completed_by"),
        ([result({"choices": ["Rude"]}, "x", "choices")], {"lead_time": -1}, "expected seconds", "lead_time"),
        ([result({"start": 2, "end": 8, "labels": ["PER"]}), result({"start": 4, "end": 9, "labels": ["PER"]})], {},
         "two spans overlap", "annotations.0, person"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named_with_task_and_field(tmp_path, results, fields, why, where):
    with pytest.raises(BadInput) as error:
        list(map(judged_as, label_studio(tmp_path, text_task(*results, **fields))))
    assert why in error.value.why
    assert error.value.where.startswith("export.json, task 7, annotations.0")
    assert error.value.where.endswith(where)


def test_spans_overlap_where_the_codebook_allows_it(tmp_path):
    spans = [result({"start": start, "end": start + 6, "labels": ["place"]}) for start in (2, 4)]
    (task,) = label_studio(tmp_path, text_task(*spans))
    assert len(judged_as(task)[0].labels) == 2


def test_a_character_is_not_cut_in_two(tmp_path):
    region = result(paragraph(0, 4, 6, paragraphlabels=["person"]), kind="paragraphlabels")
    with pytest.raises(BadInput, match="4 is inside a character"):
        label_studio(tmp_path, dialogue_task(region))


@pytest.mark.parametrize(
    "data, options, why",
    [
        ({"a": "x", "b": "y"}, {}, "name the labelled field"),
        ({"a": "x", "b": "y"}, {"text": "c"}, "there are a, b"),
        ({"image": 5}, {}, "there is none"),
        ({"text": " \n"}, {}, "turn 0 has no text"),
    ],
)
def test_the_labelled_field_is_found_or_asked_for(tmp_path, data, options, why):
    with pytest.raises(BadInput, match=why):
        label_studio(tmp_path, {"data": data, "annotations": []}, **options)
    assert label_studio(tmp_path, {"data": {"a": "x", "b": "y"}, "annotations": []}, text="b")[0].texts == (("", "y"),)


def ours(tmp_path, change):
    tasks = json.loads("".join(FORMATS["label-studio"].write(CODEBOOK, labelled(line(judged(judgment()))))))
    change(tasks[0])
    path = tmp_path / "ours.json"
    path.write_text(json.dumps(tasks), encoding="utf-8")
    return list(FORMATS["label-studio"].read(path, CODEBOOK))


def test_a_game_of_ours_that_others_labelled_is_the_same_game(tmp_path):
    """Label Studio keeps `data` and results, and drops what it does not know."""

    def edited(task):
        task["annotations"][0].pop("judgment")
        task["annotations"][0] |= {"completed_by": {"id": 5, "email": "canary@example.org"}, "lead_time": 3}

    (game,) = ours(tmp_path, edited)
    assert game.episode == judged().episode
    assert game.source == "file:1"
    (judged_so,) = game.judgments
    assert (judged_so.author, judged_so.seconds, judged_so.labels) == ("label-studio:5", 3, LABELS)
    assert "canary" not in repr(game)


@pytest.mark.parametrize(
    "change, where, why",
    [
        ({"codebook_version": 2}, "codebook_version", "labelled under every-kind v2, not under every-kind v3"),
        ({"episode_sha256": "0" * 64}, "episode_sha256", "changed since it was exported"),
        ({"dialogue": [{"author": "Ann", "text": "Other"}]}, "dialogue", "not the turns"),
        ({"episode": {}}, "episode.scenario", "Field required"),
    ],
)
def test_a_game_of_ours_that_was_changed_is_refused(tmp_path, change, where, why):
    with pytest.raises(BadInput) as error:
        ours(tmp_path, lambda task: task["data"].update(change))
    assert (error.value.where, why in error.value.why) == (f"ours.json, task 1, data, {where}", True)


# --- doccano ---------------------------------------------------------------------------------------------------------


def test_spans_of_doccano(tmp_path):
    (task,) = lines(tmp_path, {"id": 4, "text": FOX, "label": [[2, 5, "PER"], [25, 29, "place"]]})
    (judged_so,) = judged_as(task)
    assert [words(label, task.texts) for label in judged_so.labels] == ["Ann", "Rome"]
    assert (task.key, judged_so.author) == ("4", "doccano")


def test_classes_of_doccano(tmp_path):
    classified, bare = lines(tmp_path, {"text": "Go away.", "label": ["Rude", "Ice cold"]}, {"text": "No label."})
    assert judged_as(classified)[0].labels == (
        Label(label="rude", value=True, turn=0),
        Label(label="tone", value="cold"),
    )
    assert judged_as(bare) == ()


def test_texts_of_doccano_are_labels_of_the_only_text(tmp_path):
    kept = tuple(each for each in WORDS.labels if each.name != "tone")
    path = tmp_path / "all.jsonl"
    path.write_text(json.dumps({"text": "Hello.", "label": ["A greeting."]}))
    (task,) = doccano.read(path, WORDS.model_copy(update={"labels": kept}))
    assert judged_as(task)[0].labels == (Label(label="summary", value="A greeting."),)


RELATED = {
    "text": "Ann asks.\n\nBen answers.",
    "entities": [
        {"id": 11, "label": "PER", "start_offset": 0, "end_offset": 3},
        {"id": 12, "label": "PER", "start_offset": 11, "end_offset": 14},
    ],
    "relations": [{"id": 1, "from_id": 12, "to_id": 11, "type": "answers"}],
}


def test_relations_of_doccano_are_between_lines(tmp_path):
    (task,) = lines(tmp_path, RELATED, split="lines")
    assert task.texts == (("", "Ann asks."), ("", "Ben answers."))
    (judged_so,) = judged_as(task)
    assert judged_so.labels == (
        Label(label="person", turn=0, start=0, end=3), Label(label="person", turn=1, start=0, end=3),
        Label(label="answers", turn=1, other_turn=0),
    )  # fmt: skip
    with pytest.raises(BadInput, match="make a turn of each line"):
        lines(tmp_path, RELATED)


def test_annotations_of_earlier_releases_name_their_user_by_number(tmp_path):
    spans = [{"label": "PER", "start_offset": 2, "end_offset": 5, "user": user} for user in (1, 2)]
    (task,) = lines(tmp_path, {"text": FOX, "annotations": spans, "annotation_approver": "canary@example.org"})
    assert [each.author for each in judged_as(task)] == ["doccano:1", "doccano:2"]


@pytest.mark.parametrize(
    "record, where, why",
    [
        ({"text": "Hi", "label": [[0, 9, "PER"]]}, ", label.0", "no span"),
        ({"text": "Hi", "label": [[0, 2, "Dog"]]}, ", label.0", "no label 'Dog'"),
        ({"text": "Hi", "label": [[0, "2", "PER"]]}, ", label.0", "expected start, end"),
        ({"text": "Hi", "label": [5]}, ", label.0", "expected \\[start, end, name\\]"),
        ({"text": "Hi", "label": {"a": 1}}, ", label", "expected a list"),
        ({"text": "Hi all", "label": [[0, 2, "Rude"]]}, ", label.0", "about a whole turn"),
        ({"text": 5}, ", text", "expected str"),
        ({"text": "a\nb", "label": [[0, 3, "PER"]]}, ", label.0", "over several lines"),
    ],
)
def test_what_is_wrong_in_a_line_of_doccano_is_named(tmp_path, record, where, why):
    with pytest.raises(BadInput, match=why) as error:
        lines(tmp_path, {"text": "fine"}, record, split="lines")
    assert error.value.where == f"all.jsonl line 2{where}"


@pytest.mark.parametrize(
    "text, why",
    [
        ("line\n" * 401, "at most 400 turns can be read"),
        ("<" + " " * 200_000, "a turn has at most 20000 characters, not 200001"),
    ],
)
def test_a_text_that_is_too_long_is_refused_before_its_labels_are_read(tmp_path, text, why):
    with pytest.raises(BadInput, match=why):
        lines(tmp_path, {"text": text, "label": [[0, 1, "no such label"]]}, split="lines")


def test_the_positions_of_a_text_are_counted_once_for_all_its_regions(tmp_path, monkeypatch):
    counted = []
    monkeypatch.setattr(label_studio_reading, "Utf16", lambda text: counted.append(text) or Utf16(text))
    regions = [result(paragraph(0, 6, 9, paragraphlabels=["person"]), kind="paragraphlabels")] * 3
    label_studio(tmp_path, {**dialogue_task(*regions[:1]), "annotations": [annotation(each) for each in regions]})
    assert counted == ["Hi 🦊 Ann."]
