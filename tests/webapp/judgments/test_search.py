"""Search over labelled games: what is stored of each game, what the filter finds, and who finds it."""

import pytest
from django.urls import reverse

from tests.webapp.judgments.make import (
    FIVES,
    annotate,
    conversation,
    conversation_queue,
    imported,
    people_queue,
    village_match,
)
from training.records import Label
from webapp.accounts.models import User
from webapp.arena.models import Match
from webapp.judgments.annotating import services as annotating
from webapp.judgments.codebooks import services as codebooks
from webapp.judgments.models import LabelledGame
from webapp.judgments.search import services
from webapp.judgments.search.filters import LabelFilter
from webapp.judgments.search.games import index_missing

pytestmark = pytest.mark.django_db


@pytest.fixture
def village(researcher):
    """A finished village in which the annotator has to judge every seat."""
    return village_match(researcher)


def test_a_game_is_remembered_once_with_its_first_judgment(researcher, annotator, village):
    queue = people_queue(owner=researcher, match=village, annotators=[annotator])
    assert not LabelledGame.objects.exists()
    for target in queue.targets.with_games()[:2]:
        annotate(target=target, by=annotator, values=FIVES)
    row = LabelledGame.objects.get()
    assert row.match == village
    assert row.game == "werewolf"
    assert row.roles == village.roles
    assert row.movers == list(village.moves.order_by("number").values_list("seat", flat=True))
    winners = {village.roles[seat] for seat, won in enumerate(row.won) if won}
    assert winners in ({"werewolf"}, {"seer", "villager"})


def test_games_that_were_judged_before_are_remembered_after_a_migration(researcher, annotator):
    queue = conversation_queue(researcher, imported(researcher, conversation(3)), [annotator])
    annotate(target=queue.targets.with_games().first(), by=annotator, values=FIVES)
    before = LabelledGame.objects.values("game", "movers", "text").get()
    assert before["movers"] == [0, 1, 0, 1]
    assert before["text"].splitlines()[1] == "Then I take two, number 3."
    LabelledGame.objects.all().delete()
    index_missing()
    assert LabelledGame.objects.values("game", "movers", "text").get() == before


TYPES = [
    {"name": "offer", "title": "Offer", "kind": "yes_no", "about": "turn", "definition": "An offer."},
    {"name": "number", "title": "Number", "kind": "span", "about": "span", "definition": "A number."},
    {"name": "tone", "title": "Tone", "kind": "one_of", "about": "game", "definition": "Its tone.",
     "options": [{"name": "warm", "title": "Warm"}, {"name": "cold", "title": "Cold"}]},
    {"name": "fair", "title": "Fair", "kind": "scale", "about": "game", "definition": "Fair?", "low": 0, "high": 9},
]  # fmt: skip
TYPES = [{**label_type, "required": False} for label_type in TYPES]


@pytest.fixture
def labelled(researcher, annotator):
    """Two conversations: the first with labels of turns and words, the second with one of the game."""
    codebooks.save_codebook(name="moves", title="Moves", labels=TYPES, by=researcher)
    stored = imported(researcher, conversation(0), conversation(7))
    queue = conversation_queue(researcher, stored, [annotator], codebook="moves")
    first, second = queue.targets.with_games().order_by("position")
    marks = [
        Label(label="offer", value=True, turn=0),
        Label(label="number", turn=1, start=12, end=15),
        Label(label="tone", value="cold"),
        Label(label="fair", value=7.0),
    ]
    annotating.annotate(target=first, by=annotator, labels=marks)
    annotating.annotate(target=second, by=annotator, labels=[Label(label="fair", value=2.0)])
    return queue


def names(user, **query):
    form = LabelFilter(query)
    assert form.is_valid(), form.errors
    return sorted(form.labels(user).values_list("name", flat=True))


