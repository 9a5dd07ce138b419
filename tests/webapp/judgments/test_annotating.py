"""The page of a judgment: values of turns and words, rankings, suggestions, time, putting aside, keys of a person."""

import json

import pytest
from django.urls import reverse

from tests.webapp.judgments.make import conversation, conversation_queue, imported
from training.errors import BadInput
from training.labels.codebooks import Codebook
from training.records import Label as LabelRecord
from webapp.judgments.annotating import keys
from webapp.judgments.annotating import services as annotating
from webapp.judgments.codebooks import services as codebooks
from webapp.judgments.models import AnnotatorSettings, Judgment, Label, Suggestion, Target

pytestmark = pytest.mark.django_db
WHAT = {"definition": "What?"}
TYPES = [
    {"name": "tone", "title": "Tone", "kind": "scale", "about": "turn", "low": 0, "high": 3, **WHAT},
    {
        "name": "move", "title": "Move", "kind": "many_of", "about": "turn", **WHAT,
        "options": [{"name": "offer", "title": "Offer"}, {"name": "threat", "title": "Threat"}],
    },
    {"name": "note", "title": "Note", "kind": "text", "about": "turn", **WHAT},
    {"name": "claim", "title": "Claim", "kind": "span", "about": "span", "key": "c", **WHAT},
    {"name": "true", "title": "True", "kind": "yes_no", "about": "span", "when": {"label": "claim"}, **WHAT},
    {
        "name": "about", "title": "About", "kind": "one_of", "about": "span", "when": {"label": "claim"}, **WHAT,
        "options": [{"name": "pens", "title": "Pens"}, {"name": "other", "title": "Other"}],
    },
    {"name": "answers", "title": "Answers", "kind": "relation", "about": "pair", "key": "j", **WHAT},
    {
        "name": "well", "title": "Well", "kind": "scale", "about": "pair", "low": 0, "high": 1, **WHAT,
        "when": {"label": "answers"},
    },
    {"name": "best", "title": "Best", "kind": "ranking", "about": "game", "required": False, **WHAT},
    {"name": "own", "title": "Own best", "kind": "ranking", "about": "seat", "required": False, **WHAT},
    {
        "name": "fair", "title": "Fair", "kind": "scale", "about": "game", "low": 0, "high": 10, "required": False,
        **WHAT,
    },
]  # fmt: skip
MARKS = [
    {"label": "tone", "turn": 0, "value": 2},
    {"label": "move", "turn": 1, "value": ["offer", "threat"]},
    {"label": "note", "turn": 1, "value": "dry"},
    {"label": "claim", "turn": 1, "start": 12, "end": 15},
    {"label": "true", "turn": 1, "start": 12, "end": 15, "value": False},
    {"label": "about", "turn": 1, "start": 12, "end": 15, "value": "pens"},
    {"label": "answers", "turn": 1, "other_turn": 0},
    {"label": "well", "turn": 1, "other_turn": 0, "value": 0.5},
]
STORED = {
    LabelRecord(label="tone", turn=0, value=2.0),
    LabelRecord(label="move", turn=1, value=("offer", "threat")),
    LabelRecord(label="note", turn=1, value="dry"),
    LabelRecord(label="claim", turn=1, start=12, end=15),
    LabelRecord(label="true", turn=1, start=12, end=15, value=False),
    LabelRecord(label="about", turn=1, start=12, end=15, value="pens"),
    LabelRecord(label="answers", turn=1, other_turn=0),
    LabelRecord(label="well", turn=1, other_turn=0, value=0.5),
}


@pytest.fixture
def queue(researcher, annotator):
    codebooks.save_codebook(name="talk", title="Talk", labels=TYPES, by=researcher)
    return conversation_queue(researcher, imported(researcher, conversation()), [annotator], codebook="talk")


@pytest.fixture
def target(queue):
    return queue.targets.with_games().get()


@pytest.fixture
def send(client_of, annotator, queue, target):
    """Posts the page's form with these fields, by default the labels above."""
    client, address = client_of(annotator), reverse("judgments:annotate", args=[queue.pk])

    def post(**fields):
        return client.post(address, {"target": target.pk, "labels": json.dumps(MARKS), **fields})

    post.page = lambda query="": client.get(address + query).content.decode()
    return post


def test_values_of_turns_words_and_pairs_keep_their_type_from_the_page_to_the_store_and_back(send, target):
    assert send().status_code == 302
    assert set(Judgment.objects.get().records()) == STORED
    kinds = {label.label: type(label.value) for label in Judgment.objects.get().records()}
    assert (kinds["tone"], kinds["true"], kinds["move"]) == (float, bool, tuple)
    again = send.page(f"?target={target.pk}").split('name="labels"')[1].split('value="')[1].split('"')[0]
    sent = json.loads(again.replace("&quot;", '"').replace("&#x27;", "'"))
    assert sorted(sent, key=str) == sorted(MARKS, key=str)


