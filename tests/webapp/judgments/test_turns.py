"""Labels of turns, words and pairs of turns: what a page shows, takes and refuses."""

import json

import pytest
from django.urls import reverse

from tests.webapp.api.calling import Caller
from tests.webapp.judgments.make import (
    FIVES,
    annotate,
    conversation,
    conversation_queue,
    imported,
    village_match,
)
from training.labels.codebooks import Codebook
from training.records import Label
from webapp.judgments import games
from webapp.judgments.annotating import marks, turns
from webapp.judgments.annotating import services as annotating
from webapp.judgments.codebooks import services as codebooks
from webapp.judgments.models import Judgment
from webapp.judgments.queues import services as queues
from webapp.judgments.results import comparison, decisions, estimates

pytestmark = pytest.mark.django_db

SPOKEN = ["One pen is enough for me.", "Then I take two, number 0."]
TYPES = [
    {"name": "fair", "title": "Fair", "kind": "yes_no", "about": "game", "definition": "Was the deal fair?"},
    {"name": "warm", "title": "Warm", "kind": "yes_no", "about": "seat", "definition": "Was the seat warm?"},
    {
        "name": "offer",
        "title": "Offer",
        "kind": "yes_no",
        "about": "turn",
        "definition": "An offer.",
        "required": False,
    },
    {"name": "number", "title": "Number", "kind": "span", "about": "span", "definition": "A number."},
    {"name": "answers", "title": "Answers", "kind": "relation", "about": "pair", "definition": "It answers."},
]
VALUES = {"value-fair": "1", "value-0-warm": "0", "value-1-warm": "1"}
MARKS = [
    {"label": "offer", "turn": 0},
    {"label": "number", "turn": 1, "start": 12, "end": 15},
    {"label": "answers", "turn": 1, "other_turn": 0},
]


@pytest.fixture
def queue(researcher, annotator):
    codebooks.save_codebook(name="moves", title="Moves", labels=TYPES, by=researcher)
    return conversation_queue(researcher, imported(researcher, conversation()), [annotator], codebook="moves")


@pytest.fixture
def page(client_of, annotator, queue):
    """Post labels of turns for the queue's one game."""
    client, address = client_of(annotator), reverse("judgments:annotate", args=[queue.pk])
    (target,) = queue.targets.all()

    def post(marks, **changes):
        sent = json.dumps(marks) if isinstance(marks, list) else marks
        return client.post(address, {"target": target.pk, "labels": sent, **VALUES, **changes})

    post.get = lambda query="": client.get(address + query).content.decode()
    post.target = target
    return post


def test_a_codebook_about_more_than_seats_asks_about_whole_games(queue, page):
    assert [target.seat for target in queue.targets.all()] == [None]
    shown = page.get()
    assert "Judge <strong>the game</strong>" in shown
    for number, text in enumerate(SPOKEN):
        assert f'<li data-turn="{number}" data-seat="{number}"' in shown
        assert f'data-length="{len(text)}">{text}</span>' in shown
    assert {name for name in VALUES if f'name="{name}"' in shown} == set(VALUES), "the game and each seat"


def test_labels_of_every_place_are_stored_and_shown_again(page, client_of, annotator):
    assert page(MARKS, reason="clear").status_code == 302
    judgment = Judgment.objects.get()
    assert judgment.seat is None
    assert set(judgment.records()) == {
        Label(label="fair", value=True),
        Label(label="warm", value=False, seat=0),
        Label(label="warm", value=True, seat=1),
        Label(label="offer", value=True, turn=0),
        Label(label="number", turn=1, start=12, end=15),
        Label(label="answers", turn=1, other_turn=0),
    }
    assert SPOKEN[1][12:15] == "two"
    again = page.get(f"?target={page.target.pk}")
    sent = json.loads(again.split('name="labels"')[1].split('value="')[1].split('"')[0].replace("&quot;", '"'))
    assert sorted(sent, key=str) == sorted(MARKS, key=str)
    page(MARKS[:1], reopened="1")
    judgment = Judgment.objects.get()
    assert [label.label for label in judgment.records() if label.turn is not None] == ["offer"]
    assert len(judgment.history) == 1