@pytest.mark.parametrize(
    "query, expected",
    [
        ({}, ["fair", "fair", "number", "offer", "tone"]),
        ({"label": "moves/offer"}, ["offer"]),
        ({"label": "other/offer"}, []),
        ({"label": "fair", "value": "2"}, ["fair"]),
        ({"value": "cold"}, ["tone"]),
        ({"value": "yes"}, ["offer"]),
        ({"about": "span"}, ["number"]),
        ({"about": "turn"}, ["offer"]),
        ({"q": "number 7"}, ["fair"]),
        ({"q": '"two, number" -7'}, ["fair", "number", "offer", "tone"]),
        ({"game": "negotiation"}, ["fair", "fair", "number", "offer", "tone"]),
        ({"game": "werewolf"}, []),
        ({"by": "people"}, ["fair", "fair", "number", "offer", "tone"]),
        ({"by": "model"}, []),
        ({"first": 1}, []),
    ],
)
def test_the_filter_selects_by_label_value_words_and_game(researcher, labelled, query, expected):
    assert names(researcher, **query) == expected


def test_a_label_of_a_turn_is_of_the_seat_that_moved(researcher, labelled):
    LabelledGame.objects.update(roles=["buyer", "seller"], won=[False, True])
    assert names(researcher, role="buyer") == ["offer"]
    assert names(researcher, role="seller") == ["number"]
    assert names(researcher, outcome="won") == ["number"]
    assert names(researcher, outcome="lost") == ["offer"]
    assert names(researcher, outcome="survived") == []


def test_who_has_yet_to_judge_a_game_finds_nothing_of_it(researcher, labelled, admin):
    labelled.annotators.add(researcher)
    assert names(researcher) == []
    assert len(names(admin)) == 5


def test_labels_of_a_private_match_are_found_by_those_who_may_see_it(researcher, annotator, admin, village, labelled):
    found = names(admin)
    village.visibility = Match.Visibility.PRIVATE
    village.save()
    queue = people_queue(owner=researcher, match=village, annotators=[annotator])
    annotate(target=queue.targets.with_games().first(), by=annotator, values=FIVES)
    other = User.objects.create(username="another", role="researcher")
    assert names(other) == found
    assert len(names(admin)) == len(found) + len(FIVES)


def test_the_page_shows_the_very_words_and_keeps_the_search(client_of, researcher, labelled):
    client = client_of(researcher)
    page = client.get(reverse("judgments:search"), {"label": "moves/number"}).content.decode()
    assert "Then I take <mark>two</mark>, number 0." in " ".join(page.split())
    assert "<strong>1</strong> label in <strong>1</strong> game" in page
    client.post(reverse("judgments:save-search"), {"name": "numbers", "query": "label=moves%2Fnumber"})
    page = client.get(reverse("judgments:search")).content.decode()
    assert f'{reverse("judgments:search")}?label=moves%2Fnumber">numbers</a>' in page


def test_the_file_has_a_row_a_label_and_no_formula(client_of, researcher, labelled):
    rows = b"".join(client_of(researcher).get(reverse("judgments:search-file"), {"about": "turn"}).streaming_content)
    lines = rows.decode().splitlines()
    assert lines[0].startswith("label,value,codebook,version,game,source,seat,turn")
    assert [line.split(",")[0] for line in lines[1:]] == ["offer"]
    assert "offer,yes,moves,1,negotiation,file:0,0,0" in rows.decode()


def test_wrong_values_select_nothing_and_say_why(client_of, researcher, labelled):
    page = client_of(researcher).get(reverse("judgments:search"), {"first": "9", "last": "3"}).content.decode()
    assert "The last step is before the first." in page
    assert "<mark>" not in page


def test_a_search_of_the_same_name_is_replaced_and_of_others_is_not_found(client_of, researcher, admin):
    services.save(owner=researcher, name="lies", query="label=a")
    kept = services.save(owner=researcher, name=" lies ", query="label=b")
    assert [search.query for search in researcher.label_searches.all()] == ["label=b"]
    assert client_of(admin).post(reverse("judgments:forget-search", args=[kept.pk])).status_code == 404
    client_of(researcher).post(reverse("judgments:forget-search", args=[kept.pk]))
    assert not researcher.label_searches.exists()
