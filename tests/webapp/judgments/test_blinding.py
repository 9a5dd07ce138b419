"""Pages of a judgment say nothing of who played, when, or how it ended: neither names nor format nor numbers.

Games that differ only in these give byte-identical pages, but for tokens of requests and ids of rows. A classifier that
tells the format of texts apart where it can read them as written finds nothing on the pages.
"""

import difflib
import random
import re
from datetime import timedelta

import pytest
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import timezone

from tests.trust.matrix.scenarios import SCENARIO
from tests.webapp.judgments.make import conversation_queue, finished_match, imported, version, village_match
from tests.webapp.runs.making import make_episode, make_run
from training.dataset import Conversation
from training.records import Episode, Move, SeatMove
from webapp.arena.models import Match
from webapp.arena.play.services import moves_of
from webapp.judgments import games
from webapp.judgments.annotating import views as annotating
from webapp.judgments.annotating.turns import plain
from webapp.judgments.models import Queue
from webapp.judgments.queues import services as queues

pytestmark = pytest.mark.django_db
ROWS = re.compile(
    r'"X-CSRFToken": "\w+"|csrfmiddlewaretoken" value="\w+"|(?<=target-)\d+|(?<=judge-)\d+|(?<=reason-)\d+|(?<=why-)\d+'
    r"|(?<=guideline-)\d+|(?<=id-)\d+|(?<=queues/)\d+|(?<=draft:)\d+:\d+|(?<=data-target=\")\d+"
    r"|(?<=name=\"target\" value=\")\d+"
)
"""Tokens of a request, and ids of rows."""


def page(client, queue):
    """The page of the queue's first target, without tokens and ids."""
    answer = client.get(reverse("judgments:annotate", args=[queue.pk]))
    assert answer.status_code == 200
    return ROWS.sub("", answer.content.decode())


def record(scenario, moves, returns):
    episode = Episode(scenario=scenario, moves=tuple(moves), returns=returns).to_dict()
    return {"version": 1, "episode": {**episode, "traces": []}, "returns": {}, "credit": []}


def other_values(scenario):
    """The same table, where the pens are worth other points to both: another outcome of the same talk."""
    deal = scenario.settings["deal"]
    sides = [{"values": {"pen": 9}}, {"values": {"pen": 4}}]
    return scenario.model_copy(update={"settings": {**scenario.settings, "deal": {**deal, "sides": sides}}})


def test_pages_of_games_that_differ_in_players_step_time_and_outcome_are_the_same(client_of, researcher, annotator):
    common = {"name": "q", "owner": researcher, "codebook_version": version(), "annotators": [annotator]}
    match = finished_match(researcher)
    late = finished_match(researcher)
    Match.objects.filter(pk=late.pk).update(created_at=timezone.now() - timedelta(days=90))
    moves = list(moves_of(match))
    early = make_episode(
        make_run(researcher, name="WIZARD-7"), step=3, record=record(SCENARIO, moves, {0: 1.0, 1: 4.0})
    )
    last = make_episode(
        make_run(researcher, name="OWL-70b"), 900, 41, record(other_values(SCENARIO), moves, {0: 9.0, 1: 8.0})
    )
    made = [queues.create_queue(**common, matches=[each]) for each in (match, late)]
    made += [queues.create_queue(**common, episodes=[each]) for each in (early, last)]
    Queue.objects.update(order=Queue.Order.POSITION)  # or the first seat would be drawn for each queue
    pages = [page(client_of(annotator), queue) for queue in made]
    for other in pages[1:]:
        assert list(difflib.unified_diff(pages[0].splitlines(), other.splitlines(), n=0)) == []
    assert "offers Ben pen × 2" in pages[0], "the public talk is there"
    for trace in ("WIZARD", "OWL", "900", "scripted", "of 3 points", "Deal:", "accepted"):
        assert trace not in pages[0]