REFUSED = {
    "no list": ("{", "could not be read"),
    "an object": ("{}", "expected a list"),
    "no label": ([7], "expected labels with a turn"),
    "another member": ([{**MARKS[0], "score": 7}], "expected labels with a turn"),
    "a value of another kind": ([{**MARKS[0], "value": 7}], "yes or no"),
    "a value where there is none": ([{**MARKS[1], "value": 7}], "the place is the label"),
    "an unknown type": ([{"label": "luck", "turn": 0}], "no label of this name"),
    "another turn": ([{"label": "offer", "turn": 9}], "no turn 10"),
    "too many words": ([{"label": "number", "turn": 1, "start": 0, "end": 99}], "no such words"),
    "words for a turn": ([{"label": "number", "turn": 1}], "about a span"),
    "an overlap": ([MARKS[1], {**MARKS[1], "start": 0}], "overlap in turn 2 at character 13"),
    "twice": ([MARKS[0], MARKS[0]], "two of these labels"),
    "a turn and itself": ([{**MARKS[2], "other_turn": 1}], "another turn"),
    "a seat's label": ([{"label": "warm", "turn": 0}], "about a seat"),
}


@pytest.mark.parametrize("marks, why", REFUSED.values(), ids=REFUSED)
def test_what_does_not_fit_is_refused_and_kept_on_the_page(page, marks, why):
    refused = page(marks)
    assert refused.status_code == 400
    assert why in refused.content.decode()
    assert not Judgment.objects.exists()


def test_a_value_that_is_missing_is_asked_for_and_the_labels_are_kept(page):
    refused = page(MARKS, **{"value-1-warm": ""})
    assert refused.status_code == 400
    assert "&quot;number&quot;" in refused.content.decode().split('name="labels"')[1][:400]
    assert not Judgment.objects.exists()


def test_characters_are_those_of_the_moves_text(researcher):
    """By hand: the page shows the text as `Hm. "Yes" - 👍 now`; the span `- 👍` of it, characters 10 to 13, are the
    dash and the thumb of the stored text, behind one space and four stars more.
    """
    codebook = Codebook.from_dict({"name": "moves", "version": 1, "title": "Moves", "labels": TYPES})
    stored = "Hm.  **\u201cYes\u201d** \u2014 \U0001f44d\n\nnow"
    (line,) = [line for line in turns.turn_lines(*talk(stored)) if line.turn == 0]
    assert line.text == 'Hm. "Yes" - \U0001f44d now'
    sent = [{"label": "number", "turn": 0, "start": 10, "end": 13}]
    (mark,) = marks.from_page(json.dumps(sent), codebook, [line])
    assert (mark.label.start, mark.label.end) == (15, 18)
    assert stored[15:18] == "\u2014 \U0001f44d"
    assert marks.for_page([mark], [line]) == sent


def talk(text):
    record = conversation().episode
    first = record.moves[0]
    return record.scenario, [first.model_copy(update={"move": first.move.model_copy(update={"text": text})})]


def test_every_spoken_turn_of_a_game_has_its_move(researcher):
    match = games.of_match(village_match(researcher))
    lines = match.turn_lines(hidden=True)
    spoken = [line for line in lines if line.turn is not None]
    assert spoken, "the game has turns"
    for line in spoken:
        assert match.moves[line.turn].seat == line.seat
        if line.places:
            text = match.moves[line.turn].move.text
            assert turns.plain(text[line.places[0] : line.places[-1] + 1])[0] == line.text
    public = match.turn_lines()
    assert [line.text for line in public] == [line.text for line in lines if not line.hidden]
    assert 0 < len(public) < len(lines), "the night and the end are hidden"


# --- results and blinding of whole games ---


def test_means_are_of_seats_and_games_and_never_of_turns(queue, page, annotator):
    """By hand: seat 0 was not warm and seat 1 was, and the deal was fair. A mark of a turn is no value of 1."""
    page(MARKS)
    by_player = estimates.of_queue(queue)
    shown = {player: {each.label_type.name: each.mean for each in row} for player, row in by_player.items()}
    assert shown == {"imported v1": {"warm": 0.5}, "whole games": {"fair": 1.0}}
    (author,) = comparison.of_queue(queue).authors
    means = [(each.label_type.name, each.mean) for each in author.estimates]
    assert means == [("fair", 1.0), ("warm", 0.5), ("offer", 0.25)], "the share of the turns that are offers"


@pytest.mark.parametrize("judged_first", ["seats", "the game"])
def test_a_judge_of_the_game_or_of_a_seat_reads_nothing_about_the_other_before(
    queue, page, researcher, annotator, person, judged_first
):
    """Whoever has yet to judge a game is shown nothing about its seats, and the other way round."""
    other = person("annotator", "other")
    seats = conversation_queue(researcher, queue.targets.get().conversation.scenario.version, [other])
    if judged_first == "seats":
        seats.annotators.set([other])
        annotate(target=seats.targets.first(), by=other, values=FIVES)
        awaiting = annotator
    else:
        page(MARKS)
        awaiting = other
    assert Judgment.objects.count() == 1
    assert not Judgment.objects.not_awaited_by(awaiting).exists()
    assert Judgment.objects.not_awaited_by(researcher).count() == 1