WRONG = {
    "beyond the scale": ({"label": "tone", "turn": 0, "value": 9}, "0 to 3"),
    "a truth for a number": ({"label": "tone", "turn": 0, "value": True}, "0 to 3"),
    "no option": ({"label": "move", "turn": 0, "value": ["lie"]}, "any of"),
    "an empty text": ({"label": "note", "turn": 0, "value": " "}, "a text"),
    "no value": ({"label": "tone", "turn": 0}, "0 to 3"),
    "a value of words that nobody marked": (
        {"label": "true", "turn": 0, "start": 0, "end": 3, "value": True}, "claim was labelled",
    ),
    "a suggestion of nobody": ({"label": "tone", "turn": 0, "value": 1, "suggestion": 999_999}, "suggestion is gone"),
    "a suggestion that is no number": ({"label": "tone", "turn": 0, "value": 1, "suggestion": True}, "by a number"),
}  # fmt: skip


@pytest.mark.parametrize("mark, why", WRONG.values(), ids=WRONG)
def test_a_wrong_value_is_refused_with_the_reason_and_kept_on_the_page(send, mark, why):
    refused = send(labels=json.dumps([mark]))
    assert refused.status_code == 400
    assert why in refused.content.decode()
    assert not Judgment.objects.exists()


def test_turns_are_ranked_by_their_numbers_and_stored_as_moves(send, target):
    assert send(labels="[]", **{"value-best": "2, 1", "value-0-own": "3 1"}).status_code == 302
    assert set(Judgment.objects.get().records()) == {
        LabelRecord(label="best", value=(1, 0)),
        LabelRecord(label="own", value=(2, 0), seat=0),
    }
    page = send.page(f"?target={target.pk}")
    assert 'value="2, 1"' in page
    assert 'value="3, 1"' in page


@pytest.mark.parametrize("field, text, why", [
    ("value-best", "9", "There is no turn 9"), ("value-best", "1, 1", "one place"), ("value-best", "x", "no turn x"),
    ("value-0-own", "2", "There is no turn 2"),
])  # fmt: skip
def test_a_ranking_of_other_turns_is_refused(send, field, text, why):
    refused = send(labels="[]", **{field: text})
    assert refused.status_code == 400
    assert why in refused.content.decode()


# --- suggestions ---


@pytest.fixture
def suggested(queue, target):
    """Three suggestions for the game, shown to its annotators."""
    queue.shows_suggestions = True
    queue.save()
    rows = [
        Suggestion.of(LabelRecord(label="tone", turn=0, value=3.0), "scale", target=target, source="rule:r", score=0.9),
        Suggestion.of(LabelRecord(label="claim", turn=1, start=12, end=15), "span", target=target, source="judge:j"),
        Suggestion.of(LabelRecord(label="fair", value=7.0), "scale", target=target, source="rule:r", score=0.25),
    ]
    return Suggestion.objects.bulk_create(rows)


def test_suggestions_are_shown_and_nothing_of_them_is_stored_unless_it_is_accepted(send, suggested):
    page = send.page()
    assert "rule:r" in page
    assert "0.25" in page
    assert send(labels="[]").status_code == 302
    judgment = Judgment.objects.get()
    assert judgment.records() == ()
    assert judgment.suggestions_shown


def test_an_accepted_and_a_corrected_suggestion_are_linked_to_their_label(send, suggested):
    tone, claim, fair = suggested
    marks = [{"label": "tone", "turn": 0, "value": 1, "suggestion": tone.pk},
             {"label": "claim", "turn": 1, "start": 12, "end": 15, "suggestion": claim.pk}]  # fmt: skip
    send(labels=json.dumps(marks), **{"value-fair": "7", "value-fair-suggestion": str(fair.pk)})
    linked = dict(Label.objects.values_list("name", "suggestion_id"))
    assert linked == {"tone": tone.pk, "claim": claim.pk, "fair": fair.pk}
    assert Label.objects.get(name="tone").value != tone.value, "corrected"


@pytest.mark.parametrize("key", ["9" * 5000, "-1", "x"])
def test_what_is_no_key_of_a_suggestion_is_no_suggestion(send, suggested, key):
    assert send(labels="[]", **{"value-fair": "7", "value-fair-suggestion": key}).status_code == 302
    assert Label.objects.get(name="fair").suggestion is None


def test_a_queue_that_shows_no_suggestions_says_nothing_of_them(send, suggested, queue):
    queue.shows_suggestions = False
    queue.save()
    assert "rule:r" not in send.page()
    refused = send(labels=json.dumps([{"label": "tone", "turn": 0, "value": 3, "suggestion": suggested[0].pk}]))
    assert refused.status_code == 400
    assert send(labels="[]").status_code == 302
    assert not Judgment.objects.get().suggestions_shown