def test_a_village_shows_neither_roles_nor_nights_nor_who_won(client_of, researcher, annotator):
    match = village_match(researcher)
    common = {"name": "q", "owner": researcher, "annotators": [annotator], "matches": [match]}
    queue = queues.create_queue(**common, codebook_version=version("sotopia"))
    blind = page(client_of(annotator), queue)
    secret = [line.text for line in games.of_match(match).turn_lines(hidden=True) if line.hidden]
    assert secret
    talk = blind.split('<ol class="talk">')[1].split("</ol>")[0]
    assert "win" not in talk
    assert "You are" not in blind
    assert "hidden-fact" not in blind
    queue.shows_hidden = True
    queue.save()
    unblinded = page(client_of(annotator), queue)
    assert "hidden-fact" in unblinded
    assert '<details class="hidden-facts">' in unblinded, "closed at first"
    assert "werewolf" in unblinded.split('<details class="hidden-facts">')[1].split("</details>")[0].lower()


# --- format ---


@pytest.mark.parametrize("text, shown", [
    ("**Yes**,  I\tagree\u2026", "Yes, I agree..."),
    ("# Plan\n- first\n- `second`", "Plan first second"),
    ("\u201cFine\u201d \u2014 it\u2019s *mine*", '"Fine" - it\'s mine'),
    ("2 * 3 = 6 and a_b__c", "2 * 3 = 6 and a_bc"),
    ("  \n ", ""),
])  # fmt: skip
def test_a_text_without_its_format_knows_where_each_character_stood(text, shown):
    read, places = plain(text)
    assert read == shown
    assert len(places) == len(read)
    assert list(places) == sorted(places)
    kept = [(each, text[at]) for each, at in zip(read, places, strict=True) if each.isalnum()]
    assert all(each == stood for each, stood in kept)


WORDS = ("we", "could", "share", "the", "pens", "if", "you", "leave", "me", "some", "it", "is", "cold")


def said(chance, model):
    """A sentence of the same words and marks; a model formats it, a person types it."""
    words = [chance.choice(WORDS) for _ in range(12)]
    if not model:
        return f'{" ".join(words[:6])} - "{words[6]}" {" ".join(words[7:])}'
    return f"**{words[0]}** {' '.join(words[1:6])} \u2014 \u201c{words[6]}\u201d\n\n- {' '.join(words[7:])}"


def signs(text):
    """How often each character that is no letter of a word stands in a text."""
    return {sign: text.count(sign) for sign in set(text) if not sign.isalpha()} | {"length": len(text) // 4}


def hits(texts):
    """The share of held-out texts whose kind the nearest neighbour of the others names."""

    def distance(first, second):
        return sum(abs(first.get(key, 0) - second.get(key, 0)) for key in first.keys() | second.keys())

    rows = [(signs(text), kind) for text, kind in texts]
    right = 0
    for at, (row, kind) in enumerate(rows):
        others = [each for place, each in enumerate(rows) if place != at]
        nearest = min(distance(row, other) for other, _ in others)
        votes = [other == kind for features, other in others if distance(row, features) == nearest]
        right += sum(votes) / len(votes)
    return right / len(rows)


def test_a_classifier_of_what_is_not_words_finds_the_model_in_the_texts_and_not_on_the_pages(researcher, annotator):
    """Of 40 pages, 20 of each kind, chance names 20; 30 or more have a probability of 0.0011 (binomial)."""
    chance = random.Random(7)
    written, talks = [], []
    for number in range(40):
        model = number % 2 == 1
        texts = [said(chance, model) for _ in range(2)]
        written.append((" ".join(texts), model))
        moves = tuple(SeatMove(seat=seat, move=Move(action="talk", text=text)) for seat, text in enumerate(texts))
        source = f"run:{number}" if model else f"table:{number}"
        talks.append(Conversation(source=source, episode=Episode(scenario=SCENARIO, moves=moves)))
    assert hits(written) == 1
    queue = conversation_queue(researcher, imported(researcher, *talks), [annotator])
    pages = []
    for target, (_, model) in zip(queue.targets.with_games().filter(seat=0).order_by("position"), written, strict=True):
        context = {**annotating._target(target, None, annotator), "queue": queue}
        pages.append((ROWS.sub("", render_to_string("judgments/annotate_target.html", context)), model))
    assert hits(pages) < 0.75