def test_agreement_on_turns_counts_those_that_nobody_marked(queue, page, person):
    """By hand, Krippendorff's alpha of two authors over four turns, of whom one marks the first and the third turn and
    the other the first: pairs 1 1, 0 0, 1 0, 0 0, so 2 of 8 values disagree within their turn. Of the 8 values 3 are
    yes: 2 x 3 x 5 / (8 x 7) = 0.536 are expected to disagree. alpha = 1 - 0.25 / 0.536 = 0.533.
    """
    second = person("annotator", "second")
    queue.annotators.add(second)
    page([MARKS[0], {"label": "offer", "turn": 2}])
    values = [("fair", None), ("warm", 0), ("warm", 1)]
    labels = [Label(label=name, value=True, seat=seat) for name, seat in values]
    target = queue.targets.with_games().get()
    annotating.annotate(target=target, by=second, labels=[*labels, Label(label="offer", value=True, turn=0)])
    target.refresh_from_db()
    assert target.turns == [0, 1, 2, 3]
    compared = comparison.of_queue(queue)
    titles = [label_type.title for label_type in compared.label_types]
    assert titles == ["Fair", "Warm", "Offer"]
    offer = compared.agreements[titles.index("Offer")]
    assert (offer.seats, round(offer.value, 3)) == (4, 0.533)
    shares = {author.name: author.estimates[2].mean for author in compared.authors}
    assert shares == {"annotator 1": 0.5, "annotator 2": 0.25}
    assert [author.scored for author in compared.authors] == [3, 3], "the game and its two seats, not its turns"


def test_own_and_gold_labels_have_the_numbers_of_the_page_and_no_turn_that_it_hides(
    client_of, researcher, annotator, queue
):
    match, codebook = village_match(researcher), queue.codebook_version
    village = queues.create_queue(
        name="v", owner=researcher, codebook_version=codebook, matches=[match], annotators=[annotator]
    )
    target = village.targets.with_games().get()
    line = [line for line in games.of_match(match).turn_lines() if line.places][-1]
    hidden = 0
    assert hidden not in games.of_match(match).turns_shown(), "a move of the night"
    assert line.turn > line.number
    common = [Label(label="fair", value=True), *(Label(label="warm", value=True, seat=seat) for seat in range(6))]
    marked = Label(label="number", turn=line.turn, start=line.places[0], end=line.places[-1] + 1)
    annotating.annotate(target=target, by=annotator, labels=[*common, marked])
    decided = [*common, marked, Label(label="offer", value=True, turn=hidden)]
    decisions.decide(target=target, by=researcher, labels=decided, note="so it is")
    decisions.set_gold(target=target, gold=True)
    place = f"characters 1 to {len(line.places)} of turn {line.number + 1}"
    pages = [reverse("judgments:own_judgments", args=[village.pk]),
             reverse("judgments:gold-answer", args=[village.pk, target.pk])]  # fmt: skip
    for address, times in zip(pages, (1, 2), strict=True):
        page = client_of(annotator).get(address).content.decode()
        assert page.count(place) == times
        assert page.count(">seat 6<") + page.count("seat 6:") == times, "six labels of one name are told apart by seat"
        assert f"turn {line.turn + 1}" not in page
        assert "Offer" not in page, "of a turn that annotators do not read"


def test_a_refused_label_tells_neither_how_many_moves_a_game_has_nor_how_long_a_hidden_text_is(
    researcher, annotator, queue
):
    match = village_match(researcher)
    village = queues.create_queue(
        name="v", owner=researcher, codebook_version=queue.codebook_version, matches=[match], annotators=[annotator]
    )
    target, moves = village.targets.get(), games.of_match(match).moves
    line = [line for line in games.of_match(match).turn_lines() if line.places][-1]
    common = [{"label": "fair", "value": True}, *({"label": "warm", "value": True, "seat": n} for n in range(6))]

    def why(**label):
        answer = Caller(annotator).post("judgments", target=target.pk, labels=[*common, label])
        assert answer.status_code == 422
        return answer.json()["why"]

    hidden, beyond = {"label": "number", "turn": 0}, {"label": "number", "turn": len(moves)}
    for place in ({"start": 0, "end": 1}, {"start": 0, "end": 9999}):
        assert why(**hidden, **place) == "the game has no turn 1 to label"
        assert why(**beyond, **place) == f"the game has no turn {len(moves) + 1} to label"
    assert why(label="answers", turn=line.turn, other_turn=0) == "the game has no turn 1 to label"
    far = why(label="number", turn=line.turn, start=0, end=9999)
    assert far == f"turn {line.turn + 1} has no such words to label"