# --- time, unsure, putting aside ---


def test_time_adds_up_and_is_capped_and_shown_to_nobody(send, client_of, researcher, queue):
    send(seconds="61", unsure="1")
    judgment = Judgment.objects.get()
    assert (judgment.seconds, judgment.unsure) == (61.0, True)
    send(seconds="30", labels="[]")
    judgment.refresh_from_db()
    assert (judgment.seconds, judgment.unsure, len(judgment.history)) == (91.0, False, 1)
    send(seconds="99999999")
    judgment.refresh_from_db()
    assert judgment.seconds == annotating.MOST_SECONDS
    for text in ("-5", "x", ""):
        send(seconds=text, reason=f"again {text}")
    judgment.refresh_from_db()
    assert judgment.seconds == annotating.MOST_SECONDS
    page = client_of(researcher).get(reverse("judgments:queue", args=[queue.pk])).content.decode()
    assert "7200" not in page


def test_what_is_put_aside_needs_a_reason_and_is_not_judged(send, target, annotator):
    refused = send(skip="1", why=" ")
    assert refused.status_code == 400
    assert "state briefly why you skip it" in refused.content.decode()
    assert send(skip="1", why=" not my language ").status_code == 302
    assert target.assignments.get().skipped == "not my language"
    assert not Judgment.objects.exists()
    assert Target.objects.get(pk=target.pk).state == "pending"


# --- keys and breaks ---


def settings(client, **fields):
    return client.post(reverse("judgments:annotator-settings"), {"break_minutes": "45", **fields})


def test_a_person_chooses_keys_and_the_page_has_them(send, client_of, annotator):
    client = client_of(annotator)
    saved = settings(client, next="n", undo="Ctrl+u", **{"label:talk:claim": "x"}, break_minutes="0")
    assert saved.status_code == 302
    stored = AnnotatorSettings.objects.get(user=annotator)
    assert stored.keys == {"next": ["n"], "undo": ["Ctrl+u"], "label:talk:claim": ["x"]}
    page = send.page().replace("&quot;", '"')
    assert '"name": "next", "title": "The next turn", "keys": ["n"]' in page
    assert '"key": "x"' in page
    assert 'data-break-minutes="0"' in page
    client.post(reverse("judgments:annotator-settings"), {"usual": "1"})
    assert AnnotatorSettings.objects.get(user=annotator).keys == {}


@pytest.mark.parametrize("fields, why", [
    ({"next": "k"}, "“The previous turn” has it"),
    ({"next": "Ctrl+k"}, "the search has it"),
    ({"next": "?"}, "the list of keys has it"),
    ({"skip": "Shift+U"}, "“Mark as unsure, or undo that” has it"),
    ({"next": "hello"}, "“hello” is no key"),
    ({"next": "a b c d"}, "at most 3 keys"),
    ({"label:talk:claim": "j"}, "“The next turn” has it"),
    ({"label:talk:claim": "x", "label:talk:answers": "x"}, "“claim” has it"),
    ({"break_minutes": "999"}, "less than or equal to 240"),
])  # fmt: skip
def test_a_key_that_is_taken_is_refused_with_the_reason_and_nothing_is_saved(client_of, annotator, queue, fields, why):
    refused = settings(client_of(annotator), **fields)
    assert refused.status_code == 400
    assert why in refused.content.decode()
    assert not AnnotatorSettings.objects.exists()


def test_two_actions_exchange_their_keys():
    assert keys.checked({"next": ["k"], "previous": ["j"]}) == {"next": ["k"], "previous": ["j"]}


def test_fixed_keys_and_unknown_actions_are_refused():
    for name in ("enter", "hop"):
        with pytest.raises(BadInput, match="cannot be changed"):
            keys.checked({name: ["x"]})


def test_no_two_actions_have_the_same_usual_key_and_none_is_taken():
    usual = [key for action in keys.ACTIONS for key in action.keys]
    assert len(usual) == len(set(usual))
    assert not set(usual) & set(keys.TAKEN)
    assert [keys.spelled(key) for key in usual] == usual


def test_a_label_whose_key_an_action_has_gets_a_free_one():
    """`answers` wants j, which goes to the next turn: it gets the first free digit, unless j is free."""
    codebook = Codebook.from_dict({"name": "talk", "version": 1, "title": "Talk", "labels": TYPES})
    usual = keys.of_labels(codebook, {})
    assert usual["claim"] == "c"
    assert len(set(usual.values())) == len(usual) == 8
    assert usual["answers"] in "1234567890"
    assert keys.of_labels(codebook, {"next": ["n"]})["answers"] == "j"
