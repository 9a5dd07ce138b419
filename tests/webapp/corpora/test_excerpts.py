"""Excerpts: the part of a passage that has most of the query, with its words marked where they stand."""

import pytest

from training.retrieval.words import words
from webapp.corpora.excerpts import BEFORE, LENGTH, WHOLE, excerpt, marked

FILLER = "lorem ipsum dolor sit amet "


def shown(parts):
    return "".join(f"[{part.text}]" if part.marked else part.text for part in parts)


@pytest.mark.parametrize(
    "text, query, expected",
    [
        ("The Eiffel Tower.", "eiffel tower", "The [Eiffel] [Tower]."),
        ("towers and tower", "tower", "towers and [tower]"),
        ("tower", "other", "tower"),
        ("", "tower", ""),
        ("STRASSE Straße", "straße", "[STRASSE] [Straße]"),
        ("ﬁsh in the sea", "fish", "[ﬁsh] in the sea"),
        ("東京タワー", "京", "東[京]タワー"),
        ("<b>tower</b> & co", "tower b", "<[b]>[tower]</[b]> & co"),
    ],
)
def test_words_are_marked_as_they_are_searched(text, query, expected):
    assert shown(marked(text, frozenset(words(query)))) == expected


def test_the_parts_are_the_text():
    text = FILLER * 40 + "the tower in Paris " + FILLER * 40
    assert "".join(part.text for part in marked(text, frozenset({"tower", "ipsum"}))) == text
    short = excerpt(text, frozenset({"tower", "paris"}))
    assert "".join(part.text for part in short.parts) in text


def test_an_excerpt_shows_where_most_words_of_the_query_stand():
    text = f"A tower. {FILLER * 40}The tower in Paris was built of iron. {FILLER * 40}"
    short = excerpt(text, frozenset({"tower", "paris", "iron"}))
    assert "The [tower] in [Paris] was built of [iron]." in shown(short.parts)
    assert (short.cut_before, short.cut_after) == (True, True)
    length = sum(len(part.text) for part in short.parts)
    assert LENGTH - BEFORE <= length <= LENGTH
    first, last = shown(short.parts).split()[0], shown(short.parts).split()[-1]
    assert {first, last} <= set(FILLER.split()), "no word is cut"


def test_a_short_text_is_shown_whole_and_a_text_without_the_words_from_its_beginning():
    assert excerpt("A tower.", frozenset({"tower"})) == (marked("A tower.", frozenset({"tower"})), False, False)
    short = excerpt(FILLER * 40, frozenset({"tower"}))
    assert (short.cut_before, short.cut_after, len(short.parts)) == (False, True, 1)
    assert short.parts[0].text.startswith("lorem")


def test_a_text_without_spaces_is_cut_at_the_length():
    short = excerpt("x" * 5000, frozenset({"y"}))
    assert len(short.parts[0].text) == LENGTH


def test_a_whole_passage_has_a_bound():
    assert sum(len(part.text) for part in marked("tower " * WHOLE, frozenset({"tower"}))) == WHOLE
    assert sum(len(part.text) for part in marked("tower " * 100, frozenset({"tower"}), 20)) == 20
